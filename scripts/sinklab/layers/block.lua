--- block.lua - attention and MLP of a layer, each added to the residual stream.
local attention = require "sinklab.layers.attention"
local experts = require "sinklab.layers.experts"
local mlp = require "sinklab.layers.mlp"
local norm = require "sinklab.layers.norm"

local block = {}

--- x through a norm, where there is one.
local function normalised(c, part, x) return part and norm.forward(c, part, x) or x end

--- The residual stream h (B, T, D) after a layer. With every norm:
--
--   a = attn_post_norm (attention (attn_norm (h)))     h' = attn_sum_norm (h + a)
--   m = ffn_post_norm (mlp (ffn_norm (h')))            h'' = ffn_sum_norm (h' + m)
--
-- In a parallel block (c.parallel) the MLP reads ffn_norm (h), or without an ffn_norm the
-- attention's input attn_norm (h).
-- @param layer  the table of attention.lua, with these norms (each may be nil) and the
--               parts of mlp.lua or experts.lua, or neither: no MLP
function block.forward(c, layer, h, call)
  local x = normalised(c, layer.attn_norm, h)
  local a = attention.forward(c, layer, x, call)
  local sum = h + normalised(c, layer.attn_post_norm, a)
  sum = normalised(c, layer.attn_sum_norm, sum)
  if not layer.down and not layer.router then return sum end
  local y = layer.ffn_norm and norm.forward(c, layer.ffn_norm, c.parallel and h or sum)
      or c.parallel and x or sum
  local m = (layer.router and experts or mlp).forward(c, layer, y)
  return normalised(c, layer.ffn_sum_norm, sum + normalised(c, layer.ffn_post_norm, m))
end

return block
