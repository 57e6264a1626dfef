-- test_text.lua - tables for the terminal, and how the prompt prints results.
local check = require "check"
local lab = require "sinklab"
local show = require "sinklab.prompt.show".print

check.test("numbers to the right, words to the left", function()
  check.equal(lab.text.table({ "name", "value" }, { { "a", 1.5 }, { "bcd", -10 } }),
    "name  value\n----  -----\na       1.5\nbcd     -10")
end)

check.test("missing cells and wide characters", function()
  check.equal(lab.text.table({ "é", "b" }, { { "x" }, { "yy", "" } }),
    "é   b\n--  -\nx\nyy")
  check.equal(lab.text.table({ "a" }, {}), "a\n-")
end)

check.test("wrong use of tables", function()
  local cases = { { "the names must be a table, got nil" },
    { "the rows must be a table, got nil", { "a" } },
    { "row 2 must be a list of cells, got 5", { "a" }, { {}, 5 } },
    { "name 1 must be a string, got a table", { {} }, {} } }
  for _, case in ipairs(cases) do
    check.raises("lab.text.table: " .. case[1], lab.text.table, case[2], case[3])
  end
  check.raises("lab.text.alternatives: the list must be a table, got 5",
    lab.text.alternatives, 5)
  check.raises("lab.text.alternatives: the list must be a list of texts, without names "
    .. "and gaps", lab.text.alternatives, { "a", nil, "c" })
  check.raises("lab.text.width: the text must be a string or a number, got a table",
    lab.text.width, {})
  check.raises('(write lab.mechanism("relu", { OPTION = VALUE }))', lab.mechanism,
    { "relu", normaliser = "visible" })
  check.raises("expected the name of a plugin, got nil", lab.mechanism, nil)
end)

check.test("words in lines", function()
  check.equal(lab.text.wrap("one two  three\nfour", 9, 2), "one two\n  three\n  four")
  check.equal(lab.text.wrap("longer-than-that x", 5), "longer-than-that\nx")
  check.equal(lab.text.wrap("\u{E9}\u{E9} \u{E9}", 4), "\u{E9}\u{E9} \u{E9}")
  check.equal(lab.text.wrap("", 5), "")
  check.raises("lab.text.wrap: the width must be a number, got nil", lab.text.wrap, "x")
end)

check.test("thousands", function()
  for n, want in pairs { [0] = "0", [12] = "12", [999] = "999", [1000] = "1,000",
    [-123456] = "-123,456", [1234567] = "1,234,567" } do
    check.equal(lab.text.grouped(n), want)
  end
  check.raises("lab.text.grouped: the number must be a whole number, got 1.5",
    lab.text.grouped,
    1.5)
end)

check.test("alternatives", function()
  check.equal(lab.text.alternatives { "a" }, "a")
  check.equal(lab.text.alternatives { "a", "b", "c" }, "a, b or c")
end)

--- What show prints.
local function shown(...)
  local lines, old = {}, print
  _G.print = function(s) lines[#lines + 1] = s end
  local ok, message = pcall(show, ...)
  _G.print = old
  assert(ok, message)
  return table.concat(lines, "\n")
end

check.test("tables print with their keys sorted", function()
  check.equal(shown { b = 2, a = "x", [3] = true }, '{ [3] = true, a = "x", b = 2 }')
  check.equal(shown { 1, 2, n = {} }, "{ 1, 2, n = {} }")
  check.equal(shown(nil, "text", 1.5), "nil\ntext\n1.5")
end)

check.test("deep, long and circular tables end", function()
  check.contains(shown { { { { 1 } } } }, "{ ... }")
  local loop = {}
  loop.again = loop
  check.contains(shown(loop), "the same table again")
  local long = {}
  for i = 1, 1000 do long[i] = i end
  check.contains(shown(long), "940 more")
end)

check.done()
