--- layers.lua - the parts that models are made of.
--
-- Each plan_* function adds a part's parameters to a plan and returns a function that,
-- once the plan is made, binds them and gives the part's forward.
local core = require "sinklab.core"
local check = require "sinklab.check"
local init_values = require "sinklab.init_values"

local layers = {}

layers.position_kinds = { "none", "learned", "sinusoidal", "rotary", "rotary_half",
  "alibi" }
layers.mlp_kinds = { "none", "relu", "gelu", "gelu_tanh", "silu", "swiglu", "geglu",
  "reglu" }

local ones, zeros = init_values.constant(1), init_values.constant(0)

--- Options of the host's attention; any other key of an `attention` table belongs to
-- the mechanism.
local host_rules = {
  map = { "string", default = "softmax" },
  scale = { "number" },
  causal = { "boolean", default = true },
  window = { "integer", default = 0, min = 0 },
}

--- Read what a model's `attention` option says: a mechanism's name, or a table with
-- `map`, host options (scale, causal, window) and the mechanism's own options.
-- @param shape  { scale =, heads =, kv_heads =, d_model =, d_head =, positions = }
function layers.attention_options(what, given, shape)
  if type(given) == "string" then given = { map = given } end
  local host, own = {}, {}
  for key, value in pairs(given) do
    if host_rules[key] then host[key] = value else own[key] = value end
  end
  local o = check.options(what .. ": attention", host, host_rules)
  if shape.heads % shape.kv_heads ~= 0 then
    check.fail("%s: %d heads cannot share %d key/value heads: it must divide them",
      what, shape.heads, shape.kv_heads)
  end
  if shape.positions:match "^rotary" and shape.d_head % 2 ~= 0 then
    check.fail("%s: rotary positions need an even d_head, got %d", what, shape.d_head)
  end
  local out = { name = o.map, mechanism = core.mechanism(o.map, own),
    scale = o.scale or shape.scale, causal = o.causal, window = o.window }
  for key, value in pairs(shape) do
    if out[key] == nil then out[key] = value end
  end
  return out
end

