-- test_streaming.lua - long sequences: equal to the dense computation, in memory that
-- grows with heads x tokens; some heads kept in full.
local check = require "check"
local process = require "process"
local lab = require "sinklab"
local core = require "sinklab.core"

local WATCHED = { "columns", "share", "norms", "logits" }
local D, H = 8, 2

local function draw(seed, ...) return core.generator(seed):normal(0, 1, { ... }) end

local function inputs(tokens)
  return draw(1, 1, tokens, H * D) * 1.5, draw(2, 1, tokens, H * D),
    draw(3, 1, tokens, H * D), draw(4, 5, H * D)
end

local function streamed(tokens, more)
  local q, k, v, w_o = inputs(tokens)
  local o = { layers = 1, heads = H, tokens = tokens, measures = WATCHED,
    output = function() return w_o end, threshold = 0.01 }
  for key, value in pairs(more or {}) do o[key] = value end
  local c = lab.sinks.collect(o)
  c:watch(1, function()
    return core.attention { q = q, k = k, v = v, heads = H, scale = 1,
      mechanism = core.mechanism "softmax" }
  end)
  return c:finish()
end

check.test("1,000 tokens, as dense f64 gives it, to 1e-5", function()
  local T = 1000
  local q, k, v, w_o = inputs(T)
  local found = streamed(T)
  for h = 1, H do
    local function part(x) return x:narrow(3, (h - 1) * D + 1, D):to "f64" end
    local scores = core.matmul(part(q), part(k):transpose(2, 3))
    local w = core.row_weights(core.mechanism "softmax",
      scores:reshape { 1, 1, T, T }):select(1, 1):select(1, 1)
    local head, plain = found.heads[h], w:narrow(1, 2, T - 1)
    check.close(head.first_mean, plain:select(2, 1):mean():item(), 1e-5, 0, "first")
    local logs = core.where(core.gt(w, 0), w, core.ones({ T, T }, "f64")):log() * w
    local entropy = core.sum(logs, 2) * -1
    check.close(head.entropy, entropy:narrow(1, 2, T - 1):mean():item(), 1e-5, 0,
      "entropy")
    local columns = core.sum(w, 1):totable()
    local a, over, tried, above = {}, 0, 0, 0
    for j = 1, T do
      a[j] = columns[j] / (T - j + 1)
      if j > 1 and 2 * (T - j + 1) >= T then
        tried = tried + 1
        if a[j] > 0.01 then over = over + 1 end
        if a[j] >= a[1] then above = above + 1 end
      end
    end
    check.close(found.column:select(1, 1):select(1, h):totable(), a, 1e-5, 0, "a_k")
    check.close({ head.null_rate, head.null_above }, { over / tried, above / tried },
      2e-3)
    check.equal(head.rate, a[1] > 0.01 and 1.0 or 0.0)
    local last = w:narrow(1, T - 63, 64)
    for _, n in ipairs { 1, 4, 8 } do
      check.close(head["share_" .. n], core.sum(last:narrow(2, 1, n), 2):mean():item(),
        1e-5)
    end
    local out = core.linear(part(v), w_o:narrow(2, (h - 1) * D + 1, D):to "f64")
    local norms = core.sqrt(core.sum(out * out, 3)):totable()[1]
    check.close(found.output_norms:select(1, 1):select(1, h):totable(), norms, 1e-5, 1e-6)
    check.close(head.contribution, head.first_mean * norms[1], 1e-5)
    local s, logit = scores:totable()[1], 0
    for i = 3, T do
      local sum = 0
      for j = 2, i - 1 do sum = sum + s[i][j] end
      logit = logit + s[i][1] - sum / (i - 2)
    end
    check.close(head.sink_logit, logit / (T - 2), 1e-5)
  end
end)

check.test("memory grows with the tokens, not with their square", function()
  streamed(256)
  collectgarbage()
  local before = process.memory()
  local found = streamed(4096)
  local grown = (process.memory() - before) / 1024
  check.equal(found.heads[1].plain_rows, 4095)
  -- one map of one head alone would be 128 MB
  check.below(grown, 48, ("grown by %.1f MB"):format(grown))
end)

check.test("kept heads cost what they are", function()
  local T, many = 600, 32
  local x = draw(5, 1, T, many * 2)
  local function measured(more)
    local o = { layers = 2, heads = many, tokens = T, dtype = "f64" }
    for key, value in pairs(more) do o[key] = value end
    local c = lab.sinks.collect(o)
    for layer = 1, 2 do
      c:watch(1, function()
        return core.attention { q = x, k = x * layer, v = x, heads = many,
          mechanism = core.mechanism "relu" }
      end, { layer = layer })
    end
    return c:finish()
  end
  local before = process.memory()
  local found = measured { keep = { { 2, 31 }, { 1, 2 }, { 1, 1 } } }
  local grown = (process.memory() - before) / 1024
  -- 3 of 64 heads: 3 x 600 x 600 x 16 bytes twice; all would be 353 MB
  check.below(grown, 80, ("grown by %.1f MB"):format(grown))
  check.equal(found.mean, nil)
  check.equal(#found.kept, 3)
  for _, kept in ipairs(found.kept) do
    local function part(t) return t:narrow(3, (kept.head - 1) * 2 + 1, 2):to "f64" end
    local scores = core.matmul(part(x), part(x * kept.layer):transpose(2, 3)) * 0.5 ^ 0.5
    local want = core.row_weights(core.mechanism "relu",
      scores:reshape { 1, 1, T, T }):select(1, 1):select(1, 1)
    check.equal(kept.mean.shape, { T, T })
    check.close((kept.mean - want):abs():max():item(), 0, 1e-5, 0,
      ("layer %d head %d"):format(kept.layer, kept.head))
  end
end)

check.test("keep and maps of a model agree", function()
  local task = lab.task.trigger_mean { seq_len = 9 }
  local model = lab.model.attention_only { task = task, layers = 2, heads = 3,
    registers = 2, attention = { mechanism = "softmax1" } }
  local batch = task:batch { n = 8 }
  local all = lab.sinks(model, batch)
  local some = lab.sinks(model, batch, { keep = { { 2, 1 }, { 1, 3 } } })
  check.equal(some.mean, nil)
  for _, kept in ipairs(some.kept) do
    for _, key in ipairs { "mean", "std", "null", "virtual" } do
      local want = all[key]:select(1, kept.layer):select(1, kept.head)
      check.equal(kept[key].shape, want.shape)
      check.close((kept[key] - want):abs():max():item(), 0, 0, 0, key)
    end
  end
  check.equal(lab.sinks(model, batch, { maps = false }).mean, nil)
end)

check.done()
