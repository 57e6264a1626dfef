--- Conditions of a sink: one factor at a time around the paper's setting.
--
-- The base is one layer of one head, d_model 16, 16 tokens, residual, no norm, no
-- positions, Adam, N(0, 0.02), with softmax and with ReLU. Each row of the
-- table changes one thing. Solved: largest error of fresh sequences at most --solved. The
-- weight on position 1 is that of the head with most of it. Results are kept one by one
-- in the folder trainings: with the same --out=DIR an interrupted run goes on.
local lab = require "sinklab"
local training = require "experiments.lib.training"

-- Factors: name, and the values beside the base's, as fields of a training.
local factors = {
  { "depth", { { "2 layers", layers = 2 }, { "3 layers", layers = 3 } } },
  { "heads", { { "2 heads", heads = 2 }, { "4 heads", heads = 4 } } },
  { "width", { { "d_model 8", d_model = 8 }, { "d_model 32", d_model = 32 } } },
  { "length", { { "8 tokens", seq_len = 8 }, { "32 tokens", seq_len = 32 } } },
  { "lr", { { "lr 3e-4", lr = 3e-4 }, { "lr 3e-3", lr = 3e-3 },
    { "lr 1e-2", lr = 1e-2 } } },
  { "optimizer", { { "AdamW", optimizer = "adamw" },
    { "SGD, lr 1", optimizer = "sgd", momentum = 0.9, lr = 1.0 } } },
  { "decay", { { "AdamW, decay 0.01", optimizer = "adamw", weight_decay = 0.01 },
    { "AdamW, decay 1", optimizer = "adamw", weight_decay = 1.0 } } },
  { "init", { { "init 0.005", init = 0.005 }, { "init 0.1", init = 0.1 } } },
  { "positions", { { "learned", positions = "learned" },
    { "sinusoidal", positions = "sinusoidal" }, { "rotary", positions = "rotary" },
    { "ALiBi", positions = "alibi" } } },
  { "default", { { "default 0.01", default = 0.01 }, { "default 0.1", default = 0.1 },
    { "default 0.5", default = 0.5 } } },
  { "norm", { { "layer norm before", norm = "layer" },
    { "layer norm after", norm = "layer", norm_place = "post" },
    { "RMS norm before", norm = "rms" } } },
}

local names = {}
for i, factor in ipairs(factors) do names[i] = factor[1] end

local opt = lab.options {
  factors = { default = names, quick = { "heads" }, doc = "factors", choices = names },
  attention = { default = { "softmax", "relu" }, doc = "mechanisms" },
  max_steps = { default = 4000, doc = "at most so many steps", min = 0 },
  batch_size = { default = 64, doc = "sequences a step", min = 1 },
  lr = { default = 1e-3, doc = "learning rate of the base", min = 0 },
  betas = { default = { 0.9, 0.95 }, doc = "decay of Adam's running means" },
  stop_max_abs_error = { default = 5e-3,
    doc = "stop when a batch's largest error is below this", min = 0 },
  solved = { default = 0.1, doc = "largest error of a solved task", above = 0 },
  seed = { default = 0, doc = "of the first run", min = 0 },
  seeds = { default = 2, quick = 1, doc = "runs of each, with seeds from --seed on",
    min = 1 },
  quick = { default = false, doc = "one factor, one seed" },
}
local chosen = {}
for _, name in ipairs(opt.factors) do chosen[name] = true end
local seeds = opt.seeds
for _, name in ipairs(opt.attention) do lab.mechanism(name) end
local run = lab.run()

--- Rows of the table: the base, then each value of each factor.
local settings = { { factor = "base", label = "the paper's" } }
for _, factor in ipairs(factors) do
  for _, value in ipairs(chosen[factor[1]] and factor[2] or {}) do
    local s = { factor = factor[1], label = value[1], change = {} }
    for key, x in pairs(value) do
      if key ~= 1 then s.change[key] = x end
    end
    settings[#settings + 1] = s
  end
end

local points = {}
for _, s in ipairs(settings) do
  for _, mechanism in ipairs(opt.attention) do
    for i = 1, seeds do
      local p = { task = "mean", mechanism = mechanism, seed = opt.seed + i - 1,
        lr = opt.lr, betas = opt.betas, steps = opt.max_steps,
        batch = opt.batch_size, stop = opt.stop_max_abs_error }
      for key, value in pairs(s.change or {}) do p[key] = value end
      points[#points + 1] = p
    end
  end
end
local results, failures = training.all(run, points, "conditions")
if not results then return end

--- Sums over the runs of a cell, as means.
local function cell_of(list)
  local c = { runs = #list, solved = 0, error = 0, steps = 0, first = 0,
    contribution = 0 }
  for _, r in ipairs(list) do
    c.solved = c.solved + (r.error <= opt.solved and 1 or 0)
    c.error = math.max(c.error, r.error)
    for _, key in ipairs { "steps", "first", "contribution" } do
      c[key] = c[key] + (r[key] or 0 / 0) / #list
    end
  end
  return c
end

local rows, bars, at = {}, {}, 0
for m, mechanism in ipairs(opt.attention) do
  bars[m], rows[m] = { label = mechanism, y = {} }, {}
end
for i, s in ipairs(settings) do
  s.results = {}
  for m, mechanism in ipairs(opt.attention) do
    local list = {}
    for _ = 1, seeds do
      at = at + 1
      list[#list + 1] = results[at] or nil
    end
    local c = cell_of(list)
    s.results[mechanism], bars[m].y[i] = c, c.first
    rows[m][i] = { s.factor, s.label, ("%d/%d"):format(c.solved, c.runs),
      ("%.0f"):format(c.steps), ("%.3f"):format(c.error), ("%.4f"):format(c.first),
      ("%.4f"):format(c.contribution) }
  end
end
run:add("conditions", { settings = settings })
for m, mechanism in ipairs(opt.attention) do
  print(("\n%s, %d seed%s: mean steps, largest error, "
    .. "means of the head with most BOS weight")
    :format(mechanism, seeds, seeds == 1 and "" or "s"))
  run:table({ "factor", "value", "solved", "steps", "error", "BOS weight",
    "contribution" }, rows[m])
end
local labels = {}
for i, s in ipairs(settings) do labels[i] = s.label end
run:figure("conditions", lab.plot.bars(labels, bars, { ymin = 0, aspect = 3,
  title = "Weight on position 1 under other conditions", ylabel = "weight on position 1",
  caption = ("mean over plain rows and %d seed%s; "
    .. "the tables say which settings solve the task")
    :format(seeds, seeds == 1 and "" or "s") }))

-- Wherever the task is solved, softmax sinks and ReLU does not.
for _, mechanism in ipairs { "softmax", "relu" } do
  local low, high = math.huge, -math.huge
  for _, s in ipairs(settings) do
    local r = s.results[mechanism]
    if r and r.runs > 0 and r.solved == r.runs then
      low, high = math.min(low, r.first), math.max(high, r.first)
    end
  end
  if mechanism == "softmax" and high >= 0 then
    run:claim("softmax: least weight on position 1 where the task is solved", low, ">=",
      0.5)
  elseif mechanism == "relu" and high >= 0 then
    run:claim("relu: most weight on position 1 where the task is solved", high, "<=", 0.1)
  end
end
training.report(failures, #points)
