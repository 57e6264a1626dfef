--- test_lm_settings.lua - a setting that a model's files hold is followed or refused.
local lab = require "sinklab"
local check = require "check"
local models = arg[0]:match "^(.*)/lua/[^/]*$" .. "/models/"
local scratch = assert(os.getenv "SINKLAB_TEST_SCRATCH")
local ids = { 1, 33, 8, 70, 5, 5, 61, 20 }

local function text_of(path)
  local file <close> = assert(io.open(path, "rb"))
  return file:read "a"
end

local function write(path, text)
  local file <close> = assert(io.open(path, "wb"))
  file:write(text)
end

local function difference(a, b) return (a - b):abs():max():item() end

--- A copy of a Hugging Face folder with other settings; false takes a key away.
local function changed(name, source, settings)
  local path = scratch .. "/" .. name
  os.execute(("mkdir -p '%s'"):format(path))
  write(path .. "/model.safetensors", text_of(source .. "/model.safetensors"))
  local config = assert(lab.json.decode(text_of(source .. "/config.json")))
  for key, value in pairs(settings) do config[key] = value end
  write(path .. "/config.json", lab.json.encode(config))
  return path
end

local count = 0
local llama, gemma3 = models .. "arch/llama_gqa/hf", models .. "arch/gemma3/hf"

local function opened(settings, source)
  count = count + 1
  return lab.lm.open(changed("m" .. count, source or llama, settings))
end

local function refused(words, settings, source)
  local model, message = opened(settings, source)
  check.equal(model, nil, words)
  check.contains(message, words)
end

local function logits(scaling)
  return assert(opened { rope_scaling = scaling }):logits(ids)
end

local function yarn(settings)
  local block = { rope_type = "yarn", factor = 16, original_max_position_embeddings = 32 }
  for key, value in pairs(settings) do block[key] = value end
  return block
end

check.test("YaRN's mscale and mscale_all_dim", function()
  local plain = logits(yarn {})
  local both = logits(yarn { mscale = 1, mscale_all_dim = 1 })
  check.equal(difference(both, logits(yarn { attention_factor = 1 })), 0.0)
  if difference(both, plain) < 1e-4 then error "mscale changed nothing" end
  local factor = (0.05 * math.log(16) + 1) / (0.1 * math.log(16) + 1)
  check.close(factor, 0.8914633210802397, 1e-15)
  check.close(difference(logits(yarn { mscale = 0.5, mscale_all_dim = 1 }),
    logits(yarn { attention_factor = factor })), 0, 1e-6, 0, "0.5 and 1")
  check.equal(difference(logits(yarn { mscale = 0, mscale_all_dim = 0 }), plain), 0.0)
  refused("has mscale without mscale_all_dim", { rope_scaling = yarn { mscale = 1 } })
end)

check.test("blocks of rotary scaling have no key that is read past", function()
  refused("rope_scaling.beta_quick is a setting that this library does not follow",
    { rope_scaling = yarn { beta_quick = 4 } })
  refused("rope_scaling.beta_fast is a setting",
    { rope_scaling = { rope_type = "linear", factor = 2, beta_fast = 4 } })
  refused("rope_parameters.mscale is a setting", { rope_scaling = lab.json.null,
    rope_parameters = { rope_type = "default", rope_theta = 1e4, mscale = 2 } })
  refused("attention_factor of the scaling of rotary positions is much",
    { rope_scaling = yarn { attention_factor = "much" } })
  check.equal(assert(opened { rope_scaling = yarn { finetuned = true } }).config.ignored
    ~= nil, true)
end)

check.test("settings of config.json by name", function()
  refused("rope_interleaved is a setting", { rope_interleaved = true })
  refused("attention_multiplier is a setting", { attention_multiplier = 0.5 })
  refused("quantization_config is a setting", { quantization_config = { bits = 4 } })
  refused("sliding_window_pattern is a setting", { sliding_window_pattern = 4 })
  refused("swiglu_limit is 5; this library follows gpt_oss models with 7 only",
    { swiglu_limit = 5 }, models .. "arch/gpt_oss/hf")
  local model = assert(opened { rope_interleaved = false, attention_dropout = 0.5,
    some_note = "x", rope_scaling = lab.json.null })
  local ignored = table.concat(model.config.ignored, " ")
  check.contains(ignored, "attention_dropout")
  check.contains(ignored, "some_note")
  check.equal(ignored:find "hidden_size", nil)
end)

check.test("numbers and marks of other programs in config.json", function()
  local path = changed("big", llama, {})
  local config = text_of(path .. "/config.json")
  write(path .. "/config.json", "\u{feff}" .. config:gsub("^%s*{",
    '{ "model_max_length": 1000000000000000019884624838656,', 1))
  local model = assert(lab.lm.open(path))
  check.equal(difference(model:logits(ids), assert(lab.lm.open(llama)):logits(ids)), 0.0)
end)

