--- open.lua - lab.lm.open: a language model from a file.
local core = require "sinklab.core"
local check = require "sinklab.base.check"
local lm = require "sinklab.lm"
local read_heads = require "sinklab.measure.heads"
local config = require "sinklab.lm.config"
local forward = require "sinklab.lm.forward"
local unsupported = require "sinklab.lm.unsupported"
local swap = require "sinklab.lm.swap"
local weights = require "sinklab.lm.weights"

local open = {}

local methods = {}
local Model = { __index = methods, __name = "sinklab.language_model" }

--- The attention that a layer was trained with: { mechanism, param (heads, 1) }.
local function own_attention(model, parts)
  local c = model.config
  if parts.sinks then
    return { mechanism = core.mechanism("sinklogit", {}),
      param = parts.sinks.tensor:reshape { c.heads, 1 } }
  elseif c.softcap then
    return { mechanism = core.mechanism("softcap_softmax", { cap = c.softcap }) }
  end
  return { mechanism = core.mechanism("softmax", {}) }
end

--- Divisors of rotary angles, from the config or a tensor.
local function read_divisors(model)
  local c, outer = model.config, model.outer
  if not c.rope then return end
  local function table_of(part, list)
    return part and part.tensor or type(list) == "table" and core.tensor(list) or nil
  end
  model.divisors = table_of(outer.rope_divisors, c.rope.divisors)
  model.long = table_of(outer.rope_long, c.rope.long)
  model.short = table_of(outer.rope_short, c.rope.short)
end

--- Ids as a tensor (B, T), from a list, a list of equally long lists or a tensor.
-- @param positions  (B, T), or nil
local function ids_of(model, what, ids, positions)
  local t = ids
  if type(ids) == "table" then
    if #ids == 0 then check.fail("%s: there are no token ids", what) end
    t = core.tensor(ids)
  elseif not core.is_tensor(ids) then
    check.fail("%s: token ids must be a list of numbers or a tensor, got a %s", what,
      type(ids))
  end
  t = t:to "f32"
  if t.ndim == 1 then t = t:reshape { 1, t.shape[1] } end
  if t.ndim ~= 2 or t.shape[2] == 0 then
    check.fail("%s: token ids must have the shape (tokens) or (sequences, tokens)", what)
  end
  local vocab = model.config.vocab
  for _, row in ipairs(t:totable()) do
    for i, id in ipairs(row) do
      if not (id >= 0 and id < vocab) or id % 1 ~= 0 then
        check.fail("%s: token id %g at position %d is outside 0 to %d", what, id, i,
          vocab - 1)
      end
    end
  end
  local most, last = model.most_tokens, t.shape[2]
  if most and positions then last = math.floor(positions:max():item()) + 1 end
  if most and last > most then
    check.fail("%s: %d tokens are too many: the model has %d learned positions",
      what, last, most)
  end
  return t
end

local forward_rules = {
  length = { "tensor table" },
  first_key = { "tensor table" },
  positions = { "tensor table" },
  layer = { "function" },
}

local function as_tensor(t) return type(t) == "table" and core.tensor(t) or t end

--- Run a model up to its last layer.
--
-- Nothing of the size T x T is made: attention goes by in blocks of rows. What a later
-- layer needs is all that is kept.
-- @param ids        token ids from 0: a list, a list of equally long lists, or a tensor
--                   (B, T)
-- @param length     (B): valid tokens of each sequence
-- @param first_key  (B, T): the first position, from 0, that each token may see
-- @param positions  (B, T), in place of 0, 1, 2, ...
-- @param layer      function (layer, h): called with what every layer gives, and as layer
--                   0 with the input of the first
-- @return hidden states (B, T, d_model) before the final norm
-- @error ids outside the vocabulary; more tokens than learned positions; weights that
--        hold NaN
-- @example
--   local model = lab.lm.random {}
--   print(model:forward { 1, 5, 6 })
function methods:forward(ids, given)
  local what = "language_model:forward"
  local o = check.options(what, given, forward_rules)
  local run = { length = as_tensor(o.length), first_key = as_tensor(o.first_key),
    positions = as_tensor(o.positions), layer = o.layer }
  local t = ids_of(self, what, ids, run.positions)
  if self.long or self.short then
    local long = t.shape[2] > self.config.rope.original
    self.divisors = long and self.long or not long and self.short or nil
  end
  return forward.hidden(self, t, run)
end

--- What a model says comes next after every token.
-- @param ids    as for language_model:forward
-- @param given  as for language_model:forward
-- @return logits (B, T, vocabulary)
-- @example
--   local model = lab.lm.random {}
--   print(model:logits { 1, 5, 6 }:select(2, 3):argmax())
function methods:logits(ids, given)
  return forward.logits(self, self:forward(ids, given))
end

--- Which heads a change is of: function (layer, head).
local function chosen_heads(what, c, heads)
  if heads == "all" then return function() return true end end
  return (read_heads(what, heads, c.layers, c.heads))
end

