--- attention.lua - the attention of a layer: products of its input, norms and rotary
-- positions of queries and keys, the mechanism, a gate, the output matrix.
--
-- A layer's table has, for its attention:
--   number      of the layer, from 1
--   products    list of { weight =, bias =, outputs = list of { name, width }, grouped }:
--               outputs by name, one after the other. Queries, keys and values are q, k
--               and v. grouped: for each key/value head its queries, its key, its value
--   q_norm, k_norm  parts, or nil
--   rope        of rotary.lua, or nil
--   window      number of keys that a query sees, 0: all
--   virtual     a learned key before the first token: { key = (n, d) or nil: none,
--               value = (n, d) or nil: 0 }, n = 1 or G; without a key the value is added
--               to the output of every head
--   mechanism   a row plugin (weights from scores) or a mixer plugin (all of it)
--   params      its parameters: list of (H, n)
--   output_gate { mechanism =, params =, input = name of its output } or nil
--   kept        (H d_value), multiplies the heads' output, or nil
--   o           part (D, H d_value)
--
-- A call has, for one run of a model: length (B), first_key (B, T), positions (B, T),
-- attend = function in place of core.attention and core.mixer; all may be nil.
local core = require "sinklab.core"
local check = require "sinklab.base.check"
local norm = require "sinklab.layers.norm"
local product = require "sinklab.layers.product"
local rotary = require "sinklab.layers.rotary"

local attention = {}

--- z (B, T, (R + 2) d G), the rows of each key/value head together (R queries, a key, a
-- value), as queries (B, T, H d), keys and values (B, T, G d).
local function split_groups(c, z)
  local h, g, d = c.heads, c.kv_heads, c.d_head
  local b, t, r = z.shape[1], z.shape[2], h // g
  local groups = z:reshape { b, t, g, r + 2, d }
  return { q = groups:narrow(4, 1, r):reshape { b, t, h * d },
    k = groups:select(4, r + 1):reshape { b, t, g * d },
    v = groups:select(4, r + 2):reshape { b, t, g * d } }
end

--- Products of x (B, T, D) by name: each (B, T, width).
local function project(c, layer, x)
  local z = {}
  for _, p in ipairs(layer.products) do
    local y, at = product.linear(p, x), 1
    if p.grouped then return split_groups(c, y) end
    for _, output in ipairs(p.outputs) do
      local name, width = output[1], output[2]
      z[name] = #p.outputs == 1 and y or y:narrow(3, at, width)
      at = at + width
    end
  end
  return z
end

--- Queries, keys and values as the mechanism takes them, and what else a layer projects.
-- @param x  (B, T, D): the layer's input, after its norm
-- @return { q = (B, T, H d), k = (B, T, G d), v = (B, T, G d_value), ... } by name
function attention.inputs(c, layer, x, call)
  local z = project(c, layer, x)
  if c.clip then
    for _, name in ipairs { "q", "k", "v" } do
      z[name] = z[name]:maximum(-c.clip):minimum(c.clip)
    end
  end
  if layer.q_norm then
    z.q = norm.queries_or_keys(c, layer.q_norm, z.q, c.heads)
    z.k = norm.queries_or_keys(c, layer.k_norm, z.k, c.kv_heads)
  end
  if layer.rope then
    z.q = rotary.rotate(layer.rope, z.q, call.positions)
    z.k = rotary.rotate(layer.rope, z.k, call.positions)
  end
  return z
end

--- Parameters of a plugin as one (H, n) tensor, or nil.
local function joined(params)
  if #params < 2 then return params[1] end
  return core.concat(params, 2)
end

--- A learned row (n, d) for every sequence and `heads` heads: (B, 1, heads d).
local function repeated(row, batch, heads)
  local n, d = row.shape[1], row.shape[2]
  local all = row:reshape { 1, n, 1, d }:broadcast { batch, n, heads // n, d }
  return core.concat({ all }, 1):reshape { batch, 1, heads * d }
end

--- Keys and values (B, 1 + T, G d) behind the learned ones.
local function prepend(c, virtual, k, v)
  local batch, g = k.shape[1], c.kv_heads
  local value = virtual.value and repeated(virtual.value, batch, g)
      or core.zeros({ batch, 1, g * c.d_head }, v.dtype)
  return core.concat({ repeated(virtual.key, batch, g), k }, 2),
      core.concat({ value, v }, 2)
end

--- Keys or values x (B, T, G w) repeated for the heads that share them: (B, T, H w).
local function for_every_head(c, x)
  if c.kv_heads == c.heads then return x end
  local b, t, width = table.unpack(x.shape)
  local w = width // c.kv_heads
  local groups = x:reshape { b, t, c.kv_heads, 1, w }
  return groups:broadcast { b, t, c.kv_heads, c.heads // c.kv_heads, w }
      :reshape { b, t, c.heads * w }
end

--- The heads' output by a row plugin: (B, T, H d_value).
local function row_heads(c, layer, z, call)
  local virtual = layer.virtual or {}
  local k, v = z.k, z.v
  if virtual.key then k, v = prepend(c, virtual, k, v) end
  local out = (call.attend or core.attention) { q = z.q, k = k, v = v, heads = c.heads,
    kv_heads = c.kv_heads, d_head = c.d_head, scale = c.scale,
    mechanism = layer.mechanism, param = joined(layer.params), causal = c.causal,
    window = layer.window, alibi = c.alibi, virtual_keys = virtual.key and 1 or 0,
    layer = layer.number, length = call.length, first_key = call.first_key }
  if virtual.key or not virtual.value then return out end
  return out + repeated(virtual.value, 1, c.heads)
end

--- The same by a mixer plugin, whose inputs have their own names.
local function mixer_heads(c, layer, z, call)
  local inputs = {}
  for i, input in ipairs(layer.mechanism.inputs) do
    local name = input.name
    inputs[i] = (name == "k" or name == "v") and for_every_head(c, z[name]) or z[name]
  end
  if call.first_key then
    check.fail("'%s' is a mixer: it cannot keep documents or left padding apart",
      layer.mechanism.name)
  end
  return (call.attend or core.mixer) { inputs = inputs, mechanism = layer.mechanism,
    heads = c.heads, d_head = c.d_head, scale = c.scale, causal = c.causal,
    window = layer.window, layer = layer.number, param = joined(layer.params),
    length = call.length }
end

--- Attention of a layer: x (B, T, D), after its norm -> (B, T, D), to be added.
function attention.forward(c, layer, x, call)
  local z = attention.inputs(c, layer, x, call)
  local heads = layer.mechanism.shape == "mixer" and mixer_heads or row_heads
  local out = heads(c, layer, z, call)
  local gate = layer.output_gate
  if gate then
    out = core.gate { o = out, z = z[gate.input], mechanism = gate.mechanism,
      heads = c.heads, layer = layer.number, param = joined(gate.params),
      length = call.length }
  end
  if layer.kept then out = out * layer.kept end
  return product.linear(layer.o, out)
end

return attention
