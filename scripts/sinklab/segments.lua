--- segments.lua - left padding and packed documents: which keys a token may see.
local core = require "sinklab.core"
local check = require "sinklab.check"

local segments = {}

local function rows_of(what, name, tensor, shape)
  if not core.is_tensor(tensor) then
    check.fail("%s: the batch's %s must be a tensor, got a %s", what, name, type(tensor))
  end
  local got = table.concat(tensor.shape, ", ")
  if got ~= table.concat(shape, ", ") then
    check.fail("%s: the batch's %s has shape (%s), expected (%s)", what, name, got,
      table.concat(shape, ", "))
  end
  return tensor:totable()
end

--- For every token the first position, from 0, that it may see: that of its document's
-- first token, or past the end for left padding. nil when the batch has neither `start`
-- nor `documents`.
-- @param what   the function, for messages
-- @param batch  x (B, T, ...), start (B) or nil, documents (B, T) or nil
-- @return (B, T) of x's precision
function segments.begin(what, batch)
  if not (batch.start or batch.documents) then return nil end
  local B, T = batch.x.shape[1], batch.x.shape[2]
  local start = batch.start and rows_of(what, "start", batch.start, { B })
  local documents = batch.documents
      and rows_of(what, "documents", batch.documents, { B, T })
  local begin = {}
  for b = 1, B do
    local first = start and start[b] or 0
    local row, at = {}, first
    for t = 1, T do
      if documents and t - 1 > first and documents[b][t] ~= documents[b][t - 1] then
        at = t - 1
      end
      row[t] = t - 1 < first and T or at
    end
    begin[b] = row
  end
  return core.tensor(begin, batch.x.dtype)
end

return segments
