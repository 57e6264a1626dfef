-- test_certify_search.lua - lab.certify against a stronger search of another kind, on
-- trained models: for every trigger, coordinate and sign of the trigger's row an ascent
-- from several corners, then in the worst of each trigger the best change of a single
-- coordinate to -1, 0 or 1, again and again. It takes several times as long.
local check = require "check"
local core = require "sinklab.core"
local lab = require "sinklab"

local STARTS, STEPS, KEPT = 2, 60, 3

--- A replica that gives, for B contents, the largest errors and the aimed ones.
local function errors_of(model, task, B)
  local state = task.domain.draw(core.generator(1, { dtype = "f64" }), B, { trigger = 3 })
  local self = { content = state.content:clone(), trigger = state.trigger:clone(),
    aim = core.zeros({ B, task.seq_len, task.d_model }, "f64") }
  local program, most, aimed, total = core.record(function()
    local batch = task.domain.build { content = self.content, trigger = self.trigger }
    local error = model:forward(batch.x) - batch.y
    local aimed = core.sum(error * self.aim, { 2, 3 })
    return core.max(core.max(core.abs(error), 3), 2), aimed, core.sum(aimed)
  end)
  for _, name in ipairs { "content", "trigger", "aim" } do program:input(self[name]) end
  program:want(self.content)
  program:loss(total)
  local r = program:replica()
  function self.set(name, t) r:set(self[name], t) end
  function self.largest(content)
    r:set(self.content, content)
    return r:forward():value(most)
  end
  function self.climb(content)
    r:set(self.content, content)
    r:forward():zero():backward()
    return r:value(aimed), r:gradient(self.content)
  end
  return self
end

local function ascent(all, x, B)
  local height, slope = all.climb(x)
  local step = core.full({ B }, 0.5, "f64")
  for _ = 1, STEPS do
    local to = x + step:reshape { B, 1, 1 } * (core.gt(slope, 0) - core.lt(slope, 0))
    to = core.minimum(core.maximum(to, -1), 1)
    local now, there = all.climb(to)
    local up = core.gt(now, height)
    x, slope = core.where(up:reshape { B, 1, 1 }, to, x),
      core.where(up:reshape { B, 1, 1 }, there, slope)
    height, step = core.maximum(height, now), core.where(up, step, step * 0.5)
  end
  return x
end

--- The best single change to -1, 0 or 1 until there is none.
local function flips(single, x, n)
  local most, eye = -1, core.one_hot(core.arange(n, "f64"), n)
  local shape = { 3 * n, x.shape[2], x.shape[3] }
  x = x:reshape { 1, n }
  while true do
    local parts = {}
    for i = 1, 3 do
      parts[i] = core.where(eye, core.full({ n, n }, i - 2, "f64"), x)
    end
    local candidates = core.concat(parts, 1)
    local errors = single.largest(candidates:reshape(shape))
    if errors:max():item() <= most * (1 + 1e-12) then return most end
    most = errors:max():item()
    x = candidates:narrow(1, math.tointeger(errors:argmax():item()) + 1, 1):clone()
  end
end

local function stronger(model, task)
  local L, d, width = task.seq_len, task.d_model, task.d_model - 3
  local B, n, best = 2 * d * STARTS, L * width, 0
  local g = core.generator(5, { dtype = "f64" })
  local all, single = errors_of(model, task, B), errors_of(model, task, 3 * n)
  for j = task.triggers[1], task.triggers[2] do
    local places, signs = {}, {}
    for b = 1, B do
      places[b], signs[b] = (j - 1) * d + (b - 1) // 2 % d, b % 2 * 2 - 1
    end
    all.set("trigger", core.full({ B }, j - 1, "f64"))
    single.set("trigger", core.full({ 3 * n }, j - 1, "f64"))
    all.set("aim", core.one_hot(core.tensor(places, "f64"), L * d):reshape { B, L, d }
      * core.tensor(signs, "f64"):reshape { B, 1, 1 })
    local x = ascent(all, g:randint(-1, 1, { B, L, width }), B)
    local errors, order = all.largest(x):totable(), {}
    for b = 1, B do order[b] = b end
    table.sort(order, function(a, b) return errors[a] > errors[b] end)
    for k = 1, KEPT do
      best = math.max(best, flips(single, x:narrow(1, order[k], 1):clone(), n))
    end
  end
  return best
end

--- The models of experiments/theorem1 and theorem2.
local cases = { { 1, "relu", 0 }, { 1, "relu", 1 }, { 1, "relu", 2 }, { 1, "softmax", 0 },
  { 1, "softmax", 1 }, { 2, "relu", 0 }, { 2, "softmax", 0 }, { 2, "softmax", 1 } }

for _, case in ipairs(cases) do
  local layers, mechanism, seed = table.unpack(case)
  check.test(("%d layers, %s, seed %d"):format(layers, mechanism, seed), function()
    local task = lab.task.trigger_mean { residual = layers > 1 }
    local model = lab.model.attention_only { task = task, layers = layers, heads = layers,
      residual = layers > 1, attention = { mechanism = mechanism, scale = 1 },
      init = lab.init.normal(0.02), seed = seed }
    lab.train(model, task, { batch = 128, steps = 50000, seed = seed, eval = 0,
      optimizer = lab.optim.adam { lr = layers > 1 and 1e-4 or 1e-3,
        betas = { 0.9, 0.95 } }, stop = { max_abs_error = 5e-3 }, quiet = true })
    local found, want = lab.certify(model, task).worst, stronger(model:to "f64", task)
    check.at_least(found, 0.999 * want, ("found %.6f, stronger %.6f"):format(found, want))
  end)
end

check.done()
