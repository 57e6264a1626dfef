--- Theorem 3: ReLU attention solves the task with no sink at all.
--
-- First the witness, by hand in f64: its worst error (lab.certify) is at rounding level,
-- its BOS weight exactly 0, with triggers at 3 and later (the released code) and at 2 and
-- later (the theory). Then the trained one-layer ReLU model (figure 3 c, d), several
-- seeds.
local lab = require "sinklab"

local opt = lab.options {
  d_model = { default = 16, doc = "width", min = 4 },
  seq_len = { default = 16, doc = "tokens of a sequence", min = 3 },
  trigger_pos = { default = 8,
    doc = "position of the trigger in the figures, from 1", min = 2 },
  batch_size = { default = 128, doc = "sequences a step", min = 1 },
  max_steps = { default = 50000, doc = "at most so many steps", min = 0 },
  lr = { default = 1e-3, doc = "learning rate", min = 0 },
  betas = { default = { 0.9, 0.95 }, doc = "decay of Adam's running means" },
  stop_max_abs_error = { default = 5e-3,
    doc = "stop when a batch's largest error is below this", min = 0 },
  seed = { default = 0, doc = "of the first run", min = 0 },
  seeds = { default = 5, quick = 1, doc = "runs, with seeds from --seed on", min = 1 },
  samples = { default = 1000, doc = "sequences measured", min = 2 },
  attention = { default = "relu", doc = "mechanism that is trained" },
  starts = { default = 8,
    doc = "of the search for the worst error, at each trigger", min = 2 },
  quick = { default = false, doc = "one seed" },
}
local seeds = opt.seeds

if not lab.mechanism(opt.attention).has_weights then
  error(("--attention=%s: it has no weights to measure"):format(opt.attention), 0)
end

local task = lab.task.trigger_mean { d_model = opt.d_model, seq_len = opt.seq_len }
task:batch { n = 1, trigger = opt.trigger_pos } -- refused before anything is trained
local run = lab.run()

-- The witness.
local rows = {}
for first = 3, 2, -1 do
  local asked = lab.task.trigger_mean { d_model = opt.d_model, seq_len = opt.seq_len,
    trigger = { first, opt.seq_len } }
  local model = lab.witness.relu(asked)
  local max_abs_error, sinks = lab.witness.measure(model, asked, opt.samples)
  local certificate = lab.certify(model, asked, { starts = opt.starts,
    samples = opt.samples })
  local what = first == 3 and "witness" or "witness, triggers from 2"
  run:add(first == 3 and "witness" or "witness-from-2", { sinks = sinks,
    worst = certificate.worst, eval = { samples = opt.samples,
    max_abs_error = max_abs_error } })
  rows[#rows + 1] = { tostring(first), ("%.2e"):format(max_abs_error),
    ("%.2e"):format(certificate.worst), ("%d"):format(certificate.starts),
    ("%.17g"):format(sinks.heads[1].first_mean),
    ("%.17g"):format(sinks.heads[1].row_mass) }
  run:claim(what .. ": worst error found", certificate.worst, "<=", 1e-15)
  run:claim(what .. ": BOS weight on plain rows", sinks.heads[1].first_mean, "==", 0)
end
print "\nThe ReLU witness (f64)"
run:table({ "first trigger", "error, sample", "worst error", "starts", "BOS mean",
  "row mass" }, rows)

local table_rows = {}
for i = 1, seeds do
  local seed = opt.seed + i - 1
  local label = ("%s-seed%d"):format(opt.attention, seed)
  local trained = lab.model.attention_only { task = task,
    attention = { mechanism = opt.attention, scale = 1 }, init = lab.init.normal(0.02),
    seed = seed }
  local log = lab.train(trained, task, {
    optimizer = lab.optim.adam { lr = opt.lr, betas = opt.betas },
    batch = opt.batch_size, steps = opt.max_steps, seed = seed, eval = 4096,
    stop = { max_abs_error = opt.stop_max_abs_error }, label = label })
  local found = lab.sinks(trained, task:batch { n = opt.samples,
    trigger = opt.trigger_pos })
  local worst = lab.certify(trained, task, { starts = opt.starts }).worst
  run:add(label, { train = log, sinks = found, worst = worst })
  local h = found.heads[1]
  table_rows[i] = { tostring(seed), tostring(log.steps), log.stopped_by,
    ("%.4f"):format(log.max_abs_error), ("%.4f"):format(log.eval.max_abs_error),
    ("%.4f"):format(worst),
    ("%.5f"):format(h.first_mean), ("%.5f"):format(h.row_mass),
    ("%.4f"):format(h.trigger_first) }
  run:claim(label .. ": the task is learnt", log.max_abs_error, "<",
    opt.stop_max_abs_error)
  run:claim(label .. ": mean BOS weight on plain rows", h.first_mean, "<=", 0.001)
  if i == 1 then
    run:weights(label, trained)
    run:figure("figure3cd", lab.plot.panels({
      lab.plot.mean_and_std(found, { letters = { "c", "d" } }),
    }, { columns = 2, title = opt.attention .. ", 1 layer, 1 head",
      caption = ("attention weight, %d samples"):format(opt.samples) }))
  end
end
print(("\n%s, one layer, one head"):format(opt.attention))
run:table({ "seed", "steps", "stopped by", "error, last batch", "error, 4096 fresh",
  "worst error", "BOS mean", "row mass", "BOS, trigger rows" }, table_rows)
