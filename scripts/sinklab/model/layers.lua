--- layers.lua - the parts that models are made of.
--
-- Each plan_* function adds a part's parameters to a plan and returns a function that,
-- once the plan is made, binds them and gives the part's forward.
local core = require "sinklab.core"
local activations = require "sinklab.model.activations"
local attention = require "sinklab.model.attention"
local init_values = require "sinklab.model.init_values"

local layers = {}

layers.position_kinds = { "none", "learned", "sinusoidal", "rotary", "rotary_half",
  "alibi" }
layers.mlp_kinds = { "none", "relu", "gelu", "gelu_tanh", "silu", "swiglu", "geglu",
  "reglu" }

local ones, zeros = init_values.constant(1), init_values.constant(0)

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
-- @param a      from attention.options
-- @param layer  its number, from 1
function layers.plan_block(plan, layer, a, o, d, init)
  local prefix = "layer" .. layer
  local has_norm, has_mlp = o.norm ~= "none", o.mlp ~= "none"
  local function norm(part)
    return has_norm and layers.plan_norm(plan, prefix .. "." .. part, o.norm, d, o.bias,
      o.norm_eps)
  end
  local norm1 = norm "attention_norm"
  local mha = attention.plan(plan, prefix, a, init, o.bias, layer)
  local norm2 = has_mlp and norm "mlp_norm"
  local mlp = has_mlp and layers.plan_mlp(plan, prefix .. ".mlp", o.mlp, d,
    o.d_mlp or 4 * d, o.bias, init)
  local pre = o.norm_place == "pre"

  local function add(part, normalise)
    if not normalise then
      return function(h, ...) return h + part(h, ...) end
    elseif pre then
      return function(h, ...) return h + part(normalise(h), ...) end
    end
    return function(h, ...) return normalise(h + part(h, ...)) end
  end
  return function(p)
    local bound = mha(p)
    local first = add(bound.forward, norm1 and norm1(p))
    local second = has_mlp and add(mlp(p), norm2 and norm2(p))
    return function(h, ...)
      h = first(h, ...)
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
