--- open.lua - lab.lm.open: a language model from a file.
local core = require "sinklab.core"
local check = require "sinklab.base.check"
local lm = require "sinklab.lm"
local config = require "sinklab.lm.config"
local forward = require "sinklab.lm.forward"
local patching = require "sinklab.lm.patching"
local unsupported = require "sinklab.lm.unsupported"
local weights = require "sinklab.lm.weights"

local open = {}

local methods = {}
local Model = { __index = methods, __name = "sinklab.language_model" }

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
    positions = as_tensor(o.positions), layer = o.layer, attend = self.attend }
  local t = ids_of(self, what, ids, run.positions)
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
  for key, value in pairs(patching.changed(what, self, o)) do other[key] = value end
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
  local model = { file = file, path = path }
  local ok
  ok, message = unsupported.catch(function()
    model.config, model.entry = config.read(file, path)
    model.outer = weights.bind(file, path, model.config, model.entry)
    return true
  end)
  if not ok then return nil, message end
  model.layers = model.outer.layers
  model.outer.layers = nil
  forward.bind(model)
  local position = model.outer.position
  model.most_tokens = position
      and position.tensor.shape[1] - model.config.position_offset or nil
  return setmetatable(model, Model)
end

open.methods = methods

return open
