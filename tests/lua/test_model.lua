-- test_model.lua - lab.model: every option of the transformer against plain loops.
local check = require "check"
local core = require "sinklab.core"
local lab = require "sinklab"

-- A second implementation of the same formulas on nested lists, one sequence at a time.

local function erf(x) -- its Taylor series: enough for |x| < 3
  local sum, term = 0, x
  for n = 0, 60 do
    sum = sum + term / (2 * n + 1)
    term = -term * x * x / (n + 1)
  end
  return 2 / math.sqrt(math.pi) * sum
end

local function gelu(x) return x / 2 * (1 + erf(x / math.sqrt(2))) end
local function relu(x) return math.max(x, 0) end
local function silu(x) return x / (1 + math.exp(-x)) end
local function tanh(x) return 1 - 2 / (math.exp(2 * x) + 1) end
local function gelu_tanh(x)
  return x / 2 * (1 + tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ^ 3)))
end

local function linear(x, w, b)
  local y = {}
  for i, row in ipairs(w) do
    y[i] = b and b[i] or 0
    for k, v in ipairs(row) do y[i] = y[i] + v * x[k] end
  end
  return y
end

local function plus(a, b)
  local y = {}
  for i = 1, #a do y[i] = a[i] + b[i] end
  return y
end

local function normalised(x, o, gamma, beta)
  local mean, square, y = 0, 0, {}
  if o.norm == "layer" then for _, v in ipairs(x) do mean = mean + v / #x end end
  for _, v in ipairs(x) do square = square + (v - mean) ^ 2 / #x end
  for i, v in ipairs(x) do
    y[i] = (v - mean) / math.sqrt(square + o.norm_eps) * gamma[i]
        + (beta and beta[i] or 0)
  end
  return y
end

local mlps = { relu = { relu }, gelu = { gelu }, gelu_tanh = { gelu_tanh },
  silu = { silu }, swiglu = { silu, true }, geglu = { gelu, true },
  reglu = { relu, true } }

local function mlp(x, kind, p)
  local f, gated = table.unpack(mlps[kind])
  local up = linear(x, p "w_up", p "b_up")
  local gate = gated and linear(x, p "w_gate", p "b_gate")
  for i = 1, #up do up[i] = gated and f(gate[i]) * up[i] or f(up[i]) end
  return linear(up, p "w_down", p "b_down")
end

--- Numbers first..first+d-1 of x, turned by rotary angles for position i (from 0).
local function head(x, first, d, o, i)
  local y = table.move(x, first, first + d - 1, 1, {})
  if not o.positions:match "^rotary" then return y end
  for k = 0, d // 2 - 1 do
    local a, b = 2 * k + 1, 2 * k + 2
    if o.positions == "rotary_half" then a, b = k + 1, k + 1 + d // 2 end
    local angle = i * o.rope_base ^ (-2 * k / d)
    local c, s = math.cos(angle), math.sin(angle)
    y[a], y[b] = y[a] * c - y[b] * s, y[a] * s + y[b] * c
  end
  return y
end

