-- test_attention.lua - mechanisms as scripts see them.
local check = require "check"
local core = require "sinklab.core"

check.test("a mechanism says what it is", function()
  local m = core.mechanism "relu"
  check.equal(m.name, "relu")
  check.equal(m.shape, "row")
  check.equal(#m.hash, 64)
  check.equal(m.properties.kinked, true)
  check.equal(m.properties.sums_to_one, false)
  check.equal(m.options, { normaliser = "earlier" })
  check.equal(m.params, {})
  check.equal(m:params_count(16), 0)
  check.equal(tostring(m), "relu (normaliser = earlier)")
  check.equal(tostring(core.mechanism "softmax"), "softmax")
end)

check.test("equal options are one mechanism", function()
  local m = core.mechanism("relu", { normaliser = "length" })
  check.equal(m.options.normaliser, "length")
  check.equal(rawequal(m, core.mechanism("relu", { normaliser = "length" })), true)
  check.equal(rawequal(m, core.mechanism "relu"), false)
end)

check.test("a mistake is named with what is right", function()
  check.raises("no plugin 'rleu' (did you mean 'relu'?)",
    function() core.mechanism "rleu" end)
  check.raises("option normaliser is 'all'; expected one of earlier, visible, length",
    function() core.mechanism("relu", { normaliser = "all" }) end)
  check.raises("relu has no option 'normalizer' (did you mean 'normaliser'?)",
    function() core.mechanism("relu", { normalizer = "length" }) end)
  check.raises("relu: option normaliser is a boolean",
    function() core.mechanism("relu", { normaliser = true }) end)
  check.raises("expected named options", function() core.mechanism("relu", { 1 }) end)
end)

local function flat(t, out)
  out = out or {}
  for _, x in ipairs(t) do
    if type(x) == "table" then flat(x, out) else out[#out + 1] = x end
  end
  return out
end

local function same(got, want, atol)
  check.equal(got.shape, want.shape, "shape")
  check.close(flat(got:totable()), flat(want:totable()), atol or 1e-12)
end

local function draw(...)
  local shape = { ... }
  return core.generator(3, { dtype = "f64" }):normal(0, 1, shape)
end

check.test("full softmax attention is three products", function()
  local softmax = core.mechanism "softmax"
  local q, k, v = draw(2, 5, 4), draw(2, 5, 4) * 2, draw(2, 5, 3)
  local scores = core.matmul(q, k:transpose(2, 3)) * 0.5
  local weights = core.softmax(scores, 3)
  local got = core.attention { q = q, k = k, v = v, mechanism = softmax, causal = false }
  same(got, core.matmul(weights, v))
  local heads = scores:reshape { 2, 1, 5, 5 }
  same(core.row_weights(softmax, heads, { causal = false }),
    weights:reshape { 2, 1, 5, 5 })
end)

check.test("two heads on one key and value are two attentions", function()
  local relu = core.mechanism("relu", { normaliser = "visible" })
  local q, k, v = draw(2, 6, 8), draw(2, 6, 4), draw(2, 6, 4)
  local o = { k = k, v = v, mechanism = relu, scale = 1, window = 3, alibi = false,
    length = core.tensor({ 6, 4 }, "f64") }
  local function attend(x, heads)
    o.q, o.heads, o.kv_heads = x, heads, 1
    return core.attention(o)
  end
  local both = attend(q, 2)
  same(both:narrow(3, 1, 4), attend(q:narrow(3, 1, 4), 1))
  same(both:narrow(3, 5, 4), attend(q:narrow(3, 5, 4), 1))
  check.close(flat(both:select(1, 2):narrow(1, 5, 2):totable()),
    flat(core.zeros({ 2, 8 }, "f64"):totable()), 0, 0, "rows past the length")
end)

check.test("alibi and recomputing", function()
  local o = { q = draw(1, 9, 4), k = draw(1, 9, 4) * 2, v = draw(1, 9, 4), heads = 2,
    mechanism = core.mechanism "softmax" }
  local plain = core.attention(o)
  o.recompute_from = 1
  same(core.attention(o), plain, 0)
  o.alibi = true
  local tilted = core.attention(o)
  check.above((tilted - plain):abs():max():item(), 1e-3, "alibi has an effect")
end)

check.test("rope turns", function()
  local x = draw(1, 7, 8)
  local y = core.rope(x, { d_head = 4 })
  same(y:narrow(2, 1, 1), x:narrow(2, 1, 1))
  same(core.sum(y * y, 3), core.sum(x * x, 3))
  local late = core.rope(x:narrow(2, 3, 5), { d_head = 4, offset = 2 })
  same(late, y:narrow(2, 3, 5))
  local half = core.rope(x, { d_head = 4, pairs = "half", base = 100 })
  check.close(half:totable()[1][2][2],
    x:totable()[1][2][2] * math.cos(0.1) - x:totable()[1][2][4] * math.sin(0.1), 1e-12)
end)

check.test("tables of positions", function()
  local table = core.sinusoidal(3, 4, "f64"):totable()
  check.close(table[1], { 0, 1, 0, 1 }, 1e-15)
  check.close(table[3], { math.sin(2), math.cos(2), math.sin(0.02), math.cos(0.02) },
    1e-15)
  check.close(core.alibi_slopes(4, "f64"):totable(), { 2 ^ -2, 2 ^ -4, 2 ^ -6, 2 ^ -8 },
    1e-15)
end)

-- Documents of 3 and 2 tokens behind 2 of padding are each attended to alone.
check.test("first_key keeps packed documents and padding apart", function()
  local q, k, v = draw(1, 7, 4), draw(1, 7, 4) * 2, draw(1, 7, 6)
  local o = { q = q, k = k, v = v, heads = 2, mechanism = core.mechanism "softmax",
    first_key = core.tensor({ { 9, 9, 2, 2, 2, 5, 5 } }, "f64") }
  local packed = core.attention(o)
  o.recompute_from = 1
  same(core.attention(o), packed, 0)
  for _, d in ipairs { { 3, 3 }, { 6, 2 } } do
    local function part(x) return x:narrow(2, d[1], d[2]):clone() end
    same(packed:narrow(2, d[1], d[2]), core.attention { q = part(q), k = part(k),
      v = part(v), heads = 2, mechanism = o.mechanism }, 1e-15)
  end
  same(packed:narrow(2, 1, 2), core.zeros({ 1, 2, 6 }, "f64"), 0)
  local scores = core.matmul(q:narrow(3, 1, 2), k:narrow(3, 1, 2):transpose(2, 3))
  scores = (scores * 0.5 ^ 0.5):reshape { 1, 1, 7, 7 }
  local weights = core.row_weights(o.mechanism, scores, { first_key = o.first_key })
  same(core.matmul(weights:select(2, 1), v:narrow(3, 1, 3)), packed:narrow(3, 1, 3),
    1e-15)
  for _, recompute in ipairs { 1, 100 } do
    o.recompute_from = recompute
    local program, loss = core.record(function()
      return core.mse(core.attention(o), draw(1, 7, 6) * 3)
    end)
    for _, x in ipairs { q, k, v } do program:want(x) end
    program:loss(loss)
    check.close(program:check(), 0, 1e-8, 0, "gradients, recompute_from " .. recompute)
  end
  check.raises("first_key is (2); expected (1, 7), one a query", function()
    o.first_key = core.zeros({ 2 }, "f64")
    core.attention(o)
  end)
end)

check.test("operations refuse in a sentence", function()
  local softmax, x = core.mechanism "softmax", draw(1, 3, 4)
  check.raises("mixer.inputs[2]: expected a tensor, got number", core.mixer,
    { inputs = { core.zeros { 1, 2, 3 }, 4 } })
  check.raises("attention.q: expected a tensor, got nil",
    function() core.attention { k = x } end)
  check.raises("attention.mechanism: expected a mechanism, got string",
    function() core.attention { q = x, k = x, v = x, mechanism = "softmax" } end)
  check.raises("lab.attention: no such option 'qq'",
    function() require "sinklab".attention { qq = x } end)
  check.raises("3 heads on 2 key/value heads", function()
    core.attention { q = x, k = x, v = x, mechanism = softmax, heads = 3, kv_heads = 2 }
  end)
  check.raises("rope.pairs: 'both'; expected 'interleaved' or 'half'",
    function() core.rope(x, { d_head = 2, pairs = "both" }) end)
  check.raises("rope: d_head is 3", function() core.rope(x, { d_head = 3 }) end)
  check.raises("expected 1 to", function() core.sinusoidal(0, 4) end)
end)

check.done()
