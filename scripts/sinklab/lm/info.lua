--- info.lua - lab.lm.info: the settings in a model's files, and their oddities.
local schema = require "sinklab.base.schema"
local config = require "sinklab.lm.config"
local files = require "sinklab.lm.file"
local lm = require "sinklab.lm"
local unsupported = require "sinklab.lm.unsupported"
local tokenizers = require "sinklab.lm.tokenizer"

local info = {}

-- Files up to this many bytes are searched for numbers that are not finite.
local SMALL = 1 << 30

--- How many tensors, numbers and bytes of each type, the largest share first.
local function types_of(file)
  local types, by_name, numbers = {}, {}, 0
  for _, tensor in ipairs(file.tensors) do
    local type = by_name[tensor.type]
    if not type then
      type = { type = tensor.type, tensors = 0, numbers = 0, bytes = 0 }
      by_name[tensor.type], types[#types + 1] = type, type
    end
    local n = 1
    for _, size in ipairs(tensor.shape) do n = n * size end
    type.tensors, type.numbers = type.tensors + 1, type.numbers + n
    type.bytes, numbers = type.bytes + tensor.bytes, numbers + n
  end
  table.sort(types, function(a, b)
    if a.bytes ~= b.bytes then return a.bytes > b.bytes end
    return a.type < b.type
  end)
  return types, numbers
end

--- Sentences on types that are not read, and on numbers that are not finite.
local function add_trouble(out, file, types, search)
  local unread, bad = {}, {}
  for _, tensor in ipairs(file.tensors) do
    local weight, message = file:weight(tensor.name)
    if not weight then
      unread[tensor.type] = unread[tensor.type] or message:match "read are .*$"
    elseif search then
      local n, where = weight:nonfinite()
      if n > 0 then
        bad[#bad + 1] = ("%s has %d number%s that %s infinite or NaN, the first at %d")
            :format(tensor.name, n, n > 1 and "s" or "", n > 1 and "are" or "is", where)
      end
    end
  end
  for _, each in ipairs(types) do
    if unread[each.type] then
      out[#out + 1] = ("%d tensor%s of type %s; %s"):format(each.tensors,
        each.tensors == 1 and " is" or "s are", each.type, unread[each.type])
    end
  end
  for i = 1, math.min(#bad, 5) do out[#out + 1] = bad[i] end
  if #bad > 5 then
    out[#out + 1] = ("%d more tensors have such numbers"):format(#bad - 5)
  end
end

-- Features beyond plain softmax attention over all earlier positions: a test of
-- the sizes, and the sentence.
local features = {
  { function(c) return c.softcap end, "scores are capped at %g" },
  { function(c) return c.logit_softcap end, "logits are capped at %g" },
  { function(c) return c.clip end, "queries, keys and values are clipped at %g" },
  { function(c) return c.rope and c.rope.scaling end, "rotary positions are scaled: %s" },
  { function(c) return c.experts and c.experts > 0 and c.experts end,
    "the MLP is a mixture of %d experts" },
  { function(c) return c.parallel end, "attention and MLP run in parallel" },
  { function(c) return c.positions == "alibi" end, "positions are ALiBi biases" },
}

local function windows_of(c)
  local layers, width = 0, nil
  for _, window in ipairs(c.windows or {}) do
    if window > 0 then layers, width = layers + 1, window end
  end
  if layers > 0 then
    return ("%d of %d layers see the last %d positions only"):format(layers, c.layers,
      width)
  end
end

local function add_features(out, c, file)
  for _, feature in ipairs(features) do
    local value = feature[1](c)
    if value then
      out[#out + 1] = value == true and feature[2] or feature[2]:format(value)
    end
  end
  out[#out + 1] = windows_of(c)
  for _, tensor in ipairs(file.tensors) do
    if tensor.name:find "attn_sinks" or tensor.name:find "self_attn%.sinks" then
      out[#out + 1] = "every head has a learned sink logit"
      break
    end
  end
end

-- Sizes that are reported, by the names of lab.lm.open's config.
local sizes = { "layers", "d_model", "heads", "kv_heads", "d_head", "d_ffn", "vocab",
  "context", "positions" }

info.info = schema.func("lab.lm.info", {
  doc = [[The contents of a model's files: format, architecture, sizes, types,
    tokenizer, what text begins with, and what is unusual.]],
  args = { { "path", "string", doc = "a file or folder, as for lab.lm.file" } },
  options = {
    { "scan", "boolean", default_doc = "in files of at most 1 GiB",
      doc = "search the weights for numbers that are not finite" },
  },
  returns = [[a table: `format`, `version`, `bytes`, `architecture`, `name`, `parameters`,
    `types` (a list of {type=, tensors=, numbers=, bytes=}), the sizes (`layers`,
    `d_model`, `heads`, `kv_heads`, `d_head`, `d_ffn`, `vocab`, `context`, `positions`),
    `ignored` (settings of config.json or GGUF keys of the architecture that change no
    result), `tokenizer` (kind, pre, size, bos, eos, begins), `scanned`, `unusual` (a
    list of sentences), `refused` (why lab.lm.open does not open it, nil if it does)]],
  errors = "nil and a sentence if the files cannot be read",
  example = [[
    local path = os.tmpname()
    lab.save_safetensors(path, { w = lab.ones { 3, 2 } })
    print(lab.lm.info(path).refused)
    os.remove(path)]],
}, function(path, o)
  local file, message = files.file(path)
  if not file then return nil, message end
  local gguf = file.format == "gguf"
  local out = { path = path, format = file.format, version = file.version,
    bytes = file.bytes, unusual = {} }
  out.architecture = gguf and file.metadata["general.architecture"]
      or not gguf and file.config and file.config.model_type or nil
  out.name = gguf and file.metadata["general.name"] or nil
  out.types, out.parameters = types_of(file)

  local model, c
  model, out.refused = lm.open(path)
  -- a model that is refused for its tensors has sizes all the same
  if model then c = model.config else c = unsupported.catch(config.read, file, path) end
  if c then
    for _, name in ipairs(sizes) do out[name] = c[name] end
    out.ignored = c.ignored
    add_features(out.unusual, c, file)
  end

  local tokenizer
  tokenizer, message = tokenizers.tokenizer(file)
  if tokenizer then
    local function named(id) return id and ("%s (%d)"):format(tokenizer:name(id), id) end
    out.tokenizer = { kind = tokenizer.kind, pre = tokenizer.pre, size = tokenizer.size,
      bos = named(tokenizer.bos), eos = named(tokenizer.eos),
      begins = tokenizer:begin().text }
    if tokenizer.note then out.unusual[#out.unusual + 1] = tokenizer.note end
    if c and c.vocab and tokenizer.size ~= c.vocab then
      out.unusual[#out.unusual + 1] = ("the tokenizer has %d tokens, the model %d")
          :format(tokenizer.size, c.vocab)
    end
  else
    out.tokenizer = { refused = message:gsub("^.-: ", "", 1) }
  end
  out.scanned = o.scan == nil and file.bytes <= SMALL or o.scan == true
  add_trouble(out.unusual, file, out.types, out.scanned)
  return out
end)

return info
