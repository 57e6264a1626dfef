--- text.lua - lab.text: aligned tables and words for the terminal.
local core = require "sinklab.core"

local text = {}

--- Raise unless a value is of this type; both in words.
local function want(what, value, kind, said)
  if type(value) ~= kind then
    core.raise(("%s: expected %s, got %s"):format(what, said, value == nil and "nil"
      or "a " .. type(value)))
  end
end

--- Columns that a string takes on a terminal; bytes where it is not UTF-8.
-- @param s  text
-- @return whole number
-- @example
--   print(lab.text.width "na\u{EF}ve")
function text.width(s)
  if type(s) == "number" then s = tostring(s) end
  want("lab.text.width", s, "string", "a string")
  return utf8.len(s) or #s
end

local function is_number(s)
  return s == "-" or s == "nan" or s == "" or tonumber(s) ~= nil
end

--- An aligned table: columns of numbers to the right, of words to the left.
-- @param names  the head of each column
-- @param rows   lists of as many cells, strings or numbers
-- @return text without a newline at its end
-- @error what is no list of names, or no list of lists
-- @example
--   print(lab.text.table({ "head", "weight" }, { { 1, 0.99 }, { 2, 0.5 } }))
function text.table(names, rows)
  local what = "lab.text.table"
  want(what .. ": the names", names, "table", "a list of texts")
  want(what .. ": the rows", rows, "table", "a list of rows")
  for i, row in ipairs(rows) do
    want(("%s: row %d"):format(what, i), row, "table", "a list of cells")
  end
  local cells, widths, right = {}, {}, {}
  for j, name in ipairs(names) do
    want(("%s: name %d"):format(what, j), name, "string", "a text")
    widths[j], right[j] = text.width(name), #rows > 0
  end
  for i, row in ipairs(rows) do
    cells[i] = {}
    for j = 1, #names do
      -- a newline would end the row, an escape is the terminal's: neither is a cell's
      local s = row[j] == nil and "" or tostring(row[j]):gsub("%c", "?")
      cells[i][j] = s
      widths[j] = math.max(widths[j], text.width(s))
      right[j] = right[j] and is_number(s)
    end
  end
  local function line(row)
    local out = {}
    for j, s in ipairs(row) do
      local pad = (" "):rep(widths[j] - text.width(s))
      out[j] = right[j] and pad .. s or s .. pad
    end
    return (table.concat(out, "  "):gsub("%s+$", ""))
  end
  local lines = { line(names) }
  local rule = {}
  for j, w in ipairs(widths) do rule[j] = ("-"):rep(w) end
  lines[2] = table.concat(rule, "  ")
  for _, row in ipairs(cells) do lines[#lines + 1] = line(row) end
  return table.concat(lines, "\n")
end

--- Words broken into lines.
-- @param s       text
-- @param width   columns of a line; a longer word has a line of its own
-- @param indent  blanks before every line but the first, default 0
-- @return text
-- @example
--   print(lab.text.wrap("weights sum to one over the visible keys", 16, 2))
function text.wrap(s, width, indent)
  local what = "lab.text.wrap"
  want(what, s, "string", "a string")
  want(what .. ": the width", width, "number", "a number")
  local lines, line = {}, ""
  for word in s:gmatch "%S+" do
    if line ~= "" and text.width(line) + 1 + text.width(word) > width then
      lines[#lines + 1] = line
      line = (" "):rep(indent or 0) .. word
    else
      line = line == "" and word or line .. " " .. word
    end
  end
  lines[#lines + 1] = line
  return table.concat(lines, "\n")
end

--- A whole number with commas between its thousands: 1234567 as 1,234,567.
-- @param n  whole number
-- @return text
-- @example
--   print(lab.text.grouped(1234567))
function text.grouped(n)
  if math.type(n) ~= "integer" then
    core.raise(("lab.text.grouped: expected a whole number, got %s"):format(tostring(n)))
  end
  local digits = ("%d"):format(n):reverse():gsub("(%d%d%d)", "%1,"):reverse()
  return (digits:gsub("^(%-?),", "%1"))
end

--- "a, b or c" from a list.
-- @param list  of texts
-- @return text
-- @example
--   print(lab.text.alternatives { "f32", "f64" })
function text.alternatives(list)
  want("lab.text.alternatives", list, "table", "a list of texts")
  if #list < 2 then return tostring(list[1]) end
  return table.concat(list, ", ", 1, #list - 1) .. " or " .. tostring(list[#list])
end

return text
