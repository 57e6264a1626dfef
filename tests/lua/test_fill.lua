-- test_fill.lua - t:fill: tensors that a function of the script fills.
local check = require "check"
local core = require "sinklab.core"
local lab = require "sinklab"

check.test("the function gets a buffer of zeros, step 0 and sample 0", function()
  local t = core.generator(1)
  local seen
  local x = t:fill({ 2, 3 }, function(buffer, step, first_sample)
    seen = { buffer:totable(), buffer.dtype, step, first_sample }
    buffer:set(2, 1, 7)
  end)
  check.equal(seen, { { { 0., 0., 0. }, { 0., 0., 0. } }, "f32", 0, 0 })
  check.equal(x:totable(), { { 0., 0., 0. }, { 7., 0., 0. } })
  check.equal(t:fill(2, function() end, { dtype = "f64" }).dtype, "f64")
  local g = core.generator(1, { dtype = "f64" })
  check.equal(g:fill({}, function(b) b:fill(5) end):item(), 5.)
end)

check.test("a buffer that the script keeps or closes is no danger", function()
  local kept
  local x = core.generator(1):fill({ 2 }, function(buffer)
    kept = buffer
    buffer:fill(1)
  end)
  collectgarbage()
  kept:fill(9)
  check.equal(x:totable(), { 1., 1. })
  local t = core.generator(1)
  local program, y = core.record(function()
    return t:fill({ 2 }, function(buffer)
      local closed <close> = buffer
      closed:fill(3)
    end)
  end)
  check.equal(y:totable(), { 3., 3. })
  local replica = program:replica()
  check.raises("this tensor has been closed", replica.forward, replica)
end)

