--- panel.lua - panels of figures: what scripts may give, made plain for core.
local core = require "sinklab.core"
local check = require "sinklab.base.check"
local series = require "sinklab.plot.series"

local part = {}

--- What a heat map shows unless told otherwise.
part.QUANTITY = "attention weight"

local PALETTES = { "blues", "viridis", "cividis", "magma", "greys", "rdbu" }
local scale_rule = { "string", choices = { "linear", "log" } }

--- Options of one heat map; core checks the data and the range.
local heat_rules = {
  title = { "string" }, side = { "string" },
  xlabel = { "string" }, ylabel = { "string" }, quantity = { "string" },
  palette = { "string", choices = PALETTES },
  vmin = { "number string" }, vmax = { "number string" },
  scale = scale_rule, log = { "boolean" },
  mask_upper = { "boolean" }, lead = { "string" },
  without_first = { "boolean" },
  tokens = { "table" }, keys = { "table" }, queries = { "table" },
}

-- Options of axes with numbers upright.
local axis_rules = {
  title = { "string" }, side = { "string" },
  xlabel = { "string" }, ylabel = { "string" },
  scale = scale_rule, ylog = { "boolean" },
  ymin = { "number string" }, ymax = { "number string" },
  aspect = { "number" }, yticks = { "table" }, bands = series.band_rule,
}
-- Those and of axes with numbers across.
local line_rules = {
  xscale = scale_rule, xlog = { "boolean" },
  xmin = { "number string" }, xmax = { "number string" }, xticks = { "table" },
}
for key, rule in pairs(axis_rules) do line_rules[key] = rule end

--- One table of several rules.
function part.merged(...)
  local out = {}
  for _, rules in ipairs { ... } do
    for key, rule in pairs(rules) do out[key] = rule end
  end
  return out
end

--- The values of `o` whose keys are in `rules`.
function part.pick(o, rules)
  local out = {}
  for key in pairs(rules) do out[key] = o[key] end
  return out
end

--- Replace the option `scale` by core's switch.
local function use_scale(panel, scale, switch)
  if panel[scale] then panel[switch] = panel[scale] == "log" end
  panel[scale] = nil
end

--- Rows and columns of a matrix, as far as they can be seen here.
local function shape_of(data)
  if type(data) == "table" then
    return #data, type(data[1]) == "table" and #data[1] or 0
  end
  if core.is_tensor(data) and #data.shape == 2 then
    return data.shape[1], data.shape[2]
  end
end

local function without_first_column(data)
  if type(data) ~= "table" then return data:narrow(2, 2, data.shape[2] - 1) end
  local out = {}
  for i, row in ipairs(data) do
    out[i] = type(row) == "table" and table.move(row, 2, #row, 1, {}) or row
  end
  return out
end

--- Names of queries and keys: both from `tokens` unless given by themselves.
local function take_tokens(what, panel, rows, columns)
  local tokens = panel.tokens
  panel.tokens = nil
  if not tokens then return end
  local keys = columns - (panel.lead and 1 or 0)
  if #tokens ~= keys or (not panel.queries and #tokens ~= rows) then
    check.fail("%s: %d tokens for %d queries and %d keys "
      .. "(keys and queries name them apart)", what, #tokens, rows, keys)
  end
  panel.keys = panel.keys or tokens
  panel.queries = panel.queries or tokens
end

--- A heat map for core from options and a matrix.
function part.heat(what, panel, data)
  local rows, columns = shape_of(data)
  use_scale(panel, "scale", "log")
  if rows then
    take_tokens(what, panel, rows, columns)
    if panel.without_first then
      if panel.lead then
        check.fail("%s: without_first = true with a first column that is no "
          .. "position (lead)", what)
      end
      if columns < 2 then
        check.fail("%s: without_first = true leaves nothing of %d columns", what, columns)
      end
      data = without_first_column(data)
      panel.first_key = 2
      if panel.keys then panel.keys = table.move(panel.keys, 2, #panel.keys, 1, {}) end
      -- What the sink hid is faint on 0 to 1.
      if panel.vmin == nil and panel.vmax == nil and not panel.log then
        panel.vmin, panel.vmax = 0, "data"
      end
    end
  end
  if panel.keys then panel.xlabel = panel.xlabel or "key" end
  if panel.queries then panel.ylabel = panel.ylabel or "query" end
  panel.without_first, panel.tokens = nil, nil
  panel.kind, panel.data = "heat", data
  return panel
end

--- Lines, points or bars for core; also what the caption says of bands.
function part.axes(what, panel, list, kind)
  local said
  panel.series, said = series.plain(what, list, kind, panel.bands)
  panel.bands = nil
  use_scale(panel, "scale", "ylog")
  use_scale(panel, "xscale", "xlog")
  for _, key in ipairs { "xticks", "yticks" } do
    panel[key], panel[key .. "_names"] = series.ticks(what .. ": " .. key, panel[key])
  end
  panel.kind = kind == "bars" and "bars" or "lines"
  return panel, said
end

--- One panel's table for core, by its kind: a heat map if it has data; with series,
-- bars if it has names, else what its kind says, or lines. Also what it measures and
-- what the caption says of bands.
local function panel_of(what, given)
  if type(given) ~= "table" then
    check.fail("%s: expected a table, got a %s", what, type(given))
  end
  if given.series == nil then
    local o = check.options(what, given, part.merged(heat_rules, {
      data = { "tensor table", required = true } }))
    local data = o.data
    return part.heat(what, o, data), o.quantity or part.QUANTITY
  end
  local kind = given.kind or (given.names and "bars") or "lines"
  local o = check.options(what, given,
    part.merged(kind == "bars" and axis_rules or line_rules, {
      series = { "table", required = true },
      names = kind == "bars" and { "table", required = true } or nil,
      kind = { "string", choices = { "lines", "scatter", "bars" } },
    }))
  local panel, said = part.axes(what, o, o.series, kind)
  return panel, panel.ylabel, said
end

--- The panels for core, and the caption: what they measure, each named once.
function part.list(what, given)
  if type(given) ~= "table" or #given == 0 then
    check.fail("%s: expected a list of panels such as { data = ..., title = ... }",
      what)
  end
  local list, said, seen, needs = {}, {}, {}, false
  for i, one in ipairs(given) do
    local panel, quantity, band = panel_of(("%s: panel %d"):format(what, i), one)
    list[i] = panel
    needs = needs or panel.kind == "heat"
    for _, words in ipairs { quantity or "", band or "" } do
      if words ~= "" and not seen[words] then
        seen[words] = true
        said[#said + 1] = words
      end
    end
  end
  return list, #said > 0 and table.concat(said, "; ") or nil, needs
end

part.heat_rules, part.axis_rules = heat_rules, axis_rules
part.line_rules = line_rules

return part
