--- init_values.lua - lab.init: how parameters start.
--
-- An initialiser is a function (generator, shape) -> tensor. A model draws its
-- parameters in the order in which print (model) lists them.
local schema = require "sinklab.base.schema"

local init = {}
local RETURNS = "initialiser for a model's option init"

init.normal = schema.func("lab.init.normal", {
  doc = "Normal with mean 0. The default is the paper's.",
  args = { { "std", "number", default = 0.02, min = 0, doc = "standard deviation" } },
  returns = RETURNS,
  example = [[
    lab.model.attention_only { task = lab.task.trigger_mean {},
      init = lab.init.normal(0.1) }]],
}, function(std)
  return function(g, shape) return g:normal(0, std, shape) end
end)

init.uniform = schema.func("lab.init.uniform", {
  doc = "Uniform on [-bound, bound).",
  args = { { "bound", "number", default = 0.05, min = 0 } },
  returns = RETURNS,
  example = "print(lab.init.uniform(0.1)(lab.generator(0), { 2, 2 }))",
}, function(bound)
  return function(g, shape) return g:uniform(-bound, bound, shape) end
end)

init.xavier = schema.func("lab.init.xavier", {
  doc = "Normal with variance 2 / (inputs + outputs) of a matrix (outputs, inputs).",
  returns = RETURNS,
  source = [[Glorot and Bengio 2010, Understanding the difficulty of training deep
    feedforward neural networks]],
  example = "print(lab.init.xavier()(lab.generator(0), { 2, 3 }))",
}, function()
  return function(g, shape)
    local out, into = shape[1], shape[2] or shape[1]
    return g:normal(0, math.sqrt(2 / (out + into)), shape)
  end
end)

init.constant = schema.func("lab.init.constant", {
  doc = "Every element the same.",
  args = { { "value", "number", default = 0 } },
  returns = RETURNS,
  example = "print(lab.init.constant(1)(lab.generator(0), { 2 }))",
}, function(value)
  return function(g, shape) return g:full(shape, value) end
end)

return init