check.test("a program calls it at each replay and records nothing in it", function()
  local calls = 0
  local program, y = core.record(function()
    local t = core.generator(1, { dtype = "f64" })
    return t:fill({ 2 }, function(buffer, step, first_sample)
      calls = calls + 1
      buffer:copy(core.tensor({ step, first_sample }, "f64") * 2 + calls)
    end) + 1
  end)
  check.equal(#program, 2, "operations: fill, add")
  local replica <close> = program:replica()
  program = nil
  collectgarbage()
  replica:forward { step = 4, first_sample = 10 }
  check.equal(replica:value(y):totable(), { 11., 23. })
  replica:forward()
  check.equal(replica:value(y):totable(), { 4., 4. })
end)

check.test("an error is raised where the replay was asked for, as it was", function()
  local object = setmetatable({}, { __tostring = function() return "an object" end })
  local what, y = nil, nil
  local t = core.generator(1)
  local program
  program, y = core.record(function()
    return t:fill({ 1 }, function(buffer)
      buffer:fill(1)
      if what then error(what, 0) end
    end)
  end)
  local replica = program:replica()
  what = object
  local ok, raised = pcall(replica.forward, replica)
  check.equal(ok, false)
  check.equal(rawequal(raised, object), true)
  what = nil
  check.equal(replica:forward():value(y):totable(), { 1. })
  ok, raised = pcall(t.fill, t, { 1 }, function() local none; none() end)
  check.equal(ok, false)
  check.contains(raised, "test_fill.lua:")
  check.contains(raised, "attempt to call a nil value (local 'none')")
  -- What comes later is not mistaken for it.
  check.raises("the seed must be a whole number", core.generator, -1)
end)

check.test("an error while recording ends the recording", function()
  local t = core.generator(1)
  check.raises("no luck", core.record, function()
    return t:fill({ 1 }, function() error "no luck" end)
  end)
  check.equal(#core.record(function() return t:uniform(0, 1, { 2 }) end), 1)
end)

check.test("the function lives as long as what may call it, and no longer", function()
  local alive = setmetatable({}, { __mode = "k" })
  local function recorded()
    local function f(buffer) buffer:fill(4) end
    alive[f] = true
    local program, y = core.record(function()
      return core.generator(1):fill({ 1 }, f)
    end)
    return program:replica(), y
  end
  local replica, y = recorded()
  collectgarbage()
  check.equal(replica:forward():value(y):totable(), { 4. })
  check.equal(next(alive) ~= nil, true)
  replica = nil
  collectgarbage()
  collectgarbage()
  check.equal(next(alive), nil)
end)

check.test("a replica does not run within itself", function()
  local replica, again
  local program = core.record(function()
    return core.generator(1):fill({ 1 }, function() if again then again() end end)
  end)
  replica = program:replica()
  again = function() replica:forward() end
  check.raises("this replica is running", replica.forward, replica)
  local second = program:replica()
  again = function() second:forward() end
  check.raises("fill: its function is already running", replica.forward, replica)
  again = function() local closed <close> = replica end
  check.raises("this replica is running", replica.forward, replica)
  again = nil
  replica:forward()
end)

check.test("a program that fails is not checked", function()
  local bad = false
  local w = core.ones({ 2 }, "f64")
  local program, loss = core.record(function()
    local x = core.generator(1, { dtype = "f64" }):fill({ 2 }, function(buffer)
      if bad then error "bad sample" end
      buffer:copy(core.tensor({ 2, 3 }, "f64"))
    end)
    return (x * w * w):sum()
  end)
  program:want(w)
  program:loss(loss)
  check.below(program:check(), 1e-9)
  bad = true
  check.raises("bad sample", program.check, program)
end)

check.test("mistakes are named", function()
  local t = core.generator(1)
  check.raises("fill: expected a function (buffer, step, first_sample), got number",
    t.fill, t, { 2 }, 3)
  check.raises("fill: no option 'dtpye' (did you mean 'dtype'?)", t.fill, t, { 2 },
    print, { dtpye = "f64" })
  check.raises("one too many", t.fill, t, { 2 }, print, {}, 1)
  check.raises("attempt to yield", t.fill, t, { 1 }, coroutine.yield)
end)

-- The copying task, whose sampler is plain Lua: the same numbers as the tensors of
-- `by_ops` and so the same model, bit by bit.
local L, d = 4, 6

local function sequence(step, sample, i) -- a number in [-1, 1] of its own
  return ((step * 7919 + sample * 104729 + i * 1299709) % 2001 - 1000) / 1000
end

local function copy_task(more)
  more = more or {}
  return lab.task { name = "copy", seq_len = L, d_model = d, sample = function(t, B)
    local x = t:fill({ B, L, d }, function(buffer, step, first_sample)
      if more.watch then more.watch(step, first_sample) end
      for b = 1, B do
        for l = 1, L do
          for i = 1, d do
            buffer:set(b, l, i, sequence(step, first_sample + b - 1, l * d + i))
          end
        end
      end
    end)
    return { x = x, y = x * 0.5 }
  end }
end

local function trained(shard, more)
  local task = copy_task(more)
  local model = lab.model.attention_only { task = task, layers = 1, heads = 1,
    attention = "softmax", seed = 3 }
  local log = lab.train(model, task, { optimizer = lab.optim.adam { lr = 1e-2 },
    batch = 8, steps = 20, groups = 4, shard = shard, eval = 16, log_every = 1,
    quiet = true })
  return model, log
end

check.test("a task trains with it, and sees every sequence once", function()
  local seen = {}
  local model, log = trained(2, { watch = function(step, first_sample)
    seen[#seen + 1] = { step, first_sample }
  end })
  check.equal(log.steps, 20)
  check.below(log.log[20].loss, log.log[1].loss, "the loss falls")
  check.equal(log.eval.samples, 16)
  -- recording; 20 steps of 4 shards; 8 shards of evaluation
  check.equal(#seen, 1 + 20 * 4 + 8)
  check.equal({ seen[2], seen[3], seen[5], seen[6] },
    { { 1, 0 }, { 1, 2 }, { 1, 6 }, { 2, 0 } })
  check.equal({ seen[81], seen[82], seen[89] }, { { 20, 6 }, { 0, 0 }, { 0, 14 } })
  check.equal(model.params.flat:totable(), trained(2).params.flat:totable())
  check.equal(copy_task():batch { n = 3 }.x:get(3, 1, 1),
    core.tensor { sequence(0, 2, d + 1) }:item())
end)

check.test("an error in it stops training; model and task stay usable", function()
  local fail_at = 5
  local task = copy_task { watch = function(step)
    if step == fail_at then error("no data for step " .. step) end
  end }
  local model = lab.model.attention_only { task = task, layers = 1, heads = 1,
    attention = "softmax", seed = 3 }
  local options = { batch = 8, steps = 20, groups = 4, shard = 2, eval = 0, quiet = true }
  local message = check.raises("no data for step 5", lab.train, model, task, options)
  check.contains(message, "test_fill.lua:")
  local after = model.params.flat:totable()
  options.steps = 4
  local same = lab.model.attention_only { task = task, layers = 1, heads = 1,
    attention = "softmax", seed = 3 }
  lab.train(same, task, options)
  check.equal(after, same.params.flat:totable(), "parameters of step 4")
  fail_at = nil
  options.steps = 20
  check.equal(lab.train(model, task, options).steps, 20)
  fail_at = 0
  options.eval = 8
  check.raises("no data for step 0", lab.train, model, task, options)
end)

check.test("a trainer goes on after an error", function()
  local fail = false
  local w = core.zeros({ 1 }, "f64")
  local program, loss = core.record(function()
    local x = core.generator(1, { dtype = "f64" }):fill({ 2, 1 }, function(buffer, step)
      if fail then error "out of data" end
      buffer:fill(step)
    end)
    return core.mse(core.zeros({ 2, 1 }, "f64") + w, x)
  end)
  program:want(w)
  program:loss(loss)
  local trainer = core.trainer { program = program, parameters = w, loss = loss,
    batch = 4, shard = 2, groups = 2, optimizer = { kind = "sgd" },
    schedule = { { 0, 0.5 } } }
  trainer:run(3)
  check.equal(w:totable(), { 3. })
  fail = true
  check.raises("out of data", trainer.run, trainer, 6)
  check.raises("out of data", trainer.evaluate, trainer, 4)
  check.equal(w:totable(), { 3. })
  fail = false
  local p = trainer:run(6)
  check.equal({ p.step, p.stopped }, { 6 })
  check.equal(w:totable(), { 6. })
end)

check.test("measurements pass its errors on", function()
  local task = lab.task.trigger_mean { seq_len = 4, d_model = 8 }
  local model = lab.model.attention_only { task = task, layers = 1, heads = 1,
    attention = "softmax" }
  local plain, fail = model.forward, false
  local t = core.generator(1)
  function model:forward(x, length)
    return plain(self, x + t:fill(x.shape, function()
      if fail then error "no noise" end
    end), length)
  end
  local batch = task:batch { n = 40 }
  check.equal(lab.sinks(model, batch).samples, 40)
  local record = core.record
  function core.record(f) -- fail in the replays, not while recording
    local program = record(f)
    fail = true
    return program
  end
  local ok, message = pcall(lab.sinks, model, batch)
  core.record = record
  check.equal(ok, false)
  check.contains(message, "no noise")
end)

check.done()