--- What the outputs of heads are multiplied with: 0 where they are taken away.
local function kept_outputs(c, chosen)
  local out = {}
  for layer = 1, c.layers do
    for head = 1, c.heads do
      if chosen(layer, head) then
        out[layer] = out[layer] or core.ones { c.heads * c.d_value }
        out[layer]:narrow(1, (head - 1) * c.d_value + 1, c.d_value):fill(0)
      end
    end
  end
  return out
end

--- The attention of each layer with another mechanism in some.
local function swapped(what, model, given, layers)
  local out = table.move(model.attends, 1, #model.attends, 1, {})
  for i = 1, layers and #layers or #out do
    local layer = layers and layers[i] or i
    if not out[layer] then
      check.fail("%s: there is no layer %s: layers are 1 to %d", what, tostring(layer),
        #out)
    end
    out[layer] = swap.of(what, model, layer, given)
  end
  return out
end

--- Another model with the same weights and one thing changed.
--
-- The first model stays as it is. Layers, heads and positions count from 1. Changes of
-- weights and values (onto, off, remove, mask, value) are those of lab.intervene and are
-- computed densely, (B, H, T, T): for short texts.
-- @param mechanism  a plugin's name, or { NAME, OPTION = VALUE }, in place of softmax
-- @param layers     those that get it, default all
-- @param zero       true: heads give 0
-- @param mask       position or list: keys that heads do not see
-- @param onto, off, remove  position that gets all of a row's weight, gives it to the
--                   rest, loses it
-- @param value      { position =, to = }: as for lab.intervene
-- @param heads      of all but the first: "all" (default) or a list of { layer, head }
-- @return the other model
-- @error a plugin that needs what a trained model does not have; no such head or layer
-- @example
--   local model = lab.lm.random {}
--   print(model:with { mechanism = "softmax1" }:logits { 1, 5, 6 })
function methods:with(given)
  local what = "language_model:with"
  local o = check.options(what, given, {
    mechanism = { "string table" }, layers = { "table" }, zero = { "boolean" },
    heads = { "string table", default = "all", choices = { "all" } },
    mask = { "integer table", min = 1 }, onto = { "integer", min = 1 },
    off = { "integer", min = 1 }, remove = { "integer", min = 1 }, value = { "table" } })
  local other = {}
  for key, value in pairs(self) do other[key] = value end
  if o.layers and not o.mechanism then
    check.fail("%s: layers are those of a mechanism, and none is given", what)
  end
  local chosen = chosen_heads(what, self.config, o.heads)
  if o.mechanism then
    other.attends = swapped(what, self, o.mechanism, o.layers)
  elseif o.zero then
    other.kept = kept_outputs(self.config, chosen)
  end
  for _, name in ipairs { "mask", "onto", "off", "remove", "value" } do
    if o[name] then
      local dense = require "sinklab.theorem.dense_attention"
      other.attend = dense.attend({ [name] = o[name] }, chosen, 0)
    end
  end
  return setmetatable(other, Model)
end

--- The weights of one head on one sequence, in full.
-- @param ids    token ids of one sequence
-- @param layer  from 1
-- @param head   from 1
-- @return tensor (T, T): queries down, keys across
-- @example
--   local model = lab.lm.random { layers = 1 }
--   print(model:attention { ids = { 1, 9, 4 }, layer = 1, head = 2 })
function methods:attention(given)
  return require("sinklab.lm.measure").attention(self, given)
end

function Model:__tostring()
  local c = self.config
  local function counted(n, what)
    return ("%d %s%s"):format(n, what, n == 1 and "" or "s")
  end
  return ("%s, %s, %s%s of %d, width %d, vocabulary %d, context %d"):format(
    c.architecture, counted(c.layers, "layer"), counted(c.heads, "head"),
    c.kv_heads ~= c.heads and (" (%d key/value)"):format(c.kv_heads) or "", c.d_head,
    c.d_model, c.vocab, c.context)
end

--- Open a language model.
--
-- The architecture, sizes and switches are checked against the tensors at once; numbers
-- are read as they are used.
-- @param path  a GGUF file, or a Hugging Face folder (config.json and safetensors)
-- @return the model; model.config has its sizes, model.file what lab.lm.file gives
-- @error nil and a sentence: what cannot be read, an architecture that is not known, a
--        tensor that is missing, has another shape or is not used, a size out of range
-- @example
--   print(lab.lm.random {})
function open.open(path)
  check.argument("lab.lm.open", "path", path, "string")
  local file, message = lm.file(path)
  if not file then return nil, message end
  local model = { file = file, path = path, attends = {} }
  local ok
  ok, message = unsupported.catch(function()
    model.config, model.entry = config.read(file, path)
    model.outer = weights.bind(file, path, model.config, model.entry)
    return true
  end)
  if not ok then return nil, message end
  model.layers = model.outer.layers
  model.outer.layers = nil
  model.qkv = config.of_form(model.entry.qkv, model.config.form)
  for layer, parts in ipairs(model.layers) do
    model.attends[layer] = own_attention(model, parts)
  end
  local position = model.outer.position
  model.most_tokens = position
      and position.tensor.shape[1] - model.config.position_offset or nil
  read_divisors(model)
  return setmetatable(model, Model)
end

open.methods = methods

return open
