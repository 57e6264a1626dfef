--- rotary.lua - rotary positions: which pairs rotate, how far, how angles are scaled.
local core = require "sinklab.core"

local rotary = {}

--- Queries or keys x (B, T, heads d) rotated by their positions.
-- @param rope       { d_head, pairs = "interleaved" (2k and 2k + 1) or "half" (k and k +
--                   rotated / 2), rotated = numbers of a head that rotate, nil: all; base,
--                   divisors = (rotated / 2) of the angles or nil, magnitude = factor of
--                   the rotated numbers or nil }; with `original` divisors are `long` for
--                   more tokens than that, else `short`, where there are any
-- @param positions  (B, T), nil: 0, 1, 2, ...
function rotary.rotate(rope, x, positions)
  local divisors = rope.divisors
  if rope.long or rope.short then
    divisors = x.shape[2] > rope.original and rope.long or nil
    if x.shape[2] <= rope.original then divisors = rope.short end
  end
  return core.rope(x, { d_head = rope.d_head, pairs = rope.pairs, rotated = rope.rotated,
    base = rope.base, divisors = divisors, magnitude = rope.magnitude,
    positions = positions })
end

return rotary
