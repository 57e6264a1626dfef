--- plot.lua - lab.plot: heat maps, grids of heads, lines, points, bars, small multiples.
--
-- Each function gives a figure: `figure:save "NAME.png"` (also .svg and .pdf) writes
-- it, `figure:text()` and the prompt show it in the terminal, `run:figure` saves all
-- three files. Positions count from 1; queries go down and keys across.
local core = require "sinklab.core"
local check = require "sinklab.base.check"
local part = require "sinklab.plot.panel"

local plot = {}

-- Options of a whole figure.
local figure_rules = {
  title = { "string" }, caption = { "string" },
  samples = { "integer", min = 1 }, dpi = { "integer", min = 72, max = 600 },
  size = { "number" },
}

local QUANTITY = part.QUANTITY
local merged, pick = part.merged, part.pick
local heat_rules, axis_rules = part.heat_rules, part.axis_rules
local line_rules = part.line_rules

--- The caption: what the script says, else the quantity; then the number of samples.
local function caption(o, quantity, needs_samples)
  local said = o.caption or quantity
  local samples
  if o.samples then
    samples = ("%d sample%s"):format(o.samples, o.samples == 1 and "" or "s")
  elseif needs_samples and not o.caption then
    samples = "sample count not given"
  end
  return said and samples and said .. ", " .. samples or said or samples
end

local function figure(what, o, spec, said, needs_samples)
  spec.what, spec.dpi, spec.size = what, o.dpi, o.size
  spec.caption = caption(o, said, needs_samples)
  return core.figure(spec)
end

--- A heat map of one matrix.
--
-- Matrices larger than the pixels there are show the largest of each block of cells,
-- and the figure says so: a single dark cell stays visible.
-- @param data      tensor (queries, keys), or a table of rows of numbers; NaN is grey
-- @param title     above the figure
-- @param caption   below it; default the quantity and the number of samples
-- @param samples   how many samples the values are over
-- @param size      inches of each panel's plot the long way, 0.3 to 20; default by the
--                  number of panels
-- @param dpi       of the PNG, 72 to 600, default 200
-- @param quantity  what the colours measure, default "attention weight"
-- @param scale     "log" for logarithmic colours; default "linear"
-- @param log       true is scale = "log"
-- @param vmin, vmax  range of the colours. Neither given: 0 to 1 if all data lie there,
--                  otherwise the data's range. One given, or "data": the other end from
--                  the data
-- @param palette   "blues" (default), "viridis", "cividis", "magma", "greys"; "rdbu" for
--                  values of both signs
-- @param without_first  leave out key position 1, where a sink hides the rest; the
--                  colours are then from 0 to the largest value left
-- @param tokens    names instead of positions on both axes
-- @param keys, queries  names on one axis
-- @param mask_upper  leave out keys after the query
-- @param lead      name of the first column, if that is no key position: positions then
--                  begin at the second
-- @param xlabel, ylabel  default "key position" and "query position", with tokens "key"
--                  and "query"
-- @param side      text at the left edge
-- @return figure
-- @error an unknown option, a matrix that is empty or not rectangular, a range that is
--   empty, tokens that are not as many as rows and columns
-- @example
--   local w = lab.tensor { { 1, 0, 0 }, { 0.9, 0.1, 0 }, { 0.8, 0.1, 0.1 } }
--   print(lab.plot.heat(w, { tokens = { "the", "cat", "sat" }, samples = 1 }))
function plot.heat(data, given)
  local what = "lab.plot.heat"
  if type(data) == "table" and core.is_tensor(data.mean) then
    check.fail("%s: expected one matrix, got a measurement of all heads "
      .. "(try lab.plot.heads)", what)
  end
  local o = check.options(what, given, merged(heat_rules, figure_rules))
  local panel = part.heat(what, pick(o, heat_rules), data)
  panel.title = nil
  return figure(what, o, { title = o.title, panels = { panel } },
    o.quantity or QUANTITY, true)
end

-- From here on the layer and the head are named once, at the edges of the grid.
local MANY_HEADS = 5

--- The weights of a measurement with a first column for what is not on tokens: mass on
-- nothing and on virtual keys. Returns the tensor and the column's name.
local function with_null(what, found)
  local mean = found.mean
  local shape = mean.shape
  local sum
  if found.null then sum = found.null:reshape { shape[1], shape[2], shape[3], 1 } end
  if found.virtual then
    local virtual = core.sum(found.virtual, 4, { keep = true })
    sum = sum and sum + virtual or virtual
  end
  if not sum then
    check.fail("%s: null = true, but the mechanism measured does not say that it leaves "
      .. "mass on nothing, and the model has no virtual keys", what)
  end
  return core.concat({ sum, mean }, 4),
      found.virtual and (found.null and "other" or "virtual") or "null"
