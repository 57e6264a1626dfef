--- attention.lua - mechanisms and the operations around them.
--
-- lab.model composes these; here they are one by one. b sequences of t tokens, heads
-- of width d_head side by side in the last axis. This file documents
-- core/lua/lua_mechanism.c and lua_attention.c; nothing in it runs.

--- A mechanism: a plugin with the values of its options.
--
-- It has the fields name, version, doc, path, hash, shape ("row", "gate" or "mixer"),
-- has_weights, claims, options, params and inputs.
-- @param name     of a plugin on the search path, or the path of its file
-- @param options  the plugin's own (sinklab plugin info NAME, or ?"NAME" at the
--                 prompt); default those it declares
-- @return mechanism; equal arguments give the same object
-- @error no such plugin, an option it does not have, a value out of range
-- @example
--   print(lab.mechanism("relu", { normaliser = "visible" }))
function lab.mechanism(name, options) end

--- How many learned numbers a head of this width has.
-- @param d_head  width of a head
-- @return whole number
-- @example
--   print(lab.mechanism "softmax":params_count(16))
function mechanism:params_count(d_head) end

--- How many numbers a head gives for a token.
-- @param d_head  width of a head
-- @param tokens  of a sequence
-- @return whole number
-- @example
--   print(lab.mechanism "softmax":output_width(16, 8))
function mechanism:output_width(d_head, tokens) end

--- The plugins on the search path.
-- @return list of { name, path, shadowed }; a shadowed one has the name of one before
-- @example
--   print(#lab.plugins() > 0)
function lab.plugins() end

--- Attention: scores, a row mechanism's weights, the weighted sum of values.
--
-- score = scale * q . k; the mechanism sees only the keys that the query may see, so
-- there is no mask value. A query without keys gives 0.
-- @param q               tensor (b, t, heads * d_head)
-- @param k               tensor (b, t, kv_heads * d_head)
-- @param v               tensor (b, t, kv_heads * width of a value)
-- @param mechanism       from lab.mechanism, a row
-- @param heads           of q
-- @param kv_heads        of k and v; divides heads, default heads
-- @param d_head          default width of q / heads
-- @param scale           default 1 / sqrt (d_head)
-- @param causal          default true: keys up to the query
-- @param window          keys back from the query, itself included; default 0: all
-- @param alibi           default false: linear biases by distance
-- @param param           tensor (heads, n) of the mechanism's numbers, or nil
-- @param length          tensor (b): valid tokens of each sequence, or nil
-- @param begin           tensor (b, t): the first key, from 0, that each query may see
--                        (left padding, packed documents), or nil; not with a prefix
-- @param recompute_from  from so many tokens weights are recomputed in the backward
--                        pass, default 256
-- @param layer           number that the plugin is told, default 1
-- @param prefix          rows of k and v before the first token, default 0
-- @return tensor (b, t, heads * width of a value)
-- @error shapes that do not fit
-- @source Vaswani et al. 2017, arXiv 1706.03762; alibi: Press et al. 2022, arXiv
--         2108.12409
-- @example
--   local x = lab.generator(0):normal(0, 1, { 1, 4, 8 })
--   print(lab.attention { q = x, k = x, v = x, heads = 2,
--     mechanism = lab.mechanism "softmax" }.shape[3])
function lab.attention(options) end

--- The weights that a row mechanism makes of scores.
-- @param mechanism  from lab.mechanism, a row
-- @param scores     tensor (b, heads, t, t): query rows, key columns
-- @param param      tensor (heads, n) of the mechanism's numbers, or nil
-- @param length     tensor (b): valid tokens of each sequence, or nil
-- @param begin      tensor (b, t): first key, from 0, of each query, or nil
-- @param causal     default true
-- @param window     keys back from the query, itself included; default 0: all
-- @param d_head     width that its parameters depend on, default 1
-- @return tensor of the shape of scores; 0 where a key is not seen
-- @example
--   local s = lab.zeros({ 1, 1, 3, 3 })
--   print(lab.apply_mechanism(lab.mechanism "softmax", s))
function lab.apply_mechanism(mechanism, scores, options) end

--- A gate plugin on the output of heads.
-- @param o          tensor (b, t, heads * d)
-- @param z          tensor (b, t, heads * width), (b, t, width) if the plugin's input
--                   is shared, or nil if it has none
-- @param mechanism  from lab.mechanism, a gate
-- @param heads      default 1
-- @param layer      number that the plugin is told, default 1
-- @param param      tensor (heads, n) of its numbers, or nil
-- @param length     tensor (b): valid tokens of each sequence, or nil
-- @return tensor of the shape of o
-- @example
--   local o, z = lab.ones({ 1, 2, 4 }), lab.zeros({ 1, 2, 4 })
--   print(lab.gate { o = o, z = z, mechanism = lab.mechanism "sigmoid_gate" })
function lab.gate(options) end

--- A mixer plugin: a whole mechanism with projections of its own.
-- @param inputs     list of tensors (b, t, heads * width), or (b, t, width) if shared,
--                   in the order in which the plugin declares them
-- @param mechanism  from lab.mechanism, a mixer
-- @param heads      default 1
-- @param d_head     width of a head, default 1
-- @param scale      default 1 / sqrt (d_head)
-- @param causal     default true
-- @param window     keys back from the query, itself included; default 0: all
-- @param layer      number that the plugin is told, default 1
-- @param param      tensor (heads, n) of its numbers, or nil
-- @param length     tensor (b): valid tokens of each sequence, or nil
-- @return tensor (b, t, heads * output width)
-- @example
--   local m = lab.mechanism "retention"
--   local inputs = {}
--   for i, input in ipairs(m.inputs) do
--     inputs[i] = lab.ones({ 1, 3, input.width_per_dhead * 4 + input.width_fixed })
--   end
--   print(lab.mixer { inputs = inputs, mechanism = m, d_head = 4 }.shape[3])
function lab.mixer(options) end

--- Queries or keys turned by position, pair by pair.
-- @param x       tensor (b, t, heads * d_head)
-- @param d_head  width of a head, even
-- @param pairs   "interleaved" (default) or "half"
-- @param base    default 10000
-- @param offset  position of the first token, default 0
-- @return tensor of the shape of x
-- @source Su et al. 2021, arXiv 2104.09864
-- @example
--   print(lab.rope(lab.ones({ 1, 3, 4 }), { d_head = 4 }))
function lab.rope(x, options) end

--- Positions as sines and cosines: sin in odd columns, cos in even ones.
-- @param n      positions
-- @param d      width
-- @param dtype  "f32" (default) or "f64"
-- @return tensor (n, d)
-- @source Vaswani et al. 2017, arXiv 1706.03762
-- @example
--   print(lab.sinusoidal(4, 6))
function lab.sinusoidal(n, d, dtype) end

--- The slopes of linear biases, one a head.
-- @param heads  how many
-- @param dtype  "f32" (default) or "f64"
-- @return tensor (heads)
-- @source Press, Smith and Lewis 2022, arXiv 2108.12409
-- @example
--   print(lab.alibi_slopes(4))
function lab.alibi_slopes(heads, dtype) end
