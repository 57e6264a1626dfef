--- plot.lua - lab.plot: heat maps, grids of heads, lines, points, bars, small multiples.
--
-- Each function gives a figure: `figure:save "NAME.png"` (also .svg and .pdf) writes
-- it, `figure:text()` and the prompt show it in the terminal, `run:figure` saves all
-- three files. Positions count from 1; queries go down and keys across.
local core = require "sinklab.core"
local check = require "sinklab.base.check"
local schema = require "sinklab.base.schema"
local part = require "sinklab.plot.panel"

local plot = {}

-- Options of a whole figure.
local figure_rows = {
  { "title", "string", doc = "above the figure" },
  { "caption", "string", default_doc = "the quantity and the number of samples",
    doc = "below the figure" },
  { "samples", "integer", min = 1, doc = "how many samples the values are over" },
  { "dpi", "integer", min = 72, max = 600, default_doc = "200",
    unit = "pixels per inch", doc = "of the PNG" },
  { "size", "number", default_doc = "by the number of panels", unit = "inches",
    doc = "of each panel's plot the long way, 0.3 to 20" },
}

local QUANTITY = part.QUANTITY
local pick, heat_rows = part.pick, part.heat_rows

--- Rows of a figure of one panel: the title is the figure's.
local function one_panel(rows)
  local out = { figure_rows[1] }
  for _, row in ipairs(rows) do
    if row[1] ~= "title" then out[#out + 1] = row end
  end
  return table.move(figure_rows, 2, #figure_rows, #out + 1, out)
end

local heat_options = one_panel(heat_rows)

--- The caption: the script's, else the quantity; then the number of samples.
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

plot.heat = schema.func("lab.plot.heat", {
  doc = [[A heat map of one matrix.

    Matrices larger than the pixels there are show the largest of each block of cells,
    and the figure says so: a single dark cell stays visible.]],
  args = { { "data", "any", doc =
    "tensor (queries, keys), or a table of rows of numbers; NaN is grey" } },
  options = heat_options,
  returns = "figure",
  errors = [[a matrix that is empty or not rectangular, a range that is empty, tokens that
    are not as many as rows and columns]],
  example = [[
    local w = lab.tensor { { 1, 0, 0 }, { 0.9, 0.1, 0 }, { 0.8, 0.1, 0.1 } }
    print(lab.plot.heat(w, { tokens = { "the", "cat", "sat" }, samples = 1 }))]],
}, function(data, o)
  local what = "lab.plot.heat"
  if type(data) == "table" and core.is_tensor(data.mean) then
    check.fail("%s: expected one matrix, got a measurement of all heads "
      .. "(try lab.plot.heads)", what)
  end
  local panel = part.heat(what, pick(o, heat_rows), data)
  panel.title = nil
  return figure(what, o, { title = o.title, panels = { panel } },
    o.quantity or QUANTITY, true)
end)

-- From here on the layer and the head are named once, at the edges of the grid.
local MANY_HEADS = 5

--- The weights of a measurement with a first column for mass that is not on tokens: on
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
    check.fail("%s: null = true, but the mechanism does not declare that it leaves "
      .. "mass on nothing, and the model has no virtual keys", what)
  end
  return core.concat({ sum, mean }, 4),
      found.virtual and (found.null and "other" or "virtual") or "null"
end

-- Quantities of a measurement in a grid: the name, and function (found) -> tensor, or
-- nil and the missing option.
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

plot.heads = schema.func("lab.plot.heads", {
  doc = [[A grid of heads: layers down, heads across, one colour bar. The range is that of
    all heads together, 0 to 1 by default.]],
  args = { { "weights", "any", doc = [[tensor (layers, heads, queries, keys), or what
    lab.sinks measured: its mean, over its number of samples]] } },
  options = schema.join({
    { "show", "string", choices = { "weights", "std", "contribution" },
      default_doc = '"weights"', doc = [[of a measurement: the mean, "std" over samples,
        or "contribution": the mean weight times the mean norm of the value after the
        output map, for which the norms must have been measured]] },
    { "null", "boolean", default = false, doc = [[with a measurement: a first column of
      its own for the mass that is not on tokens, "null" (on nothing), "virtual" (on a
      key bias or registers) or "other" (both)]] },
  }, heat_options),
  returns = "figure",
  errors = "as lab.plot.heat; null = true where nothing of the kind was measured",
  example = [[
    local w = lab.full({ 2, 2, 4, 4 }, 0.25)
    print(lab.plot.heads(w, { title = "uniform", samples = 10 }))]],
}, function(weights, o)
  local what = "lab.plot.heads"
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
    check.fail("%s: %s needs the result of lab.sinks, not a tensor", what,
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
      local panel = part.heat(what, pick(o, heat_rows), layer:select(1, h))
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
end)

plot.panels = schema.func("lab.plot.panels", {
  doc = "Panels side by side, each with its own range and colour bar or legend.",
  args = { { "panels", "table", doc = [[list of { data =, title =, quantity =, vmin =, ...
    } (heat maps: options of lab.plot.heat), { series =, title =, ... } (lines: options of
    lab.plot.lines; kind = "scatter" for points) and { series =, names =, ... } (bars:
    options of lab.plot.bars)]] } },
  options = schema.join({ { "columns", "integer", min = 1,
    default_doc = "about as many as rows", doc = "of the grid" } }, figure_rows),
  returns = "figure",
  errors = "an option that a panel does not have; the message numbers the panel",
  example = [[
    print(lab.plot.panels({
      { title = "weights", data = { { 1, 0 }, { 0.5, 0.5 } } },
      { title = "loss", series = { { y = { 3, 2, 1 } } } },
    }, { samples = 1 }))]],
}, function(panels, o)
  local what = "lab.plot.panels"
  local list, said, needs = part.list(what, panels)
  local columns = math.min(o.columns or math.ceil(math.sqrt(#panels)), #panels)
  return figure(what, o, { title = o.title, columns = columns,
    rows = math.ceil(#panels / columns), panels = list }, said, needs)
end)

plot.grid = schema.func("lab.plot.grid", {
  doc = [[Small multiples: panels of one kind in a grid, with one range, one set of axis
    labels and one colour bar or legend for all.]],
  args = { { "panels", "table", doc = [[as for lab.plot.panels, row by row; labels of axes
    are those of the first]] } },
  options = schema.join({
    { "columns", "integer table", min = 1, default_doc = "about as many as rows",
      doc = "how many panels in a row, or a list of names, one above each column" },
    { "rows", "table", doc = "a list of names, one beside each row" },
  }, figure_rows),
  returns = "figure",
  errors = [[panels of different kinds or quantities, series that differ in their labels,
    names that are not as many as rows or columns]],
  example = [[
    local function panel(k) return { series = { { y = { k, 2 * k, 4 * k } } } } end
    print(lab.plot.grid({ panel(1), panel(2), panel(3), panel(4) },
      { columns = { "16 tokens", "64 tokens" }, rows = { "softmax", "relu" } }))]],
}, function(panels, o)
  local what = "lab.plot.grid"
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
end)

plot.mean_and_std = schema.func("lab.plot.mean_and_std", {
  doc = [[Two panels for lab.plot.panels: a head's mean weights and their standard
    deviation over samples, both on 0..1 as in the paper's figure 3, the largest deviation
    in words.]],
  args = { { "sinks", "table", doc = "from lab.sinks, with maps" } },
  options = {
    { "layer", "integer", default = 1, min = 1 },
    { "head", "integer", default = 1, min = 1 },
    { "title", "string", doc = "in front of \"mean\" and \"std\"" },
    { "letters", "table", default = {},
      doc = "of the two panels, such as { \"a\", \"b\" }" },
  },
  returns = "panel of the mean, panel of the standard deviation",
  errors = "a measurement without maps",
  example = [[
    local sinks = { mean = lab.full({ 1, 1, 3, 3 }, 0.5),
      std = lab.zeros { 1, 1, 3, 3 } }
    local mean, std = lab.plot.mean_and_std(sinks, { title = "softmax" })
    print(lab.plot.panels({ mean, std }, { samples = 1000 }))]],
}, function(sinks, o)
  local what = "lab.plot.mean_and_std"
  for _, map in ipairs { "mean", "std" } do
    if not core.is_tensor(sinks[map]) then
      check.fail("%s: the first argument must be what lab.sinks gave with maps", what)
    end
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
end)

local function axes_figure(what, list, o, rows, kind, names)
  local panel, said = part.axes(what, pick(o, rows), list, kind)
  panel.title, panel.names = nil, names
  -- The meaning of a band is also added to a caption of the script.
  if said and o.caption then o.caption = o.caption .. "; " .. said end
  local quantity = o.ylabel and said and o.ylabel .. ": " .. said or said
  if not quantity and o.samples then quantity = o.ylabel end
  return figure(what, o, { title = o.title, panels = { panel } }, quantity)
end

local line_options = one_panel(part.line_rows)

plot.lines = schema.func("lab.plot.lines", {
  doc = "A line plot, with bands over seeds.",
  args = { { "list", "any", doc = [[of series { label =, x =, y =, low =, high =,
    markers = }: x, y and the band low..high are lists of numbers or tensors of one
    axis; x defaults to 1, 2, ...; NaN interrupts a line. Instead of x and y: log = from
    lab.train (x is its steps, y its losses, or the column that key = names), or runs =
    a list of several such, or of { x =, y = }, whose mean and band are drawn. Runs need
    not have the same x: each is straight between its points and ends where it ends]] } },
  options = line_options,
  returns = "figure",
  errors = "lists of different lengths, runs whose x do not ascend",
  example = [[
    print(lab.plot.lines({
      { label = "softmax", runs = { { 3, 2, 1 }, { 4, 2, 1.5 } } },
      { label = "relu", y = { 3, 1, 0.1 } },
    }, { scale = "log", xlabel = "step", ylabel = "loss" }))]],
}, function(list, o)
  return axes_figure("lab.plot.lines", list, o, part.line_rows, "lines")
end)

plot.scatter = schema.func("lab.plot.scatter", {
  doc = "Points, with error bars where a series has low and high or runs.",
  args = { { "list", "any", doc =
    "of series { label =, x =, y =, low =, high = }, or runs as for lab.plot.lines" } },
  options = line_options,
  returns = "figure",
  errors = "as lab.plot.lines",
  example = [[
    print(lab.plot.scatter({ { label = "heads", x = { 0.1, 0.9, 0.99 },
      y = { 1.5, 0.2, 0.01 } } }, { xlabel = "weight on position 1",
      ylabel = "entropy" }))]],
}, function(list, o)
  return axes_figure("lab.plot.scatter", list, o, part.line_rows, "scatter")
end)

plot.bars = schema.func("lab.plot.bars", {
  doc = "Bars in groups, with error bars. A linear axis holds 0.",
  args = {
    { "names", "table", doc = "of the groups, along the axis" },
    { "list", "any", doc = [[of series { label =, y = one number a group, low =, high = };
      or runs = a list of such lists, whose mean and spread are drawn. NaN: no bar]] },
  },
  options = one_panel(part.axis_rows),
  returns = "figure",
  errors = "a series that has not one number for each name",
  example = [[
    print(lab.plot.bars({ "softmax", "relu" }, {
      { label = "layer 1", runs = { { 0.99, 0 }, { 0.97, 0 } } },
      { label = "layer 2", runs = { { 0.91, 0.01 }, { 0.95, 0 } } },
    }, { ylabel = "weight on position 1" }))]],
}, function(names, list, o)
  local what = "lab.plot.bars"
  if #names == 0 then
    check.fail("%s: the first argument must be a list of names, one for each group", what)
  end
  return axes_figure(what, list, o, part.axis_rows, "bars", names)
end)

return plot
