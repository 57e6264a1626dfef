--- task.lua - lab.task: what a model is asked to do, said in tensors.
--
-- A task's sampler is recorded once and replayed in C: no Lua runs in the training
-- loop, and the numbers drawn for sequence i of step s are the same however a batch
-- is cut over threads.
local core = require "sinklab.core"
local check = require "sinklab.check"

local task = {}
local methods = {}
local Task = { __index = methods, __name = "sinklab.task" }

--- Losses by name: (prediction, batch) -> loss, largest absolute error or nil, weight
-- or nil. The weight says how many targets a shard's mean counts.
local losses = {}

function losses.mse(prediction, batch)
  return core.mse(prediction, batch.y), core.max_abs_error(prediction, batch.y)
end

function losses.cross_entropy(prediction, batch)
  local loss, _, count = core.cross_entropy(prediction, batch.y)
  return loss, nil, count
end

--- A task from a sampler.
-- @param name      for records and messages
-- @param sample    function (t, B, options) -> { x =, y =, ... }: t draws (t:uniform,
--                  t:normal, t:randint, t:bernoulli, t:categorical, t:arange,
--                  t:one_hot, t:full; t:fill for what these cannot say, see below), B is the number of sequences; x is (B, seq_len,
--                  d_model) numbers or (B, seq_len) token ids, y the target; `trigger`
--                  (B), positions from 0, and `length` (B) are known to measurements;
--                  `options` is the table given to task:batch, empty in training
-- @param seq_len   tokens of a sequence
-- @param d_model   width of x, or
-- @param vocab     number of token ids
-- @param d_output  width of the prediction; default d_model or vocab
-- @param loss      "mse" (default; "cross_entropy" with vocab) or a function
--                  (prediction, batch) -> loss, largest error or nil, weight or nil
-- @param options   names that task:batch may pass on to the sampler
--
-- t:fill(shape, function (buffer, step, first_sample) ... end) gives a tensor that the
-- function fills with buffer:set(i, ..., x), buffer:copy(tensor) and so on; what it leaves
-- is 0. It is called for every shard of every step and keeps training on one thread, so
-- it is slower than operations. `step` counts from 1 in training and is 0 elsewhere,
-- `first_sample` says which sequence of the batch, from 0, comes first in the buffer.
-- The same arguments should give the same numbers. An error in it ends the training,
-- and the model keeps the parameters that it had before that step.
local function new(given)
  local o = check.options("lab.task", given, {
    name = { "string", required = true },
    sample = { "function", required = true },
    seq_len = { "integer", required = true, min = 1 },
    d_model = { "integer", min = 1 },
    vocab = { "integer", min = 1 },
    d_output = { "integer", min = 1 },
    loss = { "string function" },
    options = { "table", default = {} },
  })
  if (o.d_model == nil) == (o.vocab == nil) then
    check.fail("lab.task: give either d_model (x holds numbers) or vocab (x holds token ids)")
  end
  local named = o.loss or (o.vocab and "cross_entropy" or "mse")
  local loss = named
  if type(loss) == "string" then
    check.options("lab.task", { loss = loss },
      { loss = { "string", choices = { "mse", "cross_entropy" } } })
    loss = losses[loss]
  end
  return setmetatable({ name = o.name, sampler = o.sample, seq_len = o.seq_len,
    d_model = o.d_model, vocab = o.vocab, batch_options = o.options,
    d_output = o.d_output or o.d_model or o.vocab, loss = loss,
    loss_name = named == "mse" and "mse" or "loss" }, Task)
end

local function same_shape(shape, want)
  if #shape ~= #want then return false end
  for i = 1, #want do if shape[i] ~= want[i] then return false end end
  return true
end

--- One batch of B sequences from generator `t`, with its shapes checked.
function methods:sample(t, B, options)
  local batch = self.sampler(t, B, options or {})
  if type(batch) ~= "table" or not core.is_tensor(batch.x)
      or not core.is_tensor(batch.y) then
    check.fail("task '%s': the sampler must return { x = tensor, y = tensor, ... }",
      self.name)
  end
  local want = self.vocab and { B, self.seq_len }
      or { B, self.seq_len, self.d_model }
  if not same_shape(batch.x.shape, want) then
    check.fail("task '%s': x has shape (%s), expected (%s)", self.name,
      table.concat(batch.x.shape, ", "), table.concat(want, ", "))
  end
  return batch
