--- open.lua - lab.lm.open: a language model from a file.
local core = require "sinklab.core"
local check = require "sinklab.base.check"
local schema = require "sinklab.base.schema"
local lm = require "sinklab.lm"
local head_changes = require "sinklab.measure.head_changes"
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

local function as_tensor(t) return type(t) == "table" and core.tensor(t) or t end

local ids_row = { "ids", "table tensor",
  doc = "token ids from 0: a list, a list of equally long lists, or a tensor (B, T)" }
local forward_rows = {
  { "length", "tensor table", doc = "(B): valid tokens of each sequence" },
  { "first_key", "tensor table",
    doc = "(B, T): the first position, from 0, that each token may see" },
  { "positions", "tensor table", default_doc = "0, 1, 2, ...", doc = "(B, T)" },
  { "layer", "function", doc = [[(layer, h): called with the output of every layer, and as
    layer 0 with the input of the first]] },
}

methods.forward = schema.func("language_model:forward", {
  doc = [[Run a model up to its last layer.

    Nothing of the size T x T is made: attention is computed in blocks of rows, and only
    the states that a later layer needs are kept.]],
  args = { ids_row },
  options = forward_rows,
  returns = "hidden states (B, T, d_model) before the final norm",
  errors = [[ids outside the vocabulary; more tokens than learned positions; weights that
    hold NaN]],
  example = [[
    local model = lab.lm.random {}
    print(model:forward { 1, 5, 6 })]],
}, function(self, ids, o)
  local what = "language_model:forward"
  local run = { length = as_tensor(o.length), first_key = as_tensor(o.first_key),
    positions = as_tensor(o.positions), layer = o.layer, attend = self.attend }
  local t = ids_of(self, what, ids, run.positions)
  return forward.hidden(self, t, run)
end)

methods.logits = schema.func("language_model:logits", {
  doc = "The logits of the token after every token.",
  args = { ids_row },
  options = forward_rows,
  returns = "logits (B, T, vocabulary)",
  errors = "as language_model:forward",
  example = [[
    local model = lab.lm.random {}
    print(model:logits { 1, 5, 6 }:select(2, 3):argmax())]],
}, function(self, ids, o)
  return forward.logits(self, self:forward(ids, o))
end)

methods.with = schema.func("language_model:with", {
  doc = [[Another model with the same weights and one thing changed.

    The first model stays as it is. Layers, heads and positions count from 1. Changes of
    weights and values (onto, off, remove, mask, value) are those of lab.intervene and
    are computed densely, (B, H, T, T): for short texts.]],
  options = schema.join({
    { "mechanism", "string table",
      doc = "a plugin's name, or { NAME, OPTION = VALUE }, in place of softmax" },
    { "layers", "table", default_doc = "all", doc = "those that get the mechanism" },
  }, head_changes.of_heads, {
    { "heads", "string table", default = "all", choices = { "all" },
      doc = [[of the other changes: "all" or a list of { layer, head }]] },
  }),
  returns = "the other model",
  errors = [[a plugin with inputs that a trained model does not have; no such head or
    layer]],
  example = [[
    local model = lab.lm.random {}
    print(model:with { mechanism = "softmax1" }:logits { 1, 5, 6 })]],
}, function(self, o)
  local what = "language_model:with"
  local other = {}
  for key, value in pairs(self) do other[key] = value end
  for key, value in pairs(patching.changed(what, self, o)) do other[key] = value end
  return setmetatable(other, Model)
end)

local attention_rows = {
  { "ids", "table tensor", required = true, doc = "token ids of one sequence" },
  { "layer", "integer", min = 1, required = true },
  { "head", "integer", min = 1, required = true },
}

methods.attention = schema.func("language_model:attention", {
  doc = "The weights of one head on one sequence, in full.",
  options = attention_rows,
  more = function(self)
    local rules = schema.rules(attention_rows)
    rules.layer.max, rules.head.max = self.config.layers, self.config.heads
    return rules
  end,
  returns = "tensor (T, T): queries down, keys across",
  example = [[
    local model = lab.lm.random { layers = 1 }
    print(model:attention { ids = { 1, 9, 4 }, layer = 1, head = 2 })]],
}, function(self, o)
  return require("sinklab.lm.measure").attention(self, o)
end)

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

open.open = schema.func("lab.lm.open", {
  doc = [[Open a language model.

    The architecture, sizes and switches are checked against the tensors at once;
    numbers are read as they are used.]],
  args = {
    { "path", "string",
      doc = "a GGUF file, or a Hugging Face folder (config.json and safetensors)" },
  },
  returns = "the model; model.config has its sizes, model.file what lab.lm.file gives",
  errors = [[nil and a sentence: what cannot be read, an architecture that is not known, a
    tensor that is missing, has another shape or is not used, a size out of range]],
  example = "print(lab.lm.random {})",
}, function(path)
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
end)

open.methods = methods

return open
