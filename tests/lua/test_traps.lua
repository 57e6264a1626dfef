-- test_traps.lua - what published code and tables get wrong or leave out, with numbers.
local check = require "check"
local lab = require "sinklab"
local core = require "sinklab.core"

--- Measure weights that are given: rows[s][i][j], exact in f64. Queries are unit vectors,
-- so that a score is one number of a key; ReLU over the length gives it back.
local function measured(rows, given, values, w_o)
  local S, T = #rows, #rows[1]
  local q, k, v = {}, {}, {}
  for s = 1, S do
    q[s], k[s], v[s] = {}, {}, {}
    for j = 1, T do
      q[s][j], k[s][j] = {}, {}
      for i = 1, T do
        q[s][j][i] = i == j and 1 or 0
        k[s][j][i] = rows[s][i][j] and rows[s][i][j] * T or 0
      end
      v[s][j] = { values and values[j] or 1 }
    end
  end
  local o = { layers = 1, heads = 1, tokens = T, samples = S, batch = S, dtype = "f64",
    measures = { "columns" },
    output = w_o and function() return core.tensor({ { w_o } }, "f64") end }
  for key, value in pairs(given or {}) do o[key] = value end
  local c = lab.sinks.collect(o)
  c:watch(1, function()
    return core.attention { q = core.tensor(q, "f64"), k = core.tensor(k, "f64"),
      v = core.tensor(v, "f64"), scale = 1,
      mechanism = core.mechanism("relu", { normaliser = "length" }) }
  end, { n = S })
  return c:finish()
end

--- T rows of f (i, j) for the keys j <= i.
local function rows_of(T, f)
  local rows = {}
  for i = 1, T do
    rows[i] = {}
    for j = 1, i do rows[i][j] = f(i, j) end
  end
  return rows
end

local function head_of(...) return measured(...).heads[1] end

check.test("raw weight and first_over_rowsum can disagree completely", function()
  -- softpick on the paper's task, seed 0: 0.0022 of raw weight, all of it on BOS
  local head = head_of({ rows_of(16, function(_, j) return j == 1 and 0.0022 or 0 end) },
    nil, { 5 }, 1)
  check.close({ head.first_mean, head.row_mass, head.rate }, { 0.0022, 0.0022, 0 }, 1e-15)
  check.close(head.first_over_rowsum, 0.0022 / (0.0022 + 1e-8), 1e-12)
  check.close({ head.first_over_rowsum_rate, head.contribution }, { 1, 0.0022 * 5 },
    1e-12)
end)

check.test("weight 1 on a value of 0 is free and contributes nothing", function()
  local rows = { rows_of(8, function(_, j) return j == 1 and 1 or 0.5 end) }
  local head = head_of(rows, nil, { 0 }, 3)
  check.close({ head.first_mean, head.rate }, { 1, 1 }, 0)
  check.close({ head.contribution, head.value_norm }, { 0, 0 }, 0)
  check.close(head.row_mass, (1.5 + 2 + 2.5 + 3 + 3.5 + 4 + 4.5) / 7, 1e-15)
  -- and the same weight with a value is no sink
  check.close(head_of(rows, nil, { 2 }, 3).contribution, 6, 0)
end)

check.test("one trigger row of 16 bounds a_1 by 15/16", function()
  local rows = { rows_of(16, function(i, j)
    if i == 8 then return j == 1 and 0 or 1 / 7 end
    return j == 1 and 1 or 0
  end) }
  local trigger = core.tensor({ 7 }, "f64")
  local found = measured(rows, { trigger = trigger, thresholds = { 0.937, 0.9376 } })
  local head = found.heads[1]
  check.close(found.column:totable()[1][1][1], 0.9375, 1e-15)
  check.equal({ head.curve[1].rate, head.curve[2].rate }, { 1.0, 0.0 })
  check.close({ head.first_mean, head.first_min, head.trigger_first }, { 1, 1, 0 }, 0)
end)

check.test("uniform attention at 64 tokens: a_1 is 0.074, a_64 0.0156", function()
  local found = measured { rows_of(64, function(i) return 1 / i end) }
  local a = found.column:totable()[1][1]
  local harmonic = 0
  for i = 1, 64 do harmonic = harmonic + 1 / i end
  check.close(a[1], harmonic / 64, 1e-15)
  check.close(a[1], 0.074, 5e-4)
  check.close(a[64], 1 / 64, 1e-15)
  local head = found.heads[1]
  check.close(head.entropy_share, 1, 1e-12)
  check.equal(head.rate, 0.0)
  check.close(head.column_entropy, 1, 0.05)
end)

check.test("a trigger row's weight on BOS stays in its class", function()
  -- ReLU: 0.16 to 0.24 there, nothing elsewhere; mixed it would look like 0.0133
  local head = head_of({ rows_of(16, function(i, j)
    return i == 9 and j == 1 and 0.2 or i == 9 and 0.1 or 0
  end) }, { trigger = core.tensor({ 8 }, "f64") })
  check.close({ head.first_mean, head.trigger_first, head.classes.trigger.row_mass },
    { 0, 0.2, 0.2 + 8 * 0.1 }, 1e-15)
  check.equal({ head.plain_rows, head.trigger_rows, head.first_rows }, { 14, 1, 1 })
end)

