--- Theorem 2: with layers and residuals, some softmax layer sinks; ReLU need not.
--
-- Trains the paper's model (arXiv 2603.11487, section 3 and figures 4 to 8) with each
-- mechanism until one batch's largest error is below stop_linf, then measures the
-- weight on position 1. Figures 4 and 5: the defaults. Figures 6 to 8: --num_layers=4
-- --num_heads=4.
local lab = require "sinklab"

local opt = lab.options {
  num_layers = { 2, "layers", min = 1 },
  num_heads = { 2, "heads of every layer, each as wide as the model", min = 1 },
  d_model = { 16, "width", min = 4 },
  seq_len = { 16, "tokens of a sequence", min = 3 },
  trigger_pos = { 8, "position of the trigger in the figures, from 1", min = 2 },
  batch_size = { 128, "sequences a step", min = 1 },
  max_steps = { 50000, "at most so many steps", min = 0 },
  lr = { 1e-4, "learning rate" },
  stop_linf = { 5e-3, "stop when a batch's largest error is below this" },
  seed = { 0, "of parameters and data", min = 0 },
  samples = { 1000, "sequences measured", min = 2 },
  attention = { { "softmax", "relu" }, "mechanisms to train" },
  dtype = { "f32", "precision", choices = { "f32", "f64" } },
}

local run = lab.run()
local task = lab.task.trigger_mean { d_model = opt.d_model, seq_len = opt.seq_len,
  residual = true }

-- What the paper says of a mechanism's heads. Others are measured without a claim.
local claims = {
  softmax = { "softmax: some head sinks", "max", ">=", 0.98 },
  relu = { "relu: no head sinks", "max", "<=", 0.02 },
}

for _, mechanism in ipairs(opt.attention) do
  local model = lab.model.attention_only { task = task, layers = opt.num_layers,
    heads = opt.num_heads, residual = true,
    attention = { map = mechanism, scale = 1 }, init = lab.init.normal(0.02),
    seed = opt.seed, dtype = opt.dtype }
  local log = lab.train(model, task, {
    optimizer = lab.optim.adam { lr = opt.lr, betas = { 0.9, 0.95 } },
    batch = opt.batch_size, steps = opt.max_steps, seed = opt.seed,
    stop = { linf = opt.stop_linf }, eval = 4096, label = mechanism })
  local sinks = lab.sinks(model, task:batch { n = opt.samples,
    trigger = opt.trigger_pos, dtype = opt.dtype })
  run:add(mechanism, { train = log, sinks = sinks })
  run:weights(mechanism, model)
  run:array(mechanism .. "-mean", sinks.mean)
  run:array(mechanism .. "-std", sinks.std)
  run:figure(mechanism .. "-heads", lab.plot.heads(sinks.mean, { title = mechanism,
    quantity = "attention weight", samples = opt.samples }))

  print(("\n%s: %d steps (stopped by %s) in %.1f s, largest error %.4f on the last batch, %.4f on %d fresh sequences")
    :format(mechanism, log.steps, log.stopped_by, log.wall_s, log.linf, log.eval.linf,
      log.eval.samples))
  print(sinks)
  run:claim(mechanism .. ": the task is learnt", log.linf, "<", opt.stop_linf)
  if claims[mechanism] then
    local text, which, op, bound = table.unpack(claims[mechanism])
    run:claim(text, sinks.first[which], op, bound)
  end
end
