--- read.lua - a run directory as the report needs it: its record, training
-- curves, figures and maps of heads, and a list of the files that could not be read.
local core = require "sinklab.core"
local csv = require "sinklab.base.csv"
local json = require "sinklab.base.json"
local index = require "sinklab.record.index"
local maps = require "sinklab.report.maps"

-- Entries of a training's log that a curve is drawn through, and curves of a run.
local MOST_POINTS, MOST_CURVES = 400, 64
-- Bytes of all curves of a page, as JSON.
local MOST_CURVE_BYTES = 300000
-- Bytes of a traceback in the record.
local MOST_ERROR = 4000

--- Text of the record, or its substitute where there is none.
local function words(value, otherwise)
  if type(value) == "string" then return value end
  return type(value) == "number" and tostring(value) or otherwise
end

local function list_of(value) return type(value) == "table" and value or {} end

--- The record of a folder; nil and one sentence if it is none.
local function read_record(folder)
  if not core.folder_exists(folder) then
    if core.file_exists(folder) then
      return nil, folder .. ": this is a file; a report is made of a run directory"
    end
    return nil, ("%s: no such folder"):format(folder)
  end
  if not core.file_exists(folder .. "/run.json") then
    local hint = ""
    for _, name in ipairs(core.folder(folder) or {}) do
      if core.file_exists(folder .. "/" .. name .. "/run.json") then
        hint = ("\n  try: sinklab report %s/%s"):format(folder, name)
      end
    end
    return nil, ("%s: no run.json in it: this is no run directory%s"):format(folder, hint)
  end
  return index.read(folder, "files")
end

