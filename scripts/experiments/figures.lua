--- Every figure of the paper that trains a model: 3 to 8, in one run.
--
-- Figure 3: one layer, softmax and ReLU, mean and standard deviation. Figures 4 and 5:
-- two layers of two heads, softmax (one sequence, and the mean over many). Figures 6 and
-- 7: four layers of four heads, softmax. Figure 8: the same with ReLU. Figures 1 and 2
-- show heads of Gemma 7B and Llama 2 7B, which are not trained here.
local lab = require "sinklab"

local opt = lab.options {
  d_model = { default = 16, doc = "width", min = 4 },
  seq_len = { default = 16, doc = "tokens of a sequence", min = 3 },
  trigger_pos = { default = 8, doc = "position of the trigger, from 1", min = 2 },
  batch_size = { default = 128, doc = "sequences a step", min = 1 },
  betas = { default = { 0.9, 0.95 }, doc = "decay of Adam's running means" },
  max_steps = { default = 50000, doc = "at most so many steps", min = 0 },
  stop_max_abs_error = { default = 5e-3,
    doc = "stop when a batch's largest error is below this", min = 0 },
  seed = { default = 0, doc = "of parameters and data", min = 0 },
  samples = { default = 1000, doc = "sequences measured", min = 2 },
  quick = { default = false, doc = "figure 3 alone" },
}

local single = lab.task.trigger_mean { d_model = opt.d_model, seq_len = opt.seq_len }
single:batch { n = 1, trigger = opt.trigger_pos } -- refused before anything is trained
local run = lab.run()
local residual = lab.task.trigger_mean { d_model = opt.d_model, seq_len = opt.seq_len,
  residual = true }
local rows = {}

--- Train one configuration and measure it; n samples and a single one.
local function trained(mechanism, layers, heads)
  local task = layers > 1 and residual or single
  local label = ("%s-%dl%dh"):format(mechanism, layers, heads)
  local model = lab.model.attention_only { task = task, layers = layers,
    heads = heads, residual = layers > 1,
    attention = { mechanism = mechanism, scale = 1 }, init = lab.init.normal(0.02),
    seed = opt.seed }
  local log = lab.train(model, task, {
    optimizer = lab.optim.adam { lr = layers > 1 and 1e-4 or 1e-3,
      betas = opt.betas },
    batch = opt.batch_size, steps = opt.max_steps, seed = opt.seed, eval = 4096,
    stop = { max_abs_error = opt.stop_max_abs_error }, label = label })
  local function measure(n)
    return lab.sinks(model, task:batch { n = n, trigger = opt.trigger_pos })
  end
  local sinks = measure(opt.samples)
  run:add(label, { train = log, sinks = sinks })
  rows[#rows + 1] = { label, tostring(log.steps), ("%.1f"):format(log.wall_s),
    ("%.4f"):format(log.max_abs_error), ("%.4f"):format(log.eval.max_abs_error),
    ("%.4f"):format(sinks.first.min), ("%.4f"):format(sinks.first.max) }
  run:claim(label .. ": the task is learnt", log.max_abs_error, "<",
    opt.stop_max_abs_error)
  if mechanism == "softmax" then
    run:claim(label .. ": some head sinks", sinks.first.max, ">=", 0.98)
  else
    run:claim(label .. ": no head sinks", sinks.first.max, "<=", 0.02)
  end
  return sinks, measure(1), label
end

local function heads(name, sinks, title)
  run:figure(name, lab.plot.heads(sinks.mean, { title = title,
    quantity = "attention weight", samples = sinks.samples }))
end

local softmax, relu = trained("softmax", 1, 1), trained("relu", 1, 1)
local a, b = lab.plot.mean_and_std(softmax, { title = "softmax", letters = { "a", "b" } })
local c, d = lab.plot.mean_and_std(relu, { title = "ReLU", letters = { "c", "d" } })
run:figure("figure3", lab.plot.panels({ a, b, c, d }, { columns = 4,
  title = "One layer, one head",
  caption = ("attention weight, %d samples"):format(opt.samples) }))

if not opt.quick then
  local many, one = trained("softmax", 2, 2)
  heads("figure4", one, "Softmax, 2 layers of 2 heads, one sequence")
  heads("figure5", many, "Softmax, 2 layers of 2 heads")
  trained("relu", 2, 2)
  many, one = trained("softmax", 4, 4)
  heads("figure6", one, "Softmax, 4 layers of 4 heads, one sequence")
  heads("figure7", many, "Softmax, 4 layers of 4 heads")
  many = trained("relu", 4, 4)
  heads("figure8", many, "ReLU, 4 layers of 4 heads")
end

print ""
run:table({ "model", "steps", "seconds", "error, last batch", "error, 4096 fresh",
  "least BOS weight of a head", "largest" }, rows)
