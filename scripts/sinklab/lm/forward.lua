--- forward.lua - a model file bound to the layers of sinklab.layers, and run.
--
-- Nothing here is recorded: every layer's activations are garbage once the next has
-- them, and attention works on a block of rows at a time, so memory does not grow with
-- the square of the length. Letters: B sequences, T tokens, D width of the model.
local core = require "sinklab.core"
local config = require "sinklab.lm.config"
local layers = require "sinklab.layers"

local forward = {}

-- Binding.

--- The mechanism that a layer was trained with, and its parameters: list of (H, n).
local function own_mechanism(c, parts)
  if parts.sinks then
    return core.mechanism("sinklogit", {}), { parts.sinks.tensor:reshape { c.heads, 1 } }
  elseif c.softcap then
    return core.mechanism("softcap_softmax", { cap = c.softcap }), {}
  end
  return core.mechanism("softmax", {}), {}
end

--- Products of a layer's input; `layout` of a fused one: "blocks" or "groups".
local function products_of(c, parts, layout)
  local q = { "q", c.heads * c.d_head }
  local k, v = { "k", c.kv_heads * c.d_head }, { "v", c.kv_heads * c.d_value }
  local function product(part, outputs)
    return { weight = part.weight, transposed = part.transposed, bias = part.bias,
      outputs = outputs, grouped = #outputs > 1 and layout == "groups" }
  end
  if parts.qkv then return { product(parts.qkv, { q, k, v }) } end
  return { product(parts.q, { q }), product(parts.k, { k }), product(parts.v, { v }) }
end

--- Rotary positions of layers with and without a window.
local function ropes_of(c, outer)
  local rope = c.rope
  if not rope then return end
  local function divisors(part, list)
    return part and part.tensor or type(list) == "table" and core.tensor(list) or nil
  end
  local full = { d_head = c.d_head, pairs = rope.pairs, rotated = rope.rotated,
    base = rope.base, magnitude = rope.magnitude, original = rope.original,
    divisors = divisors(outer.rope_divisors, rope.divisors),
    long = divisors(outer.rope_long, rope.long),
    short = divisors(outer.rope_short, rope.short) }
  if not rope.local_base then return full, full end
  return full, { d_head = c.d_head, pairs = rope.pairs, rotated = rope.rotated,
    base = rope.local_base }
end

--- Bind the parts of a file: model.blocks, the tables that sinklab.layers takes, and the
-- words of its config that the architecture says.
-- @param model  { config, entry, outer, layers = parts of each layer }
function forward.bind(model)
  local c, entry, outer = model.config, model.entry, model.outer
  c.norm, c.qk_norm, c.gating = entry.norm, entry.qk_norm, entry.gating
  c.causal, c.alibi = true, c.positions == "alibi"
  c.embedding_scale = entry.embedding_scale == "sqrt" and math.sqrt(c.d_model) or nil
  outer.unembedding = outer.unembedding or outer.embedding
  local full, windowed = ropes_of(c, outer)
  local layout = config.of_form(entry.qkv, c.form)
  model.blocks = {}
  for number, parts in ipairs(model.layers) do
    local block = { number = number, window = c.windows[number],
      rope = c.windows[number] > 0 and windowed or full,
      products = products_of(c, parts, layout) }
    block.mechanism, block.params = own_mechanism(c, parts)
    for name, part in pairs(parts) do block[name] = part end
    model.blocks[number] = block
  end
end

-- Running.

--- Learned positions of the tokens: (T, D), or (B, T, D) for positions of their own.
local function learned_positions(model, run, tokens)
  if not model.outer.position then return nil end
  local all, offset = model.outer.position.tensor, model.config.position_offset
  if run.positions then return core.embedding(all, run.positions + offset) end
  return all:narrow(1, 1 + offset, tokens)
end

--- The first tensor of some parts with a number that is not finite, in words.
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

--- Hidden states (B, T, D) after the last layer, before the final norm.
-- @param ids  tensor (B, T) of token ids from 0
-- @param run  { length =, first_key =, positions = (B, T), in place of 0, 1, 2, ...,
--             layer = function (layer, h): called with the input of layer 1 as 0, then
--             after every layer; attend = function in place of core.attention }
function forward.hidden(model, ids, run)
  local c = model.config
  local h = layers.embed(c, model.outer, ids, learned_positions(model, run, ids.shape[2]))
  if run.layer then run.layer(0, h) end
  for layer, block in ipairs(model.blocks) do
    h = layers.block(c, block, h, run)
    check_finite(model, layer, h)
    if run.layer then run.layer(layer, h) end
    core.stop_if_interrupted()
  end
  return h
end

--- Logits (..., vocabulary) of hidden states (..., D).
function forward.logits(model, h) return layers.logits(model.config, model.outer, h) end

return forward