check.test("the indicator is taken before any averaging", function()
  -- one sequence of four sinks with 7/8, three with 1/4: mean 0.40625 > 0.3, rate 1/4
  local rows = {}
  for s = 1, 4 do
    local weight = s == 1 and 7 / 8 or 1 / 4
    rows[s] = rows_of(8, function(_, j) return j == 1 and weight or 0 end)
  end
  local found = measured(rows, { thresholds = { 0.1, 0.3, 0.8, 7 / 8 } })
  check.close(found.column:totable()[1][1][1], 0.40625, 1e-15)
  check.close({ found.heads[1].rate, found:sink_k() }, { 0.25, 25 }, 0)
  local rates = {}
  for i, r in ipairs(found.heads[1].curve) do rates[i] = r.rate end
  -- Barbero et al.'s 0.8; a rate is strictly above its threshold
  check.equal(rates, { 1.0, 0.25, 0.25, 0.0 })
end)

check.test("four true sinks in a batch of four are a rate of 1, not 1/4", function()
  local rows = {}
  for s = 1, 4 do rows[s] = rows_of(6, function(_, j) return j == 1 and 1 or 0 end) end
  check.equal(measured(rows).heads[1].rate, 1.0)
  -- padded query rows, which attend elsewhere, are not counted
  for s = 1, 4 do
    for i = 3, 6 do rows[s][i] = rows_of(6, function() return 1 / 6 end)[i] end
  end
  local head = head_of(rows, { length = core.tensor({ 2, 2, 2, 2 }, "f64") })
  check.close({ head.rate, head.first_mean, head.padded_rows }, { 1, 1, 16 }, 0)
end)

check.test("a column's weight over its non-zero entries", function()
  -- half of the rows see nothing of key 1: a_1 is 0.5, the column's weight 0.8
  local rows = { rows_of(10, function(i, j)
    return j == 1 and i % 2 == 1 and 0.8 or 0
  end) }
  local found = measured(rows)
  check.close({ found.column:totable()[1][1][1], found.heads[1].column_weight },
    { 0.4, 0.8 }, 1e-15)
  -- softpick's sparsity is of visible entries
  check.close(found.heads[1].classes.plain.sparsity,
    ((1 + 1) / 2 * 0 + 1 + 2 / 3 + 1 + 4 / 5 + 1 + 6 / 7 + 1 + 8 / 9 + 1) / 9, 1e-12)
end)

check.test("is position 1 special? a sink elsewhere, and everywhere", function()
  local at_four = head_of { rows_of(20, function(i, j)
    return j == 4 and i >= 4 and 0.9 or (i < 4 and 1 / i or 0.1 / (i - 1))
  end) }
  check.close({ at_four.rate, at_four.peak_key }, { 0, 4 }, 0)
  check.close(at_four.null_rate, 1 / 10, 1e-15) -- of positions 2 to 11
  local everywhere = head_of { rows_of(20, function() return 0.5 end) }
  check.close({ everywhere.rate, everywhere.null_rate, everywhere.null_above },
    { 1, 1, 1 }, 0)
  local one = head_of { rows_of(20, function(_, j) return j == 1 and 1 or 0 end) }
  check.close({ one.rate, one.null_rate, one.null_above }, { 1, 0, 0 }, 0)
end)

check.test("dormant tokens put 0.89 on BOS, active ones do not", function()
  -- tokens of class 0 are dormant, of class 1 active; class 2 never occurs
  local rows = { rows_of(9, function(i, j)
    local active = i % 3 == 0
    return j == 1 and (active and 0.1 or 0.9) or 0
  end) }
  local group = {}
  for i = 1, 9 do group[i] = i % 3 == 0 and 1 or 0 end
  group[8] = -1
  local head = head_of(rows, { groups = core.tensor({ group }, "f64") })
  check.equal({ head.groups[1].rows, head.groups[2].rows, #head.groups }, { 4, 3, 2 })
  check.close({ head.groups[1].first, head.groups[1].dormant, head.groups[2].first,
    head.groups[2].dormant }, { 0.9, 1, 0.1, 0 }, 1e-15)
  check.close(head_of(rows, { groups = core.tensor({ group }, "f64"), dormant = 0.95 })
    .groups[1].dormant, 0, 0)
end)

check.test("mass on a learned key is a column of its own, not position 1's", function()
  local task = lab.task.trigger_mean { seq_len = 8 }
  local model = lab.model.attention_only { task = task, dtype = "f64",
    attention = { mechanism = "softmax", kv_bias = "k" },
    init = lab.init.normal(0.02) }
  -- a key bias that every query prefers: Sink_* near 1, Sink_1 gone
  for name, p in pairs(model:parameters()) do
    if name:match "w_q" then
      model:set(name, core.ones(p.shape, "f64") * 0.1)
    elseif name:match "k_bias" then
      model:set(name, core.ones(p.shape, "f64") * 20)
    end
  end
  local batch = task:batch { n = 4, dtype = "f64" }
  batch.x = batch.x * 0 + 0.5
  local found = lab.sinks(model, batch)
  local head = found.heads[1]
  check.close({ head.virtual_mass, head.first_mean, head.rate }, { 1, 0, 0 }, 1e-3)
  check.close(head.virtual_mass + head.row_mass, 1, 1e-12)
  check.equal(found.virtual.shape, { 1, 1, 8, 1 })
end)

check.done()
