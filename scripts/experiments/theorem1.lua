--- Theorem 1: one softmax layer that solves the task must sink.
--
-- First the softmax witness, by hand in f64: at temperature c the largest error and
-- 1 - BOS weight fall together. Then the paper's one-layer model (figure 3 a, b),
-- several seeds, with the same two numbers recorded along training.
local lab = require "sinklab"

local opt = lab.options {
  d_model = { 16, "width", min = 4 },
  seq_len = { 16, "tokens of a sequence", min = 3 },
  trigger_pos = { 8, "position of the trigger in the figures, from 1", min = 2 },
  batch_size = { 128, "sequences a step", min = 1 },
  max_steps = { 50000, "at most so many steps", min = 0 },
  lr = { 1e-3, "learning rate" },
  stop_linf = { 5e-3, "stop when a batch's largest error is below this" },
  seed = { 0, "of the first run", min = 0 },
  seeds = { 5, "runs, with seeds from --seed on", min = 1 },
  samples = { 1000, "sequences measured", min = 2 },
  attention = { "softmax", doc = "mechanism" },
}

local run = lab.run()
local task = lab.task.trigger_mean { d_model = opt.d_model, seq_len = opt.seq_len }

-- The witness: largest error and smallest BOS weight over plain rows.
local rows = {}
local expected = { [5] = { 0.086, 0.908 }, [10] = { 6e-4, 0.9993 },
  [20] = { 3e-8, 1 - 3e-8 } }
for _, c in ipairs { 5, 10, 20 } do
  local model = lab.witness.softmax(task, c)
  local linf, sinks = lab.witness.measure(model, task, opt.samples)
  rows[#rows + 1] = { ("%d"):format(c), ("%.3g"):format(linf),
    ("%.10f"):format(sinks.heads[1].first_min), ("%.2e"):format(1 - sinks.heads[1].first_min) }
  run:add("witness-c" .. c, { sinks = sinks, eval = { samples = opt.samples,
    linf = linf } })
  if opt.seq_len == 16 then
    run:claim(("witness, c = %d: largest error"):format(c), linf, "<=",
      expected[c][1] * 1.1)
    run:claim(("witness, c = %d: smallest BOS weight"):format(c), sinks.heads[1].first_min, ">=",
      expected[c][2] - 0.1 * (1 - expected[c][2]))
  end
end
print "\nThe softmax witness (f64)"
run:table({ "c", "largest error", "smallest BOS weight", "1 - that" }, rows)

-- Training.
local curves, table_rows = {}, {}
for i = 1, opt.seeds do
  local seed = opt.seed + i - 1
  local label = ("%s-seed%d"):format(opt.attention, seed)
  local model = lab.model.attention_only { task = task,
    attention = { map = opt.attention, scale = 1 }, init = lab.init.normal(0.02),
    seed = seed }
  local fixed = task:batch { n = 512, seed = 1 }
  local curve = { x = {}, y = {}, label = "seed " .. seed }
  local log = lab.train(model, task, {
    optimizer = lab.optim.adam { lr = opt.lr, betas = { 0.9, 0.95 } },
    batch = opt.batch_size, steps = opt.max_steps, seed = seed, eval = 4096,
    stop = { linf = opt.stop_linf }, label = label, log_every = 20,
    on_log = function(entry)
      -- The same fixed sequences each time: error and sink of one model state.
      local linf = lab.max_abs_error(model:forward(fixed.x), fixed.y):item()
      local first = lab.sinks(model, fixed, { maps = false }).first.min
      entry.error, entry.bos_gap = linf, 1 - first
      curve.x[#curve.x + 1], curve.y[#curve.y + 1] = entry.bos_gap, linf
    end })
  local sinks = lab.sinks(model, task:batch { n = opt.samples,
    trigger = opt.trigger_pos })
  run:add(label, { train = log, sinks = sinks })
  local h = sinks.heads[1]
  table_rows[i] = { tostring(seed), tostring(log.steps), log.stopped_by,
    ("%.4f"):format(log.linf), ("%.4f"):format(log.eval.linf),
    ("%.5f"):format(h.first_mean), ("%.5f"):format(h.first_min),
    ("%.1e"):format(h.first_std) }
  curves[i] = curve
  run:claim(label .. ": the task is learnt", log.linf, "<", opt.stop_linf)
  run:claim(label .. ": mean BOS weight on plain rows", h.first_mean, ">=", 0.999)
  -- A run that a lucky batch stops early has a little less: 0.9987 was the least of
  -- twenty seeds.
  run:claim(label .. ": smallest BOS weight", h.first_min, ">=", 0.998)
  run:claim(label .. ": its standard deviation", h.first_std, "<=", 0.001)
  if i == 1 then
    run:weights(label, model)
    run:figure("figure3ab", lab.plot.panels({
      lab.plot.mean_and_std(sinks, { letters = { "a", "b" } }),
    }, { columns = 2, title = opt.attention .. ", 1 layer, 1 head",
      caption = ("attention weight, %d samples"):format(opt.samples) }))
  end
end
print(("\n%s, one layer, one head"):format(opt.attention))
run:table({ "seed", "steps", "stopped by", "error, last batch", "error, 4096 fresh",
  "BOS mean", "BOS min", "BOS std" }, table_rows)
run:figure("error-and-sink", lab.plot.lines(curves, { xlog = true, ylog = true,
  title = "The error and the missing sink fall together",
  xlabel = "1 - mean BOS weight on plain rows", ylabel = "largest error",
  caption = "512 fixed sequences, every 20 steps" }))