check.test("lists of layers and window patterns", function()
  refused("sliding_window_pattern must be a whole number from 1",
    { layer_types = lab.json.null, sliding_window_pattern = 0 }, gemma3)
  refused("layer_types is a list of 2 for 6 layers",
    { layer_types = { "sliding_attention", "full_attention" } }, gemma3)
  local kinds = {}
  for i = 1, 6 do kinds[i] = "chunked_attention" end
  refused("layer_types of layer 1 is 'chunked_attention'", { layer_types = kinds },
    gemma3)
  refused("layer 1 has a sliding window and the file gives it no size",
    { layer_types = { "sliding_attention", "full_attention" } })
  refused("num_key_value_heads is a list of 1 numbers for 2 layers",
    { num_key_value_heads = { 2 } })
  local model = assert(opened({ layer_types = lab.json.null,
    sliding_window_pattern = lab.json.null, _sliding_window_pattern = 3 }, gemma3))
  check.equal(model.config.windows, { 6, 6, 0, 6, 6, 0 })
end)

-- GGUF: a value by its type, as string.pack has it.
local formats = { u32 = { 4, "<I4" }, f32 = { 6, "<f" }, text = { 8, "<s8" },
  bool = { 7, "<B" } }

--- A GGUF file with more keys: name, type, value, ...
local function with_keys(source, ...)
  local bytes, more = text_of(source), {}
  local given = { ... }
  for i = 1, #given, 3 do
    local format = formats[given[i + 1]]
    more[#more + 1] = string.pack("<s8I4" .. format[2], given[i], format[1], given[i + 2])
  end
  -- the data stays where a multiple of 32 bytes is before it
  local size = #table.concat(more) + 8 + 3 + 4 + 8
  more[#more + 1] = string.pack("<s8I4s8", "pad", 8, ("x"):rep(-size % 32))
  local keys = string.unpack("<I8", bytes, 17)
  count = count + 1
  local path = ("%s/k%d.gguf"):format(scratch, count)
  write(path, bytes:sub(1, 16) .. string.pack("<I8", keys + #more)
    .. table.concat(more) .. bytes:sub(25))
  return path
end

local gguf = models .. "arch/llama_gqa/model.gguf"

local function of_gguf(...)
  return assert(lab.lm.open(with_keys(gguf, ...))):logits(ids)
end

local function refused_gguf(words, ...)
  local model, message = lab.lm.open(with_keys(gguf, ...))
  check.equal(model, nil, words)
  check.contains(message, words)
end

check.test("GGUF keys of YaRN", function()
  local scaled = { "llama.rope.scaling.type", "text", "yarn", "llama.rope.scaling.factor",
    "f32", 16, "llama.rope.scaling.original_context_length", "u32", 32 }
  local function with(...)
    return of_gguf(table.unpack(table.move({ ... }, 1, select("#", ...), 10,
      table.move(scaled, 1, 9, 1, {}))))
  end
  local plain = with()
  check.close(difference(plain, logits(yarn {})), 0, 2e-5, 0, "both forms")
  local beta = with("llama.rope.scaling.yarn_beta_fast", "f32", 4,
    "llama.rope.scaling.yarn_beta_slow", "f32", 0.1)
  check.close(difference(beta, logits(yarn { beta_fast = 4, beta_slow = 0.1 })), 0, 2e-5,
    0, "betas")
  if difference(beta, plain) < 1e-4 then error "the betas changed nothing" end
  local doubled = with("llama.rope.scaling.yarn_attn_factor", "f32", 0.5)
  check.close(difference(doubled, logits(yarn { attention_factor =
    0.5 * (0.1 * math.log(16) + 1) })), 0, 2e-5, 0, "yarn_attn_factor")
  refused_gguf("rope.scaling.yarn_ext_factor is 0.5", "llama.rope.scaling.type", "text",
    "yarn", "llama.rope.scaling.factor", "f32", 16, "llama.rope.scaling.yarn_ext_factor",
    "f32", 0.5)
end)

check.test("GGUF keys by name", function()
  refused_gguf("llama.rope.scaling.yarn_log_multiplier is a setting that this library "
    .. "does not follow", "llama.rope.scaling.yarn_log_multiplier", "f32", 0.1)
  refused_gguf("llama.attention.causal is false", "llama.attention.causal", "bool", 0)
  refused_gguf("llama.attention.temperature is a setting",
    "llama.attention.temperature", "f32", 2)
  refused_gguf("llama.logit_scale is a setting", "llama.logit_scale", "f32", 2)
  local path = with_keys(gguf, "llama.tensor_data_layout", "text", "row major",
    "general.url", "text", "here", "llama.attention.causal", "bool", 1)
  check.equal(assert(lab.lm.open(path)).config.ignored, { "llama.tensor_data_layout" })
  check.equal(lab.lm.info(path).ignored, { "llama.tensor_data_layout" })
end)

check.done()
