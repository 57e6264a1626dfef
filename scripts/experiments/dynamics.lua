--- Dynamics: when does a sink form, and what does the first token's value do?
--
-- Trains the one-layer model of theorem 1 with several mechanisms and seeds, measures
-- its sinks on the way, and draws loss, weight on position 1 (non-trigger rows), norm of
-- the first token's value after W_O, and its contribution to the output against the
-- step, as means with the range over seeds. A sink costs nothing only when its value is
-- zero: weight without contribution.
local lab = require "sinklab"

local opt = lab.options {
  attention = { default = { "softmax", "softmax1", "relu", "softpick" },
    quick = { "softmax", "softmax1" },
    doc = "mechanisms to train" },
  seeds = { default = 3, quick = 1, doc = "seeds of each", min = 1 },
  max_steps = { default = 1500, quick = 100, doc = "steps of each training", min = 1 },
  every = { default = 25, doc = "steps between measurements", min = 1 },
  samples = { default = 128, doc = "sequences measured", min = 1 },
  num_layers = { default = 1, doc = "layers", min = 1 },
  num_heads = { default = 1,
    doc = "heads of every layer, each as wide as the model", min = 1 },
  d_model = { default = 16, doc = "width", min = 4 },
  seq_len = { default = 16, doc = "tokens of a sequence", min = 3 },
  batch_size = { default = 128, doc = "sequences a step", min = 1 },
  lr = { default = 1e-3, doc = "learning rate", min = 0 },
  betas = { default = { 0.9, 0.95 }, doc = "decay of Adam's running means" },
  quick = { default = false, doc = "two mechanisms, one seed, fewer steps" },
}

local mechanisms, seeds, steps = opt.attention, opt.seeds, opt.max_steps
local residual = opt.num_layers > 1
local run = lab.run()
local task = lab.task.trigger_mean { d_model = opt.d_model, seq_len = opt.seq_len,
  residual = residual }

--- One training, with what was measured on the way.
local function trained(mechanism, seed)
  local label = mechanism .. "-" .. seed
  local model = lab.model.attention_only { task = task, layers = opt.num_layers,
    heads = opt.num_heads, residual = residual,
    attention = { mechanism = mechanism, scale = 1 }, init = lab.init.normal(0.02),
    seed = seed }
  local log = lab.train(model, task, { label = label, seed = seed, steps = steps,
    optimizer = lab.optim.adam { lr = opt.lr, betas = opt.betas },
    batch = opt.batch_size, log_every = opt.every,
    probes = { sinks = { every = opt.every, samples = opt.samples } } })
  run:add(label, { train = log })
  return log
end

local logs = {}
for _, mechanism in ipairs(mechanisms) do
  logs[mechanism] = {}
  for seed = 0, seeds - 1 do
    table.insert(logs[mechanism], trained(mechanism, seed))
  end
end

--- A panel of one column of the logs.
local function panel(title, key, more)
  local list = {}
  for i, mechanism in ipairs(mechanisms) do
    list[i] = { label = mechanism, runs = logs[mechanism], key = key }
  end
  local out = { title = title, series = list, xlabel = "step" }
  for name, value in pairs(more or {}) do out[name] = value end
  return out
end

run:figure("dynamics", lab.plot.panels({
  panel("loss", "loss", { scale = "log", ylabel = "batch loss" }),
  panel("weight on position 1", "sinks_first_max", { ymin = 0, ymax = 1,
    ylabel = "A[i,1], non-trigger rows" }),
  panel("value of position 1", "sinks_value_norm_mean", { ymin = 0,
    ylabel = "norm of W_O v" }),
  panel("contribution of position 1", "sinks_contribution_max", { ymin = 0,
    ylabel = "norm of A[i,1] W_O v" }),
}, { columns = 2, title = ("Trigger-conditional mean, %d layer%s of %d head%s, %d seed%s")
  :format(opt.num_layers, residual and "s" or "", opt.num_heads,
    opt.num_heads > 1 and "s" or "", seeds, seeds > 1 and "s" or "") }))

--- The first measured step from which a column stays on one side of a bound.
local function settles(log, key, holds)
  local step
  for _, entry in ipairs(log.log) do
    if entry[key] then step = holds(entry[key]) and (step or entry.step) or nil end
  end
  return step
end

local rows = {}
for _, mechanism in ipairs(mechanisms) do
  for i, log in ipairs(logs[mechanism]) do
    local last = log.log[#log.log]
    local sink = settles(log, "sinks_first_max", function(x) return x > 0.5 end)
    rows[#rows + 1] = { mechanism, tostring(i - 1), ("%.1e"):format(last.loss),
      sink and tostring(sink) or "never", ("%.4f"):format(last.sinks_first_max),
      ("%.4f"):format(last.sinks_value_norm_mean),
      ("%.4f"):format(last.sinks_contribution_max), ("%.1f"):format(log.wall_s) }
  end
end
print ""
run:table({ "mechanism", "seed", "loss", "sinks from step", "weight", "value norm",
  "contribution", "seconds" }, rows)
