-- test_mixers.lua - mixers with a state, a forget gate or learned features in models:
-- trained and measured.
local check = require "check"
local lab = require "sinklab"

local task = lab.task.trigger_mean { d_model = 8, seq_len = 8 }

local function model(attention)
  return lab.model.attention_only { task = task, layers = 1, heads = 2,
    attention = attention, dtype = "f32", seed = 1, init = lab.init.normal(0.2) }
end

local function train(m, steps)
  return lab.train(m, task, { optimizer = lab.optim.adam { lr = 3e-3 }, batch = 32,
    steps = steps, seed = 1, eval = 256, quiet = true })
end

local mixers = {
  "retention", { mechanism = "retention", normalise = true }, "forgetting",
  { mechanism = "forgetting", gate = "sigmoid_gate" },
  { mechanism = { "forgetting", gate = "fixed" } },
  "ssm", { mechanism = "ssm", state = 4, skip = false },
  { mechanism = "linear", feature = "mlp", hidden = 8, init = 0.3 },
}

check.test("some steps of training lower the loss; sinks are measured", function()
  for _, attention in ipairs(mixers) do
    local m = model(attention)
    local before = train(m, 0).eval[task.loss_name]
    local log = train(m, 80)
    check.equal(log.steps, 80)
    check.below(log.eval[task.loss_name], 0.9 * before,
      ("%s: loss %g after %g"):format(tostring(m), log.eval[task.loss_name], before))
    local found = lab.sinks(m, task:batch { n = 64, dtype = "f32" })
    check.equal(#found.heads, 2)
    for _, head in ipairs(found.heads) do
      for _, key in ipairs { "first_mean", "row_mass", "contribution" } do
        check.equal(head[key] == head[key] and math.abs(head[key]) < 1e6, true,
          ("%s: %s is %s"):format(tostring(m), key, head[key]))
      end
    end
  end
end)

check.test("forgetting is softmax with rows that sum to one", function()
  local found = lab.sinks(model "forgetting", task:batch { n = 64, dtype = "f32" })
  for _, head in ipairs(found.heads) do check.close(head.row_mass, 1, 1e-6) end
end)

check.test("parameters start as their plugins say", function()
  local m = model "ssm"
  check.contains(tostring(m), "layer1.ssm.dt_bias  (2, 1)")
  for head = 1, 2 do
    check.equal(m:parameter("layer1.ssm.a_log"):get(head, 1), 0.0)
    check.equal(m:parameter("layer1.ssm.skip"):get(head, 1), 1.0)
    local bias = m:parameter("layer1.ssm.dt_bias"):get(head, 1)
    check.equal(bias ~= 0 and math.abs(bias) <= math.log(100) / 2, true, bias)
  end
  local short = model { mechanism = "ssm", dt_min = 0.5, dt_max = 0.5, skip = false }
  check.equal(short:parameter("layer1.ssm.dt_bias"):get(1, 1), 0.0)
  check.equal(short:parameters()["layer1.ssm.skip"], nil)
  check.equal(m:parameter "layer1.ssm.b".shape, { 16, 8 }) -- shared, twice d_head
  local mlp = model { mechanism = "linear", feature = "mlp", hidden = 5 }
  check.contains(tostring(mlp), "layer1.linear.w1  (2, 40)")
  local sum, w2 = 0, mlp:parameter "layer1.linear.w2"
  for head = 1, 2 do
    for i = 1, 40 do sum = sum + w2:get(head, i) ^ 2 end
  end
  check.close(math.sqrt(sum / 80), 0.02, 0.006)
  check.equal(model "linear":parameters()["layer1.linear.w1"], nil)
  local fixed = model { mechanism = { "forgetting", gate = "fixed" } }:parameters()
  check.equal({ fixed["layer1.forgetting.f"], fixed["layer1.forgetting.bias"] }, {})
end)

check.test("ranges the wrong way round are refused", function()
  check.raises("dt_min is 1, which is more than dt_max, 0.1", model,
    { mechanism = "ssm", dt_min = 1 })
  check.raises("a_min is 20, which is more than a_max, 16", model,
    { mechanism = "ssm", a_min = 20 })
  check.raises("decay_min is 500, which is more than decay_max, 128", model,
    { mechanism = "forgetting", decay_min = 500 })
end)

check.done()
