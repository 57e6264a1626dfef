-- test_probes.lua - lab.train's probes, and the experiment that draws them.
local check = require "check"
local process = require "process"
local lab = require "sinklab"

local task = lab.task.trigger_mean { seq_len = 8, d_model = 6 }

local function trained(more)
  local model = lab.model.attention_only { task = task, heads = 2, seed = 1 }
  local o = { steps = 25, batch = 16, eval = 0, log_every = 10, quiet = true }
  for key, value in pairs(more or {}) do o[key] = value end
  return lab.train(model, task, o), model
end

local function steps(log)
  local out = {}
  for i, entry in ipairs(log.log) do
    out[i] = entry.step .. (entry.sinks_first_max and "*" or "")
  end
  return table.concat(out, " ")
end

check.test("when probes measure, and that training does not notice", function()
  local plain, same = trained()
  check.equal(steps(plain), "10 20 25")
  for every, want in pairs { [4] = "0* 4* 8* 10 12* 16* 20* 24* 25*",
    [10] = "0* 10* 20* 25*", [100] = "0* 10 20 25*" } do
    local log, model = trained { probes = { sinks = { every = every, samples = 8 } } }
    check.equal(steps(log), want)
    check.equal((model.params.flat - same.params.flat):abs():max():item(), 0.0)
    check.equal({ log.loss, log.max_abs_error }, { plain.loss, plain.max_abs_error })
  end
  check.equal(steps((trained { steps = 0, probes = { sinks = {} } })), "0*")
end)

check.test("what they measure is lab.sinks of the model as it is", function()
  local batch = task:batch { n = 12, seed = 9 }
  local log, model = trained { probes = { sinks = { every = 5, batch = batch,
    heads = true } } }
  local found, last = lab.sinks(model, batch), log.log[#log.log]
  for _, key in ipairs { "first", "first_over_rowsum", "row_mass", "contribution",
    "value_norm",
    "rate" } do
    check.equal(last["sinks_" .. key .. "_mean"], found[key].mean, key)
    check.equal(last["sinks_" .. key .. "_max"], found[key].max, key)
  end
  for h = 1, 2 do
    check.equal(last[("sinks_l1h%d_first_mean"):format(h)], found.heads[h].first_mean)
    check.equal(last[("sinks_l1h%d_contribution"):format(h)], found.heads[h].contribution)
  end
  local start = lab.sinks(lab.model.attention_only { task = task, heads = 2, seed = 1 },
    batch)
  check.equal(log.log[1].sinks_first_mean, start.first.mean)
  check.above(log.log[1].loss, 0)
end)

check.test("mistakes are named", function()
  check.raises("lab.train: probes: no such option 'sink' (did you mean 'sinks'?)",
    trained, { probes = { sink = {} } })
  check.raises("lab.train: probes: sinks: option 'every' is 0", trained,
    { probes = { sinks = { every = 0 } } })
  check.raises("lab.train: probes: option 'sinks' is missing", trained, { probes = {} })
end)

check.test("dynamics.lua writes its figure, its logs, a table", function()
  local folder = process.folder "dynamics"
  local r = process.run { "run", "experiments/dynamics.lua", "--quick", "--max_steps=6",
    "--every=3", "--samples=4", "--out=" .. folder .. "/run", "--quiet" }
  check.equal({ r.code, r.err }, { 0, "" })
  check.contains(r.out, "contribution")
  for _, name in ipairs { "dynamics.png", "dynamics.svg", "dynamics.pdf" } do
    check.equal(process.read(folder .. "/run/" .. name) ~= "", true, name)
  end
  local csv = process.read(folder .. "/run/train-softmax-0.csv")
  check.contains(csv, "sinks_contribution_max")
  local lines = select(2, csv:gsub("\n", ""))
  check.equal(lines, 4) -- a header, steps 0, 3 and 6
end)

check.done()
