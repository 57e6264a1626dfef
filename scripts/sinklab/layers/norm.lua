--- norm.lua - layer norm and RMS norm, of the residual stream and of queries and keys.
local core = require "sinklab.core"

local norm = {}

norm.kinds = { "layer", "rms" }

--- x (..., D) normalised over its last axis.
-- @param c     norm = "layer" or "rms", norm_eps
-- @param part  { gamma = (D), bias = (D) or nil (layer norm only) }
function norm.forward(c, part, x)
  local options = { eps = c.norm_eps }
  if c.norm == "rms" then return core.rms_norm(x, part.gamma, options) end
  return core.layer_norm(x, part.gamma, part.bias, options)
end

--- x (B, T, n d) as (B, T, n, d).
local function by_head(c, x, n)
  local s = x.shape
  return x:reshape { s[1], s[2], n, c.d_head }
end

--- Queries or keys x (B, T, n d) of n heads normalised, by c.qk_norm.
local of_heads = {}

--- Each head by itself, one gamma (d) for all.
function of_heads.head(c, part, x, n)
  return norm.forward(c, part, by_head(c, x, n)):reshape(x.shape)
end

--- Each head by itself, with a gamma of its own: (n, d). Layer norm without a bias.
function of_heads.heads(c, part, x, n)
  local unit = core.layer_norm(by_head(c, x, n), { eps = c.norm_eps })
  return (unit * part.gamma):reshape(x.shape)
end

--- All heads as one vector, gamma (n d).
function of_heads.full(c, part, x) return norm.forward(c, part, x) end

norm.qk_kinds = { "head", "heads", "full" }

function norm.queries_or_keys(c, part, x, n) return of_heads[c.qk_norm](c, part, x, n) end

return norm
