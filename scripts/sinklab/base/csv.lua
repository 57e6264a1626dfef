--- csv.lua - lab.csv: tables as comma-separated values (RFC 4180).
local core = require "sinklab.core"
local check = require "sinklab.base.check"
local schema = require "sinklab.base.schema"
local json = require "sinklab.base.json"

local csv = {}

local path_row = { "path", "string" }
local names_row = { "names", "table", doc = "the head of each column" }
local rows_row = { "rows", "table tensor", doc = [[lists of as many cells (numbers,
  strings, booleans; nil is an empty cell), or a tensor (rows, columns)]] }

--- A cell as text: numbers as the shortest decimal that reads back as the same one, nan,
-- inf and -inf as these words, nil as nothing; text in quotes where it must be.
local function cell(value)
  if type(value) == "number" then
    if value ~= value then return "nan" end
    if value == math.huge or value == -math.huge then
      return value > 0 and "inf" or "-inf"
    end
    return json.number(value)
  end
  value = value == nil and "" or tostring(value)
  if value:find '[",\r\n]' then value = '"' .. value:gsub('"', '""') .. '"' end
  return value
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
  local lines, cells = {}, {}
  for j = 1, #names do cells[j] = cell(names[j]) end
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

local words = { nan = 0 / 0, inf = math.huge, ["-inf"] = -math.huge }

local function read_number(s)
  if words[s] then return words[s] end
  return s:match "^[+-]?[%d.]+[eE]?[+-]?%d*$" and tonumber(s)
end

--- The cells of the record that begins at byte `at`, and where the next one begins; nil
-- and a message.
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
      value = text:sub(at + 1, stop - 1):gsub('""', '"')
      at = stop + 1
    else
      stop = text:find("[,\r\n]", at) or #text + 1
      value = text:sub(at, stop - 1)
      at = stop
      if value == "" then value = nil else value = read_number(value) or value end
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

csv.load = schema.func("lab.csv.load", {
  doc = "Read a CSV file whose first line names the columns.",
  args = { path_row },
  returns = [[{ names = list, rows = lists of cells, columns = name -> list of cells }:
    cells are numbers where they read as numbers (nan, inf and -inf too) unless they are
    in quotes, else strings; an empty one is nil. Or nil and a message that says where a
    file is not well-formed]],
  example = [[
    local path = os.tmpname()
    lab.csv.save(path, { "step", "loss" }, { { 1, 0.5 }, { 2, 0.25 } })
    print(lab.tensor(lab.csv.load(path).columns.loss))]],
}, function(path)
  local file <close>, message = io.open(path, "rb")
  if not file then return nil, message end
  local text, why = file:read "a"
  if not text then return nil, path .. ": " .. why end
  local at, out = text:sub(1, 3) == "\xEF\xBB\xBF" and 4 or 1, { rows = {}, columns = {} }
  local number = 0
  while at <= #text do
    local cells, after, n = record(text, at)
    number = number + 1
    if not cells then return nil, ("%s: record %d: %s"):format(path, number, after) end
    if not out.names then
      out.names = {}
      for j = 1, n do out.names[j] = tostring(cells[j] or "") end
    elseif n ~= #out.names and not (n == 1 and cells[1] == nil) then
      return nil, ("%s: record %d has %d cells, the first one names %d"):format(path,
        number, n, #out.names)
    elseif n == #out.names then
      out.rows[#out.rows + 1] = cells
    end
    at = after
  end
  if not out.names then return nil, path .. ": it is empty" end
  for j, name in ipairs(out.names) do
    local column = {}
    for i, row in ipairs(out.rows) do column[i] = row[j] end
    out.columns[name] = column
  end
  return out
end)

return csv
