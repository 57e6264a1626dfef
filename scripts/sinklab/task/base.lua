--- base.lua - tasks: a sampler, its shapes, its loss.
--
-- A task's sampler is recorded once and replayed in C: no Lua runs in the training
-- loop, and the numbers drawn for sequence i of step s are the same however a batch
-- is cut over threads.
local core = require "sinklab.core"
local check = require "sinklab.base.check"
local schema = require "sinklab.base.schema"

local base, methods = {}, {}
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

--- The positions { first, last } of an option, checked: both within low..L.
-- @param given  the option; nil is no range
-- @return first, last; nil where there is no range
function base.range(what, name, given, low, L)
  if not given then return nil end
  local first, last = math.tointeger(given[1]), math.tointeger(given[2])
  if not (first and last and low <= first and first <= last and last <= L) then
    check.fail("%s: option '%s' is { %s, %s }; it must be { first, last } within %d..%d",
      what, name, tostring(given[1]), tostring(given[2]), low, L)
  end
  return first, last
end

local domain_rows = {
  { "draw", "function", required = true, doc = "(t, B, options) -> state" },
  { "build", "function", required = true, doc = "(state) -> batch" },
  { "low", "number", default = -1 }, { "high", "number", default = 1 },
}

base.new = schema.func("lab.task", {
  doc = [[A task from a sampler: lab.task { name =, sample =, ... }.

    t:fill(shape, function (buffer, step, first_sample) ... end) gives a tensor that the
    function fills with buffer:set(i, ..., x), buffer:copy(tensor) and so on; the other
    elements are 0. It is called for every shard of every step and keeps training on one
    thread, so it is slower than operations. `step` counts from 1 in training and is 0
    elsewhere, `first_sample` says which sequence of the batch, from 0, comes first in
    the buffer. The same arguments should give the same numbers. An error in it ends the
    training, and the model keeps the parameters that it had before that step.]],
  options = {
    { "name", "string", required = true, doc = "for records and messages" },
    { "sample", "function", doc = [[(t, B, options) -> { x =, y =, ... }: t draws
      (t:uniform, t:normal, t:randint, t:bernoulli, t:categorical, t:arange, t:one_hot,
      t:full; t:fill for values that no operation gives), B is the number of sequences; x
      is (B, seq_len, d_model) numbers or (B, seq_len) token ids, y the target; `trigger`
      (B), positions from 0 (negative: none), `length` (B), `start` (B), `documents` and
      `groups` (B, seq_len) are known to measurements (lab.sinks), and models keep
      attention within length, start and documents; `options` is the table given to
      task:batch, empty in training]] },
    { "seq_len", "integer", required = true, min = 1, max = 1 << 24,
      doc = "of a sequence",
      unit = "tokens" },
    { "d_model", "integer", min = 1, max = 1 << 20, doc = "width of x, or" },
    { "vocab", "integer", min = 1, max = 1 << 20, doc = "number of token ids" },
    { "d_output", "integer", min = 1, max = 1 << 20, default_doc = "d_model or vocab",
      doc = "width of the prediction" },
    { "loss", "string function", choices = { "mse", "cross_entropy" },
      default_doc = [["mse"; "cross_entropy" with vocab]],
      doc = [[its name, or (prediction, batch) -> loss, largest error or nil, weight or
      nil]] },
    { "options", "table", default = {}, doc = [[names that task:batch may pass on to the
      sampler, each with a rule such as { "integer", min = 2 }]] },
    { "domain", "table", fields = domain_rows, doc = [[in place of sample, the parts
      that lab.certify may vary. A state is a table of tensors whose first axis is B;
      content, one of them, (B, n, m), may hold any numbers from low to high, and is
      drawn apart from the rest. `draw` knows the option trigger if the task has
      triggers]] },
    { "triggers", "table",
      doc = "{ first, last } of the positions, from 1, of a trigger" },
    { "oracle", "function", doc = [[(batch) -> (B, seq_len), the least expected loss of
      every target, for tasks that know it; kept as task.oracle]] },
  },
  returns = "task",
  errors = "an option that is missing or not allowed",
  example = [[
    local task = lab.task { name = "negate", seq_len = 4, d_model = 2,
      sample = function(t, B)
        local x = t:uniform(-1, 1, { B, 4, 2 })
        return { x = x, y = -x }
      end }
    print(task:batch { n = 1 }.y)]],
}, function(o)
  if (o.d_model == nil) == (o.vocab == nil) then
    check.fail("lab.task: give either d_model (x holds numbers) or vocab "
      .. "(x holds token ids)")
  end
  if (o.sample == nil) == (o.domain == nil) then
    check.fail("lab.task: give either sample or domain (draw and build)")
  end
  local domain = o.domain
  base.range("lab.task", "triggers", o.triggers, 1, o.seq_len)
  local sample = o.sample
      or function(t, B, options) return domain.build(domain.draw(t, B, options)) end
  local named = o.loss or (o.vocab and "cross_entropy" or "mse")
  local loss = named
  if type(loss) == "string" then loss = losses[loss] end
  return setmetatable({ name = o.name, sampler = sample, seq_len = o.seq_len,
    d_model = o.d_model, vocab = o.vocab, batch_options = o.options,
    domain = domain, triggers = o.triggers, oracle = o.oracle,
    d_output = o.d_output or o.d_model or o.vocab, loss = loss,
    loss_name = named == "mse" and "mse" or "loss" }, Task)
end)

