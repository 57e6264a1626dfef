--- init_values.lua - lab.init: how parameters start.
--
-- An initialiser is a function (generator, shape) -> tensor. A model draws its
-- parameters in the order in which print (model) lists them.
local check = require "sinklab.base.check"

local init = {}

--- Normal with mean 0.
-- @param std  standard deviation, default 0.02 (the paper's)
-- @return initialiser for a model's option init
-- @example
--   lab.model.attention_only { task = lab.task.trigger_mean {},
--     init = lab.init.normal(0.1) }
function init.normal(std)
  std = std or 0.02
  if type(std) ~= "number" or not (std >= 0) then
    check.fail("lab.init.normal: the standard deviation is %s; "
      .. "it must be a number from 0", tostring(std))
  end
  return function(g, shape) return g:normal(0, std, shape) end
end

--- Uniform on [-bound, bound).
-- @param bound  default 0.05
-- @return initialiser for a model's option init
-- @example
--   print(lab.init.uniform(0.1)(lab.generator(0), { 2, 2 }))
function init.uniform(bound)
  bound = bound or 0.05
  if type(bound) ~= "number" or not (bound >= 0) then
    check.fail("lab.init.uniform: the bound is %s; it must be a number from 0",
      tostring(bound))
  end
  return function(g, shape) return g:uniform(-bound, bound, shape) end
end

--- Normal with variance 2 / (inputs + outputs) of a matrix (outputs, inputs).
-- @return initialiser for a model's option init
-- @source Glorot and Bengio 2010, Understanding the difficulty of training deep
--         feedforward neural networks
-- @example
--   print(lab.init.xavier()(lab.generator(0), { 2, 3 }))
function init.xavier()
  return function(g, shape)
    local out, into = shape[1], shape[2] or shape[1]
    return g:normal(0, math.sqrt(2 / (out + into)), shape)
  end
end

--- Every element the same.
-- @param value  default 0
-- @return initialiser for a model's option init
-- @example
--   print(lab.init.constant(1)(lab.generator(0), { 2 }))
function init.constant(value)
  value = value or 0
  if type(value) ~= "number" then
    check.fail("lab.init.constant: the value is %s; it must be a number", tostring(value))
  end
  return function(g, shape) return g:full(shape, value) end
end

return init
