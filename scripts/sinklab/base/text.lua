--- text.lua - lab.text: aligned tables and words for the terminal.
local check = require "sinklab.base.check"
local schema = require "sinklab.base.schema"
local strings = require "sinklab.base.strings"

local text = {}

local function width_of(s) return utf8.len(s) or #s end

text.width = schema.func("lab.text.width", {
  doc = "Columns that a string takes on a terminal; bytes where it is not UTF-8.",
  args = { { "text", "string number" } },
  returns = "whole number",
  example = [[print(lab.text.width "na\u{EF}ve")]],
}, function(s) return width_of(tostring(s)) end)

local function is_number(s)
  return s == "-" or s == "nan" or s == "" or tonumber(s) ~= nil
end

text.table = schema.func("lab.text.table", {
  doc = [[
An aligned table: columns of numbers to the right, of words to the left. Control
characters and bytes that are not UTF-8 are shown escaped.]],
  args = { { "names", "table", doc = "the head of each column" },
    { "rows", "table", doc = "lists of as many cells, strings or numbers" } },
  returns = "text without a newline at its end",
  example = [[print(lab.text.table({ "head", "weight" }, { { 1, 0.99 }, { 2, 0.5 } }))]],
}, function(names, rows)
  check.list("lab.text.table", "the names", names, "strings")
  for i, row in ipairs(rows) do
    if type(row) ~= "table" then
      check.fail("lab.text.table: row %d must be a list of cells, got %s", i,
        tostring(row))
    end
  end
  local cells, widths, right = {}, {}, {}
  for j, name in ipairs(names) do
    if type(name) ~= "string" then
      check.fail("lab.text.table: name %d must be a string, got a %s", j, type(name))
    end
    widths[j], right[j] = width_of(name), #rows > 0
  end
  for i, row in ipairs(rows) do
    cells[i] = {}
    for j = 1, #names do
      local s = row[j] == nil and "" or strings.visible(row[j])
      cells[i][j] = s
      widths[j] = math.max(widths[j], width_of(s))
      right[j] = right[j] and is_number(s)
    end
  end
  local function line(row)
    local out = {}
    for j, s in ipairs(row) do
      local pad = (" "):rep(widths[j] - width_of(s))
      out[j] = right[j] and pad .. s or s .. pad
    end
    return table.concat(out, "  "):match "^.*%S" or ""
  end
  local lines = { line(names) }
  local rule = {}
  for j, w in ipairs(widths) do rule[j] = ("-"):rep(w) end
  lines[2] = table.concat(rule, "  ")
  for _, row in ipairs(cells) do lines[#lines + 1] = line(row) end
  return table.concat(lines, "\n")
end)

text.wrap = schema.func("lab.text.wrap", {
  doc = "Words broken into lines.",
  args = {
    { "text", "string" },
    { "width", "number", doc = "columns of a line; a longer word has a line of its own" },
    { "indent", "integer", default = 0, min = 0, max = 1000,
      doc = "blanks before every line except the first" },
  },
  returns = "text",
  example = [[print(lab.text.wrap("weights sum to one over the visible keys", 16, 2))]],
}, function(s, width, indent)
  local lines, line = {}, ""
  for word in s:gmatch "%S+" do
    if line ~= "" and width_of(line) + 1 + width_of(word) > width then
      lines[#lines + 1] = line
      line = (" "):rep(indent) .. word
    else
      line = line == "" and word or line .. " " .. word
    end
  end
  lines[#lines + 1] = line
  return table.concat(lines, "\n")
end)

text.grouped = schema.func("lab.text.grouped", {
  doc = "A whole number with commas between its thousands: 1234567 as 1,234,567.",
  args = { { "number", "integer" } },
  returns = "text",
  example = "print(lab.text.grouped(1234567))",
}, function(n)
  local digits = ("%d"):format(n):reverse():gsub("(%d%d%d)", "%1,"):reverse()
  return (digits:gsub("^(%-?),", "%1"))
end)

text.alternatives = schema.func("lab.text.alternatives", {
  doc = [["a, b or c" from a list.]],
  args = { { "list", "table", list = "texts", of = "string" } },
  returns = "text",
  example = [[print(lab.text.alternatives { "f32", "f64" })]],
}, check.alternatives)

return text
