--- show.lua - how the prompt prints results: tables with their keys sorted, models as a
-- tree, trainings as a curve, measurements with their maps.
local core = require "sinklab.core"
local progress = require "sinklab.base.progress"
local text = require "sinklab.base.text"

local show = {}

local DEEPEST, MOST = 3, 60

--- Whether the output is a terminal that shows UTF-8.
local function is_rich()
  if not core.is_terminal() or os.getenv "TERM" == "dumb" then return false end
  for _, name in ipairs { "LC_ALL", "LC_CTYPE", "LANG" } do
    local value = os.getenv(name)
    if value and value ~= "" then return value:lower():find "utf%-?8" ~= nil end
  end
  return false
end

local rank = { number = 1, string = 2 }

--- Numbers first, then strings, then the rest by their tostring.
local function before(a, b)
  local ra, rb = rank[type(a)] or 3, rank[type(b)] or 3
  if ra ~= rb then return ra < rb end
  if ra == 3 then a, b = tostring(a), tostring(b) end
  return a < b
end

local function key_text(key)
  if type(key) == "string" and key:match "^[%a_][%w_]*$" then return key end
  if type(key) == "string" then return '["' .. core.escape(key) .. '"]' end
  return "[" .. tostring(key) .. "]"
end

local value_text

local function table_text(t, indent, depth, seen)
  if seen[t] then return "{ ... the same table again }" end
  if next(t) == nil then return "{}" end
  if depth >= DEEPEST then return "{ ... }" end
  seen[t] = true
  local keys, lines, size = {}, {}, 0
  for key in next, t do keys[#keys + 1] = key end
  table.sort(keys, before)
  local inner = indent .. "  "
  for i, key in ipairs(keys) do
    if i > MOST then
      lines[#lines + 1] = ("... %d more"):format(#keys - MOST)
      break
    end
    local value = value_text(t[key], inner, depth + 1, seen)
    -- The keys of a list are its positions: they are not shown.
    lines[#lines + 1] = key == i and value or key_text(key) .. " = " .. value
    size = size + #lines[#lines] + 2
  end
  seen[t] = nil
  local joined = table.concat(lines, ", ")
  if size + #indent < 72 and not joined:find "\n" then
    return "{ " .. joined .. " }"
  end
  return "{\n" .. inner .. table.concat(lines, ",\n" .. inner) .. "\n" .. indent
      .. "}"
end

function value_text(value, indent, depth, seen)
  if type(value) == "table" then
    local meta = getmetatable(value)
    if type(meta) ~= "table" or not meta.__tostring then
      return table_text(value, indent, depth, seen)
    end
  elseif type(value) == "string" and depth > 0 then
    return '"' .. core.escape((value:gsub('[\\"]', "\\%0"))) .. '"'
  end
  return (core.escape(value, true):gsub("\n", "\n" .. indent))
end

local ramps = { [true] = { "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" },
  [false] = { "_", ".", ":", "-", "=", "+", "*", "#" } }

--- Numbers as a row of at most `width` marks, low to high; where all are positive and
-- span more than a factor of 20, by their logarithms. NaN is a "?".
-- @param values  list of numbers
-- @param width   columns, default 60
-- @param rich    more than ASCII; default: if the terminal shows UTF-8
-- @return the row, and whether it is logarithmic
function show.sparkline(values, width, rich)
  width = width or 60
  if rich == nil then rich = is_rich() end
  local low, high = math.huge, -math.huge
  for _, v in ipairs(values) do
    if v == v and math.abs(v) < math.huge then
      low, high = math.min(low, v), math.max(high, v)
    end
  end
  local log = low > 0 and high / low > 20
  local function place(v) return log and math.log(v) or v end
  local marks, n = ramps[rich], math.min(width, #values)
  local out = {}
  for i = 1, n do
    -- The mean of the values that share a column.
    local first, last = (i - 1) * #values // n + 1, i * #values // n
    local sum = 0
    for j = first, last do sum = sum + place(values[j]) end
    local x = sum / (last - first + 1)
    local at = high > low and (x - place(low)) / (place(high) - place(low)) or 0
    local level = math.floor(math.min(math.max(at, 0), 1) * 7 + 0.5)
    out[i] = x ~= x and "?" or marks[1 + level]
  end
  return table.concat(out), log
end

local function number(v) return ("%.3g"):format(v) end

--- One column of a training's log as "loss  ####___  0.33 to 1e-07 (log)".
local function curve(log, key, wide)
  local values = {}
  for _, entry in ipairs(log) do
    if type(entry[key]) == "number" then values[#values + 1] = entry[key] end
  end
  if #values < 2 then return end
  local line, is_log = show.sparkline(values, 50)
  return ("  %-" .. wide .. "s  %s  %s to %s%s"):format(key, line, number(values[1]),
    number(values[#values]), is_log and " (log)" or "")
end

--- Whether a table is a result of lab.train, which is plain data: by its fields.
local function is_training(t)
  for _, key in ipairs { "steps", "loss", "wall_s", "steps_per_s" } do
    if type(rawget(t, key)) ~= "number" then return false end
  end
  local last = type(t.log) == "table" and t.log[#t.log]
  return type(t.stopped_by) == "string" and type(last) == "table"
      and type(last.step) == "number"
end

local function training_text(t)
  local lines = { ("training: %d steps, stopped by %s, loss %s%s, %s (%.0f steps/s)")
    :format(t.steps, t.stopped_by, number(t.loss),
      t.max_abs_error and ", largest error " .. number(t.max_abs_error) or "",
      progress.duration(t.wall_s), t.steps_per_s) }
  if t.eval then
    lines[2] = ("  on %d fresh sequences: %s%s"):format(t.eval.samples,
      t.eval.mse and "mse " .. number(t.eval.mse) or "loss " .. number(t.eval.loss),
      t.eval.max_abs_error and ", largest error " .. number(t.eval.max_abs_error) or "")
  end
  local keys, wide = {}, 4
  for key in pairs(t.log[#t.log]) do
    if key ~= "step" and key ~= "time" then
      keys[#keys + 1], wide = key, math.max(wide, #key)
    end
  end
  table.sort(keys)
  for _, key in ipairs(keys) do lines[#lines + 1] = curve(t.log, key, wide) end
  return table.concat(lines, "\n")
end

--- A tree of parameters by the dots in their names: each with its shape and count.
local function tree(order)
  local root = { children = {}, count = 0 }
  for _, entry in ipairs(order) do
    local node, count = root, 1
    for _, size in ipairs(entry.shape) do count = count * size end
    root.count = root.count + count
    for part in entry.name:gmatch "[^.]+" do
      local child = node.children[part]
      if not child then
        child = { name = part, children = {}, count = 0 }
        node.children[part] = child
        node.children[#node.children + 1] = child
      end
      child.count, node = child.count + count, child
    end
    node.shape = entry.shape
  end
  return root
end

local branches = { [true] = { "├─ ", "└─ ", "│  ", "   " },
  [false] = { "|- ", "`- ", "|  ", "   " } }

local function tree_rows(node, lead, rich, rows)
  local marks = branches[rich]
  for i, child in ipairs(node.children) do
    local last, name = i == #node.children, child.name
    while #child.children == 1 do -- norm.gamma is one line
      child = child.children[1]
      name = name .. "." .. child.name
    end
    rows[#rows + 1] = { lead .. marks[last and 2 or 1] .. name,
      child.shape and "(" .. table.concat(child.shape, ", ") .. ")" or "",
      text.grouped(child.count) }
    tree_rows(child, lead .. marks[last and 4 or 3], rich, rows)
  end
  return rows
end

local function model_text(m)
  local root, rich = tree(m.params.order), is_rich()
  local rows, widths = tree_rows(root, "", rich, {}), { 0, 0, 0 }
  for _, row in ipairs(rows) do
    for j = 1, 3 do widths[j] = math.max(widths[j], text.width(row[j])) end
  end
  -- Its own first lines: the kind of model and its attention.
  local lines = {}
  for line in tostring(m):gmatch "[^\n]+" do
    if #lines < 2 then lines[#lines + 1] = line end
  end
  for _, row in ipairs(rows) do
    lines[#lines + 1] = row[1] .. (" "):rep(widths[1] - text.width(row[1])) .. "  "
        .. row[2] .. (" "):rep(widths[2] - #row[2]) .. "  "
        .. (" "):rep(widths[3] - #row[3]) .. row[3]
  end
  return table.concat(lines, "\n")
end

--- A measurement: its table, then the mean weights of each head, if they are few.
local MOST_MAPS = 8

local function sinks_text(found)
  local out, mean = tostring(found), found.mean
  if core.is_tensor(mean) and mean.shape[1] * mean.shape[2] <= MOST_MAPS then
    local plot = require "sinklab.plot"
    out = out .. "\n\n" .. tostring(plot.heads(mean, { samples = found.samples }))
  end
  return out
end

local by_class = { model = model_text, sinks = sinks_text }

--- A value as the prompt shows it.
function show.text(value)
  local class = type(value) == "table" and require "sinklab.help".class_of(value)
  if by_class[class] then return by_class[class](value) end
  if type(value) == "table" and getmetatable(value) == nil and is_training(value) then
    return training_text(value)
  end
  return value_text(value, "", 0, {})
end

--- A value in one line: the first of its lines, or how much a table holds.
function show.line(value)
  local said = show.text(value)
  if type(value) ~= "table" or not said:match "^{" then
    return (said:gsub("%s*\n.*", " ..."))
  end
  local n = 0
  for _ in next, value do n = n + 1 end
  return #said <= 60 and not said:find "\n" and said
      or ("table of %d %s"):format(n, #value == n and "items" or "fields")
end

--- Print every value, each from a line of its own.
function show.print(...)
  for i = 1, select("#", ...) do print(show.text((select(i, ...)))) end
end

return show
