--- speed.lua - lab.lm.speed: throughput of a prefill and its share of peak FLOP/s.
local core = require "sinklab.core"
local schema = require "sinklab.base.schema"

local speed = {}

--- Multiplications and additions of one token's matrices.
local function flops(model)
  local sum = 0
  local function count(part)
    local shape = part and part.weight and part.weight.shape
    if shape and #shape == 2 then sum = sum + 2 * shape[1] * shape[2] end
  end
  for _, parts in ipairs(model.layers) do
    for name, part in pairs(parts) do
      if not name:match "norm" then count(part) end
    end
  end
  return sum
end

--- Peak FLOP/s of all threads, measured once with a product of two square matrices that
-- fit in the caches.
local peak

local function measured_peak()
  if peak then return peak end
  local n = 512
  local g = core.generator(1)
  local a, b = g:normal(0, 1, { n, n }), g:normal(0, 1, { n, n })
  local best = math.huge
  for _ = 1, 6 do
    local began = core.clock()
    a:matmul(b)
    best = math.min(best, core.clock() - began)
  end
  peak = 2 * n ^ 3 / best * math.max(1, core.threads())
  return peak
end

speed.speed = schema.func("lab.lm.speed", {
  doc = [[Tokens a second, and the share of the machine's arithmetic that the matrices
    of the layers took.

    The peak is measured: a product of two square matrices of 512 in f32 on one thread,
    times the threads. Attention and everything else count as time, not as arithmetic,
    so that the share is a floor; experts that are not used make it no more than a
    bound.]],
  args = {
    { "model", "language_model" },
    { "tokens", "number", doc = "that went through all layers" },
    { "seconds", "number", doc = "of all layers" },
  },
  returns = [[{ tokens_per_s, flops_per_s, peak_flops_per_s, share } (share nil for
    experts)]],
  example = [[
    local model = lab.lm.random {}
    print(lab.lm.speed(model, 100, 0.01).tokens_per_s)]],
}, function(model, tokens, seconds)
  local out = { tokens = tokens, seconds = seconds, tokens_per_s = tokens / seconds }
  if model.config.experts == 0 then
    out.flops_per_s = flops(model) * tokens / seconds
    out.peak_flops_per_s = measured_peak()
    out.share = out.flops_per_s / out.peak_flops_per_s
  end
  return out
end)

return speed
