--- rotary.lua - rotary positions: which pairs rotate, how far, how angles are scaled.
local core = require "sinklab.core"

local rotary = {}

--- Queries or keys x (B, T, heads d) rotated by their positions.
-- @param rope  { d_head, pairs = "interleaved" (2k and 2k + 1) or "half" (k and k +
--              rotated / 2), rotated = numbers of a head that rotate, nil: all; base,
--              divisors = (rotated / 2) of the angles or nil, magnitude = factor of the
--              rotated numbers or nil }; or in place of divisors `long` for more than
--              `original` tokens and `short` for fewer
-- @param positions  (B, T), nil: 0, 1, 2, ...
function rotary.rotate(rope, x, positions)
  local divisors = rope.divisors
  if rope.long or rope.short then
    local kind = x.shape[2] > rope.original and "long" or "short"
    divisors = rope[kind]
  end
  return core.rope(x, { d_head = rope.d_head, pairs = rope.pairs, rotated = rope.rotated,
    base = rope.base, divisors = divisors, magnitude = rope.magnitude,
    positions = positions })
end

--- Scalings of the angles for longer contexts, by what transformers calls rope_type:
-- function (o, n) gives the divisors of the angles of n pairs and the factor of rotated
-- queries and keys. o: base, factor; llama3 and yarn: original = tokens of the context
-- before; llama3: low, high = factors of frequencies; yarn: beta_fast, beta_slow,
-- truncate, magnitude = that factor
local scalings = {}
rotary.scalings = scalings

function scalings.linear(o, n)
  local divisors = {}
  for k = 1, n do divisors[k] = o.factor end
  return divisors, 1
end

--- Llama 3.1: long waves are stretched, short ones kept, a ramp between.
function scalings.llama3(o, n)
  local divisors = {}
  for k = 1, n do
    local waves = o.original * o.base ^ (-2 * (k - 1) / (2 * n)) / (2 * math.pi)
    local smooth = (waves - o.low) / (o.high - o.low)
    smooth = math.max(0, math.min(1, smooth))
    divisors[k] = 1 / ((1 - smooth) / o.factor + smooth)
  end
  return divisors, 1
end

--- YaRN (Peng et al. 2023, arXiv 2309.00071): the same over the index of the pair.
function scalings.yarn(o, n)
  local function pair(turns)
    return n * math.log(o.original / (turns * 2 * math.pi)) / math.log(o.base)
  end
  local low, high = pair(o.beta_fast), pair(o.beta_slow)
  if o.truncate then low, high = math.floor(low), math.ceil(high) end
  low, high = math.max(low, 0), math.min(high, 2 * n - 1)
  if high - low < 1e-3 then high = low + 1e-3 end
  local divisors = {}
  for k = 1, n do
    local ramp = math.max(0, math.min(1, (k - 1 - low) / (high - low)))
    divisors[k] = 1 / (ramp / o.factor + 1 - ramp)
  end
  return divisors, o.magnitude
end

--- YaRN's factor of queries and keys for a context s times as long.
function rotary.yarn_magnitude(s, mscale)
  return s > 1 and 0.1 * mscale * math.log(s) + 1 or 1
end

return rotary
