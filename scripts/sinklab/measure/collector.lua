--- collector.lua - lab.sinks.collect: sinks of attention that runs at once.
local core = require "sinklab.core"
local check = require "sinklab.base.check"
local hidden = require "sinklab.measure.hidden"
local finish = require "sinklab.measure.result"
local measures = require "sinklab.measure.measures"

local methods = {}
local Collector = { __index = methods, __name = "sinklab.collector" }

--- A collector of sinks for attention that runs at once, layer by layer: for models that
-- are no lab.model, such as language models.
--
-- While collector:watch runs a function, every call of lab.attention (or lab.mixer) in it
-- is measured: the first is layer 1, the next layer 2 and so on, unless said otherwise.
-- Layers may be run one at a time, sequences in any order, and a sequence may be shorter
-- than `tokens`. The result is that of lab.sinks.
-- @param layers, heads, tokens  of the model; tokens of the longest sequence
-- @param samples    sequences in all, default 1
-- @param batch      at most so many in one call of attention, default 1
-- @param output     function (layer) -> W_O, a tensor (d_model, heads * d_value), or
--                   nil: asked for before each watch and forgotten after it; without it
--                   there is no contribution
-- @param trigger, length, start, documents, groups  labels of all samples, as those of
--                   lab.sinks' batch; rows outside length and start are not counted even
--                   where attention sees them
-- @param null_mass  default false: what a row's weights leave is mass on nothing
-- @param virtual_keys, registers  keys before the first token, of attention and of the
--                   sequences, default 0: tokens, labels and positions count without
-- @param dtype      of maps, default "f32"
-- @param measures, maps, keep, threshold, thresholds, share_rows, dormant, hidden  as for
--                   lab.sinks; maps default to false
-- @return collector: collector:watch, collector:hidden, collector:finish
-- @error a sentence when what is watched does not fit
-- @example
--   local draw = lab.generator(1)
--   local softmax = lab.mechanism "softmax"
--   local c = lab.sinks.collect { layers = 2, heads = 1, tokens = 8 }
--   local x = draw:normal(0, 1, { 1, 8, 4 })
--   c:watch(1, function()
--     for layer = 1, 2 do
--       x = lab.attention { q = x, k = x, v = x, mechanism = softmax }
--     end
--   end)
--   print(c:finish())
local function collect(given)
  local what = "lab.sinks.collect"
  local o = check.options(what, given, measures.rules {
    layers = { "integer", required = true, min = 1 },
    heads = { "integer", required = true, min = 1 },
    tokens = { "integer", required = true, min = 1 },
    samples = { "integer", default = 1, min = 1 },
    batch = { "integer", default = 1, min = 1 },
    output = { "function" },
    trigger = { "tensor" }, length = { "tensor" }, start = { "tensor" },
    documents = { "tensor" }, groups = { "tensor" },
    null_mass = { "boolean", default = false },
    virtual_keys = { "integer", default = 0, min = 0 },
    registers = { "integer", default = 0, min = 0 },
    dtype = { "string", default = "f32", choices = { "f32", "f64" } },
  })
  local watched, stream = measures.read(what, o.measures, o.hidden)
  measures.check(what, o)
  local collector = core.sink_collector { layers = o.layers, heads = o.heads,
    tokens = o.tokens, samples = o.samples, batch = o.batch, trigger = o.trigger,
    length = o.length, start = o.start, documents = o.documents, group = o.groups,
    groups = measures.groups_of(what, o.groups), maps = o.maps, keep = o.keep,
    threshold = o.threshold, thresholds = o.thresholds, measures = watched,
    share_rows = o.share_rows, dormant = o.dormant, dtype = o.dtype,
    virtual_keys = o.virtual_keys, registers = o.registers, null_mass = o.null_mass }
  local states
  if stream then
    local h = { length = o.length, start = o.start, documents = o.documents }
    for key, value in pairs(o.hidden or {}) do h[key] = value end
    states = hidden.new(what .. ": hidden", h,
      { layers = o.layers, tokens = o.tokens, samples = o.samples })
  end
  return setmetatable({ collector = collector, options = o, states = states }, Collector)
end