--- A training's CSV as columns, thinned: step and every other column of numbers.
local function read_curve(folder, name, label, problem)
  local read, why = csv.load(folder .. "/" .. name)
  if not read then return problem(why) end
  local kept, every = {}, math.max(1, math.ceil(#read.rows / MOST_POINTS))
  for i, row in ipairs(read.rows) do
    if (i - 1) % every == 0 or i == #read.rows then kept[#kept + 1] = row end
  end
  local curve = { label = label, every = every, columns = json.array {} }
  for j, column in ipairs(read.names) do
    local values, any = json.array {}, false
    for i, row in ipairs(kept) do
      values[i] = type(row[j]) == "number" and row[j] or json.null
      any = any or type(row[j]) == "number"
    end
    if any then curve.columns[#curve.columns + 1] = { name = column, values = values } end
  end
  if #curve.columns == 0 then return problem(name .. ": no numbers in it") end
  return curve
end

--- Every second entry of a curve, and its last one.
local function halve(curve)
  for _, column in ipairs(curve.columns) do
    local values, n = json.array {}, #column.values
    for i = 1, n do
      if i % 2 == 1 or i == n then values[#values + 1] = column.values[i] end
    end
    column.values = values
  end
  curve.every = 2 * curve.every
end

--- Make the curves of all runs fit a page: each has an equal share and loses every second
-- entry until it fits. A curve that two entries are too much of is left out, with a
-- sentence among the problems.
local function fit_curves(runs)
  local count = 0
  for _, run in ipairs(runs) do count = count + #run.curves end
  local share = MOST_CURVE_BYTES // math.max(count, 1)
  for _, run in ipairs(runs) do
    local kept = {}
    for _, curve in ipairs(run.curves) do
      local size = #json.encode(curve)
      while size > share and #curve.columns[1].values > 2 do
        halve(curve)
        size = #json.encode(curve)
      end
      if size <= share then
        kept[#kept + 1] = curve
      else
        run.problems[#run.problems + 1] = ("train-%s.csv is not drawn: the curves would "
          .. "make this page too large"):format(curve.label)
      end
    end
    run.curves = kept
  end
end

--- The files of a label's maps: from the record, else by their usual names.
local function map_files(label, sinks, listed)
  local files = {}
  for _, kind in ipairs(maps.kinds) do
    local name = type(sinks.maps) == "table" and sinks.maps[kind]
    if type(name) ~= "string" then
      name = label .. "-" .. kind .. ".npy"
      if not listed[name] then name = nil end
    end
    files[kind] = name
  end
  return files
end

--- A name in the record that leads out of the folder is not followed.
local function is_inside(name)
  return type(name) == "string" and name ~= "" and not name:find "^/"
      and not ("/" .. name .. "/"):find "/%.%./"
end

local function has_zero(shape)
  for _, size in ipairs(shape) do if size == 0 then return true end end
  return false
end

local function read_heads(folder, label, sinks, listed, problem)
  local files, tensors, any = map_files(label, sinks, listed), {}, false
  for kind, name in pairs(files) do
    if not is_inside(name) then
      problem(("%s: a map named '%s' is outside the run directory"):format(label, name))
    else
      local tensor, why = core.load_npy(folder .. "/" .. name)
      if tensor and #tensor.shape == maps.axes[kind] and not has_zero(tensor.shape) then
        tensors[kind], any = tensor, true
      else
        problem(why or ("%s: expected %d axes with something in them, got shape (%s)")
          :format(name, maps.axes[kind], table.concat(tensor.shape, ", ")))
      end
    end
  end
  if any and not tensors.mean then
    problem(label .. ": no map of the mean weights, so its heads are not shown")
    return nil
  end
  return any and { label = label, tensors = tensors, samples = sinks.samples } or nil
end

--- In the order in which their files were written, as JSON keeps none; those without
-- files by name after them.
local function sort_labels(labels, files)
  local place = {}
  for i, name in ipairs(files) do
    local label = type(name) == "string"
        and (name:match "^train%-(.*)%.csv$" or name:match "^(.*)%-mean%.npy$")
    if label then place[label] = place[label] or i end
  end
  table.sort(labels, function(a, b)
    local i, j = place[a] or math.huge, place[b] or math.huge
    if i ~= j then return i < j end
    return a < b
  end)
end

--- Read a run.
-- @param whole  false: without its curves and maps, for tables of many runs
-- @return { name, folder, record, labels, curves, heads, figures, problems }, or nil and
--   one sentence
local function read(folder, whole)
  folder = #folder > 1 and folder:gsub("/+$", "") or folder
  local record, why = read_record(folder)
  if not record then return nil, why end
  local run = { folder = folder, record = record, labels = {}, curves = {}, heads = {},
    figures = {}, problems = {} }
  run.name = folder:match "([^/]+)$" or folder
  run.script = words(record.script, "(no script)")
  run.status = words(record.status, "unknown")
  if type(record.error) == "string" and #record.error > MOST_ERROR then
    record.error = record.error:sub(1, MOST_ERROR) .. "…"
  end
  local function problem(text) run.problems[#run.problems + 1] = text end

  local listed = {}
  for _, name in ipairs(record.files) do
    if not is_inside(name) then
      problem(("the record lists a file '%s' outside the run directory"):format(
        words(name, "null")))
    elseif not core.file_exists(folder .. "/" .. name) then
      problem(name .. " is missing")
    else
      listed[name] = true
      local figure = name:match "^(.*)%.png$"
      if figure then run.figures[#run.figures + 1] = figure end
      local label = name:match "^train%-(.*)%.csv$"
      if whole and label and #run.curves < MOST_CURVES then
        run.curves[#run.curves + 1] = read_curve(folder, name, label, problem)
      end
    end
  end
  for label, results in pairs(record.results) do
    if type(results) == "table" and type(label) == "string" then
      run.labels[#run.labels + 1] = label
    else
      problem(("results.%s is no table under a label"):format(label))
    end
  end
  sort_labels(run.labels, record.files)
  for _, label in ipairs(whole and run.labels or {}) do
    local sinks = list_of(record.results[label].sinks)
    run.heads[#run.heads + 1] = read_heads(folder, label, sinks, listed, problem)
  end
  return run
end

return { run = read, fit_curves = fit_curves }
