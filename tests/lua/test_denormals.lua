-- test_denormals.lua - weights below the smallest normal number: measuring counts them on
-- every path; training and products take them for zero, on every thread.
local check = require "check"
local core = require "sinklab.core"
local lab = require "sinklab"
local process = require "process"

local TINY = -95 -- exp (-95) is 5.5e-42, a denormal number of f32

--- Sum of column 1 over its entries that are not 0, from weights of f64 scores, rounded.
local function by_definition(mechanism, scores, o)
  local w = core.row_weights(mechanism, scores:to "f64", { causal = o.causal,
    first_key = o.first_key and o.first_key:to "f64", window = o.window }):to "f32"
  local sum, n = 0, 0
  for _, row in ipairs(w:totable()[1][1]) do
    if row[1] ~= 0 then sum, n = sum + row[1], n + 1 end
  end
  return n > 0 and sum / n or 0
end

local function measured(mechanism, q, k, o)
  local tokens = q.shape[2]
  local c = lab.sinks.collect { layers = 1, heads = 1, tokens = tokens, samples = 1,
    measures = { "columns" } }
  c:watch(1, function()
    return lab.attention { q = q, k = k, v = k, mechanism = mechanism, scale = 1,
      causal = o.causal, first_key = o.first_key, window = o.window, alibi = o.alibi }
  end)
  return c:finish().heads[1].column_weight
end

local function row_mechanisms()
  local out = {}
  for _, plugin in ipairs(lab.plugins()) do
    local m = lab.mechanism(plugin.name)
    if m.shape == "row" and m:params_count(1) == 0 then out[#out + 1] = m end
  end
  return out
end

check.test("column_weight counts denormal weights on every path", function()
  local mechanisms = row_mechanisms()
  check.equal(#mechanisms > 10, true, #mechanisms)
  for _, m in ipairs(mechanisms) do
    for _, tokens in ipairs { 8, 19, 64, 300 } do
      local list = {}
      for j = 1, tokens do list[j] = j == 1 and TINY or 0 end
      local k = core.tensor(list, "f32"):reshape { 1, tokens, 1 }
      local q = core.ones({ 1, tokens, 1 }, "f32")
      local scores = core.matmul(q, k:transpose(2, 3)):reshape { 1, 1, tokens, tokens }
      local paths = { {}, { first_key = core.zeros { 1, tokens } },
        { window = tokens }, { causal = false } }
      for i, o in ipairs(paths) do
        if not (m.properties.causal_only and (o.window or o.causal == false)) then
          check.close(measured(m, q, k, o), by_definition(m, scores, o), 1e-44, 1e-3,
            ("%s, %d tokens, path %d"):format(m.name, tokens, i))
        end
      end
    end
  end
end)

check.test("softmax over eight keys, the first of them far below", function()
  local k = core.tensor({ TINY, 0, 0, 0, 0, 0, 0, 0 }, "f32"):reshape { 1, 8, 1 }
  local q, softmax = core.ones({ 1, 8, 1 }, "f32"), lab.mechanism "softmax"
  check.close(measured(softmax, q, k, {}), 0.125, 0, 1e-6)
  local from_first = { first_key = core.zeros { 1, 8 } }
  check.close(measured(softmax, q, k, from_first), 0.125, 0, 1e-6)
end)

-- Values of 1e-20, whose products are 1e-40.
local small = [[
  local lab = require "sinklab"
  local core = require "sinklab.core"
  local kept
  local filled = lab.task { name = "filled", seq_len = 4, d_model = 8,
    sample = function(t, B)
      return { x = t:uniform(-1, 1, { B, 4, 8 }),
        y = t:fill({ B, 4, 8 }, function(buffer)
          kept = 1e-310 * 0.5 > 0 and core.tensor({ 1e-40 }):mul(0.5):item() > 0
          for b = 1, B do buffer:set(b, 1, 1, 1e-20) end
        end) }
    end }
  local drawn = lab.task { name = "drawn", seq_len = 4, d_model = 8,
    sample = function(t, B)
      return { x = t:uniform(-1, 1, { B, 4, 8 }),
        y = t:uniform(-1e-19, 1e-19, { B, 4, 8 }) }
    end }
  for _, task in ipairs { filled, drawn } do
    local model = lab.model.attention_only { task = task, layers = 2, heads = 2, seed = 1,
      init = lab.init.normal(1e-10) }
    local log = lab.train(model, task, { steps = 20, batch = 64, quiet = true, eval = 64,
      optimizer = lab.optim.adam { lr = 1e-12 } })
    local sum = core.zeros({}, "f64")
    for _, name in ipairs { "layer1.w_q", "layer1.w_v", "layer2.w_o" } do
      sum = sum + model:parameter(name):to("f64"):square():sum()
    end
    print(task.name, ("%a"):format(sum:item()))
    print(("%a %a"):format(log.loss, log.eval.mse), kept)
  end]]

check.test("training with denormals: the same bits for 1, 2 and 3 threads", function()
  local folder, want = process.folder "denormals", nil
  process.write(folder .. "/small.lua", small)
  for threads = 1, 3 do
    local r = process.run({ "run", folder .. "/small.lua", "--quiet",
      "--threads=" .. threads, "--out=" .. threads }, { folder = folder })
    check.equal({ r.code, r.err }, { 0, "" })
    check.contains(r.out, "true") -- the script's own numbers stay as they are
    want = want or r.out
    check.equal(r.out, want, threads .. " threads")
  end
end)

check.done()
