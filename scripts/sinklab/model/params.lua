--- params.lua - a model's parameters: one flat tensor, with names for its parts.
--
-- Flat from birth: optimisers, checkpoints and gradient checks are loops over one
-- array, and the named tensors are views of it that never go stale. A model is planned
-- first: `add` and `span` give references, which the planned tables hold in the places of
-- tensors; once the flat tensor is made, `bind` puts the views there.
local core = require "sinklab.core"

local params = {}
local methods = {}
local Params = { __index = methods, __name = "sinklab.params" }
local Reference = {}

local function size_of(shape)
  local n = 1
  for _, s in ipairs(shape) do n = n * s end
  return n
end

--- An empty plan, to which `add` appends before `make`.
function params.plan()
  return setmetatable({ order = {}, size = 0, tensors = {} }, Params)
end

--- Plan a parameter; parameters added one after the other are neighbours.
-- @param name   unique, such as "layer1.w_q"
-- @param shape  list of sizes
-- @param init   function (generator, shape) -> tensor
-- @return reference
function methods:add(name, shape, init)
  local entry = setmetatable({ name = name, shape = shape, init = init,
    offset = self.size, size = size_of(shape) }, Reference)
  self.order[#self.order + 1] = entry
  self.size = self.size + entry.size
  return entry
end

--- The parameters from `first` to `last` as one of shape `shape`: neighbours that share
-- their inputs are multiplied in one product.
-- @return reference
function methods:span(first, last, shape)
  return setmetatable({ shape = shape, offset = first.offset,
    size = last.offset + last.size - first.offset }, Reference)
end

--- Allocate the flat tensor and draw every parameter from `seed`.
function methods:make(seed, dtype)
  self.flat = core.zeros({ self.size }, dtype)
  local g = core.generator(seed, { dtype = dtype })
  for _, entry in ipairs(self.order) do
    local view = self:bind(entry)
    view:copy(entry.init(g, entry.shape))
    self.tensors[entry.name] = view
  end
end

--- A planned table with views where it has references.
function methods:bind(planned)
  local kind = getmetatable(planned)
  if kind == Reference then
    return self.tensors[planned.name] or self.flat:narrow(1, planned.offset + 1,
      planned.size):reshape(planned.shape)
  elseif type(planned) ~= "table" or kind then
    return planned
  end
  local out = {}
  for key, value in pairs(planned) do out[key] = self:bind(value) end
  return out
end

--- The parameter called `name`, or nil.
function methods:get(name) return self.tensors[name] end

return params
