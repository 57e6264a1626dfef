--- panel.lua - panels of figures: options of scripts, converted for core.figure.
local core = require "sinklab.core"
local check = require "sinklab.base.check"
local schema = require "sinklab.base.schema"
local series = require "sinklab.plot.series"

local part = {}

--- The default quantity of a heat map.
part.QUANTITY = "attention weight"

local text_row = function(name, doc) return { name, "string", doc = doc } end
local scales = { "linear", "log" }
local title, side = text_row("title", "above it"), text_row("side", "at its left edge")

--- An end of an axis or a range of colours.
local function end_row(name, doc, default) return { name, "number string", doc = doc
  .. "; \"data\": as far as the data", default_doc = default } end

--- Options of one heat map; core checks the data and the range.
part.heat_rows = { title, side,
  { "quantity", "string", default_doc = '"attention weight"',
    doc = "the quantity of the colours" },
  { "scale", "string", choices = scales, default_doc = '"linear"',
    doc = "of the colours" },
  { "log", "boolean", doc = "true is scale = \"log\"" },
  end_row("vmin", "first colour", "0 if all data are in 0 to 1 and vmax is not given"),
  end_row("vmax", "last colour", "1 if all data are in 0 to 1 and vmin is not given"),
  { "palette", "string", default_doc = '"blues"',
    doc = '"rdbu" is for values of both signs',
    choices = { "blues", "viridis", "cividis", "magma", "greys", "rdbu" } },
  { "without_first", "boolean", doc = [[leave out key position 1, where a sink hides the
    rest; the colours are then from 0 to the largest value left]] },
  { "tokens", "table", doc = "names instead of positions on both axes" },
  { "keys", "table", doc = "names of the keys" },
  { "queries", "table", doc = "names of the queries" },
  { "mask_upper", "boolean", doc = "leave out keys after the query" },
  { "lead", "string", doc = [[name of the first column, if that is no key position:
    positions then begin at the second]] },
  { "xlabel", "string", default_doc = '"key position", with tokens "key"' },
  { "ylabel", "string", default_doc = '"query position", with tokens "query"' },
}

--- Options of axes with numbers upright.
part.axis_rows = { title, side, text_row("xlabel", "of the axis across"),
  text_row("ylabel", "of the upright axis"),
  { "scale", "string", choices = scales, default_doc = '"linear"', doc = [[of the upright
    axis; points that are not positive are left out of a logarithmic axis and counted
    below the figure]] },
  { "ylog", "boolean", doc = "true is scale = \"log\"" },
  end_row("ymin", "lower end", "a little below the data"),
  end_row("ymax", "upper end", "a little above the data"),
  { "yticks", "table", doc = "list of numbers, or { at = numbers, names = strings }" },
  { "aspect", "number", default_doc = "1.5", doc = "width over height, 0.2 to 5" },
  series.band_row }

--- Options of axes that have numbers across too.
part.line_rows = schema.join(part.axis_rows, {
  { "xscale", "string", choices = scales, default_doc = '"linear"',
    doc = "of the axis across" },
  { "xlog", "boolean", doc = "true is xscale = \"log\"" },
  end_row("xmin", "left end", "a little before the data"),
  end_row("xmax", "right end", "a little after the data"),
  { "xticks", "table", doc = "as yticks" },
})

--- The values of `o` that the rows name.
function part.pick(o, rows)
  local out = {}
  for _, row in ipairs(rows) do out[row[1]] = o[row[1]] end
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
      -- The other weights are faint on a scale from 0 to 1.
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

--- Lines, points or bars for core; and the caption's words on bands.
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

local heat_panel = schema.rules(schema.join(part.heat_rows, {
  { "data", "tensor table", required = true } }))
local line_panel = schema.rules(schema.join(part.line_rows, {
  { "series", "table", required = true },
  { "kind", "string", choices = { "lines", "scatter", "bars" } } }))
local bar_panel = schema.rules(schema.join(part.axis_rows, {
  { "series", "table", required = true }, { "names", "table", required = true },
  { "kind", "string", choices = { "lines", "scatter", "bars" } } }))

--- One panel's table for core, by its kind: a heat map if it has data; with series,
-- bars if it has names, else by its kind, or lines. Also its quantity and the caption's
-- words on bands.
local function panel_of(what, given)
  if type(given) ~= "table" then
    check.fail("%s: expected a table, got a %s", what, type(given))
  end
  if given.series == nil then
    local o = check.options(what, given, heat_panel)
    local data = o.data
    return part.heat(what, o, data), o.quantity or part.QUANTITY
  end
  local kind = given.kind or (given.names and "bars") or "lines"
  local o = check.options(what, given, kind == "bars" and bar_panel or line_panel)
  local panel, said = part.axes(what, o, o.series, kind)
  return panel, panel.ylabel, said
end

--- The panels for core, and the caption: their quantities, each named once.
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

return part
