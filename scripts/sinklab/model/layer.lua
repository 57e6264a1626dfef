--- layer.lua - the layers of a trained model, planned: tables of sinklab.layers that hold
-- references to parameters.
--
-- Matrices are (outputs, inputs): head h of w_q (H d, D) has the rows (h - 1) d + 1 to
-- h d. Parameters of a plugin are (H, width), the matrices of its inputs (outputs, D);
-- both are called layerN.PLUGIN.NAME.
local core = require "sinklab.core"
local init_values = require "sinklab.model.init_values"
local rotary = require "sinklab.layers.rotary"

local layer = {}

local ones, zeros = init_values.constant(1), init_values.constant(0)

--- The initialiser that a plugin declares; `default` where it leaves it open.
local function declared_init(p, default)
  if p.init == "normal" then return init_values.normal(p.scale) end
  if p.init == "uniform" then return init_values.uniform(p.scale) end
  if p.init == "const" then return init_values.constant(p.scale) end
  return default
end

local function width(p, d) return p.width_per_dhead * d + p.width_fixed end

--- A norm over `shape`, called `name`.
-- @param c     norm, norm_eps
-- @param bias  with the bias of a layer norm
function layer.norm(plan, name, c, shape, bias)
  return { gamma = plan:add(name .. ".gamma", shape, ones),
    bias = bias and c.norm == "layer" and plan:add(name .. ".beta", shape, zeros) or nil }
end

--- Matrices that project the inputs of a plugin: list of { name, output, rows, init }.
-- @param d  the plugin's widths are multiples of it
local function plugin_inputs(m, output, heads, d, init)
  local out = {}
  for i, p in ipairs(m.inputs) do
    out[i] = { m.name .. "." .. p.name, output .. p.name,
      (p.shared and 1 or heads) * width(p, d), declared_init(p, init) }
  end
  return out
end

--- The same of queries, keys and values.
local function qkv_inputs(c, init)
  return { { "w_q", "q", c.heads * c.d_head, init },
    { "w_k", "k", c.kv_heads * c.d_head, init },
    { "w_v", "v", c.kv_heads * c.d_head, init } }
end

--- Plan matrices that project the layer's input, neighbours: one product.
local function product(plan, prefix, c, matrices)
  local outputs, rows, first, last = {}, 0, nil, nil
  for i, m in ipairs(matrices) do
    last = plan:add(prefix .. m[1], { m[3], c.d_model }, m[4])
    first = first or last
    outputs[i], rows = { m[2], m[3] }, rows + m[3]
  end
  return { weight = plan:span(first, last, { rows, c.d_model }), outputs = outputs }
end

--- A plugin's parameters: list of (H, n).
local function plugin_params(plan, prefix, m, heads, d)
  local out = {}
  for i, p in ipairs(m.params) do
    out[i] = plan:add(prefix .. m.name .. "." .. p.name, { heads, width(p, d) },
      declared_init(p, zeros))
  end
  return out
end

--- The learned key and value of the option kv_bias.
local function virtual_key(plan, prefix, c, kv_bias)
  local shape = { kv_bias.shared and 1 or c.kv_heads, c.d_head }
  local init = init_values.normal(0.02)
  return { key = kv_bias.key and plan:add(prefix .. "k_bias", shape, init) or nil,
    value = kv_bias.value and plan:add(prefix .. "v_bias", shape, init) or nil }
end

local qk_norm_shapes = {
  head = function(_, d) return { d } end,
  heads = function(n, d) return { n, d } end,
  full = function(n, d) return { n * d } end,
}

