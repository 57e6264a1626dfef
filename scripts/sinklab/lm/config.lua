--- config.lua - sizes, positions and switches of a model, from its file.
--
-- GGUF metadata and config.json in one vocabulary, checked: every size is in its range,
-- and a setting that this library does not follow is refused by name (settings.lua).
local core = require "sinklab.core"
local check = require "sinklab.base.check"
local architectures = require "sinklab.lm.architectures"
local rope = require "sinklab.lm.rope"
local settings = require "sinklab.lm.settings"
local unsupported = require "sinklab.lm.unsupported"
local windows = require "sinklab.lm.windows"

local config = {}

--- The place of a size in a file, and its range. A GGUF key without a dot in front of it
-- gets the architecture's name; of `hf` the first that is there counts.
local sizes = {
  layers = { gguf = "block_count", hf = { "num_hidden_layers", "n_layer", "n_layers" },
    most = 4096 },
  d_model = { gguf = "embedding_length", hf = { "hidden_size", "n_embd", "d_model",
    "n_embed" }, most = 1 << 20 },
  heads = { gguf = "attention.head_count", hf = { "num_attention_heads", "n_head",
    "n_heads" }, most = 1 << 16 },
  kv_heads = { gguf = "attention.head_count_kv", hf = { "num_key_value_heads",
    "num_kv_heads", "kv_n_heads" }, most = 1 << 16, optional = true },
  d_head = { gguf = "attention.key_length", hf = { "head_dim" }, most = 1 << 16,
    optional = true },
  d_value = { gguf = "attention.value_length", hf = {}, most = 1 << 16,
    optional = true },
  d_ffn = { gguf = "feed_forward_length", hf = { "intermediate_size", "n_inner",
    "ffn_dim", "ffn_hidden_size" }, most = 1 << 24, optional = true },
  d_expert = { gguf = "expert_feed_forward_length", hf = {}, most = 1 << 24,
    optional = true },
  context = { gguf = "context_length", hf = { "max_position_embeddings",
    "n_positions", "n_ctx", "max_seq_len", "seq_length" }, most = (1 << 31) - 1 },
  vocab = { gguf = "vocab_size", hf = { "vocab_size" }, most = 1 << 24,
    optional = true },
  window = { gguf = "attention.sliding_window", hf = { "sliding_window" },
    most = (1 << 31) - 1, least = 0, optional = true },
  rotated = { gguf = "rope.dimension_count", hf = {}, most = 1 << 16,
    optional = true },
  experts = { gguf = "expert_count", hf = { "num_local_experts" }, most = 4096,
    least = 0, optional = true },
  experts_used = { gguf = "expert_used_count", hf = { "num_experts_per_tok",
    "experts_per_token" }, most = 4096, least = 0, optional = true },
}

--- The same for numbers that are not whole.
local numbers = {
  norm_eps = { gguf = { "attention.layer_norm_rms_epsilon",
    "attention.layer_norm_epsilon" }, hf = { "rms_norm_eps", "layer_norm_eps",
    "layer_norm_epsilon", "norm_epsilon", "norm_eps" }, default = 1e-5, most = 1 },
  rope_base = { gguf = { "rope.freq_base" }, hf = { "rope_theta", "rotary_emb_base" },
    default = 10000, most = 1e12 },
  softcap = { gguf = { "attn_logit_softcapping" }, hf = { "attn_logit_softcapping" },
    most = 1e6 },
  logit_softcap = { gguf = { "final_logit_softcapping" },
    hf = { "final_logit_softcapping" }, most = 1e6 },
  clip = { gguf = { "attention.clamp_kqv" }, hf = { "clip_qkv" }, most = 1e6 },
  local_rope_base = { gguf = { "rope.freq_base_swa" }, hf = { "rope_local_base_freq" },
    most = 1e12 },
}

-- Functions of the MLP by the words of config.json.
local activations = {
  silu = "silu", swish = "silu", relu = "relu", gelu = "gelu", gelu_new = "gelu_tanh",
  gelu_fast = "gelu_tanh", gelu_pytorch_tanh = "gelu_tanh",
}

local Reader = {}
Reader.__index = Reader

