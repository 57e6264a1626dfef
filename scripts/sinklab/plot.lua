--- plot.lua - lab.plot: heat maps, grids of heads, panels and line plots.
--
-- Each function gives a figure: `figure:save "NAME.png"` (also .svg and .pdf) writes
-- it, `figure:text()` and the prompt show it in the terminal, `run:figure` saves all
-- three files. Positions count from 1; queries go down and keys across.
local core = require "sinklab.core"
local check = require "sinklab.check"

local plot = {}

-- What a heat map shows unless told otherwise.
local QUANTITY = "attention weight"

-- Options of one heat map; core checks the data and the range.
local heat_rules = {
  title = { "string" }, side = { "string" },
  xlabel = { "string" }, ylabel = { "string" }, quantity = { "string" },
  palette = { "string", choices = { "blues", "viridis", "rdbu" } },
  vmin = { "number string" }, vmax = { "number string" },
  log = { "boolean" }, mask_upper = { "boolean" }, lead = { "string" },
}

-- Options of one line plot.
local line_rules = {
  title = { "string" }, xlabel = { "string" }, ylabel = { "string" },
  xlog = { "boolean" }, ylog = { "boolean" },
  xmin = { "number string" }, xmax = { "number string" },
  ymin = { "number string" }, ymax = { "number string" },
}

-- Options of a whole figure.
local figure_rules = {
  title = { "string" }, caption = { "string" },
  samples = { "integer", min = 1 }, dpi = { "integer", min = 72, max = 600 },
}

local function merged(...)
  local out = {}
  for _, rules in ipairs { ... } do
    for key, rule in pairs(rules) do out[key] = rule end
  end
  return out
end

--- The caption; with the number of samples it says what is shown over them.
local function caption(o, quantity)
  if not o.samples then return o.caption end
  local samples = ("%d sample%s"):format(o.samples, o.samples == 1 and "" or "s")
  local said = o.caption or quantity
  return said and said .. ", " .. samples or samples
end

--- The values of `o` whose keys are in `rules`.
local function pick(o, rules)
  local out = {}
  for key in pairs(rules) do out[key] = o[key] end
  return out
end

local function figure(what, o, spec, quantity)
  spec.what, spec.caption, spec.dpi = what, caption(o, quantity), o.dpi
  return core.figure(spec)
end

--- A heat map of one matrix.
-- @param data        tensor (queries, keys), or a table of rows of numbers; NaN is grey
-- @param title
-- @param caption     below the figure
-- @param samples     how many samples the values are over: ends the caption, which is
--                    then the quantity by default
-- @param quantity    what the colours measure, default "attention weight"
-- @param vmin,vmax   range of the colours. Neither given: 0 to 1 if all data lie there,
--                    otherwise the data's range. One given, or "data": the other end
--                    from the data
-- @param log         logarithmic colours
-- @param palette     "blues" (default), "viridis" or "rdbu"
-- @param mask_upper  leave out keys after the query
-- @param side        text at the left edge
-- @param lead        name of the first column, if that is no key position: positions
--                    then begin at the second
-- @param xlabel,ylabel  default "key position" and "query position"
-- @param dpi         of the PNG, default 200
-- @return figure
-- @example
--   print(lab.plot.heat({ { 1, 0, 0 }, { 0.5, 0.5, 0 }, { 0.9, 0, 0.1 } },
--     { title = "one head", samples = 1 }))
function plot.heat(data, given)
  local what = "lab.plot.heat"
  local o = check.options(what, given, merged(heat_rules, figure_rules))
  local panel = pick(o, heat_rules)
  panel.title, panel.data = nil, data
  return figure(what, o, { title = o.title, panels = { panel } },
    o.quantity or QUANTITY)
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
    check.fail("%s: null = true, but the mechanism measured does not say that it leaves mass on nothing, and the model has no virtual keys",
      what)
  end
  return core.concat({ sum, mean }, 4),
      found.virtual and (found.null and "other" or "virtual") or "null"
end

