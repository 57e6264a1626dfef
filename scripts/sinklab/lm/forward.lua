--- forward.lua - from token ids to hidden states and logits, one operation at a time.
--
-- Nothing here is recorded: every layer's activations are garbage once the next has
-- them, and attention works on a block of rows at a time, so memory does not grow with
-- the square of the length. Letters: B sequences, T tokens, D width of the model.
local core = require "sinklab.core"
local activations = require "sinklab.model.activations"
local lm = require "sinklab.lm"
local swap = require "sinklab.lm.swap"

local forward = {}

--- x times the matrix of a part, and its bias.
local function linear(part, x)
  if part.transposed then return core.linear(x, part.transposed, part.bias) end
  return lm.linear(x, part.weight, part.bias)
end

local function norm(model, part, x)
  local options = { eps = model.config.norm_eps }
  if model.entry.norm == "rms" then return core.rms_norm(x, part.gamma, options) end
  return core.layer_norm(x, part.gamma, part.bias, options)
end

-- Queries, keys and values.

--- The three, each (B, T, heads * width), from a product whose rows lie as `kind` says.
local function split(c, kind, z)
  local h, g, d = c.heads, c.kv_heads, c.d_head
  if kind == "blocks" then
    return z:narrow(3, 1, h * d), z:narrow(3, h * d + 1, g * d),
        z:narrow(3, (h + g) * d + 1, g * c.d_value)
  end
  local shape, r = z.shape, h // g
  local b, t = shape[1], shape[2]
  local groups = z:reshape { b, t, g, r + 2, d }
  return groups:narrow(4, 1, r):reshape { b, t, h * d },
      groups:select(4, r + 1):reshape { b, t, g * d },
      groups:select(4, r + 2):reshape { b, t, g * d }
end

local function clamp(x, limit) return x:maximum(-limit):minimum(limit) end

--- Norms of queries and keys, by the entry's qk_norm.
local qk_norms = {
  head = function(model, part, x, heads)
    local s = x.shape
    local by_head = x:reshape { s[1], s[2], heads, model.config.d_head }
    return norm(model, part, by_head):reshape(s)
  end,
  heads = function(model, part, x, heads)
    local s = x.shape
    local by_head = x:reshape { s[1], s[2], heads, model.config.d_head }
    local unit = core.layer_norm(by_head, { eps = model.config.norm_eps })
    return (unit * part.gamma):reshape(s)
  end,
  full = function(model, part, x) return norm(model, part, x) end,
}

local function rotate(model, x, layer, positions)
  local c = model.config
  local rope, windowed = c.rope, c.windows[layer] > 0
  local here = windowed and rope.local_base ~= nil
  return core.rope(x, { d_head = c.d_head, pairs = rope.pairs, rotated = rope.rotated,
    base = here and rope.local_base or rope.base,
    divisors = not here and model.divisors or nil,
    magnitude = not here and rope.magnitude or nil, positions = positions })
end

--- Queries, keys and values of a layer, as attention takes them.
-- @param x    (B, T, D): the layer's input, through its norm
-- @param run  as of forward.hidden
function forward.qkv(model, layer, x, run)
  local c, parts = model.config, model.layers[layer]
  local q, k, v
  if parts.qkv then
    q, k, v = split(c, model.qkv, linear(parts.qkv, x))
  else
    q, k, v = linear(parts.q, x), linear(parts.k, x), linear(parts.v, x)
  end
  if c.clip then q, k, v = clamp(q, c.clip), clamp(k, c.clip), clamp(v, c.clip) end
  if parts.q_norm then
    local kind = qk_norms[model.entry.qk_norm]
    q = kind(model, parts.q_norm, q, c.heads)
    k = kind(model, parts.k_norm, k, c.kv_heads)
  end
  if c.rope then
    q = rotate(model, q, layer, run.positions)
    k = rotate(model, k, layer, run.positions)
  end
  return q, k, v
end

-- The MLP.

--- How an expert joins gate x and up x, by the architecture's `gating`.
local gatings = {}

