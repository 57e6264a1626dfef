--- optim.lua - lab.optim: how parameters move along the gradient, as plain data.
--
-- Names, defaults and ranges of the options are those of the core's table
-- (core/train/update.c); their meaning is said here.
local core = require "sinklab.core"
local check = require "sinklab.base.check"
local schema = require "sinklab.base.schema"

local optim = {}

local docs = {
  momentum = "share of the last step that is kept",
  nesterov = "look ahead along the momentum",
  eps = "added to the root",
  weight_decay = "times the parameter is added to the gradient",
  clip_norm = "longest gradient over all parameters; 0: any",
}

--- The two numbers of option `betas`.
local function read_betas(what, list)
  local said = {}
  for i = 1, #list do said[i] = tostring(list[i]) end
  for i = 1, 2 do
    local b = list[i]
    if type(b) ~= "number" or not (b >= 0 and b < 1) or #list ~= 2 then
      check.fail("%s: option 'betas' is { %s }; it must be two numbers from 0 to below 1",
        what, table.concat(said, ", "))
    end
  end
  return list[1], list[2]
end

--- The rows of an optimizer's options; beta1 and beta2 are one, betas.
-- @param lr    default of the learning rate
-- @param more  docs of options where they differ from `docs`
local function rows_of(kind, lr, more)
  local rows = { { "lr", "number", default = lr, min = 0, doc = "learning rate" } }
  local beta1
  for _, row in ipairs(core.optimizers[kind]) do
    if row[1] == "beta1" then
      beta1 = row.default
    elseif row[1] == "beta2" then
      rows[#rows + 1] = { "betas", "table", default = { beta1, row.default },
        doc = "decay of the running means of the gradient and of its square" }
    else
      row.doc = more[row[1]] or docs[row[1]]
      rows[#rows + 1] = row
    end
  end
  return rows
end

--- Declare lab.optim.KIND.
-- @param spec  doc, source and example, as in schema.lua
local function declare(kind, lr, more, spec)
  local what = "lab.optim." .. kind
  spec.options, spec.returns = rows_of(kind, lr, more), "optimizer for lab.train"
  spec.errors = "a value out of range"
  optim[kind] = schema.func(what, spec, function(o)
    o.kind = kind
    if o.betas then
      o.beta1, o.beta2 = read_betas(what, o.betas)
      o.betas = nil
    end
    return o
  end)
end

declare("adam", 1e-3, {}, {
  doc = "Adam.",
  source = "Kingma and Ba 2015, arXiv 1412.6980",
  example = [[
    local task = lab.task.trigger_mean {}
    local model = lab.model.attention_only { task = task }
    lab.train(model, task, { optimizer = lab.optim.adam { lr = 3e-4 }, steps = 3 })]],
})

declare("adamw", 1e-3, { weight_decay = "of the parameters, apart from the gradient" }, {
  doc = "AdamW: parameters shrink by 1 - lr * weight_decay before the step.",
  source = "Loshchilov and Hutter 2019, arXiv 1711.05101",
  example = [[
    local task = lab.task.trigger_mean {}
    local model = lab.model.attention_only { task = task }
    lab.train(model, task, { optimizer = lab.optim.adamw {}, steps = 3 })]],
})

declare("sgd", 1e-2, {}, {
  doc = "Stochastic gradient descent.",
  example = [[
    local task = lab.task.trigger_mean {}
    local model = lab.model.attention_only { task = task }
    lab.train(model, task, { optimizer = lab.optim.sgd { momentum = 0.9 }, steps = 3 })]],
})

return optim
