-- test_checkpoint.lua - a training that was ended goes on from its checkpoint with the
-- same bits.
local check = require "check"
local process = require "process"
local lab = require "sinklab"

local task = lab.task.trigger_mean { seq_len = 8, d_model = 6 }

local function trained(more, settings)
  local model = lab.model.attention_only { task = task, heads = 2,
    seed = settings and settings.seed or 1, dtype = settings and settings.dtype }
  local o = { steps = 25, batch = 16, eval = 16, log_every = 10, quiet = true,
    probes = { sinks = { every = 4, samples = 8 } } }
  for key, value in pairs(more or {}) do o[key] = value end
  return lab.train(model, task, o), model
end

--- The log without its times.
local function entries(log)
  local out = {}
  for i, entry in ipairs(log) do
    out[i] = {}
    for key, value in pairs(entry) do
      if key ~= "time" then out[i][key] = value end
    end
  end
  return out
end

local function same(got, model, want, other, said)
  check.equal(model.params.flat:totable(), other.params.flat:totable(), said)
  check.equal(entries(got.log), entries(want.log), said)
  check.equal({ got.steps, got.stopped_by, got.loss, got.eval },
    { want.steps, want.stopped_by, want.loss, want.eval }, said)
end

--- Start a training that keeps every step, and leave it by an error at this entry.
local function leave(path, step, more, settings)
  local o = { checkpoint = { path = path, every = 0 }, on_log = function(entry)
    if entry.step == step then error "left here" end
  end }
  for key, value in pairs(more) do o[key] = value end
  check.raises("left here", trained, o, settings)
end

check.test("optimizers, schedules and precisions go on with the same bits", function()
  local optimizers = { lab.optim.adam { lr = 1e-2 }, lab.optim.adamw { lr = 1e-2 },
    lab.optim.sgd { lr = 1e-2 }, lab.optim.sgd { lr = 1e-2, momentum = 0.9 } }
  local schedules = { lab.schedule.constant { lr = 1e-2 },
    lab.schedule.warmup_cosine { lr = 1e-2, warmup = 5, steps = 25 } }
  for i, optimizer in ipairs(optimizers) do
    for j, schedule in ipairs(schedules) do
      for _, dtype in ipairs { "f32", "f64" } do
        local path = os.tmpname()
        os.remove(path)
        local more = { optimizer = optimizer, schedule = schedule,
          stop = { plateau = 20 } }
        local want, other = trained(more, { dtype = dtype })
        leave(path, 16, more, { dtype = dtype })
        more.checkpoint = { path = path }
        local said = ("optimizer %d, schedule %d, %s"):format(i, j, dtype)
        local got, model = trained(more, { dtype = dtype })
        same(got, model, want, other, said)
        -- The training has ended: its result is restored.
        more.on_log = function() error "the training is repeated" end
        got, model = trained(more, { dtype = dtype })
        same(got, model, want, other, said)
        os.remove(path)
      end
    end
  end
end)

local script = [[
local lab = require "sinklab"
local task = lab.task.trigger_mean { seq_len = 8, d_model = 6 }
local to = os.getenv "CHECKPOINT_TO"
for n = 1, 2 do
  local model = lab.model.attention_only { task = task, heads = 2, seed = n }
  local log = lab.train(model, task, { steps = 300, batch = 16, eval = 16,
    log_every = 50, checkpoint = { path = to .. n, every = 0.02 } })
  assert(lab.save_safetensors(to .. "end" .. n, { w = model.params.flat }))
end
print "whole"
]]

check.test("signals at any moment, and other numbers of threads", function()
  local folder = process.folder "checkpoint"
  local name = process.write(folder .. "/two.lua", script)
  local binary = os.getenv "SINKLAB_BINARY"
  local function start(before, to, threads)
    return process.shell(("CHECKPOINT_TO='%s' %s '%s' run '%s' --quiet --threads=%d "
      .. "</dev/null"):format(to, before, binary, name, threads))
  end
  local want = folder .. "/want"
  check.contains(start("", want, 1).out, "whole")
  for n, signal in ipairs { "KILL", "TERM", "INT", "KILL", "TERM", "KILL" } do
    local path = ("%s/%d-"):format(folder, n)
    local stale = process.write(path .. "1.999999999-0.tmp", "")
    start(("timeout -s %s %g"):format(signal, 0.1 + 0.1 * n), path, 1 + n % 2)
    check.contains(start("", path, 2 - n % 2).out, "whole")
    check.equal(io.open(stale), nil, "a temporary file of a dead process")
    for k = 1, 2 do
      check.equal(lab.sha256(path .. "end" .. k), lab.sha256(want .. "end" .. k),
        ("%s, number %d, training %d"):format(signal, n, k))
    end
  end
end)

check.test("other trainings and damaged files are refused by name", function()
  local path = os.tmpname()
  os.remove(path)
  local at = { path = path }
  trained { checkpoint = at }
  check.raises("batch was 16, is now 32", trained, { checkpoint = at, batch = 32 })
  check.raises("steps was 25, is now 30", trained, { checkpoint = at, steps = 30 })
  check.raises("loss of the untrained model was", trained, { checkpoint = at },
    { seed = 2 })
  check.raises("optimizer.beta1 was 0.9, is now not set", trained, { checkpoint = at,
    optimizer = lab.optim.sgd {}, schedule = lab.schedule.constant { lr = 1e-3 } })
  assert(lab.save_safetensors(path, { x = lab.arange(3) }))
  check.raises("is no checkpoint of a training", trained, { checkpoint = at })
  local file <close> = assert(io.open(path, "w"))
  file:write "text"
  file:close()
  check.raises("lab.train: checkpoint", trained, { checkpoint = at })
  os.remove(path)
  check.raises("lab.train: checkpoint", trained,
    { checkpoint = { path = path .. "/no/file" } })
end)

check.done()
