--- series.lua - series of line plots, scatter plots and bars: forms that a script may
-- give, made plain for core; means and bands over runs.
local core = require "sinklab.core"
local check = require "sinklab.base.check"

local series = {}

local function is_tensor(value)
  return type(value) == "userdata" and core.is_tensor(value)
end

--- A list of numbers from a list or a tensor of one axis.
local function numbers(what, value)
  if is_tensor(value) then
    if #value.shape ~= 1 then
      check.fail("%s: expected a tensor of one axis, got shape (%s)", what,
        table.concat(value.shape, ", "))
    end
    value = value:totable()
  end
  if type(value) ~= "table" then
    check.fail("%s: expected a list of numbers or a tensor, got a %s", what, type(value))
  end
  if #value == 0 then check.fail("%s is empty", what) end
  for i, x in ipairs(value) do
    if type(x) ~= "number" then
      check.fail("%s[%d]: expected a number, got a %s", what, i, type(x))
    end
  end
  return value
end

--- The entries of a training, from the result of lab.train or its log.
local function entries(value)
  if type(value) ~= "table" then return nil end
  if type(value.log) == "table" then value = value.log end
  return type(value[1]) == "table" and value[1].step ~= nil and value or nil
end

--- x and y of a training's log: the entries that have the key.
local function from_log(what, log, key)
  local x, y = {}, {}
  for _, entry in ipairs(log) do
    if entry[key] ~= nil then x[#x + 1], y[#y + 1] = entry.step, entry[key] end
  end
  if #x == 0 then
    local names = {}
    for name in pairs(log[1]) do names[#names + 1] = name end
    check.unknown(what .. ": the training's log", key, names)
  end
  return x, y
end

--- One run as x (nil: 1, 2, ...) and y.
local function one_run(what, run, key)
  local log = entries(run)
  if log then return from_log(what, log, key or "loss") end
  if type(run) == "table" and run.y ~= nil then
    return run.x and numbers(what .. ".x", run.x), numbers(what .. ".y", run.y)
  end
  return nil, numbers(what, run)
end

-- Bands over the values of several runs at one place. Standard deviations are over
-- n - 1; quartiles interpolate linearly between the sorted values.

local function moments(values)
  local n, sum, squares = #values, 0, 0
  for _, v in ipairs(values) do sum = sum + v end
  local mean = sum / n
  for _, v in ipairs(values) do squares = squares + (v - mean) ^ 2 end
  return mean, n > 1 and math.sqrt(squares / (n - 1)) or 0
end

local function quantile(sorted, q)
  local at = 1 + q * (#sorted - 1)
  local low = math.floor(at)
  local a, b = sorted[low], sorted[math.min(low + 1, #sorted)]
  return a + (at - low) * (b - a)
end

-- name -> words for the caption, and function (sorted values) -> centre, low, high.
local bands = {
  range = { "mean and range", function(v)
    return moments(v), v[1], v[#v]
  end },
  std = { "mean ± standard deviation", function(v)
    local mean, std = moments(v)
    return mean, mean - std, mean + std
  end },
  sem = { "mean ± standard error", function(v)
    local mean, std = moments(v)
    return mean, mean - std / math.sqrt(#v), mean + std / math.sqrt(#v)
  end },
  quartiles = { "median and quartiles", function(v)
    return quantile(v, 0.5), quantile(v, 0.25), quantile(v, 0.75)
  end },
}

series.band_row = { "bands", "string", default = "range",
  choices = { "range", "std", "sem", "quartiles" },
  doc = [[of a band over runs: the mean with the smallest and the largest, with
    the standard deviation or with the standard error, or quartiles about the median; the
    caption says it]] }

--- Every x of the runs, ascending, each once.
local function all_places(what, runs)
  local seen, places = {}, {}
  for i, run in ipairs(runs) do
    for k, x in ipairs(run.x) do
      if k > 1 and not (x > run.x[k - 1]) then
        check.fail("%s.runs[%d]: x must ascend for a band over runs, but %g follows %g",
          what, i, x, run.x[k - 1])
      end
      if not seen[x] then
        seen[x] = true
        places[#places + 1] = x
      end
    end
  end
  table.sort(places)
  return places
end

--- The value of a run at each place: between its points on a straight line, nil outside.
local function at_places(run, places)
  local values, k = {}, 1
  local x, y = run.x, run.y
  for i, place in ipairs(places) do
    while k < #x and x[k + 1] <= place do k = k + 1 end
    if x[k] == place then
      values[i] = y[k]
    elseif place > x[1] and k < #x then
      values[i] = y[k] + (place - x[k]) / (x[k + 1] - x[k]) * (y[k + 1] - y[k])
    end
  end
  return values
end

--- Centre and band of several runs: x, y, low, high.
local function over_runs(what, given, kind, key)
  if type(given) ~= "table" or #given == 0 then
    check.fail("%s.runs: expected a list of runs, each { x =, y = } or a training's log",
      what)
  end
  local runs = {}
  for i, run in ipairs(given) do
    local name = ("%s.runs[%d]"):format(what, i)
    local x, y = one_run(name, run, key)
    if not x then
      x = {}
      for k = 1, #y do x[k] = k end
    elseif #x ~= #y then
      check.fail("%s has %d x for %d y", name, #x, #y)
    end
    runs[i] = { x = x, y = y }
  end
  local places = all_places(what, runs)
  local columns, out = {}, { x = places, y = {}, low = {}, high = {} }
  for i, run in ipairs(runs) do columns[i] = at_places(run, places) end
  for k = 1, #places do
    local values = {}
    for i = 1, #runs do
      local v = columns[i][k]
      if v and v == v then values[#values + 1] = v end
    end
    table.sort(values)
    if #values > 0 then
      out.y[k], out.low[k], out.high[k] = bands[kind][2](values)
    else
      out.y[k], out.low[k], out.high[k] = 0 / 0, 0 / 0, 0 / 0
    end
  end
  return out, #runs
end

local rules = {
  label = { "string" }, x = { "table tensor" }, y = { "table tensor" },
  low = { "table tensor" }, high = { "table tensor" }, markers = { "boolean" },
  runs = { "table" }, log = { "table" }, key = { "string" },
}
local bar_rules = { label = true, y = true, low = true, high = true, runs = true }

--- Series for core, and the caption's words on their bands (nil without any).
-- @param what  for messages
-- @param list  as scripts give it
-- @param kind  "lines", "scatter" or "bars"
-- @param band  the option bands
function series.plain(what, list, kind, band)
  if type(list) ~= "table" or #list == 0 then
    check.fail("%s: expected a list of series such as { %sy = ... }", what,
      kind == "bars" and "" or "x = ..., ")
  end
  local allowed = {}
  for key, rule in pairs(rules) do
    if kind ~= "bars" or bar_rules[key] then allowed[key] = rule end
  end
  if kind == "scatter" then allowed.markers = nil end
  local out, most = {}, nil
  for i, given in ipairs(list) do
    local name = ("%s: series[%d]"):format(what, i)
    if type(given) ~= "table" then
      check.fail("%s: expected a table, got a %s", name, type(given))
    end
    local s = check.options(name, given, allowed)
    local sources = (s.y and 1 or 0) + (s.runs and 1 or 0) + (s.log and 1 or 0)
    if sources > 1 then
      check.fail("%s: give one of y, runs and log", name)
    end
    if (s.runs or s.log) and (s.x or s.low or s.high) then
      check.fail("%s: x, low and high come from its runs", name)
    end
    if s.log then
      local log = entries(s.log)
      if not log then
        check.fail("%s.log: expected the result of lab.train or its log", name)
      end
      s.x, s.y = from_log(name, log, s.key or "loss")
    elseif s.runs then
      local found, n = over_runs(name, s.runs, band, s.key)
      s.x, s.y, s.low, s.high = found.x, found.y, found.low, found.high
      most = math.max(most or 0, n)
    elseif s.key then
      check.fail("%s: key names a column of a log, and there is no log", name)
    end
    s.runs, s.log, s.key = nil, nil, nil
    if kind == "bars" then s.x = nil end
    if kind == "scatter" then s.points = true end
    out[i] = s
  end
  return out, most and ("%s of %d run%s"):format(bands[band][1], most,
    most == 1 and "" or "s")
end

--- A list of ticks for core: numbers, or { at = numbers, names = strings }.
function series.ticks(what, given)
  if given == nil then return nil end
  local at, names = given, nil
  if type(given) == "table" and given.at then at, names = given.at, given.names end
  return numbers(what, at), names
end

return series
