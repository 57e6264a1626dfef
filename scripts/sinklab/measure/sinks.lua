--- sinks.lua - lab.sinks: attention sinks of a model, measured on a labelled batch.
local core = require "sinklab.core"
local check = require "sinklab.base.check"
local schema = require "sinklab.base.schema"
local collect = require "sinklab.measure.collector"
local hidden = require "sinklab.measure.hidden"
local finish = require "sinklab.measure.result"
local measures = require "sinklab.measure.measures"
local segments = require "sinklab.measure.segments"

-- Sequences measured at once; the result does not depend on it.
local SHARD = 16
-- Maps of every weight are the default up to so many tokens.
local MAP_TOKENS = 512

--- The largest divisor of n that is at most `limit`.
local function divisor(n, limit)
  local k = math.min(n, limit)
  while n % k ~= 0 do k = k - 1 end
  return k
end

--- A tensor of the shape of `t` with `shard` samples.
local function shard_of(t, shard)
  local shape = t.shape
  shape[1] = shard
  return core.zeros(shape, t.dtype)
end

--- Measures of a model's residual stream on a batch, `shard` sequences at a time.
local function residuals(what, model, batch, begins, shard, given)
  local o = { length = batch.length, start = batch.start, documents = batch.documents }
  for key, value in pairs(given or {}) do o[key] = value end
  local samples, n = batch.x.shape[1], model.registers
  local accumulator = hidden.new(what .. ": hidden", o, { layers = model.layers,
    tokens = batch.x.shape[2], samples = samples })
  for first = 1, samples, shard do
    local function part(t) return t and t:narrow(1, first, shard) end
    model:forward(part(batch.x), part(batch.length), part(begins), {
      layer = function(layer, h)
        accumulator:add(layer, n > 0 and h:narrow(2, n + 1, h.shape[2] - n) or h, first)
      end })
  end
  return hidden.finish(accumulator)
end

local measure = schema.func("lab.sinks", {
  doc = [[Measure a model's sinks on a batch.

    Rows are of classes that are never averaged together: the first row (1 by
    construction under causal softmax), trigger rows, the first rows of later documents
    (boundary), and plain rows, which the means are over; padded and fully masked rows
    are only counted. Layers, heads and positions count from 1, positions from the first
    token of their document. Keys that are no tokens (a key bias, registers) have no
    position: their mass is virtual_mass. Weights are those of the row mechanism or
    mixer, before a gate. docs/measures.md has every measure's formula, source and
    traps.]],
  args = {
    { "model", "model" },
    { "batch", "any", doc = [[from task:batch: x, and where there are any: trigger (B)
      positions from 0 or (B, T) non-zero on trigger rows; length (B): valid tokens end
      here; start (B): and begin here (left padding); documents (B, T): numbers that
      change where a document begins, within which attention is kept; groups (B) or (B,
      T): classes of plain rows from 0]] },
  },
  options = measures.rows,
  returns = [[{ samples, tokens, threshold, heads = { { layer, head, first_mean,
    first_min, first_std, first_all, trigger_first, row_mass, abs_mass (sums of weights
    and of |weights| on tokens), first_over_rowsum, entropy, contribution, value_norm,
    rate, first_over_rowsum_rate (these three, null_rate, null_above, column_weight,
    column_entropy and norm ratios are means over segments), classes = { plain, first,
    trigger, boundary }, counts of rows, ... }, ... }, mean, std = tensors (layers,
    heads, query, key), null (where declared) = mean mass on nothing (layers, heads,
    query), virtual (with such keys) = mean mass on each of them (layers, heads, query,
    n): the key bias, then registers; kept = with keep a list of the same; first,
    first_over_rowsum, row_mass, ... = { min, max, mean } over heads; sink, column, ...
    = tensors (layers, heads, position); hidden = the result of lab.sinks.hidden }]],
  example = [[
    local task = lab.task.trigger_mean { seq_len = 8 }
    local model = lab.model.attention_only { task = task }
    local sinks = lab.sinks(model, task:batch { n = 4 }, { measures = { "columns" } })
    print(sinks, sinks:sink_k(2), sinks.heads[1].null_rate)]],
}, function(model, batch, o)
  local what = "lab.sinks"
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
    check.fail("%s: '%s' is a mixer without weights: there is nothing to measure", what,
      mechanism.name)
  end
  local watched, stream = measures.read(what, o.measures, o.hidden)
  measures.check(what, o)
  local declared = mechanism.properties.null_mass
  local samples, tokens = batch.x.shape[1], batch.x.shape[2]
  if batch.length ~= nil then
    segments.check_shape(what, "length", batch.length, { samples })
  end
  if samples == 0 then check.fail("%s: the batch has no sequences", what) end
  local shard = divisor(samples, SHARD)
  local begins = segments.first_key(what, model, batch)
  local x = shard_of(batch.x, shard)
  local length = batch.length and shard_of(batch.length, shard)
  local first_key = begins and shard_of(begins, shard)
  local program = core.record(function() model:forward(x, length, first_key) end)
  local inputs, batches = { x }, { batch.x }
  for _, pair in ipairs { { length, batch.length }, { first_key, begins } } do
    inputs[#inputs + 1], batches[#batches + 1] = pair[1], pair[2]
  end
  for _, input in ipairs(inputs) do program:input(input) end
  local maps = o.maps
  if maps == nil then maps = not o.keep and tokens <= MAP_TOKENS end
  local found = core.measure_sinks { program = program, inputs = inputs,
    batch = batches, layers = model.layers, heads = model.heads, tokens = tokens,
    trigger = batch.trigger, length = batch.length, start = batch.start,
    documents = batch.documents, group = batch.groups,
    groups = measures.groups_of(what, batch.groups), output = model.outputs,
    maps = maps, keep = o.keep, threshold = o.threshold, thresholds = o.thresholds,
    measures = watched, share_rows = o.share_rows, dormant = o.dormant,
    dtype = model.dtype, virtual_keys = model.attention.virtual_keys,
    registers = model.registers,
    null_mass = declared }
  if stream then
    found.hidden = residuals(what, model, batch, begins, shard, o.hidden)
  end
  return finish(found, model.attention.virtual_keys + model.registers, declared, o.keep)
end)

return setmetatable({ collect = collect, hidden = hidden.hidden },
  { __call = function(_, ...) return measure(...) end, __doc = measure })
