--- sinks.lua - lab.sinks: attention sinks of a model, measured on a labelled batch.
local core = require "sinklab.core"
local check = require "sinklab.check"
local divisor = require "sinklab.divisor"
local finish = require "sinklab.sinks_result"
local measures = require "sinklab.measures"
local segments = require "sinklab.segments"

local sinks = {}

-- Sequences measured at once; the result does not depend on it.
local SHARD = 16
-- Maps of every weight are the default up to so many tokens.
local MAP_TOKENS = 512

--- Options that every way of measuring takes.
local function rules(more)
  local out = {
    measures = { "string table" },
    maps = { "boolean" },
    keep = { "table" },
    threshold = { "number", default = 0.3, above = 0, max = 1 },
    thresholds = { "table" },
    share_rows = { "integer", default = 64, min = 1 },
    dormant = { "number", default = 0.89 },
  }
  for key, rule in pairs(more or {}) do out[key] = rule end
  return out
end

--- A tensor of the shape of `t` with `shard` samples.
local function shard_of(t, shard)
  local shape = t.shape
  shape[1] = shard
  return core.zeros(shape, t.dtype)
end

--- Groups count from 0 to the largest one named.
local function groups_of(what, groups)
  if groups == nil then return nil end
  if not core.is_tensor(groups) then
    check.fail("%s: groups must be a tensor of whole numbers from 0, got a %s", what,
      type(groups))
  end
  return math.max(1, math.floor(groups:max():item()) + 1)
end

