--- config.lua - what a model file says of the model: sizes, positions, switches.
--
-- GGUF metadata and config.json in one vocabulary, checked: every size is in its range,
-- what this library does not follow is refused by name.
local core = require "sinklab.core"
local check = require "sinklab.base.check"
local architectures = require "sinklab.lm.architectures"
local unsupported = require "sinklab.lm.unsupported"

local config = {}

--- Where a size is found and what it may be. A GGUF key without a dot in front of it
-- gets the architecture's name; of `hf` the first that is there counts.
local sizes = {
  layers = { gguf = "block_count", hf = { "num_hidden_layers", "n_layer", "n_layers" },
    most = 4096 },
  d_model = { gguf = "embedding_length", hf = { "hidden_size", "n_embd", "d_model",
    "n_embed" }, most = 1 << 20 },
  heads = { gguf = "attention.head_count", hf = { "num_attention_heads", "n_head",
    "n_heads" }, most = 1 << 16 },
  kv_heads = { gguf = "attention.head_count_kv", hf = { "num_key_value_heads",
    "num_kv_heads" }, most = 1 << 16, optional = true },
  d_head = { gguf = "attention.key_length", hf = { "head_dim" }, most = 1 << 16,
    optional = true },
  d_value = { gguf = "attention.value_length", hf = {}, most = 1 << 16,
    optional = true },
  d_ffn = { gguf = "feed_forward_length", hf = { "intermediate_size", "n_inner",
    "ffn_dim", "ffn_hidden_size" }, most = 1 << 24, optional = true },
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

--- The value that the file has under one of these keys, and the key.
function Reader:value(keys)
  if self.form == "gguf" then
    for _, key in ipairs(list_of(keys.gguf)) do
      local full = self.name .. "." .. key
      if self.metadata[full] ~= nil then return self.metadata[full], full end
    end
    return nil, keys.gguf and self.name .. "." .. list_of(keys.gguf)[1]
  end
  for _, key in ipairs(list_of(keys.hf)) do
    local value = self.metadata[key]
    if value ~= nil and value ~= core.json_null then return value, key end
  end
  return nil, keys.hf and list_of(keys.hf)[1]
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

-- Rotary positions.

--- Divisors of the angles, and the factor of what turns, by the method of a scaling
-- (n pairs): what transformers calls rope_type.
local scalings = {}

function scalings.linear(o, n)
  local divisors = {}
  for k = 1, n do divisors[k] = o.factor end
  return divisors, 1
end

--- Llama 3.1: long waves are stretched, short ones kept, a ramp between.
function scalings.llama3(o, n)
  local divisors = {}
  for k = 1, n do
    local waves = o.original * o.base ^ (-2 * (k - 1) / (2 * n)) / (2 * math.pi)
    local smooth = (waves - o.low) / (o.high - o.low)
    smooth = math.max(0, math.min(1, smooth))
    divisors[k] = 1 / ((1 - smooth) / o.factor + smooth)
  end
  return divisors, 1
end

--- YaRN (Peng et al. 2023, arXiv 2309.00071): the same over the index of the pair.
function scalings.yarn(o, n)
  local function pair(turns)
    return n * math.log(o.original / (turns * 2 * math.pi)) / math.log(o.base)
  end
  local low, high = pair(o.beta_fast), pair(o.beta_slow)
  if o.truncate then low, high = math.floor(low), math.ceil(high) end
  low, high = math.max(low, 0), math.min(high, 2 * n - 1)
  if high - low < 1e-3 then high = low + 1e-3 end
  local divisors = {}
  for k = 1, n do
    local ramp = math.max(0, math.min(1, (k - 1 - low) / (high - low)))
    divisors[k] = 1 / (ramp / o.factor + 1 - ramp)
  end
  return divisors, o.magnitude or (o.factor > 1 and 0.1 * math.log(o.factor) + 1 or 1)
end

--- The number of a scaling under one of these names.
local function setting(self, what, value, default)
  if value == nil or value == core.json_null then value = default end
  if value == nil then self:refuse("the scaling of rotary positions has no %s", what) end
  if type(value) ~= "number" or not (value > 0 and value < 1e12) then
    self:refuse("%s of the scaling of rotary positions is %s; "
      .. "it must be a number above 0", what, tostring(value))
  end
  return value
end

--- What later config.json files gather in one table, or in one for each kind of layer:
-- those of full attention, and the table of layers with a window.
function Reader:rope_parameters()
  local o = self.metadata.rope_parameters
  if type(o) ~= "table" then return {}, {} end
  if type(o.full_attention) ~= "table" then return o, {} end
  return o.full_attention, type(o.sliding_attention) == "table" and o.sliding_attention
      or {}
end

--- Type and settings of the scaling in either form, or nil.
local function scaling_of(self, c)
  if self.form == "gguf" then
    local function get(key) return self.metadata[self.name .. ".rope." .. key] end
    local kind, factor = get "scaling.type", get "scaling.factor" or get "scale_linear"
    if kind == nil and factor then kind = "linear" end
    if kind == nil or kind == "none" then return nil end
    if kind == "longrope" then kind = "none" end -- its tables are tensors
    return kind, { factor = factor, original_max_position_embeddings =
      get "scaling.original_context_length", truncate = true,
      attention_factor = get "scaling.attn_factor" }
  end
  local o = self.metadata.rope_scaling
  if type(o) ~= "table" then o = self:rope_parameters() end
  if type(o.rope_theta) == "number" then c.rope_base = o.rope_theta end
  local kind = o.rope_type or o.type
  if kind == nil or kind == "default" then return nil end
  if kind == "su" then kind = "longrope" end
  return kind, o
end

--- The factor of longrope's queries and keys: 1 where the context was not extended.
local function long_magnitude(self, c, given, original)
  if type(given) == "number" then return setting(self, "attention_factor", given) end
  local factor = c.context / original
  return factor > 1 and math.sqrt(1 + math.log(factor) / math.log(original)) or 1
end

--- What a method of `scalings` needs to know.
local function settings_of(self, c, kind, o, base)
  local settings = { base = base, factor = setting(self, "factor", o.factor) }
  if kind ~= "linear" then
    settings.original = setting(self, "original_max_position_embeddings",
      o.original_max_position_embeddings, c.context)
  end
  if kind == "llama3" then
    settings.low = setting(self, "low_freq_factor", o.low_freq_factor)
    settings.high = setting(self, "high_freq_factor", o.high_freq_factor)
  elseif kind == "yarn" then
    settings.beta_fast = setting(self, "beta_fast", o.beta_fast, 32)
    settings.beta_slow = setting(self, "beta_slow", o.beta_slow, 1)
    settings.truncate = o.truncate ~= false
    if type(o.attention_factor) == "number" then
      settings.magnitude = setting(self, "attention_factor", o.attention_factor)
    end
  end
  return settings
end

--- c.rope: { base, rotated, pairs, divisors, magnitude }, local_base for layers with a
-- window; `long` and `short` divisors with `original` where the length decides.
local function read_rope(self, entry, c)
  local positions = of_form(entry.positions, self.form)
  local full, near = self:rope_parameters()
  local part = self:value { hf = { "partial_rotary_factor", "rotary_pct" } }
      or full.partial_rotary_factor or entry.rotary_part or 1
  if type(part) ~= "number" or not (part > 0 and part <= 1) then
    self:refuse("the rotary part of a head is %s; it must be above 0 and at most 1",
      tostring(part))
  end
  local rope = { pairs = positions == "rope" and "half" or "interleaved",
    local_base = entry.local_base }
  if self.form == "gguf" then
    rope.rotated = self:size "rotated" or c.d_head
  else
    rope.rotated = math.floor(c.d_head * part)
    local given = self.metadata.rope_local_base_freq or near.rope_theta
    rope.local_base = given and setting(self, "base in layers with a window", given)
        or rope.local_base
  end
  if rope.rotated % 2 ~= 0 or rope.rotated < 2 or rope.rotated > c.d_head then
    self:refuse("%d numbers of a head would turn by rotary positions; "
      .. "it must be an even number from 2 to the width of a head, %d",
      rope.rotated, c.d_head)
  end
  local kind, o = scaling_of(self, c)
  rope.base, c.rope = c.rope_base, rope
  if kind == "longrope" then
    rope.long, rope.short = o.long_factor, o.short_factor
    rope.original = setting(self, "original_max_position_embeddings",
      self.metadata.original_max_position_embeddings, o.original_max_position_embeddings)
    rope.magnitude = long_magnitude(self, c, o.attention_factor, rope.original)
  elseif kind and kind ~= "none" then
    local method = scalings[kind]
    if not method then
      self:refuse("rotary positions are scaled by '%s'; this library follows default, "
        .. "linear, llama3, yarn and longrope", tostring(kind))
    end
    local settings = settings_of(self, c, kind, o, rope.base)
    rope.divisors, rope.magnitude = method(settings, rope.rotated // 2)
    rope.scaling = ("%s x%g"):format(kind, settings.factor)
  elseif self.form == "gguf" then
    rope.original = self.metadata[self.name .. ".rope.scaling.original_context_length"]
    if rope.original then
      rope.magnitude = long_magnitude(self, c,
        self.metadata[self.name .. ".rope.scaling.attn_factor"], rope.original)
    end
  end
end

-- Windows.

--- c.windows[layer]: how many keys a query sees, 0: all.
local function read_windows(self, entry, c)
  local size, rule = self:size "window" or self.defaults.window or 0, entry.windows
  local kinds = self:value { hf = { "layer_types" } }
  if not rule or rule == "late" and self.form == "gguf" then size = 0 end
  if rule == "late" and self.metadata.use_sliding_window ~= true then size = 0 end
  if self.form == "hf" and math.type(rule) == "integer" then
    rule = self:value { hf = { "sliding_window_pattern" } } or rule
  end
  local full_before = rule == "late" and self.metadata.max_window_layers or 0
  c.windows = {}
  for layer = 1, c.layers do
    local windowed = rule == "all" or math.type(rule) == "integer" and layer % rule ~= 0
        or rule == "late" and layer > full_before
    if type(kinds) == "table" then windowed = kinds[layer] == "sliding_attention" end
    c.windows[layer] = windowed and size or 0
  end
end

--- Refuse what the entry says this library does not follow.
local function check_needs(self, entry)
  if self.form ~= "hf" then return end
  for key, wanted in pairs(entry.needs or {}) do
    local value = self.metadata[key]
    if value ~= nil and value ~= core.json_null and value ~= wanted then
      self:refuse("%s is %s; this library follows %s models with %s only", key,
        tostring(value), list_of(entry.hf)[1], tostring(wanted))
    end
  end
end

--- kv_heads, d_head, d_ffn, where the file leaves them to the architecture.
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
  local scale = self:value { hf = { "softmax_scale" } }
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
  local self = setmetatable({ path = path, form = form, metadata = metadata }, Reader)
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
  if form == "hf" and entry.hf_config then
    metadata = architectures.extend(metadata, entry.hf_config(metadata))
    self.metadata = metadata
  end
  self.defaults = form == "gguf" and entry.gguf_defaults or {}
  check_needs(self, entry)
  local c = { architecture = name, form = form, layers = self:size "layers",
    d_model = self:size "d_model", heads = self:size "heads",
    context = self:size "context", vocab = self:size "vocab" }
  read_widths(self, c)
  for number in pairs(numbers) do
    c[number] = self:number(number) or self.defaults[number]
  end
  c.positions = of_form(entry.positions, form)
  if c.positions:match "^rope" then read_rope(self, entry, c) end
  if c.positions == "alibi" then
    local bias = self:value { gguf = "attention.max_alibi_bias",
      hf = { "alibi_bias_max" } }
    if bias ~= nil and bias ~= 8 then
      self:refuse("the largest ALiBi slope is 2^-(%s / heads); this library follows 8",
        tostring(bias))
    end
  end
  read_windows(self, entry, c)
  read_activation(self, entry, c)
  read_scale(self, entry, c)
  local parallel = of_form(entry.parallel, form)
  if type(parallel) == "table" then
    parallel = self:value { gguf = "use_parallel_residual",
      hf = { "use_parallel_residual", "parallel_attn" } }
    if parallel == nil then parallel = entry.parallel.default end
  end
  c.parallel = parallel == true
  c.tied = form == "gguf" or metadata.tie_word_embeddings ~= false
  if form == "hf" and metadata.tie_word_embeddings == nil then c.tied = true end
  c.bos = form == "gguf" and metadata["tokenizer.ggml.bos_token_id"]
      or form == "hf" and metadata.bos_token_id or nil
  if c.bos == core.json_null or math.type(c.bos) ~= "integer" then c.bos = nil end
  return c, entry
end

return config