end

--- Fresh sequences for evaluation, independent of those seen in training.
-- @param n      how many, default 1000
-- @param seed   default 0
-- @param dtype  "f32" (default) or "f64"
-- @param ...    the task's own options (trigger_mean: trigger = position from 1)
-- @return { x =, y =, ... } as the sampler gives it, with `n`
function methods:batch(given)
  local rules = {
    n = { "integer", default = 1000, min = 1 },
    seed = { "integer", default = 0, min = 0 },
    dtype = { "string", default = "f32", choices = { "f32", "f64" } },
  }
  for key, rule in pairs(self.batch_options) do rules[key] = rule end
  local o = check.options(("task '%s':batch"):format(self.name), given, rules)
  local t = core.generator(o.seed, { dtype = o.dtype })
  local batch = self:sample(t, o.n, o)
  batch.n = o.n
  return batch
end

function Task:__tostring()
  return ("task %s: %d tokens, %s -> %d"):format(self.name, self.seq_len,
    self.vocab and (self.vocab .. " token ids") or ("width " .. self.d_model),
    self.d_output)
end

--- The trigger-conditional mean (Ran-Milo, arXiv 2603.11487, and its released code).
--
-- Position 1 is BOS: coordinate 1 is 1, the rest 0. Later tokens hold uniform (-1, 1)
-- noise in coordinates 3..d-1; coordinate d is 1 but at the trigger, whose coordinate
-- 2 is 1 instead. The target is 0 everywhere but at the trigger j, where it is the
-- mean of tokens 2..j (the trigger counted, BOS left out); with `residual` the token
-- itself is added everywhere.
-- @param d_model   default 16, at least 4
-- @param seq_len   default 16, at least 3
-- @param residual  default false
-- @param trigger   { first, last } position of the trigger, counted from 1, drawn
--                  uniformly; default { 3, seq_len } as in the released code (the
--                  theory's is { 2, seq_len })
function task.trigger_mean(given)
  local what = "lab.task.trigger_mean"
  local o = check.options(what, given, {
    d_model = { "integer", default = 16, min = 4 },
    seq_len = { "integer", default = 16, min = 3 },
    residual = { "boolean", default = false },
    trigger = { "table" },
  })
  local L, d = o.seq_len, o.d_model
  local range = o.trigger or { 3, L }
  local first, last = math.tointeger(range[1]), math.tointeger(range[2])
  if not (first and last and 2 <= first and first <= last and last <= L) then
    check.fail("%s: option 'trigger' is { %s, %s }; it must be { first, last } within 2..%d",
      what, tostring(range[1]), tostring(range[2]), L)
  end

  local function sample(t, B, options)
    local trigger
    if options.trigger then
      if options.trigger > L then
        check.fail("task 'trigger_mean':batch: option 'trigger' is %d; the sequence has %d tokens",
          options.trigger, L)
      end
      trigger = t:full({ B }, options.trigger - 1)
    else
      trigger = t:randint(first - 1, last - 1, { B })
    end
    local position = t:arange(L)
    local word = core.gt(position, 0):reshape { 1, L, 1 }:broadcast { B, L, 1 }
    local at = core.eq(position:reshape { 1, L }, trigger:reshape { B, 1 })
        :reshape { B, L, 1 }
    local noise = t:uniform(-1, 1, { B, L, d - 3 }) * word
    local x = core.concat({ 1 - word, at, noise, word - at }, 3)
    -- Row weights of the mean: 1/j on positions 1..j (from 0), 0 elsewhere.
    local upto = core.le(position:reshape { 1, 1, L }, trigger:reshape { B, 1, 1 })
        * word:reshape { B, 1, L }
    local mean = core.matmul(upto, x) / trigger:reshape { B, 1, 1 }
    local y = at * mean
    if o.residual then y = y + x end
    return { x = x, y = y, trigger = trigger }
  end

  return new { name = "trigger_mean", sample = sample, seq_len = L, d_model = d,
    options = { trigger = { "integer", min = 2 } } }
end

return setmetatable(task, { __call = function(_, given) return new(given) end })