--- Measure a model's sinks on a batch.
--
-- Rows are of classes that are never averaged together: the first row (1 by
-- construction under causal softmax), trigger rows, the first rows of later documents
-- (boundary), and plain rows, which the means are over; padded and fully masked rows are
-- only counted. Layers, heads and positions count from 1, positions from the first token
-- of their document. Keys that are no tokens (a key bias, registers) have no position:
-- their mass is virtual_mass. Weights are those of the map, before a gate.
-- docs/measures.md has every measure's formula, source and traps.
-- @param model
-- @param batch       from task:batch: x, and where there are any: trigger (B) positions
--                    from 0 or (B, T) non-zero on trigger rows; length (B) valid tokens
--                    end here; start (B) and begin here (left padding); documents (B, T)
--                    numbers that change where a document begins: attention is kept
--                    within it; groups (B) or (B, T) classes of plain rows from 0
-- @param measures    names of measures or of their groups, or "all"; always: "rows";
--                    more: "columns" (Sink_k for every k, column entropy, random
--                    positions), "share" (the first 1, 4, 8 keys), "norms" (keys,
--                    values), "logits" (sink logit)
-- @param maps        mean and std over samples of every weight; default up to 512
--                    tokens, without keep
-- @param keep        { { layer, head }, ... }: these of these heads only
-- @param threshold   eps of the sink rate Sink_1^eps (Gu et al. 2025), default 0.3
-- @param thresholds  a list of them: heads[i].curve has the rates at each
-- @param share_rows  last rows of a document that "share" looks at, default 64
-- @param dormant     weight on position 1 from which a row of a group is dormant,
--                    default 0.89 (Guo et al. 2024)
-- @return { samples, tokens, threshold, heads = { { layer, head, first_mean, first_min,
--         first_std, first_all, trigger_first, row_mass, abs_mass (sums of weights and
--         of |weights| on tokens), proxy, entropy, contribution, value_norm, rate,
--         proxy_rate, classes = { plain, first, trigger, boundary }, counts of rows,
--         ... }, ... }, mean, std = tensors (layers, heads, query, key), null (where
--         claimed) = mean mass on nothing (layers, heads, query), virtual (with such
--         keys) = mean mass on each of them (layers, heads, query, n): the key bias,
--         then registers; kept = with keep a list of the same; first, proxy, row_mass,
--         ... = { min, max, mean } over heads; sink, column, ... = tensors (layers,
--         heads, position) }
-- @example
--   local task = lab.task.trigger_mean { seq_len = 8 }
--   local model = lab.model.attention_only { task = task }
--   local sinks = lab.sinks(model, task:batch { n = 4 }, { measures = { "columns" } })
--   print(sinks, sinks:sink_k(2), sinks.heads[1].null_rate)
local function measure(model, batch, given)
  local what = "lab.sinks"
  local o = check.options(what, given, rules())
  check.argument(what, "first argument", model, "model")
  if type(batch) ~= "table" or not core.is_tensor(batch.x) then
    check.fail("%s: the second argument must be a batch (try task:batch { n = 1000 })",
      what)
  end
  if batch.x.dtype ~= model.dtype then
    check.fail("%s: the batch is %s, the model %s (try task:batch { dtype = \"%s\" })",
      what, batch.x.dtype, model.dtype, model.dtype)
  end
  local mechanism = model.mechanism
  if not mechanism.has_weights then
    check.fail("%s: '%s' is a mix without weights: there is nothing to measure", what,
      mechanism.name)
  end
  local watched = measures.read(what, o.measures)
  local claimed = mechanism.claims.null_mass
  local samples, tokens = batch.x.shape[1], batch.x.shape[2]
  local shard = divisor(samples, SHARD)
  local begins = segments.begin(what, batch)
  local x = shard_of(batch.x, shard)
  local length = batch.length and shard_of(batch.length, shard)
  local begin = begins and shard_of(begins, shard)
  local program = core.record(function() model:forward(x, length, begin) end)
  local inputs, batches = { x }, { batch.x }
  for _, pair in ipairs { { length, batch.length }, { begin, begins } } do
    inputs[#inputs + 1], batches[#batches + 1] = pair[1], pair[2]
  end
  for _, input in ipairs(inputs) do program:input(input) end
  local maps = o.maps
  if maps == nil then maps = not o.keep and tokens <= MAP_TOKENS end
  local found = core.measure_sinks { program = program, inputs = inputs,
    batch = batches, layers = model.layers, heads = model.heads, tokens = tokens,
    trigger = batch.trigger, length = batch.length, start = batch.start,
    documents = batch.documents, group = batch.groups,
    groups = groups_of(what, batch.groups), output = model.outputs,
    maps = maps, keep = o.keep, threshold = o.threshold, thresholds = o.thresholds,
    measures = watched, share_rows = o.share_rows, dormant = o.dormant,
    dtype = model.dtype, prefix = model.attention.prefix, registers = model.registers,
    null_mass = claimed }
  return finish(found, model.attention.prefix + model.registers, claimed)
end

local methods = {}
local Collector = { __index = methods, __name = "sinklab.collector" }

--- A collector of sinks for attention that runs at once, layer by layer: for models that
-- are no lab.model, such as language models.
--
-- While collector:watch runs a function, every call of lab.attention (or lab.mix) in it
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
-- @param prefix, registers  keys before the first token, of attention and of the
--                   sequences, default 0: tokens, labels and positions count without
-- @param dtype      of maps, default "f32"
-- @param measures, maps, keep, threshold, thresholds, share_rows, dormant  as for
--                   lab.sinks; maps default to false
-- @return collector: collector:watch (sample, function [, where]), collector:finish ()
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
function sinks.collect(given)
  local what = "lab.sinks.collect"
  local o = check.options(what, given, rules {
    layers = { "integer", required = true, min = 1 },
    heads = { "integer", required = true, min = 1 },
    tokens = { "integer", required = true, min = 1 },
    samples = { "integer", default = 1, min = 1 },
    batch = { "integer", default = 1, min = 1 },
    output = { "function" },
    trigger = { "tensor" }, length = { "tensor" }, start = { "tensor" },
    documents = { "tensor" }, groups = { "tensor" },
    null_mass = { "boolean", default = false },
    prefix = { "integer", default = 0, min = 0 },
    registers = { "integer", default = 0, min = 0 },
    dtype = { "string", default = "f32", choices = { "f32", "f64" } },
  })
  local watched = measures.read(what, o.measures)
  local collector = core.sink_collector { layers = o.layers, heads = o.heads,
    tokens = o.tokens, samples = o.samples, batch = o.batch, trigger = o.trigger,
    length = o.length, start = o.start, documents = o.documents, group = o.groups,
    groups = groups_of(what, o.groups), maps = o.maps, keep = o.keep,
    threshold = o.threshold, thresholds = o.thresholds, measures = watched,
    share_rows = o.share_rows, dormant = o.dormant, dtype = o.dtype,
    prefix = o.prefix, registers = o.registers, null_mass = o.null_mass }
  return setmetatable({ collector = collector, options = o }, Collector)
end

--- Run a function and measure the attention it does at once.
-- @param sample  the sequence, from 1; the first one when calls have several
-- @param f       function ()
-- @param where   { layer = 1, of the first call; head = 1, of the call's first head, when
--                heads are run in groups; n = 1, sequences of a call; last = layers, the
--                last layer that is run, so that no further W_O is asked for }
-- @return what f returns
-- @error what f raises; the rows seen until then stay counted
function methods:watch(sample, f, where)
  local what = "collector:watch"
  local o = self.options
  check.argument(what, "first argument", sample, "integer")
  check.argument(what, "second argument", f, "function")
  local at = check.options(what, where, {
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
      self.collector:output(layer, o.output(layer))
    end
  end
  self.collector:begin(sample, at.n, at.layer, at.head)
  local results = table.pack(pcall(f))
  self.collector:done()
  if not results[1] then error(results[2], 0) end
  return table.unpack(results, 2, results.n)
end

--- End the measurement.
-- @return what lab.sinks returns
-- @error when a head of a sample has not been watched, or something did not fit
function methods:finish()
  local o = self.options
  return finish(self.collector:finish(), o.prefix + o.registers, o.null_mass)
end

return setmetatable(sinks, { __call = function(_, ...) return measure(...) end,
  __name = "sinklab.sinks_module" })
