--- collector.lua - lab.sinks.collect: sinks of attention that runs at once.
local core = require "sinklab.core"
local check = require "sinklab.base.check"
local schema = require "sinklab.base.schema"
local hidden = require "sinklab.measure.hidden"
local finish = require "sinklab.measure.result"
local measures = require "sinklab.measure.measures"

local methods = {}
local Collector = { __index = methods, __name = "sinklab.collector" }

local collect = schema.func("lab.sinks.collect", {
  doc = [[A collector of sinks for attention that runs at once, layer by layer: for
    models that are no lab.model, such as language models.

    While collector:watch runs a function, every call of lab.attention (or lab.mixer) in
    it is measured: the first is layer 1, the next layer 2 and so on, unless said
    otherwise. Layers may be run one at a time, sequences in any order, and a sequence
    may be shorter than `tokens`. The result is that of lab.sinks.]],
  options = schema.join({
    { "layers", "integer", required = true, min = 1, doc = "of the model" },
    { "heads", "integer", required = true, min = 1, doc = "of the model" },
    { "tokens", "integer", required = true, min = 1, doc = "of the longest sequence" },
    { "samples", "integer", default = 1, min = 1, unit = "sequences", doc = "in all" },
    { "batch", "integer", default = 1, min = 1, unit = "sequences",
      doc = "at most so many in one call of attention" },
    { "output", "function", doc = [[(layer) -> W_O, a tensor (d_model, heads * d_value),
      or nil: called before each watch and forgotten after it; without it there is no
      contribution]] },
    { "trigger", "tensor", doc = [[and the next four: labels of all samples, as in the
      batch of lab.sinks; rows outside length and start are not counted even where they
      are visible to attention]] },
    { "length", "tensor" }, { "start", "tensor" }, { "documents", "tensor" },
    { "groups", "tensor" },
    { "null_mass", "boolean", default = false,
      doc = "the sum that a row's weights lack to 1 is mass on nothing" },
    { "virtual_keys", "integer", default = 0, min = 0, doc = [[keys of attention before
      the first token; they count in no tokens, labels and positions]] },
    { "registers", "integer", default = 0, min = 0,
      doc = "keys of the sequences before the first token, likewise" },
    { "dtype", "string", default = "f32", choices = { "f32", "f64" }, doc = "of maps" },
  }, measures.rows),
  returns = "collector: collector:watch, collector:hidden, collector:finish",
  errors = "options that do not fit each other",
  example = [[
    local draw = lab.generator(1)
    local softmax = lab.mechanism "softmax"
    local c = lab.sinks.collect { layers = 2, heads = 1, tokens = 8 }
    local x = draw:normal(0, 1, { 1, 8, 4 })
    c:watch(1, function()
      for layer = 1, 2 do
        x = lab.attention { q = x, k = x, v = x, mechanism = softmax }
      end
    end)
    print(c:finish())]],
}, function(o)
  local what = "lab.sinks.collect"
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
end)

local watch_rows = {
  { "layer", "integer", default = 1, min = 1, doc = "of the first call" },
  { "head", "integer", default = 1, min = 1,
    doc = "of the first head of a call: for heads run in groups" },
  { "n", "integer", default = 1, min = 1, unit = "sequences", doc = "of a call" },
  { "last", "integer", min = 1, default_doc = "all",
    doc = "the last layer that is run: W_O is asked for up to it" },
}

