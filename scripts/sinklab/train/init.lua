--- train.lua - lab.train: a model, a task and a schedule become a trained model.
local core = require "sinklab.core"
local check = require "sinklab.base.check"
local checkpoint = require "sinklab.train.checkpoint"
local optim = require "sinklab.train.optim"
local probes = require "sinklab.train.probes"
local progress = require "sinklab.base.progress"
local schedule = require "sinklab.train.schedule"
local schema = require "sinklab.base.schema"
local segments = require "sinklab.measure.segments"

local what = "lab.train"

local function record(model, task, shard, seed)
  local program, loss, max_abs_error, weight = core.record(function()
    local t = core.generator(seed, { dtype = model.dtype })
    local batch = task:sample(t, shard)
    return task.loss(model:forward(batch.x, batch.length, segments.first_key(what,
      model, batch)), batch)
  end)
  program:want(model.params.flat)
  program:loss(loss)
  return program, loss, max_abs_error, weight
end

--- How a batch is cut: the sequences of a shard, and how many groups of shards.
local function cut(o, model, task)
  -- A token keeps a number, with its gradient, for every row of the model's matrices and
  -- two for every weight of attention.
  local numbers = model.params.size / model.attention.d_model
      + 2 * model.layers * model.heads * task.seq_len
  return core.trainer_cut(o.batch, task.seq_len, model.params.size,
    2 * (model.dtype == "f64" and 8 or 4) * numbers, o.shard, o.groups)
end

--- The core's trainer for a model and a task, which the caller closes.
local function trainer_of(o, model, task, shard, groups)
  local optimizer = o.optimizer or optim.adam {}
  if not optimizer.kind then
    check.fail("%s: option 'optimizer' must be made by lab.optim "
      .. "(try lab.optim.adam { lr = 1e-3 })", what)
  end
  local program, loss, max_abs_error, weight = record(model, task, shard, o.seed)
  if o.stop.max_abs_error > 0 and not max_abs_error then
    check.fail("%s: task '%s' has no largest error for stop.max_abs_error to test", what,
      task.name)
  end
  local learning = {}
  for key, value in pairs(optimizer) do
    if key ~= "lr" then learning[key] = value end
  end
  local points = o.schedule or schedule.constant { lr = optimizer.lr }
  local trainer = core.trainer { program = program, parameters = model.params.flat,
    loss = loss, weight = weight, max_abs_error = max_abs_error, batch = o.batch,
    shard = shard, groups = groups, optimizer = learning, stop = o.stop, seed = o.seed,
    schedule = points }
  return trainer, checkpoint.new(o, { trainer = trainer, model = model, task = task,
    shard = shard, groups = groups, optimizer = learning, schedule = points })
end