--- Initialiser of a mechanism's own parameter list: (heads, width) drawn per part.
local function mechanism_init(mechanism, d_head)
  return function(g, shape)
    local parts = {}
    for _, p in ipairs(mechanism.params) do
      local width = p.width_per_dhead * d_head + p.width_fixed
      local part = { shape[1], width }
      parts[#parts + 1] = p.init == "normal" and g:normal(0, p.scale, part)
          or p.init == "uniform" and g:uniform(-p.scale, p.scale, part)
          or g:full(part, p.init == "const" and p.scale or 0)
    end
    return #parts == 1 and parts[1] or core.concat(parts, 2)
  end
end

--- Multi-head attention: w_q, w_k, w_v (one product), the mechanism, w_o. Weights are
-- (outputs, inputs); head h of w_q has rows (h-1) d_head + 1 .. h d_head.
function layers.plan_attention(plan, prefix, a, init, bias)
  local function name(part) return prefix .. "." .. part end
  local h, g, d = a.heads, a.kv_heads, a.d_head
  local rows = (h + 2 * g) * d
  plan:add(name "w_q", { h * d, a.d_model }, init)
  plan:add(name "w_k", { g * d, a.d_model }, init)
  plan:add(name "w_v", { g * d, a.d_model }, init)
  plan:add(name "w_o", { a.d_model, h * d }, init)
  if bias then
    plan:add(name "b_q", { h * d }, zeros)
    plan:add(name "b_k", { g * d }, zeros)
    plan:add(name "b_v", { g * d }, zeros)
    plan:add(name "b_o", { a.d_model }, zeros)
  end
  local own = a.mechanism:params_count(d)
  if own > 0 then
    plan:add(name "mechanism", { h, own }, mechanism_init(a.mechanism, d))
  end
  return function(p)
    local w_qkv = p:span(name "w_q", name "w_v", { rows, a.d_model })
    local b_qkv = bias and p:span(name "b_q", name "b_v", { rows }) or nil
    local w_o = p:get(name "w_o")
    local b_o = bias and p:get(name "b_o") or nil
    local param = own > 0 and p:get(name "mechanism") or nil
    local turned = a.positions == "rotary" and "interleaved"
        or a.positions == "rotary_half" and "half"
    local function turn(x)
      return core.rope(x, { d_head = d, pairs = turned, base = a.rope_base })
    end
    local function forward(x, length)
      local qkv = core.linear(x, w_qkv, b_qkv)
      local q = qkv:narrow(3, 1, h * d)
      local k = qkv:narrow(3, h * d + 1, g * d)
      local v = qkv:narrow(3, (h + g) * d + 1, g * d)
      if turned then q, k = turn(q), turn(k) end
      local context = core.attention { q = q, k = k, v = v, heads = h, kv_heads = g,
        d_head = d, mechanism = a.mechanism, scale = a.scale, causal = a.causal,
        window = a.window, alibi = a.positions == "alibi", param = param,
        length = length }
      return core.linear(context, w_o, b_o)
    end
    return { forward = forward, w_o = w_o }
  end
end

--- Layer norm or RMS norm over the last axis.
function layers.plan_norm(plan, prefix, kind, d, bias, eps)
  plan:add(prefix .. ".gamma", { d }, ones)
  local beta = bias and kind == "layer"
  if beta then plan:add(prefix .. ".beta", { d }, zeros) end
  return function(p)
    local gamma = p:get(prefix .. ".gamma")
    local shift = beta and p:get(prefix .. ".beta") or nil
    local options = { eps = eps }
    if kind == "rms" then
      return function(x) return core.rms_norm(x, gamma, options) end
    end
    return function(x) return core.layer_norm(x, gamma, shift, options) end
  end
end

local activations = {
  relu = core.relu,
  silu = core.silu,
  gelu = function(x) return core.gelu(x, { approximate = false }) end,
  gelu_tanh = function(x) return core.gelu(x, { approximate = true }) end,
}
-- Gated kinds (Shazeer 2020): w_down (activation (w_gate x) * (w_up x)).
local gated = { swiglu = "silu", geglu = "gelu", reglu = "relu" }

--- The MLP of a block.
function layers.plan_mlp(plan, prefix, kind, d, hidden, bias, init)
  local function name(part) return prefix .. "." .. part end
  local is_gated = gated[kind] ~= nil
  if is_gated then plan:add(name "w_gate", { hidden, d }, init) end
  plan:add(name "w_up", { hidden, d }, init)
  plan:add(name "w_down", { d, hidden }, init)
  if bias then
    if is_gated then plan:add(name "b_gate", { hidden }, zeros) end
    plan:add(name "b_up", { hidden }, zeros)
    plan:add(name "b_down", { d }, zeros)
  end
  return function(p)
    local activation = activations[gated[kind] or kind]
    local function map(part, x)
      return core.linear(x, p:get(name("w_" .. part)), p:get(name("b_" .. part)))
    end
    return function(x)
      local up = is_gated and activation(map("gate", x)) * map("up", x)
          or activation(map("up", x))
      return map("down", up)
    end
  end
end

--- A block: attention and MLP, each added to its input, with the norm before (pre) or
-- after the sum (post). Binding gives the block's forward and its w_o.
function layers.plan_block(plan, prefix, attention, o, d, init)
  local has_norm, has_mlp = o.norm ~= "none", o.mlp ~= "none"
  local function norm(part)
    return has_norm and layers.plan_norm(plan, prefix .. "." .. part, o.norm, d, o.bias,
      o.norm_eps)
  end
  local norm1 = norm "attention_norm"
  local mha = layers.plan_attention(plan, prefix, attention, init, o.bias)
  local norm2 = has_mlp and norm "mlp_norm"
  local mlp = has_mlp and layers.plan_mlp(plan, prefix .. ".mlp", o.mlp, d,
    o.d_mlp or 4 * d, o.bias, init)
  local pre = o.norm_place == "pre"

  local function add(part, normalise)
    if not normalise then
      return function(h, length) return h + part(h, length) end
    elseif pre then
      return function(h, length) return h + part(normalise(h), length) end
    end
    return function(h, length) return normalise(h + part(h, length)) end
  end
  return function(p)
    local bound = mha(p)
    local first = add(bound.forward, norm1 and norm1(p))
    local second = has_mlp and add(mlp(p), norm2 and norm2(p))
    return function(h, length)
      h = first(h, length)
      return second and second(h) or h
    end, bound.w_o
  end
end

--- What is added to the embeddings: (seq_len, d), or nil.
function layers.positions(p, kind, seq_len, d, dtype)
  if kind == "learned" then
    return p:get("position_embedding"):narrow(1, 1, seq_len)
  elseif kind == "sinusoidal" then
    return core.sinusoidal(seq_len, d, dtype)
  end
end

return layers
