--- json.lua - lab.json: Lua values as JSON text, with the order of keys kept.
local core = require "sinklab.core"
local schema = require "sinklab.base.schema"
local strings = require "sinklab.base.strings"
local valid_utf8 = strings.valid_utf8

-- Reading is jansson's. Its writer would put each number of a list on a line of its own,
-- and 0.1 as 0.10000000000000001: numbers here are the shortest that read back the same.
local json = { null = core.json_null }

schema.describe("lab.json.null",
  "The value that JSON's null reads as and is written from.", {}, nil,
  "print(lab.json.encode { lab.json.null })", nil, core.json_null)

-- Marks of tables as arrays or objects; an unmarked table is an array when its keys are
-- 1..n with n > 0, else an object with its keys sorted.
local kinds, orders = setmetatable({}, { __mode = "k" }), setmetatable({},
  { __mode = "k" })

json.array = schema.func("lab.json.array", {
  doc = "Mark a table as an array, which matters when it is empty.",
  args = { { "t", "table" } },
  returns = "t",
  example = "print(lab.json.encode(lab.json.array {}))",
}, function(t)
  kinds[t] = "array"
  return t
end)

json.object = schema.func("lab.json.object", {
  doc = "Mark a table as an object whose keys come in this order, others sorted after.",
  args = { { "t", "table" },
    { "order", "table", optional = true, doc = "list of keys" } },
  returns = "t",
  example = [[print(lab.json.encode(lab.json.object({ b = 1, a = 2 }, { "b", "a" })))]],
}, function(t, order)
  kinds[t] = "object"
  orders[t] = order
  return t
end)

json.decode = schema.func("lab.json.decode", {
  doc = [[Read JSON text. Whole numbers beyond 64 bits are read as floats; an empty array
    is marked as one (lab.json.array).]],
  args = { { "text", "string" } },
  returns = "the value, or nil and a message that says where the text is wrong",
  example = [[print(lab.json.decode('{ "a": [1, 2] }').a[2])]],
}, function(s) return core.json_decode(s, kinds) end)

local escapes = { ['"'] = '\\"', ["\\"] = "\\\\", ["\b"] = "\\b", ["\f"] = "\\f",
  ["\n"] = "\\n", ["\r"] = "\\r", ["\t"] = "\\t" }

local function escape(c) return escapes[c] or ("\\u%04x"):format(c:byte()) end

local function text(s)
  return '"' .. valid_utf8(s):gsub('[%c"\\\127]', escape) .. '"'
end

local function number(x)
  if math.type(x) == "integer" then return ("%d"):format(x) end
  for digits = 15, 17 do
    local s = ("%%.%dg"):format(digits):format(x)
    if tonumber(s) == x then
      return s:find "[.en]" and s or s .. ".0"
    end
  end
end

json.number = schema.func("lab.json.number", {
  doc = "The shortest decimal text that reads back as the same number.",
  args = { { "x", "number", doc = "finite" } },
  returns = "text",
  example = "print(lab.json.number(0.1))",
}, number)

local encode

local function sorted_keys(t)
  local keys, seen = {}, {}
  for _, key in ipairs(orders[t] or {}) do
    if t[key] ~= nil then keys[#keys + 1] = key end
    seen[key] = true
  end
  local rest = {}
  for key in pairs(t) do
    if type(key) ~= "string" then
      error("JSON: a table with both names and numbers as keys", 0)
    end
    if not seen[key] then rest[#rest + 1] = key end
  end
  table.sort(rest)
  return table.move(rest, 1, #rest, #keys + 1, keys)
end

local function is_array(t)
  if kinds[t] then return kinds[t] == "array" end
  return #t > 0
end

--- Arrays of plain values stay on one line.
local function is_flat(t)
  for _, v in ipairs(t) do
    if type(v) == "table" then return false end
  end
  return true
end

local function encode_table(out, t, indent)
  local inner = indent .. "  "
  if is_array(t) then
    for key in pairs(t) do
      if math.type(key) ~= "integer" or key < 1 or key > #t then
        error(("JSON: a list of %d with the key %s"):format(#t, tostring(key)), 0)
      end
    end
    local flat = is_flat(t)
    out[#out + 1] = "["
    for i = 1, #t do
      if i > 1 then out[#out + 1] = flat and ", " or "," end
      if not flat then out[#out + 1] = "\n" .. inner end
      encode(out, t[i], inner)
    end
    if not flat then out[#out + 1] = "\n" .. indent end
    out[#out + 1] = "]"
    return
  end
  local keys = sorted_keys(t)
  out[#out + 1] = "{"
  for i, key in ipairs(keys) do
    out[#out + 1] = (i > 1 and ",\n" or "\n") .. inner .. text(key) .. ": "
    encode(out, t[key], inner)
  end
  out[#out + 1] = #keys > 0 and "\n" .. indent .. "}" or "}"
end

function encode(out, value, indent)
  local kind = type(value)
  if value == json.null or value == nil then
    out[#out + 1] = "null"
  elseif kind == "boolean" then
    out[#out + 1] = tostring(value)
  elseif kind == "number" then
    -- JSON has no word for NaN and the infinities.
    if value - value == 0 then
      out[#out + 1] = number(value)
    else
      out[#out + 1] = out.words and text(strings.number_word(value)) or "null"
    end
  elseif kind == "string" then
    out[#out + 1] = text(value)
  elseif kind == "table" then
    if #indent > 200 then error("JSON: a table nested deeper than 100", 0) end
    encode_table(out, value, indent)
  else
    error("JSON has no form for a " .. kind, 0)
  end
end

json.encode = schema.func("lab.json.encode", {
  doc = "JSON text of a value, indented by two spaces.",
  args = { { "value", "any",
    doc = "table, text, number, boolean, nil or lab.json.null" } },
  options = {
    { "not_finite", "string", choices = { "null", "text" }, default = "null",
      doc = [[how NaN and the infinities, for which JSON has no form, are written: null,
        or the texts "nan", "inf" and "-inf"]] },
  },
  returns = "text",
  errors = "a function, a thread, userdata, tables that nest deeper than 100",
  example = [[print(lab.json.encode { name = "softmax", heads = { 0.99, 0.95 } })]],
}, function(value, o)
  local out = { words = o.not_finite == "text" }
  local ok, message = pcall(encode, out, value, "")
  if not ok then core.raise(message) end
  return table.concat(out)
end)

return json