--- Train until something stops it: the last state, and the log.
local function run(o, trainer, shard, line, watch, saved)
  local p, log
  if saved then p, log = saved:read() end
  if p and p.stopped then return p, log end
  log = log or {}
  local function note(p)
    local entry = { step = p.step, loss = p.loss, max_abs_error = p.max_abs_error,
      lr = p.lr, time = p.seconds }
    if watch then watch:add(entry, p.stopped) end
    log[#log + 1] = entry
    if o.on_log then o.on_log(entry) end
  end
  if not p and watch and o.steps > 0 then
    local loss, max_abs_error = trainer:evaluate(shard)
    note { step = 0, loss = loss, max_abs_error = max_abs_error, seconds = 0 }
  end
  --- The first step after this one that has an entry.
  local function next_entry(step)
    return math.min(o.steps, (step // o.log_every + 1) * o.log_every,
      watch and watch:next(step) or o.steps)
  end
  -- A signal may have come after the step of an entry and before the entry.
  local last = log[#log] and log[#log].step or 0
  if p and p.step > last and next_entry(p.step - 1) == p.step then
    if p.step >= o.steps then p.stopped = "steps" end
    note(p)
  end
  while not (p and p.stopped) do
    local until_step = next_entry(p and p.step or 0)
    repeat
      p = trainer:run(until_step, 0.25)
      line:update(p)
      if saved and not p.stopped and p.step < until_step then saved:tick(p, log) end
    until p.stopped or p.step >= until_step
    local interrupted = p.stopped == "interrupted"
    if not p.stopped and p.step >= o.steps then p.stopped = "steps" end
    if saved and interrupted then
      p.stopped = nil
      saved:write(p, log)
      p.stopped = "interrupted"
    end
    note(p)
    if saved and not p.stopped then saved:tick(p, log) end
  end
  if saved and p.stopped ~= "interrupted" and p.stopped ~= "not_finite" then
    saved:write(p, log)
  end
  line:finish(p)
  return p, log
end

local function refuse_not_finite(label, p)
  local hint = p.step == 0
      and "look at the task's numbers: a target of cross_entropy is a class "
        .. "from 0, or -100"
      or ("try a lower lr, now %g, or clip_norm"):format(p.lr)
  check.fail("%s: the loss is not finite at step %d (%s); "
    .. "the parameters are those before that step (%s)", what, p.step + 1, label, hint)
end

local stop_rows = {
  { "max_abs_error", "number", default = 0, min = 0,
    doc = "the step's batch has a largest absolute error below this" },
  { "loss", "number", default = 0, min = 0, doc = "its loss is below this" },
  { "seconds", "number", default = 0, min = 0, doc = "of training" },
  { "plateau", "integer", default = 0, min = 0, unit = "steps",
    doc = "without a gain of the mean loss of 100 steps" },
  { "plateau_delta", "number", default = 1e-3, min = 0, doc = "share that is a gain" },
}

local train = schema.func(what, {
  doc = [[Train a model on fresh batches of a task.

    A batch whose targets are all ignored is a step with a gradient of zero; it has no
    loss, so that of its entry in the log is NaN. Denormal numbers (below 1.2e-38 in
    f32, 2.2e-308 in f64) are zero in training, on every thread.]],
  args = { { "model", "model", doc = "from lab.model; its parameters change" },
    { "task", "task", doc = "from lab.task" } },
  options = {
    { "optimizer", "table", default_doc = "lab.optim.adam{}",
      doc = "it holds the learning rate" },
    { "schedule", "table", default_doc = "constant",
      doc = "points of the learning rate (lab.schedule.*)" },
    { "batch", "integer", default = 128, min = 1, max = 1 << 24,
      unit = "sequences", doc = "of a step" },
    { "steps", "integer", default = 10000, min = 0, doc = "at most so many updates" },
    { "stop", "table", default = {}, fields = stop_rows,
      doc = "tests that end the training earlier; 0 turns one off" },
    { "seed", "integer", default = 0, min = 0, doc = "of the data" },
    { "eval", "integer", default = 1024, min = 0, max = 1 << 24, unit = "sequences",
      doc = [[fresh sequences for the final loss and error, in whole shards (the result
        says how many); 0: none]] },
    { "log_every", "integer", default = 100, min = 1, unit = "steps",
      doc = "between entries of the log" },
    { "on_log", "function", doc = "(entry), called at each entry" },
    { "probes", "table", fields = probes.rows, doc = "what is measured on the way" },
    { "checkpoint", "table", fields = checkpoint.rows,
      doc = [[a file from which the same training goes on bit for bit: when it exists,
        the training begins where it was written, or is not repeated if it had ended.
        Other settings, another task or other initial parameters are refused]] },
    { "label", "string", default_doc = "the mechanism", doc = "for the progress line" },
    { "quiet", "boolean", default_doc = "what --quiet says", doc = "no progress" },
    { "profile", "boolean", default = false,
      doc = "measure where the time goes, operation by operation" },
    { "shard", "integer", min = 1, max = 1 << 24,
      default_doc = "64 or 256 tokens", unit = "sequences",
      doc = "of a replay: how a batch is cut" },
    { "groups", "integer", min = 1, max = 1 << 16,
      default_doc = "8, fewer for large models",
      doc = "of shards; each has a gradient of its own" },
  },
  returns = [[{ steps, stopped_by, loss, max_abs_error, wall_s, steps_per_s, eval = {
    samples, max_abs_error, mse or loss }, log = { { step, loss, max_abs_error, lr,
    time }, ... } }; with `profile` also profile = { steps, workers, nodes = { { op,
    forward, backward }, ... }, replay, busy, gather, update }: seconds of the operations
    and of all shards (busy) summed over the threads, of the shards until the last thread
    is done (replay), of summing gradients and of the optimizer]],
  errors = [[a loss that is not finite: the parameters are those before that step; a
    checkpoint of another training, or one that cannot be read or written]],
  example = [[
    local task = lab.task.trigger_mean {}
    local model = lab.model.attention_only { task = task }
    local log = lab.train(model, task, { steps = 20, batch = 32, eval = 64,
      optimizer = lab.optim.adam { lr = 1e-3 }, stop = { max_abs_error = 5e-3 } })
    print(log.steps, log.stopped_by, log.eval.mse)]],
}, function(model, task, o)
  local shard, groups = cut(o, model, task)
  local trainer <close>, saved = trainer_of(o, model, task, shard, groups)
  if o.profile then trainer:profile(true) end
  local label = o.label or model.mechanism_text
  local line = progress.new { label = label, steps = o.steps, quiet = o.quiet }
  local p, log = run(o, trainer, shard, line, probes.new(o.probes, model, task),
    saved)
  if p.stopped == "not_finite" then refuse_not_finite(label, p) end
  local result = { steps = p.step, stopped_by = p.stopped, loss = p.loss,
    max_abs_error = p.max_abs_error, wall_s = p.seconds, log = log,
    steps_per_s = p.seconds > 0 and p.step / p.seconds or 0,
    profile = o.profile and trainer:profile() or nil }
  if p.stopped == "interrupted" then
    result.interrupted = true
    core.pending_interrupt(result)
  elseif o.eval > 0 then
    local samples = math.max(shard, o.eval // shard * shard)
    local loss, max_abs_error = trainer:evaluate(samples)
    result.eval = { samples = samples, max_abs_error = max_abs_error,
      [task.loss_name] = loss }
  end
  return result
end)

return train