--- Run a function and measure the attention it does at once.
-- @param sample  the sequence, from 1; the first one when calls have several
-- @param f       function ()
-- @param layer   of the first call, default 1
-- @param head    of the first head of a call, default 1: for heads run in groups
-- @param n       sequences of a call, default 1
-- @param last    the last layer that is run, default all: W_O is asked for up to it
-- @return what f returns
-- @error what f raises; collector:finish will refuse then
-- @example
--   local c = lab.sinks.collect { layers = 2, heads = 1, tokens = 3 }
--   local x = lab.generator(1):normal(0, 1, { 1, 3, 4 })
--   local softmax = lab.mechanism "softmax"
--   for layer = 2, 1, -1 do
--     c:watch(1, function()
--       return lab.attention { q = x, k = x, v = x, mechanism = softmax }
--     end, { layer = layer, last = layer })
--   end
--   print(c:finish().heads[2].first_mean)
function methods:watch(sample, f, given)
  local what = "collector:watch"
  local o = self.options
  check.argument(what, "first argument", sample, "integer")
  check.argument(what, "second argument", f, "function")
  local at = check.options(what, given, {
    layer = { "integer", default = 1, min = 1, max = o.layers },
    head = { "integer", default = 1, min = 1, max = o.heads },
    n = { "integer", default = 1, min = 1, max = o.batch },
    last = { "integer", default = o.layers, min = 1, max = o.layers },
  })
  if sample < 1 or sample + at.n - 1 > o.samples then
    check.fail("%s: sample %d of %d at once; there are 1 to %d", what, sample, at.n,
      o.samples)
  end
  if o.output then
    for layer = at.layer, at.last do
      local w = o.output(layer)
      if w ~= nil then
        check.argument(what, ("W_O of layer %d"):format(layer), w, "tensor")
      end
      self.collector:output(layer, w)
    end
  end
  self.collector:begin(sample, at.n, at.layer, at.head)
  local results = table.pack(pcall(f))
  self.collector:done(not results[1] and sample or nil)
  if not results[1] then error(results[2], 0) end
  return table.unpack(results, 2, results.n)
end

--- Give W_O of a layer while a function is watched, in place of the option `output`: one
-- at a time, where all of them at once would take too much memory.
-- @param layer  whose attention comes next
-- @param w      (d_model, heads * d_value); nil: let go of it
-- @return the collector
-- @error a layer that there is not, another shape
-- @example
--   local c = lab.sinks.collect { layers = 1, heads = 1, tokens = 3 }
--   local x = lab.generator(1):normal(0, 1, { 1, 3, 4 })
--   c:watch(1, function()
--     c:output(1, lab.ones { 5, 4 })
--     lab.attention { q = x, k = x, v = x, mechanism = lab.mechanism "softmax" }
--   end)
--   print(c:finish().heads[1].contribution)
function methods:output(layer, w)
  local what = "collector:output"
  check.argument(what, "first argument", layer, "integer")
  if layer < 1 or layer > self.options.layers then
    check.fail("%s: layer %d; there are 1 to %d", what, layer, self.options.layers)
  end
  self.collector:output(layer, w)
  return self
end

--- Give the residual stream of a layer, when measures has "hidden".
-- @param layer   0: before layer 1, then after each
-- @param states  (B, tokens, width)
-- @param sample  the first of the B sequences, default 1
-- @return the collector
-- @error without "hidden", or of a layer and sample given before
-- @example
--   local c = lab.sinks.collect { layers = 1, heads = 1, tokens = 3,
--     measures = "hidden" }
--   local x = lab.generator(1):normal(0, 1, { 1, 3, 4 })
--   c:hidden(0, x)
--   c:watch(1, function()
--     x = x + lab.attention { q = x, k = x, v = x, mechanism = lab.mechanism "softmax" }
--   end)
--   c:hidden(1, x)
--   print(c:finish().hidden)
function methods:hidden(layer, states, sample)
  local what = "collector:hidden"
  check.argument(what, "first argument", layer, "integer")
  check.argument(what, "second argument", states, "tensor")
  if not self.states then
    check.fail("%s: the residual stream is not measured (try measures = { \"hidden\" })",
      what)
  end
  self.states:add(layer, states, sample or 1)
  return self
end

--- End the measurement.
-- @return what lab.sinks returns
-- @error when a head of a sample has not been watched, or something did not fit
-- @example
--   local c = lab.sinks.collect { layers = 1, heads = 1, tokens = 3 }
--   local x = lab.generator(1):normal(0, 1, { 1, 3, 4 })
--   c:watch(1, function()
--     return lab.attention { q = x, k = x, v = x, mechanism = lab.mechanism "softmax" }
--   end)
--   print(c:finish())
function methods:finish()
  local o = self.options
  local found = self.collector:finish()
  if self.states then found.hidden = hidden.finish(self.states) end
  return finish(found, o.virtual_keys + o.registers, o.null_mass, o.keep)
end

return collect
