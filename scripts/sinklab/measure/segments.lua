--- segments.lua - left padding and packed documents: which keys a token may see.
local core = require "sinklab.core"
local check = require "sinklab.base.check"

local segments = {}

--- Raise unless one of a batch's labels is a tensor of this shape.
function segments.check_shape(what, name, tensor, shape)
  if not core.is_tensor(tensor) then
    check.fail("%s: the batch's %s must be a tensor, got a %s", what, name, type(tensor))
  end
  local got, want = table.concat(tensor.shape, ", "), table.concat(shape, ", ")
  if got ~= want then
    check.fail("%s: the batch's %s has shape (%s), expected (%s)", what, name, got, want)
  end
end

--- For every token the first position, from 0, that it may see: that of its document's
-- first token, or past the end for left padding. nil when the batch has neither `start`
-- nor `documents`.
-- @param what   the function, for messages
-- @param model  whose attention is kept within the documents
-- @param batch  x (B, T, ...), start (B) or nil, documents (B, T) or nil
-- @return (B, T) of x's precision
function segments.first_key(what, model, batch)
  if not (batch.start or batch.documents) then return nil end
  if batch.documents and not model.attention.causal then
    check.fail("%s: packed documents need causal attention: "
      .. "a full one would see the next document", what)
  end
  local B, T, dtype = batch.x.shape[1], batch.x.shape[2], batch.x.dtype
  local position = core.arange(T, dtype):reshape { 1, T }
  local start = core.zeros({ B, 1 }, dtype)
  if batch.start then
    segments.check_shape(what, "start", batch.start, { B })
    start = batch.start:to(dtype):reshape { B, 1 }
  end
  local first_key = start + position * 0
  if batch.documents and T > 1 then
    segments.check_shape(what, "documents", batch.documents, { B, T })
    -- compared as they are: large numbers that differ may be one in the model's precision
    local d = batch.documents
    local changed = core.concat({ core.zeros({ B, 1 }, dtype),
      core.ne(d:narrow(2, 2, T - 1), d:narrow(2, 1, T - 1)):to(dtype) }, 2)
    changed = changed * core.gt(position, start)
    -- where the document that a token is in begins: one number a document, looked up
    local index = core.cumsum(changed, 2)
    local begins = core.scatter_add(core.zeros({ B, T }, dtype), 2, index,
      changed * position)
    first_key = core.maximum(core.gather(begins, 2, index), start)
  end
  return core.where(core.lt(position, start), core.full({ B, T }, T, dtype), first_key)
end

return segments
