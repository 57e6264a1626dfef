--- product.lua - linear maps and embeddings, of tensors and of weights in files.
local core = require "sinklab.core"

local product = {}

--- y = x W^T + b: x (..., inputs) -> (..., outputs).
-- @param part  { weight = (outputs, inputs), bias = (outputs) or nil }
function product.linear(part, x)
  local w = part.transposed or part.weight
  local linear = core.is_tensor(w) and core.linear or core.lm.linear
  return linear(x, w, part.bias)
end

--- Rows of part.weight (n, D) by ids: (..., D).
function product.embedding(part, ids)
  local w = part.weight
  return (core.is_tensor(w) and core.embedding or core.lm.embedding)(w, ids)
end

return product
