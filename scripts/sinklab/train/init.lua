--- train.lua - lab.train: a model, a task and a schedule become a trained model.
local core = require "sinklab.core"
local check = require "sinklab.base.check"
local divisor = require "sinklab.base.divisor"
local optim = require "sinklab.train.optim"
local probes = require "sinklab.train.probes"
local progress = require "sinklab.base.progress"
local segments = require "sinklab.measure.segments"

-- What a shard keeps should stay in this part of the second-level cache.
local CACHE_BYTES = 256 << 10
-- Gradients are summed over this many groups, whatever the number of threads, so that
-- the result does not depend on it.
local GROUPS = 8
-- A gradient beyond the caches costs as much as the products of some dozen tokens:
-- models with more parameters than this get groups of at least so many tokens.
local LARGE, LARGE_TOKENS = 1 << 20, 512

local rules = {
  optimizer = { "table" },
  schedule = { "table" },
  batch = { "integer", default = 128, min = 1 },
  steps = { "integer", default = 10000, min = 0 },
  stop = { "table", default = {} },
  seed = { "integer", default = 0, min = 0 },
  shard = { "integer", min = 1 },
  groups = { "integer", min = 1 },
  eval = { "integer", default = 1024, min = 0 },
  log_every = { "integer", default = 100, min = 1 },
  on_log = { "function" },
  probes = { "table" },
  label = { "string" },
  quiet = { "boolean" },
  profile = { "boolean", default = false },
}

local stop_rules = {
  max_abs_error = { "number", default = 0, min = 0 },
  loss = { "number", default = 0, min = 0 },
  seconds = { "number", default = 0, min = 0 },
  plateau = { "integer", default = 0, min = 0 },
  plateau_delta = { "number", default = 1e-3, min = 0 },
}

--- About how many tokens a shard should have. A token keeps a number, with its gradient,
-- for every row of the model's matrices and two for every weight of attention. Few tokens
-- per replay cost little as long as there are 64; where not even 16 fit, the cache is
-- lost anyway and long shards make the best products (measured with sinklab_bench).
local function shard_tokens(model, task)
  local numbers = model.params.size / model.attention.d_model
      + 2 * model.layers * model.heads * task.seq_len
  local fit = CACHE_BYTES / (2 * (model.dtype == "f64" and 8 or 4) * numbers)
  return (fit >= 256 or fit < 16) and 256 or 64
end

local function record(model, task, shard, seed)
  local program, loss, max_abs_error, weight = core.record(function()
    local t = core.generator(seed, { dtype = model.dtype })
    local batch = task:sample(t, shard)
    return task.loss(model:forward(batch.x, batch.length, segments.first_key("lab.train",
      model, batch)), batch)
  end)
  program:want(model.params.flat)
  program:loss(loss)
  return program, loss, max_abs_error, weight
end

--- The optimizer that is asked for; its default.
local function optimizer_of(what, given)
  local optimizer = type(given) == "table" and given.optimizer or nil
  if optimizer and (type(optimizer) ~= "table" or not optimizer.kind) then
    check.fail("%s: option 'optimizer' must be made by lab.optim "
      .. "(try lab.optim.adam { lr = 1e-3 })", what)
  end
  return optimizer or optim.optim.adam {}
end

