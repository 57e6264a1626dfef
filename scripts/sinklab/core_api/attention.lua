--- attention.lua - mechanisms and the operations around them.
--
-- lab.model composes these; here they are one by one. b sequences of t tokens, heads
-- of width d_head side by side in the last axis.
local schema = require "sinklab.base.schema"

local attention = {}

local mechanism = { "mechanism", "mechanism", required = true,
  doc = "from lab.mechanism" }
local heads = { "heads", "integer", min = 1, default = 1, doc = "how many side by side" }
local scale = { "scale", "number", default_doc = "1 / sqrt (d_head)",
  doc = "factor of the scores q . k" }
local causal = { "causal", "boolean", default = true, doc = "no key after its query" }
local window = { "window", "integer", min = 0, default = 0, unit = "tokens",
  doc = "keys back from the query, itself included; 0: all" }
local layer = { "layer", "integer", min = 1, default = 1,
  doc = "number of the layer, which the plugin is given" }
local param = { "param", "tensor",
  doc = "(heads, n): the mechanism's learned numbers, if it has any" }
local length = { "length", "tensor", default_doc = "all",
  doc = "(b): valid tokens of each sequence" }
local first_key = { "first_key", "tensor", doc = "(b, t): the first key, from 0, that "
  .. "each query may see (left padding, packed documents)" }
local dtype = { "dtype", "string", default = "f32", choices = { "f32", "f64" } }

attention.mechanism = schema.core("lab.mechanism", {
  doc = [[A mechanism: a plugin with the values of its options.

  It has the fields name, version, doc, path, hash, shape ("row", "gate" or "mixer"),
  has_weights, properties, options, params and inputs.]],
  args = {
    { "name", "string", doc = "of a plugin on the search path, or the path of its file" },
    { "values", "table", optional = true, default_doc = "those the plugin declares",
      doc = [[of the plugin's own options (sinklab plugin info NAME, or ?"NAME" at the
        prompt)]] },
  },
  returns = "mechanism; equal arguments give the same object",
  errors = "no such plugin, an option it does not have, a value out of range",
  example = [[print(lab.mechanism("relu", { normaliser = "visible" }))]],
})

schema.core("mechanism:params_count", {
  doc = "How many learned numbers a head of this width has.",
  args = { { "d_head", "integer", doc = "width of a head" } },
  returns = "whole number",
  example = [[print(lab.mechanism "softmax":params_count(16))]],
})

schema.core("mechanism:output_width", {
  doc = "How many numbers a head gives for a token.",
  args = { { "d_head", "integer", doc = "width of a head" },
    { "tokens", "integer", doc = "of a sequence" } },
  returns = "whole number",
  example = [[print(lab.mechanism "softmax":output_width(16, 8))]],
})

attention.plugins = schema.core("lab.plugins", {
  doc = "The plugins on the search path.",
  returns = [[list of { name, path, shadowed }; shadowed: a plugin before it has the same
    name]],
  example = "print(#lab.plugins() > 0)",
})

attention.attention = schema.core("lab.attention", {
  doc = [[Attention: scores, the weights that a row mechanism makes of them, the weighted
  sum of values.

  score = scale * q . k. The mechanism is given the visible keys only, so there is no mask
  value. A query without visible keys gives 0.]],
  options = {
    { "q", "tensor", required = true, doc = "(b, t, heads * d_head)" },
    { "k", "tensor", required = true, doc = "(b, t, kv_heads * d_head)" },
    { "v", "tensor", required = true, doc = "(b, t, kv_heads * width of a value)" },
    mechanism, heads,
    { "kv_heads", "integer", min = 1, default_doc = "heads",
      doc = "of k and v; divides heads" },
    { "d_head", "integer", min = 1, default_doc = "width of q / heads" },
    scale, causal, window,
    { "alibi", "boolean", default = false, doc = "linear biases by distance" },
    param, length, first_key,
    { "recompute_from", "integer", min = 0, default_doc = "256", unit = "tokens",
      doc = "from this length on weights are recomputed in the backward pass" },
    layer,
    { "virtual_keys", "integer", min = 0, default = 0,
      doc = "rows of k and v before the first token; not with first_key" },
  },
  returns = "tensor (b, t, heads * width of a value)",
  errors = "shapes that do not fit",
  source = "Vaswani et al. 2017, arXiv 1706.03762; alibi: Press et al. 2022, arXiv "
    .. "2108.12409",
  example = [[
    local x = lab.generator(0):normal(0, 1, { 1, 4, 8 })
    print(lab.attention { q = x, k = x, v = x, heads = 2,
      mechanism = lab.mechanism "softmax" }.shape[3])]],
})

