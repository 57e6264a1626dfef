--- witness.lua - lab.witness: models that solve the trigger-conditional mean by
-- construction, in f64, with no training.
--
-- All read three coordinates of the task's tokens: 1 marks BOS, 2 the trigger, d
-- content. Queries and keys use two coordinates of the head; values and output are
-- the identity (softmax and softpick drop the BOS coordinate from the values).
local core = require "sinklab.core"
local check = require "sinklab.base.check"
local schema = require "sinklab.base.schema"
local model = require "sinklab.model"
local sinks = require "sinklab.measure.sinks"

local witness = {}

--- A one-layer model with all parameters 0 but the identity in w_v and w_o.
local function blank(task, mechanism)
  if task.name ~= "trigger_mean" or task.bos ~= "first" or task.anchors ~= 1 then
    check.fail("lab.witness.%s: the task must be lab.task.trigger_mean with BOS at "
      .. "position 1 alone, got task '%s'%s",
      mechanism, task.name, task.bos and task.bos ~= "first" and " with BOS " .. task.bos
      or task.anchors == 2 and " with two anchors" or "")
  end
  local m = model.attention_only { task = task, dtype = "f64",
    attention = { mechanism = mechanism, scale = 1 } }
  m.params.flat:fill(0)
  for i = 1, task.d_model do
    m:parameter("layer1.w_v"):set(i, i, 1)
    m:parameter("layer1.w_o"):set(i, i, 1)
  end
  return m
end

witness.softmax = schema.func("lab.witness.softmax", {
  doc = [[Softmax at temperature c (Theorem 1): plain queries score c on BOS, the
    trigger's query scores c on content and trigger, everything else scores 0; values
    drop BOS's coordinate. The error is about the mass missing on BOS: both fall as exp
    (-c).]],
  args = {
    { "task", "task", doc = "from lab.task.trigger_mean" },
    { "temperature", "number", above = 0 },
  },
  returns = "model, f64",
  errors = "another task, a temperature out of range",
  source = "Ran-Milo 2026, arXiv 2603.11487, Theorem 1",
  example = [[
    local task = lab.task.trigger_mean {}
    print(lab.witness.measure(lab.witness.softmax(task, 20), task, 100))]],
}, function(task, c)
  if c == math.huge then check.fail "lab.witness.softmax: the temperature is infinite" end
  local d = task.d_model
  local m = blank(task, "softmax")
  local w_q, w_k = m:parameter "layer1.w_q", m:parameter "layer1.w_k"
  w_q:set(1, 1, 1)
  w_q:set(1, d, 1)
  w_q:set(2, 2, 1)
  w_k:set(1, 1, c)
  w_k:set(2, 2, c)
  w_k:set(2, d, c)
  m:parameter("layer1.w_v"):set(1, 1, 0)
  return m
end)

witness.relu = schema.func("lab.witness.relu", {
  doc = [[ReLU over the number of earlier tokens (Theorem 3): the query is the trigger's
    indicator, the key that of content or trigger, so plain rows are all zero and the
    trigger row is the exact mean. No error but rounding, and no weight on BOS.]],
  args = { { "task", "task", doc = "from lab.task.trigger_mean" } },
  returns = "model, f64",
  source = "Ran-Milo 2026, arXiv 2603.11487, Theorem 3",
  example = [[
    local task = lab.task.trigger_mean {}
    print(lab.witness.measure(lab.witness.relu(task), task, 100))]],
}, function(task)
  local d = task.d_model
  local m = blank(task, "relu")
  m:parameter("layer1.w_q"):set(1, 2, 1)
  m:parameter("layer1.w_k"):set(1, 2, 1)
  m:parameter("layer1.w_k"):set(1, d, 1)
  return m
end)

witness.softpick = schema.func("lab.witness.softpick", {
  doc = [[Softpick whose plain rows have one positive weight, a small one on BOS, which
    adds nothing since BOS's value is 0: plain queries score 1/32 on BOS and -8 on the
    rest, the trigger's query 8 on content and trigger. The error is that of softpick's
    eps. By a row's share all mass is on BOS, by weight nearly none.]],
  args = { { "task", "task", doc = "from lab.task.trigger_mean" } },
  returns = "model, f64",
  example = [[
    local task = lab.task.trigger_mean {}
    print(lab.witness.measure(lab.witness.softpick(task), task, 100))]],
}, function(task)
  local d = task.d_model
  local m = blank(task, "softpick")
  local w_q, w_k = m:parameter "layer1.w_q", m:parameter "layer1.w_k"
  w_q:set(1, 1, 1)
  w_q:set(1, d, 1)
  w_q:set(2, 2, 1)
  w_k:set(1, 1, 1 / 32)
  w_k:set(1, 2, -8)
  w_k:set(1, d, -8)
  w_k:set(2, 2, 8)
  w_k:set(2, d, 8)
  m:parameter("layer1.w_v"):set(1, 1, 0)
  return m
end)

witness.measure = schema.func("lab.witness.measure", {
  doc = "Largest error over n fresh sequences, and the sinks of the one head.",
  args = {
    { "model", "model", doc = "one of the models above" },
    { "task", "task", doc = "from lab.task.trigger_mean" },
    { "n", "integer", min = 1, doc = "how many", unit = "sequences" },
  },
  returns = "largest error, and the result of lab.sinks",
  example = [[
    local task = lab.task.trigger_mean {}
    local max_abs_error, sinks = lab.witness.measure(lab.witness.relu(task), task, 100)
    print(max_abs_error, sinks.first.max)]],
}, function(m, task, n)
  local batch = task:batch { n = n, dtype = "f64" }
  local max_abs_error = core.max_abs_error(m:forward(batch.x), batch.y):item()
  return max_abs_error, sinks(m, batch)
end)

return witness