methods.watch = schema.func("collector:watch", {
  doc = "Run a function and measure the attention it does at once.",
  args = {
    { "sample", "integer",
      doc = "the sequence, from 1; the first one when calls have several" },
    { "f", "function", doc = "called without arguments" },
  },
  options = watch_rows,
  more = function(self)
    local o, rules = self.options, schema.rules(watch_rows)
    rules.layer.max, rules.head.max, rules.n.max = o.layers, o.heads, o.batch
    rules.last.max, rules.last.default = o.layers, o.layers
    return rules
  end,
  returns = "the results of f",
  errors = "an error of f; collector:finish refuses then",
  example = [[
    local c = lab.sinks.collect { layers = 2, heads = 1, tokens = 3 }
    local x = lab.generator(1):normal(0, 1, { 1, 3, 4 })
    local softmax = lab.mechanism "softmax"
    for layer = 2, 1, -1 do
      c:watch(1, function()
        return lab.attention { q = x, k = x, v = x, mechanism = softmax }
      end, { layer = layer, last = layer })
    end
    print(c:finish().heads[2].first_mean)]],
}, function(self, sample, f, at)
  local what, o = "collector:watch", self.options
  if sample < 1 or sample + at.n - 1 > o.samples then
    check.fail("%s: sample %d of %d at once; there are 1 to %d", what, sample, at.n,
      o.samples)
  end
  if o.output then
    for layer = at.layer, at.last do
      local w = o.output(layer)
      if w ~= nil then
        if not core.is_tensor(w) then
          check.fail("%s: the W_O of layer %d must be a tensor, got %s", what, layer,
            tostring(w))
        end
      end
      self.collector:output(layer, w)
    end
  end
  self.collector:begin(sample, at.n, at.layer, at.head)
  local results = table.pack(pcall(f))
  self.collector:done(not results[1] and sample or nil)
  if not results[1] then error(results[2], 0) end
  return table.unpack(results, 2, results.n)
end)

methods.output = schema.func("collector:output", {
  doc = [[Give W_O of a layer while a function is watched, in place of the option
    `output`: one at a time, where all of them at once would take too much memory.]],
  args = {
    { "layer", "integer", doc = "whose attention comes next" },
    { "w", "tensor", optional = true,
      doc = "(d_model, heads * d_value); nil: forget it" },
  },
  returns = "the collector",
  errors = "no such layer, another shape",
  example = [[
    local c = lab.sinks.collect { layers = 1, heads = 1, tokens = 3 }
    local x = lab.generator(1):normal(0, 1, { 1, 3, 4 })
    c:watch(1, function()
      c:output(1, lab.ones { 5, 4 })
      lab.attention { q = x, k = x, v = x, mechanism = lab.mechanism "softmax" }
    end)
    print(c:finish().heads[1].contribution)]],
}, function(self, layer, w)
  local what = "collector:output"
  if layer < 1 or layer > self.options.layers then
    check.fail("%s: layer %d; there are 1 to %d", what, layer, self.options.layers)
  end
  self.collector:output(layer, w)
  return self
end)

methods.hidden = schema.func("collector:hidden", {
  doc = [[Give the residual stream of a layer, when measures has "hidden".]],
  args = {
    { "layer", "integer", doc = "0: before layer 1, then after each" },
    { "states", "tensor", doc = "(B, tokens, width)" },
    { "sample", "integer", default = 1, doc = "the first of the B sequences" },
  },
  returns = "the collector",
  errors = [[a measurement without "hidden", a layer and sample given before]],
  example = [[
    local c = lab.sinks.collect { layers = 1, heads = 1, tokens = 3,
      measures = "hidden" }
    local x = lab.generator(1):normal(0, 1, { 1, 3, 4 })
    c:hidden(0, x)
    c:watch(1, function()
      x = x + lab.attention { q = x, k = x, v = x, mechanism = lab.mechanism "softmax" }
    end)
    c:hidden(1, x)
    print(c:finish().hidden)]],
}, function(self, layer, states, sample)
  local what = "collector:hidden"
  if not self.states then
    check.fail("%s: the residual stream is not measured (try measures = { \"hidden\" })",
      what)
  end
  self.states:add(layer, states, sample)
  return self
end)

methods.finish = schema.func("collector:finish", {
  doc = "End the measurement.",
  returns = "the result of lab.sinks",
  errors = "a head of a sample that has not been watched; a shape that did not fit",
  example = [[
    local c = lab.sinks.collect { layers = 1, heads = 1, tokens = 3 }
    local x = lab.generator(1):normal(0, 1, { 1, 3, 4 })
    c:watch(1, function()
      return lab.attention { q = x, k = x, v = x, mechanism = lab.mechanism "softmax" }
    end)
    print(c:finish())]],
}, function(self)
  local o = self.options
  local found = self.collector:finish()
  if self.states then found.hidden = hidden.finish(self.states) end
  return finish(found, o.virtual_keys + o.registers, o.null_mass, o.keep)
end)

return collect
