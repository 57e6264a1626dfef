-- test_experiment_training.lua - small trainings from plain data, and their results.
local check = require "check"
local process = require "process"
local core = require "sinklab.core"
local lab = require "sinklab"
local training = require "experiments.lib.training"

local folder = process.folder "training"

check.test("every task of the atlas trains and is measured", function()
  for _, name in ipairs(training.names()) do
    local r = training.run { task = name, steps = 2, batch = 8, samples = 8 }
    check.equal(r.error == r.error and r.error > -0.1, true,
      name .. ": error " .. r.error)
    check.at_least(r.first, 0, name .. ": weight " .. r.first)
    check.at_most(r.first, 1, name .. ": weight " .. r.first)
  end
end)

check.test("what a point says is what is trained", function()
  local base = training.run { steps = 1, batch = 8, samples = 8 }
  for key, value in pairs { lr = 1, optimizer = "sgd", init = 0.5, layers = 2, heads = 2,
    seed = 1, positions = "alibi", norm = "rms", d_model = 8, seq_len = 5,
    mechanism = "relu",
    task = "sum", batch = 4, default = 0.5 } do
    local r = training.run { steps = 1, batch = 8, samples = 8, [key] = value }
    check.equal(r.error ~= base.error or r.first ~= base.first, true, key)
  end
  local more = training.run { steps = 3, batch = 8, samples = 8 }
  local sgd = training.run { steps = 3, batch = 8, samples = 8, optimizer = "sgd" }
  check.equal(training.run { steps = 3, batch = 8, samples = 8,
    betas = { 0.5, 0.9 } }.error ~= more.error, true, "betas")
  check.equal(training.run { steps = 3, batch = 8, samples = 8, optimizer = "sgd",
    momentum = 0.5 }.error ~= sgd.error, true, "momentum")
  local solved = training.run { task = "idle", steps = 500 }
  check.equal({ solved.stopped_by, solved.error < 0.1 }, { "max_abs_error", true })
  check.equal(training.run { mechanism = "softmax+sigmoid_gate", steps = 1, batch = 8,
    samples = 8 }.first > 0, true)
end)

check.test("only what is missing runs; what fails is told", function()
  local run = { folder = process.folder "some" }
  local points = { { task = "idle", steps = 1, batch = 8, samples = 8 },
    { task = "idle", steps = 1, batch = 8, samples = 8, seed = 1 },
    { task = "idle", steps = 1, batch = 8, samples = 8, mechanism = "no_such" } }
  local results, failures = training.all(run, points, "test")
  check.at_most(results[2].steps, 1)
  check.equal(results[3], false)
  check.equal(#failures, 1)
  check.contains(failures[1], "no plugin 'no_such'")
  check.raises("failed and are left out; one of them: batch=8 mechanism=no_such",
    training.report, failures, #points)
  local started = os.time()
  check.equal((training.all(run, points, "test")), results)
  check.at_most(os.time() - started, 2)
end)

check.test("an atlas goes on where it stopped", function()
  local out = folder .. "/atlas"
  local function atlas()
    return process.run({ "run", "experiments/atlas.lua", "--quick", "--quiet",
      "--max_steps=20", "--out=" .. out })
  end
  check.equal(atlas().code, 2) -- nothing is solved after 20 steps
  local n, marked = 0, 0
  for _, name in ipairs(core.folder(out .. "/trainings")) do
    local path = out .. "/trainings/" .. name
    local text = process.read(path)
    if name ~= "sweep.txt" then n = n + 1 end
    if text:find('\\"mean\\"', 1, true) and text:find('\\"softmax\\"', 1, true) then
      local changed
      text, changed = text:gsub('(%["first"%]=)[^,]+', "%10.125")
      marked = marked + changed
      process.write(path, text)
    elseif text:find('\\"idle\\"', 1, true) then
      os.remove(path) -- as if it had stopped before
    end
  end
  check.equal({ n, marked }, { 4, 1 })
  check.equal(atlas().code, 2)
  local record = lab.json.decode(process.read(out .. "/run.json"))
  check.equal(record.results.atlas.cells.mean.softmax.first, 0.125)
  check.equal(record.results.atlas.cells.idle.relu.runs, 1)
  check.equal(record.options.betas, { 0.9, 0.95 })
end)

check.test("what cannot be measured is refused before anything is trained", function()
  for _, name in ipairs { "theorem1", "theorem2", "theorem3", "figures", "mechanisms" } do
    local r = process.run { "run", name, "--trigger_pos=40", "--out=" .. folder .. "/no" }
    check.equal({ r.code, r.out }, { 1, "" }, name)
    check.contains(r.err, "option 'trigger' is 40; the sequence has 16 tokens")
    check.contains(process.run({ "run", name, "--stop_max_abs_error=-1" }).err,
      "--stop_max_abs_error=-1: must be at least 0")
  end
  check.equal(io.open(folder .. "/no/run.json"), nil)
end)

check.done()
