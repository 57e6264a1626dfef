-- test_sinks_edges.lua - measurements of what is odd: short sequences in maps, NaN, lists
-- that are none, labels of another precision, samples watched twice.
local check = require "check"
local lab = require "sinklab"
local core = require "sinklab.core"

local task = lab.task.trigger_mean { seq_len = 6 }
local model = lab.model.attention_only { task = task, heads = 2, dtype = "f64",
  init = lab.init.normal(0.5), seed = 3 }
local batch = task:batch { n = 4, dtype = "f64" }

local function with(labels)
  local b = { x = batch.x }
  for key, value in pairs(labels) do b[key] = value end
  return b
end

check.test("a map's row is over the samples that have it", function()
  local lengths = { 6, 2, 4, 5 }
  local found = lab.sinks(model, with { length = core.tensor(lengths, "f64") })
  local one = {}
  for s = 1, 4 do
    one[s] = lab.sinks(model, { x = batch.x:narrow(1, s, 1) }).mean:totable()
  end
  local mean, std = found.mean:totable(), found.std:totable()
  for head = 1, 2 do
    for i = 1, 6 do
      local row = 0
      for j = 1, 6 do
        local sum, squares, n = 0, 0, 0
        for s = 1, 4 do
          if i <= lengths[s] then sum, n = sum + one[s][1][head][i][j], n + 1 end
        end
        for s = 1, 4 do
          if i <= lengths[s] then
            squares = squares + (one[s][1][head][i][j] - sum / n) ^ 2
          end
        end
        check.close(mean[1][head][i][j], sum / n, 1e-12, 0, "mean")
        if n > 1 then
          check.close(std[1][head][i][j], math.sqrt(squares / (n - 1)), 1e-12, 0, "std")
        else
          check.equal(std[1][head][i][j] ~= std[1][head][i][j], true, "std of one")
        end
        row = row + mean[1][head][i][j]
      end
      check.close(row, 1, 1e-12, 0, "a row of a mean of softmax rows")
    end
  end
end)

check.test("a row that nobody has is 0", function()
  local found = lab.sinks(model, with { length = core.tensor({ 3, 2, 3, 3 }, "f64") })
  check.close(found.mean:narrow(3, 4, 3):abs():max():item(), 0, 0)
end)

check.test("NaN weights are no sink and no absence of one", function()
  local nan = batch.x * (0 / 0)
  local found = lab.sinks(model, with { x = nan, groups = core.zeros({ 4 }, "f64") },
    { measures = { "columns", "share" }, thresholds = { 0.5 } })
  local h = found.heads[1]
  for name, value in pairs { rate = h.rate,
    first_over_rowsum_rate = h.first_over_rowsum_rate,
    largest_first = h.largest_first, sparsity = h.sparsity, largest_1 = h.largest_1,
    dormant = h.groups[1].dormant, curve = h.curve[1].rate,
    sink = found.sink:totable()[1][1][1], sink_k = found:sink_k(2) } do
    check.equal(value ~= value, true, name .. " is NaN")
  end
  -- a measure of some measurements only is left out
  check.equal({ h.null_rate, h.null_above, h.peak_key }, {})
end)

check.test("lists with names, gaps and numbers that are none", function()
  local function refuse(message, given)
    check.raises(message, lab.sinks, model, batch, given)
    given.layers, given.heads, given.tokens = 1, 1, 4
    check.raises(message, lab.sinks.collect, given)
  end
  refuse("option 'measures' must be a list", { measures = { columns = true } })
  refuse("option 'keep' must be a list", { keep = { layer = 1, head = 1 } })
  refuse("option 'thresholds' must be a list", { thresholds = { low = 0.3 } })
  refuse("thresholds[2] is 0; it must be a number above 0", { thresholds = { 0.3, 0 } })
  refuse("thresholds[1] is ", { thresholds = { 0 / 0 } })
  refuse("thresholds[1] is 0.3; it must be a number", { thresholds = { "0.3" } })
  refuse("'keep' names some heads, 'maps' keeps all",
    { keep = { { 1, 1 } }, maps = true })
  refuse("option 'hidden' is for the residual stream", { hidden = { massive = 3 } })
  check.equal(lab.sinks(model, batch, { keep = {} }).kept, {})
end)

check.test("labels that are NaN or no tensors", function()
  local nan = core.full({ 4, 6 }, 0 / 0, "f64")
  check.raises("the document of sample 1, token 1 is NaN", lab.sinks, model,
    with { documents = nan })
  check.raises("the trigger of sample 1, token 1 is NaN", lab.sinks, model,
    with { trigger = nan })
  check.raises("the batch's length must be a tensor, got a table", lab.sinks, model,
    with { length = { 1, 2, 3, 4 } })
end)

check.test("documents are told apart in their own precision", function()
  local f32 = lab.model.attention_only { task = task, init = lab.init.normal(0.5) }
  local id, x = {}, task:batch { n = 1 }.x
  for t = 1, 6 do id[t] = 2 ^ 24 + (t > 3 and 1 or 0) end
  local found = lab.sinks(f32, { x = x, documents = core.tensor({ id }, "f64") })
  check.equal(found.heads[1].boundary_rows, 1)
  check.equal(found.mean:totable()[1][1][4], { 0.0, 0.0, 0.0, 1.0, 0.0, 0.0 })
end)

check.test("a sample stands for itself only", function()
  local x = batch.x:narrow(1, 1, 1)
  local softmax = lab.mechanism "softmax"
  local c = lab.sinks.collect { layers = 1, heads = 1, tokens = 6, samples = 2 }
  local function attend()
    return lab.attention { q = x, k = x, v = x, mechanism = softmax }
  end
  c:watch(1, attend)
  c:watch(1, attend)
  check.raises("layer 1, head 1 of sample 1 has been watched more than once", c.finish, c)
  check.raises("the W_O of layer 1 must be a tensor, got 3", function()
    lab.sinks.collect { layers = 1, heads = 1, tokens = 6,
      output = function() return 3 end }:watch(1, attend)
  end)
  check.raises("1024 layers of 1025 heads, allowed is up to 1048576 heads in all",
    lab.sinks.collect, { layers = 1024, heads = 1025, tokens = 1 })
end)

check.test("a map that no memory holds is refused before its rows are looked at",
  function()
    check.raises("4503599627370496", core.row_classes, { samples = 2^52, tokens = 1,
      layers = 1, heads = 1 })
  end)

check.test("a layer's W_O is the one of the last watch", function()
  local x, eye = batch.x:narrow(1, 1, 1), {}
  for i = 1, 16 do
    eye[i] = {}
    for j = 1, 16 do eye[i][j] = i == j and 1 or 0 end
  end
  local w, size = core.tensor(eye, "f64"), 0
  local c = lab.sinks.collect { layers = 1, heads = 1, tokens = 6, samples = 2,
    output = function()
      size = size + 1
      return w * size
    end }
  for sample = 1, 2 do
    c:watch(sample, function()
      return lab.attention { q = x, k = x, v = x, mechanism = lab.mechanism "softmax" }
    end)
  end
  local norm = x:narrow(2, 1, 1):square():sum():sqrt():item()
  check.close(c:finish().heads[1].value_norm, 1.5 * norm, 1e-12, 0, "once and twice")
end)

check.done()
