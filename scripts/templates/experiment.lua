-- @NAME@: the purpose of the experiment in one line.
--
-- The rest of this comment is what `sinklab run @NAME@.lua --help` prints above the
-- options. As it stands, two mechanisms learn the mean of the tokens so far, wanted at a
-- trigger only: softmax parks its weight on the first token in between, ReLU does not.
local lab = require "sinklab"

-- Every key is an option, --key=VALUE; its type is that of the default.
local opt = lab.options {
  attention = { default = { "softmax", "relu" },
    doc = "mechanisms to compare (sinklab plugin list)" },
  seq_len = { default = 8, doc = "tokens of a sequence", min = 4 },
  max_steps = { default = 3000, doc = "at most so many updates", min = 1 },
  lr = { default = 3e-3, doc = "learning rate", above = 0 },
  stop_max_abs_error = { default = 0.05,
    doc = "stop when the largest error of a batch is below this", min = 0 },
  samples = { default = 500, doc = "sequences to measure on", min = 1 },
  seed = { default = 0, doc = "of the parameters and the data", min = 0 },
}

-- The run directory: everything below ends up in it, and in its run.json.
local run = lab.run()

-- The task. ?lab.task at the prompt describes how to write one of your own.
local task = lab.task.trigger_mean { seq_len = opt.seq_len, d_model = 8 }

local rows, curves = {}, {}
for _, mechanism in ipairs(opt.attention) do
  local model = lab.model.attention_only {
    task = task, attention = { mechanism = mechanism, scale = 1 }, seed = opt.seed }

  local log = lab.train(model, task, {
    optimizer = lab.optim.adam { lr = opt.lr }, batch = 64, steps = opt.max_steps,
    stop = { max_abs_error = opt.stop_max_abs_error }, seed = opt.seed })

  -- Fresh sequences with the trigger at one place, so that rows can be compared.
  local batch = task:batch { n = opt.samples, trigger = opt.seq_len - 2 }
  local sinks = lab.sinks(model, batch)

  run:add(mechanism, { train = log, sinks = sinks })
  run:figure(mechanism .. "-weights", lab.plot.heads(sinks,
    { title = mechanism, samples = opt.samples }))

  rows[#rows + 1] = { mechanism, log.steps, ("%.3f"):format(log.eval.max_abs_error),
    ("%.4f"):format(sinks.first.mean) }
  local steps, losses = {}, {}
  for i, entry in ipairs(log.log) do steps[i], losses[i] = entry.step, entry.loss end
  curves[#curves + 1] = { x = steps, y = losses, label = mechanism }
end

run:figure("loss", lab.plot.lines(curves,
  { ylog = true, xlabel = "step", ylabel = "loss" }))
run:table({ "mechanism", "steps", "error", "weight on position 1" }, rows)

-- The claims. If one does not hold, sinklab ends with status 2.
for _, mechanism in ipairs(opt.attention) do
  local first = run[mechanism].sinks.first.mean
  if mechanism == "softmax" then
    run:claim("softmax sinks", first, ">=", 0.5)
  elseif mechanism == "relu" then
    run:claim("relu does not", first, "<=", 0.05)
  end
end