--- How a batch is cut: the sequences of a shard, and how many groups of shards.
local function cut(what, o, model, task)
  local most = GROUPS
  if model.params.size > LARGE then
    most = math.max(2, math.min(most, o.batch * task.seq_len // LARGE_TOKENS))
  end
  local groups = o.groups or divisor(o.batch, most)
  if o.batch % groups ~= 0 then
    check.fail("%s: a batch of %d cannot be cut into %d groups", what, o.batch, groups)
  end
  local per_group = o.batch // groups
  local shard = o.shard or divisor(per_group,
    math.max(1, shard_tokens(model, task) // task.seq_len))
  if per_group % shard ~= 0 then
    check.fail("%s: a group of %d sequences cannot be cut into shards of %d", what,
      per_group, shard)
  end
  return shard, groups
end

--- The core's trainer for a model and a task, which the caller closes.
local function trainer_of(what, o, optimizer, model, task, shard, groups)
  local stop = check.options(what .. ": stop", o.stop, stop_rules)
  local program, loss, max_abs_error, weight = record(model, task, shard, o.seed)
  if stop.max_abs_error > 0 and not max_abs_error then
    check.fail("%s: task '%s' has no largest error for stop.max_abs_error to test", what,
      task.name)
  end
  local learning = {}
  for key, value in pairs(optimizer) do
    if key ~= "lr" then learning[key] = value end
  end
  return core.trainer { program = program, parameters = model.params.flat, loss = loss,
    weight = weight, max_abs_error = max_abs_error, batch = o.batch, shard = shard,
    groups = groups,
    optimizer = learning, stop = stop, seed = o.seed,
    schedule = o.schedule or core.schedule("constant", { lr = optimizer.lr }) }
end

--- Train until something stops it: the last state, and the log.
local function run(o, trainer, shard, line, watch)
  local log = {}
  local function note(p)
    local entry = { step = p.step, loss = p.loss, max_abs_error = p.max_abs_error,
      lr = p.lr,
      time = p.seconds }
    if watch then watch:add(entry, p.stopped) end
    log[#log + 1] = entry
    if o.on_log then o.on_log(entry) end
  end
  if watch and o.steps > 0 then
    local loss, max_abs_error = trainer:evaluate(shard)
    note { step = 0, loss = loss, max_abs_error = max_abs_error, seconds = 0 }
  end
  local p
  repeat
    local step = p and p.step or 0
    local until_step = math.min(o.steps, (step // o.log_every + 1) * o.log_every,
      watch and watch:next(step) or o.steps)
    repeat
      p = trainer:run(until_step, 0.25)
      line:update(p)
    until p.stopped or p.step >= until_step
    if not p.stopped and p.step >= o.steps then p.stopped = "steps" end
    note(p)
  until p.stopped
  line:finish(p)
  return p, log
end

local function refuse_not_finite(what, label, p)
  local hint = p.step == 0
      and "look at the task's numbers: a target of cross_entropy is a class "
        .. "from 0, or -100"
      or ("try a lower lr, now %g, or clip_norm"):format(p.lr)
  check.fail("%s: the loss is not finite at step %d (%s); "
    .. "the parameters are those before that step (%s)", what, p.step + 1, label, hint)
end

--- Train a model on fresh batches of a task.
-- @param model      from lab.model; its parameters change
-- @param task       from lab.task
-- @param optimizer  default lab.optim.adam{}; it holds the learning rate
-- @param schedule   points of the learning rate (lab.schedule.*); default constant
-- @param batch      sequences a step, default 128
-- @param steps      at most so many updates, default 10000
-- @param stop       ends earlier: { max_abs_error = largest absolute error of the step's
--                   batch below this, loss = its loss below this, seconds =, plateau = so
--                   many steps without a gain, plateau_delta = what a gain is (1e-3) }
-- @param seed       of the data, default 0
-- @param eval       fresh sequences for the final loss and error, default 1024, in whole
--                   shards (the result says how many); 0: none
-- @param log_every  steps between entries of the log, default 100
-- @param on_log     function (entry) called at each entry
-- @param probes     { sinks = { every = 100 steps, samples = 64 fresh sequences, seed = 1
--                   of them, batch = to measure on instead, heads = false: columns of
--                   each head too } }: lab.sinks on the way, from step 0, as sinks_* of
--                   the log's entries: first (weight on position 1), first_over_rowsum,
--                   row_mass, contribution, value_norm and rate, _mean and _max over
--                   heads
-- @param label      for the progress line, default the mechanism
-- @param quiet      no progress; default: what --quiet says
-- @param profile    measure where the time goes, operation by operation, default false
-- @param shard, groups  how a batch is cut: sequences a replay, and groups of shards
--                   (default 64 or 256 tokens, and 8 groups, fewer for large models)
-- @return { steps, stopped_by, loss, max_abs_error, wall_s, steps_per_s, eval = {
--         samples, max_abs_error, mse or loss }, log = { { step, loss, max_abs_error, lr,
--         time }, ... } }; with `profile` also profile = { steps, workers, nodes = { {
--         op, forward, backward }, ... }, replay, busy, gather, update }: seconds of the
--         operations and of all shards (busy) summed over the threads, of the shards
--         until the last thread is done (replay), of summing gradients and of the
--         optimizer
-- @error a loss that is not finite: the parameters are those before that step
-- @example
--   local task = lab.task.trigger_mean {}
--   local model = lab.model.attention_only { task = task }
--   local log = lab.train(model, task, { steps = 20, batch = 32, eval = 64,
--     optimizer = lab.optim.adam { lr = 1e-3 }, stop = { max_abs_error = 5e-3 } })
--   print(log.steps, log.stopped_by, log.eval.mse)
local function train(model, task, given)
  local what = "lab.train"
  check.argument(what, "first argument", model, "model")
  check.argument(what, "second argument", task, "task")
  local optimizer = optimizer_of(what, given)
  local o = check.options(what, given, rules)
  local shard, groups = cut(what, o, model, task)
  local trainer <close> = trainer_of(what, o, optimizer, model, task, shard, groups)
  if o.profile then trainer:profile(true) end
  local label = o.label or model.mechanism_text
  local line = progress.new { label = label, steps = o.steps, quiet = o.quiet }
  local p, log = run(o, trainer, shard, line, probes.new(what, o.probes, model, task))
  if p.stopped == "not_finite" then refuse_not_finite(what, label, p) end
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
end

return train
