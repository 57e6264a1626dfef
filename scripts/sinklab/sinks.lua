--- sinks.lua - lab.sinks: attention sinks of a model, measured on a labelled batch.
local core = require "sinklab.core"
local check = require "sinklab.check"
local divisor = require "sinklab.divisor"

local methods = {}
local Sinks = { __index = methods, __name = "sinklab.sinks" }

-- Sequences measured at once; the result does not depend on it.
local SHARD = 16

--- A tensor of the shape of `t` with `shard` samples.
local function shard_of(t, shard)
  local shape = t.shape
  shape[1] = shard
  return core.zeros(shape, t.dtype)
end

--- Smallest, largest and mean of one measure over heads (NaN heads left out).
local function summary(heads, key)
  local low, high, sum, n = math.huge, -math.huge, 0, 0
  for _, h in ipairs(heads) do
    local v = h[key]
    if v and v == v then
      low, high, sum, n = math.min(low, v), math.max(high, v), sum + v, n + 1
    end
  end
  if n == 0 then return { min = 0 / 0, max = 0 / 0, mean = 0 / 0 } end
  return { min = low, max = high, mean = sum / n }
end

--- Measure a model's sinks.
--
-- Rows are of classes that are never averaged together: the first row (1 by
-- construction under causal softmax), trigger rows, and plain rows, which the means are
-- over. Layers, heads and positions count from 1. Keys that are no tokens (a key bias,
-- registers) have no position: their mass is virtual_mass. Weights are those of the map,
-- before a gate.
-- @param model
-- @param batch      from task:batch: x, and trigger and length where the task has them
-- @param maps       default true: mean and std over samples of every weight
-- @param threshold  of the sink rate Sink_1^eps (Gu et al. 2025), default 0.3
-- @return { samples, threshold, heads = { { layer, head, first_mean, first_min,
--         first_std, first_all, trigger_first, row_mass, abs_mass (sums of weights and
--         of |weights| on tokens), proxy, entropy, contribution, value_norm, rate,
--         virtual_mass (with such keys), null_mass (1 - all of a row's weights; of
--         mechanisms that claim it) }, ... },
--         mean, std = tensors (layers, heads, query, key), null (where claimed) = mean
--         mass on nothing (layers, heads, query), virtual (with such keys) = mean mass
--         on each of them (layers, heads, query, n): the key bias, then registers,
--         first, proxy, row_mass, abs_mass, contribution, null_mass, virtual_mass =
--         { min, max, mean } over heads }
-- @error a model without weights, a batch of another precision
-- @example
--   local task = lab.task.trigger_mean {}
--   local model = lab.model.attention_only { task = task }
--   local found = lab.sinks(model, task:batch { n = 64, trigger = 8 })
--   print(found.first.max)
--   print(found)
local function sinks(model, batch, given)
  local what = "lab.sinks"
  local o = check.options(what, given, {
    maps = { "boolean", default = true },
    threshold = { "number", default = 0.3, above = 0, max = 1 },
  })
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
  local claimed = mechanism.claims.null_mass
  local samples, tokens = batch.x.shape[1], batch.x.shape[2]
  local shard = divisor(samples, SHARD)
  local x = shard_of(batch.x, shard)
  local length = batch.length and shard_of(batch.length, shard)
  local program = core.record(function() model:forward(x, length) end)
  program:input(x)
  if length then program:input(length) end
  local found = core.measure_sinks { program = program,
    inputs = { x, length }, batch = { batch.x, batch.length },
    layers = model.layers, heads = model.heads, tokens = tokens,
    trigger = batch.trigger, length = batch.length, output = model.outputs,
    maps = o.maps, threshold = o.threshold, dtype = model.dtype,
    prefix = model.attention.prefix, registers = model.registers, null_mass = claimed }
  found.first = summary(found.heads, "first_mean")
  for _, key in ipairs { "proxy", "row_mass", "abs_mass", "contribution", "null_mass",
    "virtual_mass" } do
    if found.heads[1][key] then found[key] = summary(found.heads, key) end
  end
  if o.maps then
    local outside, n = found.outside, model.attention.prefix + model.registers
    if claimed then found.null = outside:select(4, 1):clone() end
    if n > 0 then found.virtual = outside:narrow(4, 2, n):clone() end
    found.outside = nil
  end
  return setmetatable(found, Sinks)
end

local columns = {
  { "layer", "%d" }, { "head", "%d" }, { "first_mean", "%.4f" },
  { "first_min", "%.4f" }, { "first_std", "%.1e" }, { "trigger_first", "%.4f" },
  { "row_mass", "%.4f" }, { "null_mass", "%.4f" }, { "virtual_mass", "%.4f" },
  { "proxy", "%.4f" }, { "entropy", "%.3f" },
  { "contribution", "%.4f" }, { "rate", "%.2f" },
}

--- Rows of text, one a head, under a row of column names; null_mass and virtual_mass
-- only where there are any.
-- @return names, rows: for lab.text.table
-- @example
--   local task = lab.task.trigger_mean {}
--   local model = lab.model.attention_only { task = task }
--   local names, rows = lab.sinks(model, task:batch { n = 16 }):rows()
--   print(lab.text.table(names, rows))
function methods:rows()
  local names, out, shown = {}, {}, {}
  for _, c in ipairs(columns) do
    if self.heads[1][c[1]] ~= nil then
      shown[#shown + 1] = c
      names[#names + 1] = c[1]
    end
  end
  for i, h in ipairs(self.heads) do
    out[i] = {}
    for j, c in ipairs(shown) do
      local v = h[c[1]]
      out[i][j] = (v == nil or v ~= v) and "-" or c[2]:format(v)
    end
  end
  return names, out
end

function Sinks:__tostring()
  local names, rows = self:rows()
  local text = require "sinklab.text"
  return ("sinks over %d samples: weight on position 1, means over plain rows\n")
      :format(self.samples) .. text.table(names, rows)
end

return sinks