local function attention(x, o, p)
  local d, out, q, k, v = o.d_head, {}, {}, {}, {}
  for i = 1, #x do
    q[i], k[i] = linear(x[i], p "w_q", p "b_q"), linear(x[i], p "w_k", p "b_k")
    v[i] = linear(x[i], p "w_v", p "b_v")
  end
  for i = 1, #x do
    local heads = {}
    for h = 0, o.heads - 1 do
      local g = h // (o.heads // o.kv_heads)
      local qi, weights, total = head(q[i], h * d + 1, d, o, i - 1), {}, 0
      for j = 1, i do
        local kj, score = head(k[j], g * d + 1, d, o, j - 1), 0
        for m = 1, d do score = score + qi[m] * kj[m] / math.sqrt(d) end
        if o.positions == "alibi" then
          score = score - 2 ^ (-8 * (h + 1) / o.heads) * (i - j) -- heads: 2 or 4
        end
        weights[j] = math.exp(score)
        total = total + weights[j]
      end
      for m = 1, d do
        local sum = 0
        for j = 1, i do sum = sum + weights[j] / total * v[j][g * d + m] end
        heads[#heads + 1] = sum
      end
    end
    out[i] = linear(heads, p "w_o", p "b_o")
  end
  return out
end

--- Predictions of a transformer made with the options `o` for one sequence.
local function reference(model, o, x)
  local all = model:parameters()
  local function named(prefix)
    return function(name)
      local t = all[prefix .. name]
      return t and t:totable()
    end
  end
  local top, h = named "", {}
  for i = 1, #x do
    h[i] = o.task.vocab and top "token_embedding"[x[i] // 1 + 1] or x[i]
    if o.positions == "learned" then h[i] = plus(h[i], top "position_embedding"[i]) end
    if o.positions == "sinusoidal" then
      local at, d = {}, #h[i]
      for k = 0, d - 1 do
        local angle = (i - 1) * 10000 ^ (-(k // 2 * 2) / d)
        at[k + 1] = k % 2 == 0 and math.sin(angle) or math.cos(angle)
      end
      h[i] = plus(h[i], at)
    end
  end
  local function add(part, norm)
    local function normal(list)
      if o.norm == "none" then return list end
      local p, y = named(norm), {}
      for i = 1, #list do y[i] = normalised(list[i], o, p ".gamma", p ".beta") end
      return y
    end
    local pre = o.norm_place == "pre"
    local change, sum = part(pre and normal(h) or h), {}
    for i = 1, #h do sum[i] = plus(h[i], change[i]) end
    h = pre and sum or normal(sum)
  end
  for layer = 1, o.layers do
    local name = "layer" .. layer .. "."
    add(function(x) return attention(x, o, named(name)) end, name .. "attention_norm")
    if o.mlp ~= "none" then
      add(function(x)
        local y = {}
        for i = 1, #x do y[i] = mlp(x[i], o.mlp, named(name .. "mlp.")) end
        return y
      end, name .. "mlp_norm")
    end
  end
  for i = 1, #h do
    if o.norm ~= "none" and o.norm_place == "pre" then
      h[i] = normalised(h[i], o, top "final_norm.gamma", top "final_norm.beta")
    end
    local w = top(o.tied and "token_embedding" or "unembedding")
    if w then h[i] = linear(h[i], w) end
  end
  return h
end

local L = 5
local ids = lab.task { name = "ids", vocab = 7, seq_len = L, sample = function(t, B)
  local x = t:randint(0, 6, { B, L })
  return { x = x, y = x }
end }
local numbers = lab.task.trigger_mean { d_model = 8, seq_len = L }

--- The model with these options over plain ones predicts what the loops say.
local function agrees(more, what)
  local o = { task = ids, layers = 1, heads = 2, kv_heads = 2, d_model = 8, d_head = 4,
    norm = "none", norm_place = "pre", norm_eps = 1e-5, mlp = "none",
    positions = "none", rope_base = 10000, bias = false, tied = false }
  for key, value in pairs(more) do o[key] = value end
  local given = { dtype = "f64", seed = 3, init = lab.init.normal(0.5) }
  for key, value in pairs(o) do given[key] = value end
  local model = lab.model.transformer(given)
  -- Biases and gains start at 0 and 1, where a lost one would not show.
  local t = core.generator(9, { dtype = "f64" })
  model.params.flat:copy(model.params.flat + t:normal(0, 0.1, { model.params.size }))
  local batch = o.task:batch { n = 2, dtype = "f64" }
  local got, x = model:forward(batch.x):totable(), batch.x:totable()
  for s = 1, 2 do
    local want = reference(model, o, x[s])
    for i = 1, L do check.close(got[s][i], want[i], 1e-12, 1e-12, what) end
  end
  return model
end

check.test("positions", function()
  for _, kind in ipairs { "none", "learned", "sinusoidal", "rotary", "rotary_half",
    "alibi" } do
    agrees({ positions = kind, layers = 2 }, kind)
  end
  agrees({ positions = "rotary", rope_base = 50 }, "rope_base")
  agrees({ positions = "learned", context = 9 }, "context")
end)

check.test("norms", function()
  for _, norm in ipairs { "layer", "rms", "none" } do
    for _, place in ipairs { "pre", "post" } do
      agrees({ norm = norm, norm_place = place, mlp = "relu", bias = true },
        norm .. " " .. place)
    end
  end
  agrees({ norm = "layer", norm_eps = 0.3 }, "norm_eps")
end)

check.test("MLPs", function()
  for kind in pairs(mlps) do
    agrees({ mlp = kind }, kind)
    agrees({ mlp = kind, bias = true, d_mlp = 3 }, kind .. " with biases")
  end
end)

check.test("heads, widths, biases, unembedding", function()
  agrees({ heads = 4, kv_heads = 2, d_head = 3, bias = true }, "grouped heads")
  agrees({ heads = 4, kv_heads = 1, d_head = 2, positions = "alibi" }, "one key head")
  local tied = agrees({ tied = true, norm = "rms" }, "tied")
  check.raises("model: no parameter 'unembedding'", tied.parameter, tied, "unembedding")
  agrees({ task = numbers }, "numbers in and out")
end)

check.test("defaults are those of the documentation", function()
  local text = tostring(lab.model.transformer { task = ids, heads = 4 })
  for _, part in ipairs { "scale 0.25", "token_embedding              (7, 64)",
    "position_embedding           (5, 64)", "layer1.attention_norm.gamma  (64)",
    "layer1.mlp.w_up              (256, 64)", "final_norm.gamma", "unembedding" } do
    check.contains(text, part)
  end
  check.equal(text:find("beta", 1, true) or text:find("b_q", 1, true), nil)
end)

check.test("attention_only is MHA alone, or added", function()
  local o = { task = numbers, heads = 2, dtype = "f64", seed = 4,
    init = lab.init.normal(0.3),
    attention = { mechanism = "softmax", scale = 1 / math.sqrt(8) } }
  local alone = lab.model.attention_only(o)
  o.residual = true
  local added = lab.model.attention_only(o)
  local x = numbers:batch({ n = 2, dtype = "f64" }).x
  check.close((alone:forward(x) + x):reshape { 80 }:totable(),
    added:forward(x):reshape { 80 }:totable(), 1e-15)
  check.equal(#alone:parameter "layer1.w_q", 16)
  local same = lab.model.transformer { task = numbers, heads = 2, d_head = 8,
    dtype = "f64", seed = 4, init = o.init, norm = "none", mlp = "none",
    positions = "none" }
  check.equal(same:forward(x):totable(), added:forward(x):totable())
  o.residual, o.d_head, o.kv_heads = nil, 3, 1
  check.equal(lab.model.attention_only(o):parameter "layer1.w_k".shape, { 3, 8 })
end)

check.test("parameters are set, saved and loaded", function()
  local function make(seed, d)
    return lab.model.attention_only { task = lab.task.trigger_mean { d_model = d or 4 },
      seed = seed }
  end
  local a, b = make(1), make(2)
  local path = os.tmpname()
  check.equal(a:save(path), true)
  check.equal(b:load(path), b)
  check.equal(b.params.flat:totable(), a.params.flat:totable())
  local wide = make(1, 5)
  local before = wide.params.flat:totable()
  local got, message = wide:load(path)
  check.equal(got, nil)
  check.contains(message, "tensor 'layer1.w_q' has shape (4, 4), the model's is (5, 5)")
  check.equal(wide.params.flat:totable(), before)
  -- The first layer of two is not the model that was saved.
  local deep = lab.model.attention_only { task = lab.task.trigger_mean { d_model = 4 },
    layers = 2 }
  check.equal(deep:save(path), true)
  before = b.params.flat:totable()
  got, message = b:load(path)
  check.equal(got, nil)
  check.contains(message, "tensor 'layer2.w_")
  check.contains(message, "' is none of this model's")
  check.equal(b.params.flat:totable(), before)
  os.remove(path)
  check.equal(a:load(path), nil)
  a:set("layer1.w_q", { { 1, 2, 3, 4 }, { 0, 0, 0, 0 }, { 0, 0, 0, 0 }, { 0, 0, 0, 5 } })
  check.equal(a.params.flat:narrow(1, 1, 4):totable(), { 1., 2., 3., 4. })
  check.raises("no parameter 'layer1.w_p' (did you mean 'layer1.w_", a.set, a,
    "layer1.w_p", 0)
end)

check.test("initialisers", function()
  local g = core.generator(1, { dtype = "f64" })
  local function spread(init)
    local x = init(g, { 100, 300 })
    return (x:var()):item() ^ 0.5, x:max():item()
  end
  check.close(spread(lab.init.normal()), 0.02, 5e-4)
  check.close(spread(lab.init.xavier()), math.sqrt(2 / 400), 2e-3)
  local std, most = spread(lab.init.uniform(0.3))
  check.close(std, 0.3 / math.sqrt(3), 3e-3)
  check.close(most, 0.3, 1e-3)
  check.equal({ spread(lab.init.constant(3)) }, { 0., 3. })
  check.raises("lab.init.normal: the std is -1; it must be at least 0",
    lab.init.normal, -1)
  check.raises("the bound must be a number, got 'x'", lab.init.uniform, "x")
  check.raises("the std is NaN", lab.init.normal, 0 / 0)
  check.raises("the bound is NaN", lab.init.uniform, 0 / 0)
end)

check.test("what another task gives is refused by its shape", function()
  local narrow, wide = lab.task.trigger_mean { d_model = 8 }, lab.task.trigger_mean {}
  local words = lab.task.unigram { symbols = 5, seq_len = 4 }
  local m = lab.model.attention_only { task = narrow }
  check.raises("model: it reads numbers (B, T, 8), got a tensor (4, 16, 16)", m.forward,
    m, wide:batch { n = 4 }.x)
  check.raises("model: it reads numbers (B, T, 8), got a nil", m.forward, m)
  check.raises("model: it reads numbers (B, T, 8)", lab.train, m, wide, { steps = 1 })
  check.raises("model: it reads numbers (B, T, 8)", lab.sinks, m, wide:batch { n = 4 })
  local reader = lab.model.transformer { task = words }
  check.raises("model: it reads token ids (B, T), got a tensor (4, 16, 16)",
    reader.forward, reader, wide:batch { n = 4 }.x)
end)

check.test("mistakes are named", function()
  local function refuse(part, more, kind)
    more.task = more.task or ids
    check.raises(part, lab.model[kind or "transformer"], more)
  end
  refuse("option 'task' must be a task made by lab.task, got a table", { task = {} })
  refuse("option 'norm' is 'lyaer'; it must be layer, rms or none "
    .. "(did you mean 'layer'?)", { norm = "lyaer" })
  refuse("d_model 64 is not a multiple of 3 heads (give d_head)", { heads = 3 })
  refuse("d_model is 16, but task 'trigger_mean' gives vectors of width 8",
    { task = numbers, d_model = 16 })
  refuse("tied needs a task with token ids in and out", { task = numbers, tied = true })
  refuse("context is 4, but task 'ids' has sequences of 5 tokens", { context = 4 })
  refuse("task 'ids' gives token ids; this model reads numbers", {}, "attention_only")
  refuse("no such option 'head' (did you mean 'heads'?)", { head = 2 })
end)

check.test("hooks see every layer and take the place of attention", function()
  local task = lab.task.trigger_mean {}
  local model = lab.model.attention_only { task = task, layers = 2 }
  local x, seen, calls = task:batch { n = 2 }.x, {}, 0
  local out = model:forward(x, nil, nil, {
    layer = function(layer, h) seen[#seen + 1] = { layer, #h.shape } end,
    attend = function(call)
      calls = calls + 1
      return core.attention(call)
    end })
  check.equal({ seen, calls }, { { { 0, 3 }, { 1, 3 }, { 2, 3 } }, 2 })
  check.equal((out - model:forward(x)):abs():max():item(), 0.0)
end)

check.done()
