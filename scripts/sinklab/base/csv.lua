--- csv.lua - lab.csv: tables as comma-separated values (RFC 4180).
local core = require "sinklab.core"
local check = require "sinklab.base.check"
local schema = require "sinklab.base.schema"
local json = require "sinklab.base.json"
local strings = require "sinklab.base.strings"

local csv = {}

local path_row = { "path", "string" }
local names_row = { "names", "table", doc = "the head of each column" }
local rows_row = { "rows", "table tensor", doc = [[lists of as many cells (numbers,
  strings, booleans; nil is an empty cell), or a tensor (rows, columns)]] }

local words = strings.not_finite

--- The number that a text is written like; nil: text, also with a leading zero ("007") or
-- a power beyond f64 ("123e456").
local function read_number(s)
  if words[s] then return words[s] end
  local plain = s:match "^[+-]?%d*%.?%d*[eE]?[+-]?%d*$" and not s:match "^[+-]?0%d"
  local x = plain and tonumber(s)
  return x and x - x == 0 and x or nil
end

local function quoted(s) return '"' .. s:gsub('"', '""') .. '"' end

local function head(name)
  return name:find '[",\r\n]' and quoted(name) or name
end

--- A cell as text: numbers as the shortest decimal that reads back as the same one, nan,
-- inf and -inf as these words, nil as nothing; text in quotes where it would not read
-- back as itself.
local function cell(value)
  if type(value) == "number" then
    return value - value == 0 and json.number(value) or strings.number_word(value)
  end
  if value == nil then return "" end
  value = tostring(value)
  local plain = value ~= "" and not value:find '[",\r\n]' and not read_number(value)
  return plain and value or quoted(value)
end

--- A name that two columns have, or nil.
local function repeated(names)
  local seen = {}
  for _, name in ipairs(names) do
    local text = tostring(name)
    if seen[text] then return text end
    seen[text] = true
  end
end

-- The text of rows, for the function that messages name.
local function text_of(what, names, rows)
  if type(rows) == "userdata" and core.is_tensor(rows) then
    if #rows.shape ~= 2 or rows.shape[2] ~= #names then
      check.fail("%s: %d names need a tensor (rows, %d), got (%s)", what, #names,
        #names, table.concat(rows.shape, ", "))
    end
    rows = rows.shape[1] > 0 and rows:totable() or {}
  end
  local twice = repeated(names)
  if twice then check.fail("%s: two columns have the name '%s'", what, twice) end
  local lines, cells = {}, {}
  for j = 1, #names do cells[j] = head(tostring(names[j])) end
  lines[1] = table.concat(cells, ",")
  for i, row in ipairs(rows) do
    if type(row) ~= "table" then
      check.fail("%s: row %d must be a list of cells, got %s", what, i, tostring(row))
    end
    for j = 1, #names do cells[j] = cell(row[j]) end
    lines[i + 1] = table.concat(cells, ",")
  end
  return table.concat(lines, "\n") .. "\n"
end

csv.text = schema.func("lab.csv.text", {
  doc = "Rows as CSV text.",
  args = { names_row, rows_row },
  returns = "text, ending with a newline",
  example = [[print(lab.csv.text({ "step", "loss" }, { { 1, 0.5 }, { 2, 0.25 } }))]],
}, function(names, rows)
  return text_of("lab.csv.text", names, rows)
end)

csv.save = schema.func("lab.csv.save", {
  doc = "Write rows as a CSV file, whole or not at all.",
  args = { path_row, names_row, rows_row },
  returns = "true; or nil and a message",
  example = [[
    lab.csv.save(os.tmpname(), { "step", "loss" }, { { 1, 0.5 }, { 2, 0.25 } })]],
}, function(path, names, rows)
  return core.file_write(path, text_of("lab.csv.save", names, rows))
end)

--- The cells of the record that begins at byte `at`, where the next one begins, and how
-- many cells there are; nil and a message. A cell is { text } if it was in quotes, else
-- a text.
local function record(text, at)
  local cells, n = {}, 0
  while true do
    local quoted, value, stop = text:sub(at, at) == '"', nil, nil
    if quoted then
      local from = at + 1
      repeat
        stop = text:find('"', from, true)
        if not stop then return nil, "a quote is not closed" end
        from = stop + 2
      until text:sub(stop + 1, stop + 1) ~= '"'
      value = { (text:sub(at + 1, stop - 1):gsub('""', '"')) }
      at = stop + 1
    else
      stop = text:find("[,\r\n]", at) or #text + 1
      value = text:sub(at, stop - 1)
      at = stop
    end
    n = n + 1
    cells[n] = value
    local separator = text:match("^,", at) or text:match("^\r?\n", at) or ""
    at = at + #separator
    if separator ~= "," then
      if separator == "" and at <= #text then
        return nil, quoted and "text after a closing quote"
            or "a carriage return that no newline follows, outside of quotes"
      end
      return cells, at, n
    end
  end
end

local function plain(value) return type(value) == "table" and value[1] or value end

--- The values of a column of cells: numbers if every cell that is not empty is written
-- like one and without quotes, then an empty one is NaN; else texts.
local function values_of(cells)
  local numbers = {}
  for i, value in ipairs(cells) do
    numbers[i] = value == "" and words.nan or type(value) == "string"
        and read_number(value)
    if not numbers[i] then
      for k, each in ipairs(cells) do numbers[k] = plain(each) end
      break
    end
  end
  return numbers
end

csv.load = schema.func("lab.csv.load", {
  doc = [[Read a CSV file whose first line names the columns.

    A column is numbers (nan, inf and -inf too) if every cell of it that is not empty is
    written like one and without quotes; an empty cell is then NaN. Any other column is
    text as it stands in the file, also "007" and "1e5" beside words.]],
  args = { path_row },
  returns = [[{ names = list, rows = lists of values, columns = name -> list of values };
    or nil and a message that says where a file is not well-formed, or which name two
    columns have]],
  example = [[
    local path = os.tmpname()
    lab.csv.save(path, { "step", "loss" }, { { 1, 0.5 }, { 2, 0.25 } })
    print(lab.tensor(lab.csv.load(path).columns.loss))]],
}, function(path)
  local text, message = core.file_read(path)
  if not text then return nil, message end
  local at, names, rows = text:sub(1, 3) == "\xEF\xBB\xBF" and 4 or 1, nil, {}
  local number = 0
  while at <= #text do
    local cells, after, n = record(text, at)
    number = number + 1
    if not cells then return nil, ("%s: record %d: %s"):format(path, number, after) end
    if not names then
      names = {}
      for j = 1, n do names[j] = plain(cells[j]) end
    elseif n == #names then
      rows[#rows + 1] = cells
    elseif n ~= 1 or cells[1] ~= "" then -- an empty line is nothing
      return nil, ("%s: record %d has %d cells, the first one names %d"):format(path,
        number, n, #names)
    end
    at = after
  end
  if not names then return nil, path .. ": it is empty" end
  local twice = repeated(names)
  if twice then return nil, ("%s: two columns have the name '%s'"):format(path, twice) end
  local columns = {}
  for j, name in ipairs(names) do
    local column = {}
    for i, row in ipairs(rows) do column[i] = row[j] end
    columns[name] = values_of(column)
    for i, row in ipairs(rows) do row[j] = columns[name][i] end
  end
  return { names = names, rows = rows, columns = columns }
end)

return csv
