--- Which tasks need a sink, under which mechanism: an empirical map.
--
-- Every mechanism on every task, several seeds: solved or not, and, of the head that puts
-- most weight on position 1, that weight and its contribution. Weight without
-- contribution is parking; weight that is free because BOS's value is zero looks the same
-- where a mechanism's weights need not sum to 1, so the two stand side by side. The tasks
-- are in scripts/experiments/lib/training.lua; all but mean, unigram and backcopy are our
-- own extensions. Results are kept in the folder trainings one by one: an atlas that was
-- interrupted goes on where it stopped when it is given the same --out=DIR, and so does
-- one with more seeds, tasks or mechanisms.
local lab = require "sinklab"
local training = require "experiments.lib.training"

local names = training.names()

local opt = lab.options {
  tasks = { default = names, quick = { "mean", "idle" }, doc = "tasks", choices = names },
  attention = { default = { "softmax", "softmax1", "softmax+sigmoid_gate", "sparsemax",
    "softpick", "sigmoid", "relu", "linear" }, quick = { "softmax", "relu" },
    doc = "mechanisms, or mechanism+gate" },
  max_steps = { default = 2500, doc = "at most so many steps", min = 0 },
  batch_size = { default = 64, doc = "sequences a step", min = 1 },
  lr = { default = 2e-3, doc = "learning rate", min = 0 },
  betas = { default = { 0.9, 0.95 }, doc = "decay of Adam's running means" },
  stop_max_abs_error = { default = 5e-3,
    doc = "stop when a batch's largest error is below this", min = 0 },
  -- The largest error of fresh sequences; of token ids, the mean loss above the least.
  solved = { default = 0.1, doc = "most error of a solved task", above = 0 },
  sink_at = { default = 0.3,
    doc = "least mean weight on position 1 of a head that sinks" },
  seed = { default = 0, doc = "of the first run", min = 0 },
  seeds = { default = 3, quick = 1, doc = "runs of each, with seeds from --seed on",
    min = 1 },
  quick = { default = false, doc = "two tasks, two mechanisms, one seed" },
}
local tasks, mechanisms, seeds = opt.tasks, opt.attention, opt.seeds

for _, name in ipairs(mechanisms) do
  for part in name:gmatch "[^+]+" do lab.mechanism(part) end
end
local run = lab.run()

local points = {}
for _, task in ipairs(tasks) do
  for _, mechanism in ipairs(mechanisms) do
    for i = 1, seeds do
      points[#points + 1] = { task = task, mechanism = mechanism, seed = opt.seed + i - 1,
        steps = opt.max_steps, batch = opt.batch_size, lr = opt.lr,
        betas = opt.betas, stop = opt.stop_max_abs_error }
    end
  end
end
local results, failures = training.all(run, points, "atlas")
if not results then return end

--- Mean of a number over the seeds of a cell, NaN without any.
local function mean(cell, number)
  local sum, n = 0, 0
  for _, r in ipairs(cell) do
    local value = number(r)
    if value and value == value then sum, n = sum + value, n + 1 end
  end
  return n > 0 and sum / n or 0 / 0
end

local function is_solved(r) return r.error <= opt.solved and 1 or 0 end

local solved, first, contribution, rows = {}, {}, {}, {}
local at, cells = 0, {}
for t, task in ipairs(tasks) do
  solved[t], first[t], contribution[t], rows[t], cells[task] = {}, {}, {}, { task }, {}
  for m, mechanism in ipairs(mechanisms) do
    local cell = {}
    for _ = 1, seeds do
      at = at + 1
      if results[at] then cell[#cell + 1] = results[at] end
    end
    local sinking = 0
    for _, r in ipairs(cell) do
      if r.first and r.first >= opt.sink_at then sinking = sinking + 1 end
    end
    solved[t][m] = mean(cell, is_solved)
    first[t][m] = mean(cell, function(r) return r.first end)
    contribution[t][m] = mean(cell, function(r) return r.contribution end)
    local summary = { solved = solved[t][m] * #cell, sinks = sinking, runs = #cell }
    for _, key in ipairs { "error", "first", "contribution", "first_over_rowsum",
      "row_mass", "steps" } do
      summary[key] = mean(cell, function(r) return r[key] end)
    end
    cells[task][mechanism] = summary
    rows[t][m + 1] = #cell == 0 and "-" or ("%d/%d %.2f (%.2f)"):format(
      summary.solved // 1, #cell, first[t][m], contribution[t][m])
  end
end
run:add("atlas", { cells = cells })
print(("\nsolved of %d, weight on position 1 (its contribution)"):format(seeds))
run:table({ "task", table.unpack(mechanisms) }, rows)

local labels = {}
for m, name in ipairs(mechanisms) do labels[m] = name:gsub("sigmoid_gate", "gate") end

local function panel(title, data, quantity, vmax)
  return { data = lab.tensor(data), title = title, quantity = quantity, vmin = 0,
    vmax = vmax, keys = labels, queries = tasks, xlabel = "", ylabel = "" }
end
run:figure("atlas", lab.plot.panels({
  panel("solved", solved, "share of seeds", 1),
  panel("weight on position 1", first, "mean over plain rows", 1),
  panel("its contribution", contribution, "norm of its part of the output", "data"),
}, { columns = 3, title = "Which tasks need a sink, under which mechanism",
  caption = ("mean over %d seed%s; the head with most weight on position 1"):format(seeds,
    seeds == 1 and "" or "s") }))

-- What theory and the literature say of the paper's task and of idling.
local function cell(task, mechanism) return cells[task] and cells[task][mechanism] end
local softmax, relu = cell("mean", "softmax"), cell("mean", "relu")
if softmax then
  run:claim("mean, softmax: solved", softmax.solved, "==", softmax.runs)
  run:claim("mean, softmax: weight on position 1", softmax.first, ">=", 0.9)
end
if relu then
  run:claim("mean, relu: solved", relu.solved, "==", relu.runs)
  run:claim("mean, relu: weight on position 1", relu.first, "<=", 0.1)
end
training.report(failures, #points)
