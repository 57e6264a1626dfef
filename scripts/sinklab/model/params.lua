--- params.lua - a model's parameters: one flat tensor, with names for its parts.
--
-- Flat from birth: optimisers, checkpoints and gradient checks are loops over one
-- array, and the named tensors are views of it that never go stale.
local core = require "sinklab.core"

local params = {}
local methods = {}
local Params = { __index = methods, __name = "sinklab.params" }

local function size_of(shape)
  local n = 1
  for _, s in ipairs(shape) do n = n * s end
  return n
end

--- An empty plan, to which `add` appends before `make`.
function params.plan()
  return setmetatable({ order = {}, size = 0, at = {} }, Params)
end

--- Plan a parameter; those added one after the other lie side by side.
-- @param name   unique, such as "layer1.w_q"
-- @param shape  list of sizes
-- @param init   function (generator, shape) -> tensor
function methods:add(name, shape, init)
  assert(not self.at[name], name)
  local entry = { name = name, shape = shape, init = init, offset = self.size,
    size = size_of(shape) }
  self.order[#self.order + 1] = entry
  self.at[name] = entry
  self.size = self.size + entry.size
end

--- Allocate the flat tensor and draw every parameter from `seed`.
function methods:make(seed, dtype)
  self.flat = core.zeros({ self.size }, dtype)
  local g = core.generator(seed, { dtype = dtype })
  self.tensors = {}
  for _, entry in ipairs(self.order) do
    local view = self:span(entry.name, entry.name, entry.shape)
    view:copy(entry.init(g, entry.shape))
    self.tensors[entry.name] = view
  end
  return self
end

--- The parameters from `first` to `last` as one view of shape `shape`: neighbours
-- that share their inputs are multiplied in one product.
function methods:span(first, last, shape)
  local a, b = self.at[first], self.at[last]
  return self.flat:narrow(1, a.offset + 1, b.offset + b.size - a.offset)
      :reshape(shape)
end

--- The parameter called `name`, or nil.
function methods:get(name) return self.tensors[name] end

return params