--- Rotary positions of a layer with this window, or nil.
local function rope_of(c, o, window)
  local pairs_of = ({ rotary = "interleaved", rotary_half = "half" })[o.positions]
  if not pairs_of then return nil end
  local out = { d_head = c.d_head, pairs = pairs_of, base = o.rope_base,
    rotated = o.rotary_part < 1 and math.floor(c.d_head * o.rotary_part) or nil }
  local s = o.rope_scaling
  if window > 0 and o.rope_local_base then
    out.base = o.rope_local_base
  elseif s then
    local divisors, magnitude = rotary.scalings[s.type]({ base = o.rope_base,
      factor = s.factor, original = s.original_context or o.context or o.task.seq_len,
      low = s.low_freq_factor, high = s.high_freq_factor, beta_fast = s.beta_fast,
      beta_slow = s.beta_slow, truncate = true,
      magnitude = rotary.yarn_magnitude(s.factor, 1) }, (out.rotated or c.d_head) // 2)
    out.divisors, out.magnitude = core.tensor(divisors, o.dtype), magnitude
  end
  return out
end

--- Plan the attention of layer `number` as sinklab/layers/attention.lua describes it.
-- @param c  the model's config
-- @param a  from attention.options
-- @param o  the model's options: init, bias, positions, ...
function layer.attention(plan, number, c, a, o)
  local prefix = "layer" .. number .. "."
  local m, is_row = a.mechanism, a.mechanism.shape == "row"
  local inputs = is_row and qkv_inputs(c, o.init)
      or plugin_inputs(m, "", c.heads, c.d_head, o.init)
  local gate = a.gate and plugin_inputs(a.gate, "gate.", c.heads, a.d_out, o.init) or {}
  local window = a.windows[(number - 1) % #a.windows + 1]
  local out = { number = number, mechanism = m, window = window,
    rope = rope_of(c, o, window) }
  -- Queries, keys and values have biases of their own, so that a gate is another product.
  if o.bias and is_row and #gate > 0 then
    out.products = { product(plan, prefix, c, inputs), product(plan, prefix, c, gate) }
  else
    local all = table.move(inputs, 1, #inputs, 1, {})
    table.move(gate, 1, #gate, #all + 1, all)
    out.products = { product(plan, prefix, c, all) }
  end
  out.o = { weight = plan:add(prefix .. "w_o", { c.d_model, c.heads * a.d_out }, o.init) }
  if o.bias and is_row then
    local rows = (c.heads + 2 * c.kv_heads) * c.d_head
    local b_q = plan:add(prefix .. "b_q", { c.heads * c.d_head }, zeros)
    plan:add(prefix .. "b_k", { c.kv_heads * c.d_head }, zeros)
    local b_v = plan:add(prefix .. "b_v", { c.kv_heads * c.d_head }, zeros)
    out.products[1].bias = plan:span(b_q, b_v, { rows })
  end
  if o.bias == true then out.o.bias = plan:add(prefix .. "b_o", { c.d_model }, zeros) end
  out.params = plugin_params(plan, prefix, m, c.heads, c.d_head)
  if a.gate then
    out.output_gate = { mechanism = a.gate, input = gate[1] and gate[1][2],
      params = plugin_params(plan, prefix, a.gate, c.heads, a.d_out) }
  end
  out.virtual = a.kv_bias and virtual_key(plan, prefix, c, a.kv_bias)
  if c.qk_norm then
    local bias = o.bias == true and c.qk_norm ~= "heads"
    local function norm(name, heads)
      local shape = qk_norm_shapes[c.qk_norm](heads, c.d_head)
      return layer.norm(plan, prefix .. name, c, shape, bias)
    end
    out.q_norm, out.k_norm = norm("q_norm", c.heads), norm("k_norm", c.kv_heads)
  end
  return out
end

--- Plan the MLP: adds the parts of sinklab/layers/mlp.lua to `out`.
-- @param kind  of mlp.kinds
local function plan_mlp(out, plan, prefix, c, kind, o)
  local hidden, d = c.d_ffn, c.d_model
  local names = kind.gated and { "gate", "up", "down" } or { "up", "down" }
  for _, name in ipairs(names) do
    local shape = name == "down" and { d, hidden } or { hidden, d }
    out[name] = { weight = plan:add(prefix .. "w_" .. name, shape, o.init) }
  end
  for _, name in ipairs(o.bias == true and names or {}) do
    out[name].bias = plan:add(prefix .. "b_" .. name,
      { name == "down" and d or hidden }, zeros)
  end
end

-- Where norms are, by the option norm_place: the parameter's name and the place in
-- sinklab/layers/block.lua, both behind the name of the part.
local norm_places = {
  pre = { { "norm", "norm" } },
  post = { { "norm", "sum_norm" } },
  output = { { "output_norm", "post_norm" } },
  sandwich = { { "norm", "norm" }, { "output_norm", "post_norm" } },
}

layer.norm_places = { "pre", "post", "sandwich", "output" }

--- Plan a block as sinklab/layers/block.lua has it: attention, MLP and their norms.
-- @param kind  of mlp.kinds, nil: no MLP
function layer.block(plan, number, c, a, kind, o)
  local prefix = "layer" .. number .. "."
  local norms = {}
  local function plan_norms(name, place)
    for _, names in ipairs(c.norm and norm_places[o.norm_place] or {}) do
      norms[place .. names[2]] = layer.norm(plan, prefix .. name .. names[1], c,
        { c.d_model }, o.bias == true)
    end
  end
  plan_norms("attention_", "attn_")
  local out = layer.attention(plan, number, c, a, o)
  if kind then
    if o.mlp_norm then plan_norms("mlp_", "ffn_") end
    plan_mlp(out, plan, prefix .. "mlp.", c, kind, o)
  end
  for place, norm in pairs(norms) do out[place] = norm end
  return out
end

return layer