--- A grid of heads: layers down, heads across, one colour bar.
-- @param weights   tensor (layers, heads, queries, keys), or what lab.sinks measured:
--                  its mean
-- @param null      with a measurement: a first column of its own for the mass that is
--                  not on tokens, "null" (on nothing), "virtual" (on a key bias or
--                  registers) or "other" (both)
-- @param title,caption,samples,quantity,vmin,vmax,log,palette,mask_upper,side,lead,
--        xlabel,ylabel,dpi  as for lab.plot.heat; the range is that of all heads together and
--                    0 to 1 by default
-- @return figure
-- @example
--   local task = lab.task.trigger_mean {}
--   local model = lab.model.attention_only { task = task }
--   local found = lab.sinks(model, task:batch { n = 16, trigger = 8 })
--   print(lab.plot.heads(found, { samples = 16 }))
function plot.heads(weights, given)
  local what = "lab.plot.heads"
  local o = check.options(what, given, merged(heat_rules, figure_rules, {
    null = { "boolean", default = false } }))
  if type(weights) == "table" and core.is_tensor(weights.mean) then
    if o.null then
      weights, o.lead = with_null(what, weights)
    else
      weights = weights.mean
    end
  elseif o.null then
    check.fail("%s: null = true needs what lab.sinks measured, not its tensor", what)
  end
  if not core.is_tensor(weights) or #weights.shape ~= 4 then
    check.fail("%s: expected a tensor (layers, heads, queries, keys), got %s", what,
      core.is_tensor(weights)
      and "shape (" .. table.concat(weights.shape, ", ") .. ")" or type(weights))
  end
  if o.vmin == nil and o.vmax == nil and not o.log then o.vmin, o.vmax = 0, 1 end
  local layers, heads = weights.shape[1], weights.shape[2]
  local many = layers >= MANY_HEADS or heads >= MANY_HEADS
  local panels = {}
  for l = 1, layers do
    local layer = weights:select(1, l)
    for h = 1, heads do
      local panel = pick(o, heat_rules)
      panel.data = layer:select(1, h)
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
    shared_bar = true, panels = panels }, o.quantity or QUANTITY)
end

--- One panel's table for core: a heat map if it has data, lines if it has series.
local function panel_of(what, given)
  if type(given) ~= "table" then
    check.fail("%s: expected a table, got a %s", what, type(given))
  end
  local heat = given.series == nil
  local own = heat and { data = { "tensor table", required = true } }
      or { series = { "table", required = true } }
  local o = check.options(what, given,
    merged(heat and heat_rules or line_rules, own))
  o.kind = heat and "heat" or "lines"
  return o
end

--- Panels side by side, each with its own range and colour bar.
-- @param panels   list of { data =, title =, quantity =, vmin =, vmax =, ... } (heat
--                 maps: options of lab.plot.heat) or { series =, title =, ... } (lines:
--                 options of lab.plot.lines)
-- @param columns  of the grid, default: about as many as rows
-- @param title,caption,samples,dpi  of the figure, as for lab.plot.heat
-- @return figure
-- @error a panel with neither data nor series
-- @example
--   print(lab.plot.panels { { data = { { 1, 0 }, { 0.5, 0.5 } }, title = "weights" },
--     { series = { { y = { 3, 2, 1 } } }, title = "loss" } })
function plot.panels(panels, given)
  local what = "lab.plot.panels"
  local o = check.options(what, given, merged(figure_rules, {
    columns = { "integer", min = 1 },
  }))
  if type(panels) ~= "table" or #panels == 0 then
    check.fail("%s: expected a list of panels such as { data = ..., title = ... }",
      what)
  end
  local columns = math.min(o.columns or math.ceil(math.sqrt(#panels)), #panels)
  local list = {}
  for i, panel in ipairs(panels) do
    list[i] = panel_of(("%s: panel %d"):format(what, i), panel)
  end
  return figure(what, o, { title = o.title, columns = columns,
    rows = math.ceil(#panels / columns), panels = list })
end

--- Two panels for lab.plot.panels: a head's mean weights and their standard deviation
-- over samples, both on 0..1 as in the paper's figure 3, the largest deviation in words.
-- @param sinks    what lab.sinks gave, with maps
-- @param layer    from 1, default 1
-- @param head     from 1, default 1
-- @param title    in front of "mean" and "std"
-- @param letters  of the two panels, { "a", "b" }; default none
-- @return two panels
-- @example
--   local task = lab.task.trigger_mean {}
--   local model = lab.model.attention_only { task = task }
--   local found = lab.sinks(model, task:batch { n = 16, trigger = 8 })
--   print(lab.plot.panels { lab.plot.mean_and_std(found, { letters = { "a", "b" } }) })
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

--- A line plot.
-- @param series  list of { x =, y =, low =, high =, label =, markers = }; x, y and the
--                band low..high are lists of numbers or tensors of one axis; x defaults
--                to 1, 2, ...; NaN interrupts a line
-- @param title,caption,samples,dpi  of the figure, as for lab.plot.heat
-- @param xlabel,ylabel
-- @param xlog,ylog   logarithmic axes; points that are not positive are left out and
--                    counted below the figure
-- @param xmin,xmax,ymin,ymax  ranges of the axes, default a little wider than the data
-- @return figure
-- @example
--   print(lab.plot.lines({ { y = { 1, 0.1, 0.01 }, label = "softmax" } },
--     { ylog = true, xlabel = "step", ylabel = "loss" }))
function plot.lines(series, given)
  local what = "lab.plot.lines"
  local o = check.options(what, given, merged(line_rules, figure_rules))
  if type(series) ~= "table" or #series == 0 then
    check.fail("%s: expected a list of series such as { x = ..., y = ... }", what)
  end
  local panel = pick(o, line_rules)
  panel.title, panel.kind, panel.series = nil, "lines", series
  return figure(what, o, { title = o.title, panels = { panel } })
end

return plot
