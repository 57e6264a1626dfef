-- test_train.lua - the trainer as scripts see it.
local check = require "check"
local core = require "sinklab.core"
local lab = require "sinklab"

-- loss = mean (w - target)^2 over 4 numbers, with targets drawn around 1..4.
local function problem(dtype)
  local w = core.zeros({ 4 }, dtype)
  local goal = core.tensor({ 1, 2, 3, 4 }, dtype)
  local program, loss, max_abs_error = core.record(function()
    local t = core.generator(5, { dtype = dtype })
    local noise = t:uniform(-0.1, 0.1, { 2, 4 })
    local got = core.add(core.zeros({ 2, 4 }, dtype), w)
    local want = goal + noise
    return core.mse(got, want), core.max_abs_error(got, want)
  end)
  program:want(w)
  program:loss(loss)
  return w, program, loss, max_abs_error
end

local function trainer_of(more)
  local w, program, loss, max_abs_error = problem(more.dtype or "f64")
  local o = { program = program, parameters = w, loss = loss,
    max_abs_error = max_abs_error, batch = 8,
    shard = 2, groups = 2, schedule = { { 0, 0.4 } },
    optimizer = { kind = "sgd" }, seed = 3 }
  more.dtype = nil
  for key, value in pairs(more) do o[key] = value end
  return core.trainer(o), w
end

check.test("a run says how far it came", function()
  local trainer, w = trainer_of {}
  local p = trainer:run(0)
  check.equal({ p.step, p.lr, p.stopped }, { 0, 0.4 })
  check.equal(p.loss ~= p.loss, true, "no loss before the first batch")
  p = trainer:run(60)
  check.equal({ p.step, p.stopped }, { 60 })
  check.close(w:totable(), { 1, 2, 3, 4 }, 0.05)
  check.close(p.loss, 0.1 ^ 2 / 3, 0.004)
  check.below(p.max_abs_error, 0.16)
  check.above(p.gradient_norm, 0)
  check.above(p.seconds, 0)
  check.equal(tostring(trainer), "trainer")
  local loss, max_abs_error = trainer:evaluate(100)
  check.close(loss, 0.1 ^ 2 / 3, 0.002)
  check.below(max_abs_error, 0.16)
  check.raises("evaluate: 7 samples", trainer.evaluate, trainer, 7)
end)

check.test("training stops where it is told", function()
  for name, stop in pairs { loss = { loss = 0.01 },
    max_abs_error = { max_abs_error = 0.3 },
    plateau = { plateau = 20, plateau_delta = 0.1 },
    seconds = { seconds = 1e-9 } } do
    local trainer = trainer_of { stop = stop }
    local p = trainer:run(10000)
    check.equal(p.stopped, name)
    trainer:close()
  end
end)


check.test("a trainer goes on where another stopped", function()
  local adam = { kind = "adam", beta1 = 0.9, beta2 = 0.95 }
  local whole, want = trainer_of { optimizer = adam, dtype = "f32" }
  whole:run(50)
  local first, w = trainer_of { optimizer = adam, dtype = "f32" }
  local p = first:run(20)
  local saved, values = first:state():clone(), w:clone()
  first:close()
  local second, again = trainer_of { optimizer = adam, dtype = "f32" }
  second:state():copy(saved)
  again:copy(values)
  second:resume(20, p.seconds)
  check.equal(second:run(50).step, 50)
  check.equal(again:totable(), want:totable())
end)

check.test("a closed trainer says so", function()
  local trainer = trainer_of {}
  trainer:close()
  trainer:close()
  check.equal(tostring(trainer), "trainer (closed)")
  check.raises("this trainer has been closed", trainer.run, trainer, 1)
  do local closed <close> = trainer_of {} end
end)

check.test("what a trainer uses is not collected", function()
  local trainer = trainer_of {}
  collectgarbage()
  collectgarbage()
  check.equal(trainer:run(5).step, 5)
end)

check.test("mistakes in trainers are named", function()
  local function refuse(part, more) check.raises(part, trainer_of, more) end
  refuse("trainer: a batch of 8 cannot be cut into shards of 3", { shard = 3 })
  refuse("trainer.optimizer: no option 'beta' (did you mean 'beta1'?)",
    { optimizer = { kind = "adam", beta = 1 } })
  refuse("optimizer: no kind 'adma' (did you mean 'adam'?)",
    { optimizer = { kind = "adma" } })
  refuse("optimizer: beta1 is 1, allowed is 0 <= beta1 < 1",
    { optimizer = { kind = "adam", beta1 = 1 } })
  refuse("trainer.schedule: expected a list of points, got number", { schedule = 1 })
  refuse("trainer.loss: expected a tensor, got number", { loss = 3 })
  refuse("trainer.program: expected a program, got number", { program = 3 })
  refuse("trainer.groups: 4294967297 is out of range", { groups = (1 << 32) + 1 })
end)

check.test("a loss that is not finite at once is not blamed on the rate", function()
  local task = lab.task { name = "bad", seq_len = 2, vocab = 3,
    sample = function(t, B)
      return { x = t:randint(0, 2, { B, 2 }), y = t:full({ B, 2 }, -1) }
    end }
  local model = lab.model.transformer { task = task, d_model = 4 }
  check.raises("step 1 (softmax); the parameters are those before that step (look at",
    lab.train, model, task, { steps = 1, batch = 2, quiet = true })
end)

check.test("a profile counts steps, operations and where the rest goes", function()
  local trainer, w = trainer_of {}
  local plain, same = trainer_of {}
  check.equal(trainer:profile().steps, 0.)
  trainer:run(2)
  trainer:profile(true)
  trainer:run(7)
  plain:run(7)
  check.equal(w:totable(), same:totable()) -- a profile changes no bit
  local p = trainer:profile()
  check.equal(p.steps, 5.)
  local names, sum = {}, 0
  local backward = { false, true, false, true, false } -- what depends on w
  for i, node in ipairs(p.nodes) do
    names[i] = node.op
    sum = sum + node.forward + node.backward
    check.above(node.forward, 0, node.op)
    check.equal(node.backward > 0, backward[i], i .. " " .. node.op)
  end
  check.equal(names, { "uniform", "add", "add", "mse", "max_abs_error" })
  check.at_least(p.busy, sum, "operations are a part of the shards")
  check.at_least(p.replay * p.workers, p.busy, "shards lie within the replay")
  check.above(p.gather, 0)
  check.above(p.update, 0)
  trainer:profile(false)
  trainer:run(9)
  check.equal(trainer:profile().steps, 0.)
  check.equal(trainer:profile().nodes[1].forward, 0.)
end)

check.test("lab.train passes a profile on", function()
  local task = lab.task.trigger_mean {}
  local function run(profile)
    return lab.train(lab.model.attention_only { task = task }, task, { steps = 3,
      batch = 16, eval = 0, quiet = true, profile = profile })
  end
  check.equal(run(true).profile.steps, 3.)
  check.equal(run(nil).profile, nil)
end)

check.done()
