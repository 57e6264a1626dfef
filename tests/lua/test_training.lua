-- test_training.lua - lab.train, lab.optim and lab.schedule as scripts use them.
local check = require "check"
local core = require "sinklab.core"
local lab = require "sinklab"

local task = lab.task.trigger_mean { d_model = 6, seq_len = 5 }

local function make(more)
  local o = { task = task, seed = 2, init = lab.init.normal(0.2) }
  for key, value in pairs(more or {}) do o[key] = value end
  return lab.model.attention_only(o)
end

local function train(model, more)
  local o = { steps = 30, batch = 16, eval = 0, quiet = true,
    optimizer = lab.optim.adam { lr = 1e-2 } }
  for key, value in pairs(more) do o[key] = value end
  return lab.train(model, task, o)
end

check.test("a training says how it went", function()
  local seen = {}
  local log = train(make(), { steps = 25, log_every = 10, eval = 50,
    on_log = function(entry) seen[#seen + 1] = entry.step end })
  check.equal({ log.steps, log.stopped_by }, { 25, "steps" })
  check.equal(seen, { 10, 20, 25 })
  check.equal(#log.log, 3)
  check.equal({ log.log[3].step, log.log[3].loss, log.log[3].lr }, { 25, log.loss, 1e-2 })
  check.at_most(log.log[3].time, log.wall_s)
  check.above(log.steps_per_s, 0)
  -- 16 sequences in 8 groups are shards of 2: all 50 are whole shards.
  check.equal(log.eval.samples, 50)
  check.above(log.eval.mse, 0)
  check.above(log.eval.max_abs_error, 0)
  check.equal(train(make(), { steps = 3 }).eval, nil)
  check.equal(train(make(), { steps = 0 }).steps, 0)
end)

check.test("evaluation is on the batch of step 0 of the seed", function()
  local model = make { dtype = "f64" }
  local log = train(model, { steps = 1, eval = 40, seed = 7 })
  local batch = task:batch { n = 40, seed = 7, dtype = "f64" }
  local y = model:forward(batch.x)
  check.close(log.eval.mse, core.mse(y, batch.y):item(), 0, 1e-12)
  check.close(log.eval.max_abs_error, core.max_abs_error(y, batch.y):item(), 0, 1e-12)
end)

check.test("training learns, and repeats by its seeds", function()
  local a, b, c = make(), make(), make()
  local log = train(a, { steps = 400, seed = 5 })
  check.below(log.loss, 0.2 * log.log[1].loss,
    ("loss %g after %g"):format(log.loss, log.log[1].loss))
  train(b, { steps = 400, seed = 5 })
  check.equal(a.params.flat:totable(), b.params.flat:totable())
  train(c, { steps = 400, seed = 6 })
  check.above(lab.max_abs_error(a.params.flat, c.params.flat):item(), 1e-6)
end)

check.test("stop tests", function()
  local reasons = { max_abs_error = { max_abs_error = 10 }, loss = { loss = 10 },
    plateau = { plateau = 5, plateau_delta = 0.9 }, seconds = { seconds = 1e-9 } }
  for reason, stop in pairs(reasons) do
    local log = train(make(), { steps = 1000, stop = stop })
    check.equal(log.stopped_by, reason)
    check.below(log.steps, 1000)
  end
  -- The model that passed the test is kept: no step was made.
  check.equal(train(make(), { stop = { max_abs_error = 10 } }).steps, 0)
end)

check.test("shards and groups: any cut that divides the batch", function()
  local want
  for _, shard in ipairs { 1, 2, 4 } do
    local model = make { dtype = "f64" }
    train(model, { groups = 4, shard = shard, steps = 5 })
    want = want or model.params.flat:totable()
    check.close(model.params.flat:totable(), want, 1e-12)
  end
  local function refuse(part, more) check.raises(part, train, make(), more) end
  refuse("a batch of 16 cannot be cut into 3 groups", { groups = 3 })
  refuse("a group of 4 sequences cannot be cut into shards of 3",
    { groups = 4, shard = 3 })
end)

check.test("a schedule moves the learning rate", function()
  local rates = {}
  train(make(), { steps = 4, log_every = 1,
    schedule = lab.schedule.linear { from = 4e-3, to = 1e-3, steps = 4 },
    on_log = function(entry) rates[#rates + 1] = entry.lr end })
  check.close(rates, { 4e-3, 3.25e-3, 2.5e-3, 1.75e-3 }, 1e-12)
  local points = lab.schedule.points { { 0, 1, "linear" }, { 10, 3 } }
  check.equal(lab.schedule.at(points, 5), 2.)
  check.raises("schedule: it has no points", lab.schedule.points, {})
end)

check.test("optimisers are plain tables with their defaults", function()
  check.equal(lab.optim.adam {}, { kind = "adam", lr = 1e-3, beta1 = 0.9, beta2 = 0.999,
    eps = 1e-8, weight_decay = 0, clip_norm = 0 })
  check.equal(lab.optim.adamw {}.weight_decay, 0.01)
  check.equal(lab.optim.sgd { momentum = 0.5, nesterov = true }, { kind = "sgd",
    lr = 1e-2, momentum = 0.5, nesterov = true, weight_decay = 0, clip_norm = 0 })
  check.raises("option 'betas' is { 0.9, 2 }; it must be two numbers from 0 to below 1",
    lab.optim.adam, { betas = { 0.9, 2 } })
  check.raises("lab.optim.sgd: option 'momentum' is 1; it must be at least 0 and below 1",
    lab.optim.sgd, { momentum = 1 })
  check.raises("lab.optim.sgd: no such option 'momemtum' (did you mean 'momentum'?)",
    lab.optim.sgd, { momemtum = 0.9 })
  for _, optimizer in ipairs { lab.optim.sgd { lr = 0.1, momentum = 0.9, clip_norm = 1 },
    lab.optim.adamw { lr = 1e-2 } } do
    local log = train(make(), { steps = 300, optimizer = optimizer, log_every = 1 })
    check.below(log.loss, log.log[1].loss, optimizer.kind)
  end
end)

check.test("a loss that is not finite is an error; the parameters stay", function()
  local model = make()
  local message = check.raises("the loss is not finite at step", train, model,
    { steps = 1000, optimizer = lab.optim.sgd { lr = 1e12 } })
  check.contains(message, "(softmax)")
  check.contains(message, "try a lower lr, now 1e+12, or clip_norm")
  for _, x in ipairs(model.params.flat:totable()) do check.equal(x == x, true) end
end)

check.test("a task without a largest error", function()
  local ids = lab.task { name = "ids", vocab = 4, seq_len = 3, sample = function(t, B)
    local x = t:randint(0, 3, { B, 3 })
    return { x = x, y = x }
  end }
  local model = lab.model.transformer { task = ids, d_model = 8 }
  local log = lab.train(model, ids, { steps = 60, batch = 8, quiet = true, eval = 8,
    optimizer = lab.optim.adam { lr = 1e-2 }, log_every = 1 })
  check.equal({ log.max_abs_error, log.eval.max_abs_error, log.eval.mse }, {})
  check.below(log.eval.loss, log.log[1].loss)
  check.raises("task 'ids' has no largest error for stop.max_abs_error to test",
    lab.train, model,
    ids, { stop = { max_abs_error = 0.1 } })
end)

check.test("a batch without targets is a step without a loss", function()
  local some = lab.task { name = "some", seq_len = 4, vocab = 5, loss = "cross_entropy",
    sample = function(t, B)
      local x = t:randint(0, 4, { B, 4 })
      local kept = t:bernoulli(0.2, { B, 1 }) + x * 0
      return { x = x, y = lab.where(kept, x, x * 0 - 100) }
    end }
  local model = lab.model.transformer { task = some, d_model = 8, layers = 1, heads = 1 }
  local log = lab.train(model, some, { steps = 40, batch = 2, eval = 0, log_every = 1 })
  check.equal({ log.steps, log.stopped_by }, { 40, "steps" })
  local without = 0
  for _, entry in ipairs(log.log) do
    if entry.loss ~= entry.loss then without = without + 1 end
  end
  check.equal(without > 10 and without < 40, true, without)
end)

check.test("mistakes are named", function()
  local model = make()
  local function refuse(part, ...) check.raises(part, lab.train, ...) end
  refuse("the model must be a model made by lab.model, got nil")
  refuse("the model must be a model made by lab.model, got a table", task, model)
  refuse("the task must be a task made by lab.task, got nil", model)
  refuse("must be made by lab.optim (try lab.optim.adam", model, task,
    { optimizer = { lr = 1 } })
  refuse("option 'optimizer' must be a table, got 'adam'", model, task,
    { optimizer = "adam" })
  refuse("no such option 'step' (did you mean 'steps'?)", model, task, { step = 1 })
  refuse("lab.train: stop: no such option 'max_abs_err' (did you mean 'max_abs_error'?)",
    model, task,
    { stop = { max_abs_err = 1 } })
  check.raises("lab.sinks: the model must be a model", lab.sinks, task, {})
  check.raises("lab.sinks: the batch is f64, the model f32", lab.sinks, model,
    task:batch { dtype = "f64" })
  check.raises("lab.witness.softmax: the temperature must be a number, got nil",
    lab.witness.softmax, task)
end)

check.done()
