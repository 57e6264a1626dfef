--- optim.lua - lab.optim and lab.schedule: how parameters move, and how fast.
--
-- Both are plain data that a run's record can hold.
local core = require "sinklab.core"
local check = require "sinklab.base.check"

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

--- Adam.
-- @param lr            learning rate, default 1e-3
-- @param betas         of the two running means, default { 0.9, 0.999 }
-- @param eps           added to the root, default 1e-8
-- @param weight_decay  added to the gradient times the parameter, default 0
-- @param clip_norm     longest gradient over all parameters, default 0: any
-- @return optimizer for lab.train
-- @error a value out of range
-- @source Kingma and Ba 2015, arXiv 1412.6980
-- @example
--   local task = lab.task.trigger_mean {}
--   local model = lab.model.attention_only { task = task }
--   lab.train(model, task, { optimizer = lab.optim.adam { lr = 3e-4 }, steps = 3 })
optim.adam = adam("lab.optim.adam", "adam", 0)

--- AdamW: parameters shrink by 1 - lr * weight_decay before the step.
-- @param lr            learning rate, default 1e-3
-- @param betas         of the two running means, default { 0.9, 0.999 }
-- @param eps           added to the root, default 1e-8
-- @param weight_decay  default 0.01
-- @param clip_norm     longest gradient over all parameters, default 0: any
-- @return optimizer for lab.train
-- @error a value out of range
-- @source Loshchilov and Hutter 2019, arXiv 1711.05101
-- @example
--   local task = lab.task.trigger_mean {}
--   local model = lab.model.attention_only { task = task }
--   lab.train(model, task, { optimizer = lab.optim.adamw {}, steps = 3 })
optim.adamw = adam("lab.optim.adamw", "adamw", 0.01)

--- Stochastic gradient descent.
-- @param lr            learning rate, default 1e-2
-- @param momentum      0 to 1, default 0
-- @param nesterov      look ahead along the momentum, default false
-- @param weight_decay  added to the gradient times the parameter, default 0
-- @param clip_norm     longest gradient over all parameters, default 0: any
-- @return optimizer for lab.train
-- @error a value out of range
-- @example
--   local task = lab.task.trigger_mean {}
--   local model = lab.model.attention_only { task = task }
--   lab.train(model, task, { optimizer = lab.optim.sgd { momentum = 0.9 }, steps = 3 })
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

--- A learning rate from points of one's own.
-- @param points  list of { step, value, curve }, sorted by step; curve ("hold", "linear",
--                "cosine" or "sqrt") leads to the next point. Steps count from 0
-- @return points, checked: a schedule for lab.train
-- @error points out of order, an unknown curve
-- @example
--   local s = lab.schedule.points { { 0, 1e-3, "hold" }, { 100, 1e-3, "cosine" },
--     { 200, 0 } }
--   print(lab.schedule.at(s, 150))
function schedule.points(points)
  check.argument("lab.schedule.points", "first argument", points, "table")
  core.schedule_at(points, 0)
  return points
end

local function named(kind)
  return function(given) return core.schedule(kind, given or {}) end
end

--- One learning rate for all steps.
-- @param lr  the learning rate
-- @return points: a schedule for lab.train
-- @error a number below 0, steps out of order
-- @example
--   print(lab.schedule.at(lab.schedule.constant { lr = 1e-3 }, 50))
schedule.constant = named "constant"

--- Warm-up, then half a cosine down: lr (t + 1) / warmup for t < warmup.
-- @param lr      the highest
-- @param min     the last, default 0
-- @param warmup  steps, default 0
-- @param steps   of which the last has min
-- @return points: a schedule for lab.train
-- @error a number below 0, steps out of order
-- @source Loshchilov and Hutter 2017, arXiv 1608.03983
-- @example
--   local s = lab.schedule.warmup_cosine { lr = 1e-3, warmup = 10, steps = 100 }
--   print(lab.schedule.at(s, 50))
schedule.warmup_cosine = named "warmup_cosine"

--- A straight line over steps.
-- @param from   at step 0
-- @param to     at step `steps`, and after it
-- @param steps  from 1
-- @return points: a schedule for lab.train
-- @error a number below 0, steps out of order
-- @example
--   print(lab.schedule.at(lab.schedule.linear { from = 1e-3, to = 0, steps = 100 }, 50))
schedule.linear = named "linear"

--- Drops at regular steps: lr * factor ^ floor (t / every).
-- @param lr      at step 0
-- @param factor  of each drop
-- @param every   steps between drops
-- @param steps   of which drops are made
-- @return points: a schedule for lab.train
-- @error a number below 0, steps out of order
-- @example
--   local s = lab.schedule.step { lr = 1e-3, factor = 0.5, every = 30, steps = 100 }
--   print(lab.schedule.at(s, 50))
schedule.step = named "step"

--- Warm-up, stable, decay: as warmup_cosine, then lr until decay_start, then down.
-- @param lr           the highest
-- @param min          at the last step, default 0
-- @param warmup       steps, default 0
-- @param decay_start  step where it begins to fall
-- @param steps        of which the last has min
-- @param shape        "linear" (default) or "sqrt": how it falls
-- @return points: a schedule for lab.train
-- @error a number below 0, steps out of order
-- @source Hu et al. 2024, arXiv 2404.06395
-- @example
--   local s = lab.schedule.wsd { lr = 1e-3, decay_start = 80, steps = 100 }
--   print(lab.schedule.at(s, 50))
schedule.wsd = named "wsd"

--- The learning rate of a schedule at a step.
-- @param points  from one of the functions above
-- @param step    from 0
-- @return number
-- @example
--   print(lab.schedule.at(lab.schedule.linear { from = 1e-3, to = 0, steps = 10 }, 5))
function schedule.at(points, step)
  local what = "lab.schedule.at"
  check.argument(what, "first argument", points, "table")
  check.argument(what, "step", step, "number")
  return core.schedule_at(points, step)
end

return { optim = optim, schedule = schedule }
