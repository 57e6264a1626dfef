-- test_json.lua - JSON text read and written.
local check = require "check"
local lab = require "sinklab"
local json = lab.json

check.test("values keep their types", function()
  local text = [[{"a": [1, 2.5, -3e2, true, false, "x\u00e9\n"], "b": {}, "c": []}]]
  local t = json.decode(text)
  check.equal(t, { a = { 1, 2.5, -300.0, true, false, "x\u{e9}\n" }, b = {}, c = {} })
  check.equal(json.decode "null", json.null)
end)

check.test("what is written reads back", function()
  local t = { z = 1, a = { 1, 2, { x = "quote \" slash \\ tab \t" } }, f = 0.1,
    big = 2 ^ 53, tiny = 5e-324, whole = 3.0, i = math.mininteger, t = true }
  check.equal(json.decode(json.encode(t)), t)
end)

check.test("numbers are as short as they can be", function()
  check.equal(json.number(0.1), "0.1")
  check.equal(json.number(1 / 3), "0.3333333333333333")
  check.equal(json.number(1e-4), "0.0001")
  check.equal(json.number(3.0), "3.0")
  check.equal(json.number(7), "7")
end)

check.test("keys come in the given order, others sorted after", function()
  local t = json.object({ b = 1, a = 2, d = 3, c = 4 }, { "d", "b" })
  local text = json.encode(t):gsub("%s", "")
  check.equal(text, '{"d":3,"b":1,"a":2,"c":4}')
end)

check.test("empty tables, NaN and the infinities", function()
  check.equal(json.encode {}, "{}")
  check.equal(json.encode(json.array {}), "[]")
  check.equal(json.encode { 0 / 0, math.huge, -math.huge }, "[null, null, null]")
end)

check.test("bytes that are not UTF-8 give valid JSON", function()
  check.equal(json.decode(json.encode "a\xffb\xc3"), "a\u{FFFD}b\u{FFFD}")
  check.equal(json.decode(json.encode "\0\1\127"), "\0\1\127")
  check.equal(json.encode "\1\127", '"\\u0001\\u007f"')
end)

check.test("bad text gives nil and a place", function()
  for _, text in ipairs { "", "{", "[1,]", '{"a":1,"a":2}', "1 2", "nul", '"\xff"',
    ("["):rep(5000) } do
    local value, message = json.decode(text)
    check.equal(value, nil, text:sub(1, 20))
    check.contains(message, "JSON, line")
  end
end)

check.test("deep nesting gives nil and a sentence", function()
  local function nested(n) return ('{"a":['):rep(n / 2) .. ("]}"):rep(n / 2) end
  check.equal(type(json.decode(nested(200))), "table")
  local value, message = json.decode(nested(202))
  check.equal(value, nil)
  check.equal(message, "JSON: nested deeper than 200")
end)

check.test("what JSON cannot say is refused at the caller's line", function()
  check.raises("test_json.lua:", function() json.encode { print } end)
  check.raises("JSON has no form for a function", json.encode, { a = print })
  check.raises("names and numbers", json.encode, { [1] = nil, [2] = 1, a = 2 })
  check.raises("JSON: a list of 2 with the key a", json.encode, { 1, 2, a = 3 })
  check.raises("JSON: a list of 1 with the key 1.5", json.encode, { 1, [1.5] = 3 })
  local loop = {}
  loop.loop = loop
  check.raises("nested deeper", json.encode, loop)
end)

check.test("arrays stay arrays, large numbers are read", function()
  for _, json in ipairs { "[]", "{}", "[[], {}]" } do
    local text = lab.json.encode(assert(lab.json.decode(json)))
    check.equal((text:gsub("%s", "")), (json:gsub("%s", "")))
  end
  check.equal(lab.json.decode "[9223372036854775807, 9223372036854775808, -1e30]",
    { math.maxinteger, 0x1p63, -1e30 })
  check.equal(lab.json.decode(lab.json.encode(0x1p63)), 0x1p63)
end)

check.done()