--- (up + 1) gate sigmoid (1.702 gate), gate and up clamped at 7 (gpt-oss).
function gatings.clamped_swiglu(gate, up)
  gate, up = gate:minimum(7), clamp(up, 7)
  return (up + 1) * (gate * (gate * 1.702):sigmoid())
end

--- The rows of expert e of a weight (E, rows, columns), as lm.linear takes them.
local function expert(part, e)
  return part.weight:select(e), part.bias and part.bias:select(1, e)
end

--- One expert on x (n, D).
local function run_expert(model, parts, e, x)
  local gating = gatings[model.entry.gating]
  local gate, up
  if parts.expert_gate_up then -- (inputs, 2 d_ffn), gate and up in turn
    local w, b = expert(parts.expert_gate_up, e)
    local both = core.linear(x, w:tensor("f32"):transpose(1, 2), b)
    local s = both.shape
    local pairs_of = both:reshape { s[1], s[2] // 2, 2 }
    gate, up = pairs_of:select(3, 1), pairs_of:select(3, 2)
    local inner = gating(gate, up)
    w, b = expert(parts.expert_down, e)
    return core.linear(inner, w:tensor("f32"):transpose(1, 2), b)
  end
  local w, b = expert(parts.expert_gate, e)
  gate = lm.linear(x, w, b)
  w, b = expert(parts.expert_up, e)
  up = lm.linear(x, w, b)
  w, b = expert(parts.expert_down, e)
  return lm.linear(gating(gate, up), w, b)
end

--- Each token goes through its best experts, weighted by a softmax over their scores.
local function mixture(model, parts, x)
  local c, shape = model.config, x.shape
  local rows = x:reshape { -1, c.d_model }
  local scores = linear(parts.router, rows):totable()
  local tokens, shares = {}, {} -- by expert
  for e = 1, c.experts do tokens[e], shares[e] = {}, {} end
  for i, row in ipairs(scores) do
    local order = {}
    for e = 1, c.experts do order[e] = e end
    table.sort(order, function(a, b)
      return row[a] > row[b] or row[a] == row[b] and a < b
    end)
    local sum = 0
    for k = 1, c.experts_used do sum = sum + math.exp(row[order[k]] - row[order[1]]) end
    for k = 1, c.experts_used do
      local e = order[k]
      tokens[e][#tokens[e] + 1] = i - 1
      shares[e][#shares[e] + 1] = { math.exp(row[e] - row[order[1]]) / sum }
    end
  end
  local out = core.zeros(rows.shape)
  for e = 1, c.experts do
    if #tokens[e] > 0 then
      local ids = core.tensor(tokens[e])
      local y = run_expert(model, parts, e, core.embedding(rows, ids))
      y = y * core.tensor(shares[e])
      out = out:scatter_add(1, ids:reshape { #tokens[e], 1 }, y)
    end
  end
  return out:reshape(shape)
end

local function mlp(model, parts, x)
  if parts.router then return mixture(model, parts, x) end
  local c = model.config
  local activation = activations[c.activation]
  local inner
  if parts.gate_up then
    local both <close> = linear(parts.gate_up, x)
    inner = activation(both:narrow(3, 1, c.d_ffn)) * both:narrow(3, c.d_ffn + 1, c.d_ffn)
  elseif parts.gate then
    local gate <close> = linear(parts.gate, x)
    local up <close> = linear(parts.up, x)
    inner = activation(gate) * up
  else
    local up <close> = linear(parts.up, x)
    inner = activation(up)
  end
  local wide <close> = inner
  return linear(parts.down, wide)
end

-- Layers.

--- The heads' output: (B, T, heads * d_value).
local function heads(model, layer, q, k, v, run)
  local c, own = model.config, model.attends[layer]
  if own.mechanism.shape == "mixer" then
    return swap.mixer(model, layer, own, q, k, v, run)
  end
  return (model.attend or core.attention) { q = q, k = k, v = v, heads = c.heads,
    kv_heads = c.kv_heads, d_head = c.d_head, scale = c.scale, mechanism = own.mechanism,
    param = own.param, causal = true, window = c.windows[layer],
    alibi = c.positions == "alibi", layer = layer, length = run.length,
    first_key = run.first_key }
end

--- What a layer's attention adds to h, from the input after its norm.
local function attend(model, layer, x, run)
  local q, k, v = forward.qkv(model, layer, x, run)
  local out = heads(model, layer, q, k, v, run)
  local kept = model.kept and model.kept[layer] -- 0 where a head is taken away
  if kept then out = out * kept end
  return linear(model.layers[layer].o, out)
end

--- h (B, T, D) after a layer.
local function block(model, layer, h, run)
  local parts, parallel = model.layers[layer], model.config.parallel
  local x = parts.attn_norm and norm(model, parts.attn_norm, h) or h
  local a = attend(model, layer, x, run)
  if parts.attn_post_norm then a = norm(model, parts.attn_post_norm, a) end
  local base = h
  h = h + a
  local y = parts.ffn_norm and norm(model, parts.ffn_norm, parallel and base or h)
      or parallel and x or h
  local m = mlp(model, parts, y)
  if parts.ffn_post_norm then m = norm(model, parts.ffn_post_norm, m) end
  return h + m
end

--- Learned positions of the tokens: (T, D), or (B, T, D) for positions of their own.
local function learned_positions(model, run, tokens)
  local all, offset = model.outer.position.tensor, model.config.position_offset
  if run.positions then return core.embedding(all, run.positions + offset) end
  return all:narrow(1, 1 + offset, tokens)
end

--- The first tensor of a layer with a number that is not finite, in words.
local function culprit(parts)
  local names = {}
  for name in pairs(parts) do names[#names + 1] = name end
  table.sort(names)
  for _, name in ipairs(names) do
    local part = parts[name]
    local n, where = 0, nil
    if part.weight then n, where = part.weight:nonfinite() end
    if n > 0 then
      return ("tensor '%s' holds %d numbers that are infinite or NaN, "
        .. "the first at index %d")
          :format(part.name, n, where)
    end
  end
end

--- Raise if h is not finite, with the tensor that is to blame.
local function check_finite(model, layer, h)
  local sum = h:sum():item()
  if sum - sum == 0 then return end
  local words = culprit(model.layers[layer]) or layer == 1 and culprit(model.outer)
      or ("the hidden states after layer %d are not finite, though its weights are")
          :format(layer)
  core.raise(("%s: %s"):format(model.path, words))
end

--- Hidden states after the last layer, before the final norm.
-- @param ids  tensor (B, T) of token ids from 0
-- @param run  { length =, first_key =, positions = (B, T), in place of 0, 1, 2, ...,
--             layer = function (layer, h): called with the input of layer 1 as 0, then
--             after every layer }
function forward.hidden(model, ids, run)
  local c, outer = model.config, model.outer
  local h = lm.embedding(outer.embedding.weight, ids)
  if model.entry.embedding_scale == "sqrt" then h = h * math.sqrt(c.d_model) end
  if outer.position then h = h + learned_positions(model, run, ids.shape[2]) end
  if outer.embedding_norm then h = norm(model, outer.embedding_norm, h) end
  if run.layer then run.layer(0, h) end
  for layer = 1, c.layers do
    h = block(model, layer, h, run)
    check_finite(model, layer, h)
    if run.layer then run.layer(layer, h) end
    core.stop_if_interrupted()
  end
  return h
end

--- Logits (..., vocab) of hidden states (..., D).
function forward.logits(model, h)
  local c, outer = model.config, model.outer
  local x = norm(model, outer.final_norm, h)
  local logits
  if outer.unembedding then
    logits = linear(outer.unembedding, x)
  else
    logits = lm.linear(x, outer.embedding.weight)
  end
  if c.logit_softcap then logits = (logits / c.logit_softcap):tanh() * c.logit_softcap end
  return logits
end

return forward
