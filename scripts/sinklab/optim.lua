--- optim.lua - lab.optim and lab.schedule: how parameters move, and how fast.
--
-- Both are plain data that a run's record can hold.
local core = require "sinklab.core"
local check = require "sinklab.check"

local optim, schedule = {}, {}

local function betas(what, list)
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

local function adam(what, kind, decay)
  return function(given)
    local o = check.options(what, given, {
      lr = { "number", default = 1e-3, min = 0 },
      betas = { "table", default = { 0.9, 0.999 } },
      eps = { "number", default = 1e-8, above = 0 },
      weight_decay = { "number", default = decay, min = 0 },
      clip_norm = { "number", default = 0, min = 0 },
    })
    local beta1, beta2 = betas(what, o.betas)
    return { kind = kind, lr = o.lr, beta1 = beta1, beta2 = beta2, eps = o.eps,
      weight_decay = o.weight_decay, clip_norm = o.clip_norm }
  end
end

--- Adam (Kingma and Ba 2015); weight_decay is added to the gradient.
-- @param lr 1e-3; betas {0.9, 0.999}; eps 1e-8; weight_decay 0; clip_norm 0 (off)
optim.adam = adam("lab.optim.adam", "adam", 0)

--- AdamW (Loshchilov and Hutter 2019): parameters shrink by 1 - lr * weight_decay
-- before the step. Defaults as lab.optim.adam, weight_decay 0.01.
optim.adamw = adam("lab.optim.adamw", "adamw", 0.01)

--- Stochastic gradient descent.
-- @param lr 1e-2; momentum 0; nesterov false; weight_decay 0; clip_norm 0 (off)
function optim.sgd(given)
  local o = check.options("lab.optim.sgd", given, {
    lr = { "number", default = 1e-2, min = 0 },
    momentum = { "number", default = 0, min = 0, max = 1 },
    nesterov = { "boolean", default = false },
    weight_decay = { "number", default = 0, min = 0 },
    clip_norm = { "number", default = 0, min = 0 },
  })
  o.kind = "sgd"
  return o
end

--- A list of points { step, value, curve }, sorted by step; `curve` ("hold",
-- "linear", "cosine", "sqrt") leads to the next point. Steps count from 0.
function schedule.points(points)
  core.schedule_at(points, 0)
  return points
end

--- Learning rates by name: each returns a list of points (see lab.schedule.points).
--   constant      { lr }
--   warmup_cosine { lr, min, warmup, steps }
--   linear        { from, to, steps }
--   step          { lr, factor, every, steps }
--   wsd           { lr, min, warmup, decay_start, steps, shape = "linear" or "sqrt" }
for _, kind in ipairs { "constant", "warmup_cosine", "linear", "step", "wsd" } do
  schedule[kind] = function(given) return core.schedule(kind, given or {}) end
end

--- The learning rate of a schedule at a step.
function schedule.at(points, step) return core.schedule_at(points, step) end

return { optim = optim, schedule = schedule }
