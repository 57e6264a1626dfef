--- layers - the layers of a transformer, once for models that are trained (lab.model) and
-- for models read from files (lab.lm).
--
-- A layer is a plain table of parts; its forward is a function of the table and x.
-- Letters of shapes: B sequences, T tokens, D width of the model, H heads, G key/value
-- heads, d width of a head, F width of the MLP. A matrix is (outputs, inputs).
--
-- The config `c` has the sizes and switches of a model, in the same words for both:
--   d_model, heads, kv_heads, d_head, d_value, d_ffn
--   norm, norm_eps      norm.lua
--   qk_norm             norm.lua; nil: none
--   clip                bound of |q|, |k|, |v|, or nil
--   scale, causal, alibi  of the scores
--   activation, gating  mlp.lua
--   parallel            block.lua
--   embedding_scale, logit_softcap  below
--
-- A part is { weight =, bias = }: `weight` a tensor, which can be recorded and trained,
-- or the weight of a file (lab.lm.file), which stays mapped and packed. Both products add
-- in the same order: a weight of a file gives the bits of the tensor that it unpacks to.
local norm = require "sinklab.layers.norm"
local product = require "sinklab.layers.product"

local layers = {
  block = require "sinklab.layers.block".forward,
  norm = norm.forward,
}

--- Token embeddings: h (B, T, D).
-- @param outer      { embedding = part (vocabulary, D), embedding_norm = part or nil }
-- @param ids        (B, T), or without an embedding the numbers (B, T, D) themselves
-- @param positions  (T, D) or (B, T, D), or nil: added
function layers.embed(c, outer, ids, positions)
  local h = outer.embedding and product.embedding(outer.embedding, ids) or ids
  if c.embedding_scale then h = h * c.embedding_scale end
  if positions then h = h + positions end
  return outer.embedding_norm and norm.forward(c, outer.embedding_norm, h) or h
end

--- Logits (..., vocabulary) of h (..., D): s tanh (z / s) with a soft-cap s.
-- @param outer  { final_norm = part or nil, unembedding = part or nil: h is the result }
function layers.logits(c, outer, h)
  local x = outer.final_norm and norm.forward(c, outer.final_norm, h) or h
  local z = outer.unembedding and product.linear(outer.unembedding, x) or x
  local s = c.logit_softcap
  return s and (z / s):tanh() * s or z
end

return layers