--- End with a sentence about this file; lab.lm.open catches it.
function Reader:refuse(message, ...)
  unsupported.raise(self.path .. ": " .. message:format(...))
end

local function list_of(value) return type(value) == "table" and value or { value } end

--- The value that the file has under the first of these keys, and the key. All of them
-- count as read.
function Reader:value(keys)
  local prefix = self.form == "gguf" and self.name .. "." or ""
  local value, found
  for _, key in ipairs(list_of(keys[self.form])) do
    local own = self.metadata[prefix .. key]
    if value == nil and own ~= nil and own ~= core.json_null then
      value, found = own, prefix .. key
    end
  end
  local first = list_of(keys[self.form])[1]
  return value, found or first and prefix .. first
end

function Reader:size(name)
  local rule = sizes[name]
  local value, key = self:value(rule)
  if value == nil then
    if rule.optional then return nil end
    self:refuse("there is no %s", key or name)
  end
  if type(value) == "table" then
    for _, other in ipairs(value) do
      if other ~= value[1] then
        self:refuse("%s differs between layers, which this library does not follow", key)
      end
    end
    if self.layers and #value ~= self.layers then
      self:refuse("%s is a list of %d numbers for %d layers", key, #value, self.layers)
    end
    value = value[1]
  end
  local whole = math.type(value) == "integer" and value
      or math.type(value) == "float" and math.tointeger(value)
  local least = rule.least or 1
  if not whole or whole < least or whole > rule.most then
    self:refuse("%s is %s; it must be a whole number from %d to %d", key,
      tostring(value), least, rule.most)
  end
  return whole
end

function Reader:number(name)
  local rule = numbers[name]
  local value, key = self:value(rule)
  if value == nil or value == 0 and not rule.default then return rule.default end
  if type(value) ~= "number" or not (value > 0 and value <= rule.most) then
    self:refuse("%s is %s; it must be a number above 0 and at most %g", key,
      tostring(value), rule.most)
  end
  return value
end

--- One of the values that an entry gives for each form, or the one for both.
local function of_form(value, form)
  if type(value) == "table" and (value.gguf ~= nil or value.hf ~= nil) then
    return value[form]
  end
  return value
end

config.of_form = of_form

--- Refuse the values that the entry's `needs` excludes.
local function check_needs(self, entry)
  if self.form == "gguf" then
    if self:value { gguf = "attention.causal" } == false then
      self:refuse("%s.attention.causal is false; this library has causal models only",
        self.name)
    end
    return
  end
  self:value { hf = entry.by_tensors or {} }
  for key, wanted in pairs(entry.needs or {}) do
    local value = self.metadata[key]
    if value ~= nil and value ~= core.json_null and value ~= wanted then
      self:refuse("%s is %s; this library follows %s models with %s only", key,
        tostring(value), list_of(entry.hf)[1], tostring(wanted))
    end
  end
end

--- kv_heads, d_head, d_ffn and experts, with their defaults.
local function read_widths(self, c)
  c.kv_heads = self:size "kv_heads" or c.heads
  if c.heads % c.kv_heads ~= 0 then
    self:refuse("%d heads cannot share %d key/value heads: it must divide them", c.heads,
      c.kv_heads)
  end
  c.d_head = self:size "d_head"
  if not c.d_head then
    if c.d_model % c.heads ~= 0 then
      self:refuse("%d heads do not divide a model of width %d, "
        .. "and the width of a head is not given", c.heads, c.d_model)
    end
    c.d_head = c.d_model // c.heads
  end
  c.d_value = self:size "d_value" or c.d_head
  c.d_ffn = self:size "d_ffn"
      or c.d_model * (self:value { hf = { "expansion_ratio" } } or 4)
  local d_expert = self:size "d_expert"
  if d_expert and d_expert ~= c.d_ffn then
    self:refuse("experts are %d wide and the MLP %d; this library has one width",
      d_expert, c.d_ffn)
  end
  c.experts, c.experts_used = self:size "experts" or 0, self:size "experts_used" or 0
  if c.experts > 0 and (c.experts_used < 1 or c.experts_used > c.experts) then
    self:refuse("%d of %d experts would be used; it must be 1 to all", c.experts_used,
      c.experts)
  end
end

--- The activation of the MLP.
local function read_activation(self, entry, c)
  c.activation = of_form(entry.activation, self.form)
  if self.form ~= "hf" or entry.activation_fixed then return end
  local word = self:value { hf = { "hidden_activation", "hidden_act",
    "activation_function", "activation" } }
  if word == nil then return end
  c.activation = activations[word]
  if not c.activation then
    self:refuse("the activation is '%s'; this library has gelu, gelu_new, "
      .. "gelu_pytorch_tanh, relu and silu", tostring(word))
  end
end

--- The factor of q.k.
local function read_scale(self, entry, c)
  local scalar = self:value { hf = { "query_pre_attn_scalar" } }
  local scale = self:value { gguf = "attention.scale", hf = { "softmax_scale" } }
  if type(scalar) == "number" and scalar > 0 then
    c.scale = scalar ^ -0.5
  elseif self.form == "gguf" and (entry.gguf_width_scale or {})[c.layers] then
    c.scale = (c.d_model / c.heads) ^ -0.5
  else
    c.scale = type(scale) == "number" and scale or c.d_head ^ -0.5
  end
  if self.metadata.scale_attn_weights == false then c.scale = 1 end
end

--- Read a file of lab.lm.file.
-- @return the model's sizes and switches, and the entry of its architecture
function config.read(file, path)
  local form = file.format == "gguf" and "gguf" or "hf"
  local metadata = form == "gguf" and file.metadata or file.config or {}
  local self = setmetatable({ path = path, form = form, metadata = metadata,
    keys = form == "gguf" and file.handle:keys() or nil }, Reader)
  local key = form == "gguf" and "general.architecture" or "model_type"
  local name = metadata[key]
  if type(name) ~= "string" then
    self:refuse("it does not name its architecture (%s)", key)
  end
  local entry, names = architectures.find(form, name)
  if not entry then
    table.sort(names)
    self:refuse("architecture '%s' is not known%s; known are %s", name:sub(1, 60),
      check.did_you_mean(name, names), table.concat(names, ", "))
  end
  self.name = name
  local seen = {}
  self.metadata = settings.watch(metadata, seen)
  if form == "hf" and entry.hf_config then
    self.metadata = settings.over(entry.hf_config(self.metadata), self.metadata)
  end
  self.defaults = form == "gguf" and entry.gguf_defaults or {}
  check_needs(self, entry)
  self.layers = self:size "layers"
  local c = { architecture = name, form = form, layers = self.layers,
    d_model = self:size "d_model", heads = self:size "heads",
    context = self:size "context", vocab = self:size "vocab" }
  read_widths(self, c)
  for number in pairs(numbers) do
    c[number] = self:number(number) or self.defaults[number]
  end
  c.positions = of_form(entry.positions, form)
  if c.positions:match "^rope" then rope.read(self, entry, c) end
  if c.positions == "alibi" then
    local bias = self:value { gguf = "attention.max_alibi_bias",
      hf = { "alibi_bias_max" } }
    if bias ~= nil and bias ~= 8 then
      self:refuse("the largest ALiBi slope is 2^-(%s / heads); this library follows 8",
        tostring(bias))
    end
  end
  c.windows = windows.read(self, entry, c)
  read_activation(self, entry, c)
  read_scale(self, entry, c)
  local parallel = of_form(entry.parallel, form)
  if type(parallel) == "table" then
    parallel = self:value { gguf = "use_parallel_residual",
      hf = { "use_parallel_residual", "parallel_attn" } }
    if parallel == nil then parallel = entry.parallel.default end
  end
  c.parallel = parallel == true
  c.tied = form == "gguf" or self.metadata.tie_word_embeddings ~= false
  c.bos = form == "gguf" and metadata["tokenizer.ggml.bos_token_id"]
      or form == "hf" and metadata.bos_token_id or nil
  if c.bos == core.json_null or math.type(c.bos) ~= "integer" then c.bos = nil end
  c.ignored = settings.check(self, metadata, seen)
  return c, entry
end

return config
