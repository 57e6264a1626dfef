-- test_sinks.lua - measure_sinks as scripts see it.
local check = require "check"
local core = require "sinklab.core"

-- Queries and keys are 0: softmax weights of row i are 1 / (i + 1), whatever the
-- values, so every measure is known.
local S, T, D, HEADS = 6, 4, 4, 2
local function model(shard)
  local x = core.zeros({ shard, T, D }, "f64")
  local program = core.record(function()
    local zero = x * 0
    core.attention { q = zero, k = zero, v = x, heads = HEADS,
      mechanism = core.mechanism "softmax" }
  end)
  program:input(x)
  return program, x
end

local function batch()
  local values = {}
  for s = 1, S do
    values[s] = {}
    for i = 1, T do values[s][i] = { s, 2, 3 * i, 4 } end
  end
  return core.tensor(values, "f64")
end

local function measure(more)
  local program, x = model(2)
  local o = { program = program, inputs = { x }, batch = { batch() }, layers = 1,
    heads = HEADS, tokens = T, threshold = 0.3, dormant = 0.89, share_rows = 64 }
  for key, value in pairs(more) do o[key] = value end
  return core.measure_sinks(o)
end

check.test("known weights", function()
  local found = measure { trigger = core.tensor({ 1, 1, 1, 1, 2, -1 }, "f64"),
    threshold = 0.5, maps = true }
  check.equal({ found.samples, found.threshold, #found.heads }, { 6, 0.5, 2 })
  for i, head in ipairs(found.heads) do
    -- five samples have a trigger row: four of weight 1/2, one of 1/3
    local plain = (6 - 4) * 1 / 2 + (6 - 1) * 1 / 3 + 6 * 1 / 4
    check.equal({ head.layer, head.head }, { 1, i })
    check.equal({ head.plain_rows, head.trigger_rows, head.empty_rows }, { 13, 5, 0 })
    check.close(head.first_mean, plain / 13, 1e-15)
    check.close(head.first_min, 1 / 4, 0)
    check.close(head.trigger_first, (4 * 1 / 2 + 1 / 3) / 5, 1e-15)
    check.close(head.first_all, (plain + 6) / 19, 1e-15)
    check.close(head.row_mass, 1, 1e-15)
    check.close(head.rate, 1, 0) -- 25 / 48 > 0.5
    check.equal(head.contribution ~= head.contribution, true, "NaN without W_O")
  end
  check.equal(found.mean.shape, { 1, HEADS, T, T })
  check.equal(found.mean.dtype, "f64")
  for i, row in ipairs { { 1, 0, 0, 0 }, { 1 / 2, 1 / 2, 0, 0 },
    { 1 / 3, 1 / 3, 1 / 3, 0 }, { 1 / 4, 1 / 4, 1 / 4, 1 / 4 } } do
    check.close(found.mean:totable()[1][2][i], row, 1e-15)
  end
  check.close(found.std:totable()[1][1][4], { 0, 0, 0, 0 }, 1e-15)
end)

check.test("contribution takes each head's columns of W_O", function()
  -- W_O keeps number 1 of head 1 and number 2 (times 10) of head 2
  local w = core.tensor({ { 1, 0, 0, 0 }, { 0, 0, 0, 10 } }, "f32")
  local found = measure { output = { w } }
  local first = (1 / 2 + 1 / 3 + 1 / 4) / 3
  check.close(found.heads[1].value_norm, (1 + 2 + 3 + 4 + 5 + 6) / 6, 1e-15)
  check.close(found.heads[2].value_norm, 40, 1e-13)
  check.close(found.heads[1].contribution, 3.5 * first, 1e-14)
  check.close(found.heads[2].contribution, 40 * first, 1e-13)
  check.equal(found.mean, nil)
end)

check.test("lengths leave padding out", function()
  local found = measure { length = core.tensor({ 4, 4, 4, 2, 1, 0 }, "f64"),
    maps = true, dtype = "f32" }
  local head = found.heads[1]
  check.equal({ head.plain_rows, head.empty_rows }, { 10, 9 })
  check.close(head.first_mean, (4 * 1 / 2 + 3 * 1 / 3 + 3 * 1 / 4) / 10, 1e-15)
  check.equal(found.mean.dtype, "f32")
  check.close(found.mean:totable()[1][1][4][1], 1 / 4, 1e-7) -- of 3 samples
end)

check.test("mistakes are named", function()
  local function refuse(part, more) check.raises(part, measure, more) end
  refuse("lab.sinks.trigger: expected shape (6)", { trigger = core.zeros { 5 } })
  refuse("lab.sinks.output: 2 matrices for 1 layers",
    { output = { core.zeros { 4, 4 }, core.zeros { 4, 4 } } })
  refuse("W_O of layer 1 has shape (4)", { output = { core.zeros { 4 } } })
  refuse("lab.sinks.batch[1]: expected a tensor, got number", { batch = { 1 } })
  refuse("1 inputs and 2 tensors of a batch", { batch = { batch(), batch() } })
  refuse("lab.sinks.heads: got 0, allowed is 1 to 2^24", { heads = 0 })
  refuse("the program has 2 heads, the measurement has 1", { heads = 1 })
  refuse("input 1 is no input of the program", { inputs = { core.zeros { 2, T, D } } })
  refuse("lab.sinks.program: expected a program, got table", { program = {} })
  refuse("f16", { dtype = "f16" })
end)

check.done()