attention.row_weights = schema.core("lab.row_weights", {
  doc = "The weights that a row mechanism makes of scores.",
  args = {
    { "mechanism", "mechanism", doc = "from lab.mechanism, a row" },
    { "scores", "tensor", doc = "(b, heads, t, t): query rows, key columns" },
  },
  options = { param, length, first_key, causal, window,
    { "d_head", "integer", min = 1, default = 1,
      doc = "width that its parameters depend on" },
    { "offset", "integer", min = 0, default = 0,
      doc = "position of the first query, for mechanisms that count earlier tokens" } },
  returns = "tensor of the shape of scores; 0 where a key is not visible",
  example = [[
    local s = lab.zeros({ 1, 1, 3, 3 })
    print(lab.row_weights(lab.mechanism "softmax", s))]],
})

attention.gate = schema.core("lab.gate", {
  doc = "A gate plugin on the output of heads.",
  options = {
    { "o", "tensor", required = true, doc = "(b, t, heads * d)" },
    { "z", "tensor", doc = [[(b, t, heads * width), (b, t, width) if the plugin's input is
      shared; nil if it has none]] },
    mechanism, heads, layer, param, length,
  },
  returns = "tensor of the shape of o",
  example = [[
    local o, z = lab.ones({ 1, 2, 4 }), lab.zeros({ 1, 2, 4 })
    print(lab.gate { o = o, z = z, mechanism = lab.mechanism "sigmoid_gate" })]],
})

attention.mixer = schema.core("lab.mixer", {
  doc = "A mixer plugin: a whole mechanism with projections of its own.",
  options = {
    { "inputs", "table", required = true, doc = [[tensors (b, t, heads * width), or
      (b, t, width) if shared, in the order in which the plugin declares them]] },
    mechanism, heads,
    { "d_head", "integer", min = 1, default = 1, doc = "width of a head" },
    scale, causal, window, layer, param, length,
  },
  returns = "tensor (b, t, heads * output width)",
  example = [[
    local m = lab.mechanism "retention"
    local inputs = {}
    for i, input in ipairs(m.inputs) do
      inputs[i] = lab.ones({ 1, 3, input.width_per_dhead * 4 + input.width_fixed })
    end
    print(lab.mixer { inputs = inputs, mechanism = m, d_head = 4 }.shape[3])]],
})

attention.rope = schema.core("lab.rope", {
  doc = "Queries or keys turned by position, pair by pair.",
  args = { { "x", "tensor", doc = "(b, t, heads * d_head)" } },
  options = {
    { "d_head", "integer", min = 2, required = true, doc = "width of a head, even" },
    { "pairs", "string", default = "interleaved", choices = { "interleaved", "half" },
      doc = "numbers that turn together: 2i and 2i + 1, or i and i + rotated / 2" },
    { "base", "number", above = 0, default = 10000,
      doc = "pair i turns by position / base^(2i / rotated) radians" },
    { "offset", "integer", default = 0, doc = "position of the first token" },
    { "rotated", "integer", min = 0, default_doc = "d_head",
      doc = "how many numbers of a head turn, even" },
    { "divisors", "tensor", doc = "(rotated / 2): of the turn of each pair" },
    { "magnitude", "number", default = 1, doc = "factor of the result" },
    { "positions", "tensor", default_doc = "0, 1, ...",
      doc = "(b, t): of each token; the offset is added" },
  },
  returns = "tensor of the shape of x",
  source = "Su et al. 2021, arXiv 2104.09864",
  example = "print(lab.rope(lab.ones({ 1, 3, 4 }), { d_head = 4 }))",
})

attention.sinusoidal = schema.core("lab.sinusoidal", {
  doc = "Positions as sines and cosines: sin in odd columns, cos in even ones.",
  args = {
    { "n", "integer", min = 1, max = 1 << 24, doc = "positions" },
    { "d", "integer", min = 1, max = 1 << 16, doc = "width" },
    dtype,
  },
  returns = "tensor (n, d)",
  source = "Vaswani et al. 2017, arXiv 1706.03762",
  example = "print(lab.sinusoidal(4, 6))",
})

attention.alibi_slopes = schema.core("lab.alibi_slopes", {
  doc = "The slopes of linear biases, one for each head.",
  args = { { "heads", "integer", min = 1, max = 1 << 16, doc = "how many" }, dtype },
  returns = "tensor (heads)",
  source = "Press, Smith and Lewis 2022, arXiv 2108.12409",
  example = "print(lab.alibi_slopes(4))",
})

return attention