end

-- What a grid shows of a measurement: its quantity, and function (found) -> tensor, or
-- nil and what is missing.
local shows = {
  weights = { QUANTITY, function(found) return found.mean end },
  std = { "standard deviation", function(found)
    return found.std, "std, and lab.sinks gives it with its maps"
  end },
  contribution = { "contribution (weight × norm of value)", function(found)
    local norms = found.output_norms
    if not norms then
      return nil, "the norms of values (try lab.sinks with measures = \"norms\")"
    end
    local shape = norms.shape
    return found.mean * norms:reshape { shape[1], shape[2], 1, shape[3] }
  end },
}

--- A grid of heads: layers down, heads across, one colour bar.
-- @param weights  tensor (layers, heads, queries, keys), or what lab.sinks measured:
--                 its mean, over its number of samples
-- @param show     of a measurement: "weights" (default), "std" (over samples) or
--                 "contribution": the mean weight times the mean norm of the value after
--                 the output map, for which the norms must have been measured
-- @param null     with a measurement: a first column of its own for the mass that is
--                 not on tokens, "null" (on nothing), "virtual" (on a key bias or
--                 registers) or "other" (both)
-- @param given    as for lab.plot.heat; the range is that of all heads together and 0
--                 to 1 by default
-- @return figure
-- @error as lab.plot.heat; null = true where nothing of the kind was measured
-- @example
--   local w = lab.full({ 2, 2, 4, 4 }, 0.25)
--   print(lab.plot.heads(w, { title = "uniform", samples = 10 }))
function plot.heads(weights, given)
  local what = "lab.plot.heads"
  local o = check.options(what, given, merged(heat_rules, figure_rules, {
    null = { "boolean", default = false },
    show = { "string", choices = { "weights", "std", "contribution" } } }))
  local quantity = QUANTITY
  if type(weights) == "table" and core.is_tensor(weights.mean) then
    o.samples = o.samples or weights.samples
    if o.null then
      if (o.show or "weights") ~= "weights" then
        check.fail("%s: null = true is for show = \"weights\"", what)
      end
      weights, o.lead = with_null(what, weights)
    else
      local shown, missing = shows[o.show or "weights"][2](weights)
      if not shown then
        check.fail("%s: show = \"%s\" needs %s", what, o.show, missing)
      end
      weights, quantity = shown, shows[o.show or "weights"][1]
    end
  elseif o.null or o.show then
    check.fail("%s: %s needs what lab.sinks measured, not its tensor", what,
      o.null and "null = true" or "show")
  end
  o.quantity = o.quantity or quantity
  if not core.is_tensor(weights) or #weights.shape ~= 4 then
    check.fail("%s: expected a tensor (layers, heads, queries, keys), got %s", what,
      core.is_tensor(weights)
      and "shape (" .. table.concat(weights.shape, ", ") .. ")" or type(weights))
  end
  local log = o.scale == "log" or o.log
  if o.vmin == nil and o.vmax == nil and not log and not o.without_first then
    o.vmin, o.vmax = 0, o.show == "contribution" and "data" or 1
  end
  local layers, heads = weights.shape[1], weights.shape[2]
  local many = layers >= MANY_HEADS or heads >= MANY_HEADS
  local panels = {}
  for l = 1, layers do
    local layer = weights:select(1, l)
    for h = 1, heads do
      local panel = part.heat(what, pick(o, heat_rules), layer:select(1, h))
      panel.title = nil
      if not many then
        panel.title = ("layer %d head %d"):format(l, h)
      else
        panel.title = l == 1 and "head " .. h or nil
        panel.side = h == 1 and "layer " .. l or nil
      end
      panels[#panels + 1] = panel
    end
  end
  return figure(what, o, { title = o.title, rows = layers, columns = heads,
    shared = true, panels = panels }, o.quantity, true)
end

--- Panels side by side, each with its own range and colour bar or legend.
-- @param panels   list of { data =, title =, quantity =, vmin =, ... } (heat maps:
--                 options of lab.plot.heat), { series =, title =, ... } (lines: options
--                 of lab.plot.lines; kind = "scatter" for points) and { series =,
--                 names =, ... } (bars: options of lab.plot.bars)
-- @param columns  of the grid, default about as many as rows
-- @param title, caption, samples, size, dpi  of the figure, as for lab.plot.heat
-- @return figure
-- @error an unknown option of the figure or of a panel, which the message numbers
-- @example
--   print(lab.plot.panels({
--     { title = "weights", data = { { 1, 0 }, { 0.5, 0.5 } } },
--     { title = "loss", series = { { y = { 3, 2, 1 } } } },
--   }, { samples = 1 }))
function plot.panels(panels, given)
  local what = "lab.plot.panels"
  local o = check.options(what, given, merged(figure_rules, {
    columns = { "integer", min = 1 },
  }))
  local list, said, needs = part.list(what, panels)
  local columns = math.min(o.columns or math.ceil(math.sqrt(#panels)), #panels)
  return figure(what, o, { title = o.title, columns = columns,
    rows = math.ceil(#panels / columns), panels = list }, said, needs)
end

--- Small multiples: panels of one kind in a grid, with one range, one set of axis labels
-- and one colour bar or legend for all.
-- @param panels   as for lab.plot.panels, row by row; labels of axes are those of the
--                 first
-- @param columns  how many panels in a row, or a list of names, one above each column
-- @param rows     a list of names, one beside each row
-- @param title, caption, samples, size, dpi  of the figure, as for lab.plot.heat
-- @return figure
-- @error panels of different kinds or quantities, series that differ in their labels,
--   names that are not as many as rows or columns
-- @example
--   local function panel(k) return { series = { { y = { k, 2 * k, 4 * k } } } } end
--   print(lab.plot.grid({ panel(1), panel(2), panel(3), panel(4) },
--     { columns = { "16 tokens", "64 tokens" }, rows = { "softmax", "relu" } }))
function plot.grid(panels, given)
  local what = "lab.plot.grid"
  local o = check.options(what, given, merged(figure_rules, {
    columns = { "integer table", min = 1 }, rows = { "table" },
  }))
  local list, said, needs = part.list(what, panels)
  local names = type(o.columns) == "table" and o.columns or nil
  local columns = names and #names or o.columns or math.ceil(math.sqrt(#panels))
  if columns == 0 then check.fail("%s: option 'columns' is an empty list", what) end
  columns = math.min(columns, #panels)
  local rows = math.ceil(#panels / columns)
  if o.rows and #o.rows ~= rows then
    check.fail("%s: %d names of rows, but %d panels in %d columns make %d", what,
      #o.rows, #panels, columns, rows)
  end
  for i, panel in ipairs(list) do
    if names and i <= columns then panel.title = panel.title or names[i] end
    if o.rows and i % columns == 1 % columns then
      panel.side = panel.side or o.rows[(i - 1) // columns + 1]
    end
  end
  return figure(what, o, { title = o.title, columns = columns, rows = rows,
    shared = true, panels = list }, said, needs)
end

--- Two panels for lab.plot.panels: a head's mean weights and their standard deviation
-- over samples, both on 0..1 as in the paper's figure 3, the largest deviation in words.
-- @param sinks    what lab.sinks gave, with maps
-- @param layer    from 1, default 1
-- @param head     from 1, default 1
-- @param title    in front of "mean" and "std"
-- @param letters  of the two panels, such as { "a", "b" }; default none
-- @return panel of the mean, panel of the standard deviation
-- @error a first argument without maps
-- @example
--   local sinks = { mean = lab.full({ 1, 1, 3, 3 }, 0.5),
--     std = lab.zeros { 1, 1, 3, 3 } }
--   local mean, std = lab.plot.mean_and_std(sinks, { title = "softmax" })
--   print(lab.plot.panels({ mean, std }, { samples = 1000 }))
function plot.mean_and_std(sinks, given)
  local what = "lab.plot.mean_and_std"
  local o = check.options(what, given, {
    layer = { "integer", default = 1, min = 1 },
    head = { "integer", default = 1, min = 1 },
    title = { "string" },
    letters = { "table", default = {} },
  })
  if type(sinks) ~= "table" or not sinks.mean then
    check.fail("%s: the first argument must be what lab.sinks gave with maps", what)
  end
  local function panel(i, map, name, quantity)
    local letter = o.letters[i] and "(" .. o.letters[i] .. ") " or ""
    return { data = map:select(1, o.layer):select(1, o.head), vmin = 0, vmax = 1,
      title = letter .. (o.title and o.title .. ", " or "") .. name,
      quantity = quantity }
  end
  local largest = sinks.std:select(1, o.layer):select(1, o.head):max():item()
  return panel(1, sinks.mean, "mean"),
    panel(2, sinks.std, ("std (max %.1g)"):format(largest), "standard deviation")
end

local function axes_figure(what, list, given, rules, kind, names)
  local o = check.options(what, given, merged(rules, figure_rules))
  local panel, said = part.axes(what, pick(o, rules), list, kind)
  panel.title, panel.names = nil, names
  -- A caption of the script's own still says what a band is.
  if said and o.caption then o.caption = o.caption .. "; " .. said end
  local quantity = o.ylabel and said and o.ylabel .. ": " .. said or said
  if not quantity and o.samples then quantity = o.ylabel end
  return figure(what, o, { title = o.title, panels = { panel } }, quantity)
end

--- A line plot, with bands over seeds.
-- @param list     list of series { label =, x =, y =, low =, high =, markers = }: x, y
--                 and the band low..high are lists of numbers or tensors of one axis; x
--                 defaults to 1, 2, ...; NaN interrupts a line. Instead of x and y: log =
--                 what lab.train returned (x is its steps, y its losses, or the column
--                 that key = names), or runs = a list of several such, or of
--                 { x =, y = }, whose mean and band are drawn. Runs need not have the
--                 same x: each is straight between its points and ends where it ends
-- @param bands    what a band over runs shows: "range" (default: mean, smallest and
--                 largest), "std" (mean ± standard deviation), "sem" (± standard error)
--                 or "quartiles" (about the median); the caption says it
-- @param xlabel, ylabel  of the axes
-- @param scale, xscale  "log" for a logarithmic axis, upright and across; points that
--                 are not positive are left out and counted below the figure
-- @param ylog, xlog  true is scale = "log", xscale = "log"
-- @param xmin, xmax, ymin, ymax  ranges of the axes, default a little wider than the
--                 data; "data": that end from the data
-- @param xticks, yticks  a list of numbers, or { at = numbers, names = strings }
-- @param aspect   width over height, 0.2 to 5, default 1.5
-- @param title, caption, samples, size, dpi, side  as for lab.plot.heat
-- @return figure
-- @error an unknown option, lists of different lengths, runs whose x do not ascend
-- @example
--   print(lab.plot.lines({
--     { label = "softmax", runs = { { 3, 2, 1 }, { 4, 2, 1.5 } } },
--     { label = "relu", y = { 3, 1, 0.1 } },
--   }, { scale = "log", xlabel = "step", ylabel = "loss" }))
function plot.lines(list, given)
  return axes_figure("lab.plot.lines", list, given, line_rules, "lines")
end

--- Points, with error bars where a series has low and high or runs.
-- @param list   list of series { label =, x =, y =, low =, high = }, or with runs as
--               for lab.plot.lines
-- @param given  as for lab.plot.lines
-- @return figure
-- @error as lab.plot.lines
-- @example
--   print(lab.plot.scatter({ { label = "heads", x = { 0.1, 0.9, 0.99 },
--     y = { 1.5, 0.2, 0.01 } } }, { xlabel = "weight on position 1",
--     ylabel = "entropy" }))
function plot.scatter(list, given)
  return axes_figure("lab.plot.scatter", list, given, line_rules, "scatter")
end

--- Bars in groups, with error bars.
-- @param names   of the groups, along the axis
-- @param list    list of series { label =, y = one number a group, low =, high = }; or
--                runs = a list of such lists, whose mean and spread are drawn. NaN: no
--                bar
-- @param bands, xlabel, ylabel, scale, ylog, ymin, ymax, yticks, aspect  as for
--                lab.plot.lines; a linear axis holds 0
-- @param title, caption, samples, size, dpi, side  as for lab.plot.heat
-- @return figure
-- @error an unknown option, a series that has not one number for each name
-- @example
--   print(lab.plot.bars({ "softmax", "relu" }, {
--     { label = "layer 1", runs = { { 0.99, 0 }, { 0.97, 0 } } },
--     { label = "layer 2", runs = { { 0.91, 0.01 }, { 0.95, 0 } } },
--   }, { ylabel = "weight on position 1" }))
function plot.bars(names, list, given)
  local what = "lab.plot.bars"
  if type(names) ~= "table" or #names == 0 then
    check.fail("%s: the first argument must be a list of names, one for each group", what)
  end
  return axes_figure(what, list, given, axis_rules, "bars", names)
end

return plot