local function same_shape(shape, want)
  if #shape ~= #want then return false end
  for i = 1, #want do if shape[i] ~= want[i] then return false end end
  return true
end

methods.sample = schema.func("task:sample", {
  doc = "One batch of B sequences from generator `t`, with its shapes checked.",
  args = { { "t", "generator", doc = "from lab.generator" },
    { "B", "integer", min = 0, max = 1 << 24, doc = "how many sequences" },
    { "values", "table", default = {}, doc = "of the task's own options" } },
  returns = "the sampler's batch",
  errors = "a sampler that gives no tensors x and y, or x of another shape",
  example = "print(lab.task.trigger_mean {}:sample(lab.generator(0), 2).x.shape[1])",
}, function(self, t, B, options)
  local batch = self.sampler(t, B, options)
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
end)

local batch_rows = {
  { "n", "integer", default = 1000, min = 1, doc = "how many", unit = "sequences" },
  { "seed", "integer", default = 0, min = 0, doc = "of the draws" },
  { "dtype", "string", default = "f32", choices = { "f32", "f64" } },
  { "...", "any",
    doc = "the task's own options (trigger_mean: trigger = position from 1)" },
}
local batch_rules = schema.rules(batch_rows)

methods.batch = schema.func("task:batch", {
  doc = "Fresh sequences for evaluation, independent of those seen in training.",
  what = function(self) return ("task '%s':batch"):format(self.name) end,
  more = function(self)
    local rules = {} -- by name alone, as those of the task
    for _, rule in ipairs(batch_rules) do rules[rule.name] = rule end
    for key, rule in pairs(self.batch_options) do rules[key] = rule end
    return rules
  end,
  options = batch_rows,
  returns = "{ x =, y =, ... } as the sampler gives it, with `n`",
  example = [[
    local batch = lab.task.trigger_mean {}:batch { n = 4, trigger = 8 }
    print(batch.n, batch.x.shape[2])]],
}, function(self, o)
  local t = core.generator(o.seed, { dtype = o.dtype })
  local batch = self:sample(t, o.n, o)
  batch.n = o.n
  return batch
end)

function Task:__tostring()
  return ("task %s: %d tokens, %s -> %d"):format(self.name, self.seq_len,
    self.vocab and (self.vocab .. " token ids") or ("width " .. self.d_model),
    self.d_output)
end

return base
