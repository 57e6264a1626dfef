-- test_layers.lua - what a model file can say, lab.model.transformer can train: the same
-- weights give the same bits, trained here or read from a Hugging Face folder.
local lab = require "sinklab"
local core = require "sinklab.core"
local check = require "check"
local scratch = assert(os.getenv "SINKLAB_TEST_SCRATCH")
local architectures = require "sinklab.lm.architectures"

local VOCAB, TOKENS, D = 24, 12, 16

--- Each token predicts the token two places before it.
local task = lab.task { name = "two back", seq_len = TOKENS, vocab = VOCAB,
  sample = function(t, B)
    local all = t:randint(0, VOCAB - 1, { B, TOKENS + 2 })
    return { x = all:narrow(2, 3, TOKENS):clone(), y = all:narrow(2, 1, TOKENS):clone() }
  end }

-- Parameters of a layer, in the words of lm/architectures.lua.
local parts_of_layer = {
  ["attention_norm.gamma"] = "attn_norm", ["attention_norm.beta"] = "attn_norm",
  ["attention_output_norm.gamma"] = "attn_post_norm",
  ["mlp_norm.gamma"] = "ffn_norm", ["mlp_norm.beta"] = "ffn_norm",
  ["mlp_output_norm.gamma"] = "ffn_post_norm", w_q = "q", w_k = "k", w_v = "v",
  w_o = "o", b_q = "q", b_k = "k", b_v = "v", b_o = "o", ["q_norm.gamma"] = "q_norm",
  ["k_norm.gamma"] = "k_norm", ["mlp.w_gate"] = "gate", ["mlp.w_up"] = "up",
  ["mlp.w_down"] = "down", ["mlp.b_gate"] = "gate", ["mlp.b_up"] = "up",
  ["mlp.b_down"] = "down", ["sinklogit.logit"] = "sinks",
}
local parts_outside = {
  token_embedding = "embedding", position_embedding = "position",
  ["embedding_norm.gamma"] = "embedding_norm", ["embedding_norm.beta"] = "embedding_norm",
  ["final_norm.gamma"] = "final_norm", ["final_norm.beta"] = "final_norm",
  unembedding = "unembedding",
}

--- The name of a part's tensor in a folder of this architecture.
local function name_of(names, part, layer, is_bias)
  local name = names[part] or part -- a part of a fused tensor
  if type(name) == "table" then name = name[1] end
  local bare, whole = name:sub(1, 1) == "^", name:sub(-1) == "."
  if bare then name = name:sub(2) end
  if whole then name = name:sub(1, -2) end
  return (bare and "" or names.prefix[1])
      .. (layer and names.layer:format(layer - 1) or "") .. name
      .. (whole and (is_bias and "_bias" or "") or is_bias and ".bias" or ".weight")
end

--- Every tensor of a model under its name in the folder, before `case.change`.
local function tensors_of(model, entry)
  local out = {}
  for full, t in pairs(model:parameters()) do
    local layer, name = full:match "^layer(%d+)%.(.*)$"
    local part = layer and parts_of_layer[name] or parts_outside[full]
    local is_bias = (name or full):match "%.beta$" ~= nil
        or (name or ""):match "^b_" ~= nil or (name or ""):match "%.b_" ~= nil
    assert(part, full)
    local shifted = part:match "norm$" and entry.norm_shift
    out[name_of(entry.names, part, layer and tonumber(layer), is_bias)] =
        shifted and t - 1 or t:clone()
  end
  return out
end

--- Replace the tensors of some parts of every layer by f (tensors of the parts).
local function fuse(out, entry, layers, parts, whole, f)
  for layer = 1, layers do
    for _, is_bias in ipairs { false, true } do
      local list = {}
      for i, part in ipairs(parts) do
        local name = name_of(entry.names, part, layer, is_bias)
        list[i], out[name] = out[name], nil
      end
      if #list == #parts then
        out[name_of(entry.names, whole, layer, is_bias)] = f(list, is_bias)
      end
    end
  end
end

--- Rows of q, k and v of `heads` heads, head by head.
local function by_head(heads)
  return function(list)
    local rows = {}
    for h = 1, heads do
      for _, t in ipairs(list) do
        local d = t.shape[1] // heads
        rows[#rows + 1] = t:narrow(1, (h - 1) * d + 1, d)
      end
    end
    return core.concat(rows, 1)
  end
end

local function transposed(t) return core.concat({ t:transpose(1, 2) }, 1) end

--- Rows of gate and up in turn, as columns: (1, inputs, 2 F); of biases (1, 2 F).
local function interleaved(list)
  local f, inputs = list[1].shape[1], list[1].shape[2]
  local both = core.concat({ list[1]:reshape { f, 1, inputs or 1 },
    list[2]:reshape { f, 1, inputs or 1 } }, 2)
  if not inputs then return both:reshape { 1, 2 * f } end
  return transposed(both:reshape { 2 * f, inputs }):reshape { 1, inputs, 2 * f }
end

local cases = {
  { "Llama: grouped key/value heads, rotary halves, a gate", { heads = 4, kv_heads = 2,
      norm = "rms", mlp = "swiglu", positions = "rotary_half", d_mlp = 24 },
    { model_type = "llama", intermediate_size = 24, num_key_value_heads = 2,
      tie_word_embeddings = false } },
  { "Llama 3.1: scaled rotary angles", { heads = 2, norm = "rms", mlp = "swiglu",
      positions = "rotary_half", rope_scaling = { type = "llama3", factor = 4,
        original_context = 8 } },
    { model_type = "llama", tie_word_embeddings = false, rope_scaling = {
      rope_type = "llama3", factor = 4, original_max_position_embeddings = 8,
      low_freq_factor = 1, high_freq_factor = 4 } } },
  { "YaRN: scaled rotary angles and scores", { heads = 2, norm = "rms", mlp = "swiglu",
      positions = "rotary_half", rope_scaling = { type = "yarn", factor = 4,
        original_context = 8 } },
    { model_type = "llama", tie_word_embeddings = false, rope_scaling = {
      rope_type = "yarn", factor = 4, original_max_position_embeddings = 8 } } },
  { "Mistral: a window", { heads = 2, norm = "rms", mlp = "swiglu",
      positions = "rotary_half", rope_base = 500, tied = true,
      attention = { window = 5 } },
    { model_type = "mistral", sliding_window = 5, rope_theta = 500,
      tie_word_embeddings = true } },
  { "Qwen 2: biases of queries, keys and values", { heads = 2, norm = "rms",
      mlp = "swiglu", positions = "rotary_half", bias = "qkv" },
    { model_type = "qwen2", tie_word_embeddings = false } },
  { "Qwen 3: norms of each query and key", { heads = 2, d_head = 12, norm = "rms",
      qk_norm = "head", mlp = "swiglu", positions = "rotary_half" },
    { model_type = "qwen3", head_dim = 12, tie_word_embeddings = false } },
  { "Gemma 2: sandwich norms, soft-caps, windows in turn, scaled embeddings",
    { layers = 4, heads = 2, kv_heads = 1, norm = "rms", norm_place = "sandwich",
      mlp = "geglu_tanh", positions = "rotary_half", embedding_scale = "sqrt",
      logit_softcap = 3, tied = true, attention = {
        mechanism = { "softcap_softmax", cap = 2 }, window = { 4, 0 } } },
    { model_type = "gemma2", hidden_activation = "gelu_pytorch_tanh", sliding_window = 4,
      attn_logit_softcapping = 2, final_logit_softcapping = 3, num_key_value_heads = 1,
      query_pre_attn_scalar = 8, head_dim = 8 } },
  { "Gemma 3: another rotary base in layers with a window", { layers = 3, heads = 2,
      norm = "rms", norm_place = "sandwich", qk_norm = "head", mlp = "geglu_tanh",
      positions = "rotary_half", rope_base = 2000, rope_local_base = 50,
      rope_scaling = { type = "linear", factor = 8 },
      embedding_scale = 4, tied = true, attention = { window = { 4, 4, 0 } } },
    { model_type = "gemma3_text", hidden_activation = "gelu_pytorch_tanh",
      sliding_window = 4, sliding_window_pattern = 3, rope_theta = 2000,
      rope_local_base_freq = 50, rope_scaling = { type = "linear", factor = 8 },
      query_pre_attn_scalar = 8, head_dim = 8 } },
  { "OLMo 2: norms of what is added, queries and keys normed as a whole",
    { heads = 2, norm = "rms", norm_place = "output", qk_norm = "full", mlp = "swiglu",
      positions = "rotary_half" },
    { model_type = "olmo2", tie_word_embeddings = false } },
  { "StableLM: layer norm of each head", { heads = 2, norm = "layer", qk_norm = "heads",
      mlp = "swiglu", positions = "rotary_half", rotary_part = 0.5, bias = false },
    { model_type = "stablelm", partial_rotary_factor = 0.5, qk_layernorm = true,
      tie_word_embeddings = false },
    function(out, entry)
      for layer = 1, 2 do
        for _, part in ipairs { "q_norm", "k_norm" } do
          local name = name_of(entry.names, part, layer)
          for head = 1, 2 do out[name:format(head - 1)] = out[name]:select(1, head) end
          out[name] = nil
        end
      end
      -- Its norms have biases.
      for _, place in ipairs { { "attn_norm", 1 }, { "attn_norm", 2 }, { "ffn_norm", 1 },
        { "ffn_norm", 2 }, { "final_norm" } } do
        out[name_of(entry.names, place[1], place[2], true)] = core.zeros { D }
      end
    end },
  { "GPT-2: learned positions, biases, one product", { heads = 2, mlp = "gelu_tanh",
      bias = true, tied = true },
    { model_type = "gpt2", activation_function = "gelu_new" },
    function(out, entry)
      fuse(out, entry, 2, { "q", "k", "v" }, "qkv", function(list)
        return core.concat(list, 1)
      end)
      for layer = 1, 2 do
        for _, part in ipairs { "qkv", "o", "up", "down" } do
          local name = name_of(entry.names, part, layer)
          out[name] = transposed(out[name])
        end
      end
    end },
  { "GPT-NeoX: parallel blocks, a rotary part", { heads = 2, mlp = "gelu", bias = true,
      parallel = true, positions = "rotary_half", rotary_part = 0.5 },
    { model_type = "gpt_neox", hidden_act = "gelu", rotary_pct = 0.5,
      use_parallel_residual = true, tie_word_embeddings = false },
    function(out, entry) fuse(out, entry, 2, { "q", "k", "v" }, "qkv", by_head(2)) end },
  { "Phi-2: parallel blocks with one norm", { heads = 2, mlp = "gelu_tanh", bias = true,
      parallel = true, mlp_norm = false, positions = "rotary_half", rotary_part = 0.5 },
    { model_type = "phi", hidden_act = "gelu_new", partial_rotary_factor = 0.5,
      tie_word_embeddings = false },
    function(out) out["lm_head.bias"] = core.zeros { VOCAB } end },
  { "BLOOM: ALiBi, a norm of the embeddings", { heads = 2, mlp = "gelu_tanh", bias = true,
      positions = "alibi", embedding_norm = true, tied = true },
    { model_type = "bloom", tie_word_embeddings = true },
    function(out, entry) fuse(out, entry, 2, { "q", "k", "v" }, "qkv", by_head(2)) end },
  { "MPT: clipped queries, keys and values", { heads = 2, mlp = "gelu",
      positions = "alibi", clip_qkv = 0.3, tied = true },
    { model_type = "mpt", attn_config = { alibi = true, clip_qkv = 0.3 },
      tie_word_embeddings = true },
    function(out, entry)
      fuse(out, entry, 2, { "q", "k", "v" }, "qkv", function(list)
        return core.concat(list, 1)
      end)
    end },
  { "gpt-oss: learned sinks, clamped gates", { heads = 4, kv_heads = 2, norm = "rms",
      mlp = "clamped_swiglu", d_mlp = 12, bias = true, positions = "rotary_half",
      attention = { mechanism = "sinklogit", window = { 5, 0 } } },
    { model_type = "gpt_oss", num_local_experts = 1, num_experts_per_tok = 1,
      intermediate_size = 12, num_key_value_heads = 2, sliding_window = 5,
      swiglu_limit = 7, tie_word_embeddings = false },
    function(out, entry)
      fuse(out, entry, 2, { "gate", "up" }, "expert_gate_up", interleaved)
      fuse(out, entry, 2, { "down" }, "expert_down", function(list, is_bias)
        if is_bias then return list[1]:reshape { 1, D } end
        return transposed(list[1]):reshape { 1, list[1].shape[2], D }
      end)
      for layer = 1, 2 do
        local sinks = name_of(entry.names, "sinks", layer)
        out[sinks] = out[sinks]:reshape { 4 }
        out[name_of(entry.names, "router", layer)] = core.zeros { 1, D }
        out[name_of(entry.names, "router", layer, true)] = core.zeros { 1 }
      end
    end },
}

--- The folder of a model: config.json and model.safetensors.
local function write(folder, model, given, change)
  local entry = assert(architectures.find("hf", given.model_type))
  local o = model.options
  local config = { hidden_size = D, num_hidden_layers = o.layers,
    num_attention_heads = o.heads, vocab_size = VOCAB, intermediate_size = 4 * D,
    max_position_embeddings = TOKENS, rms_norm_eps = 1e-5, layer_norm_epsilon = 1e-5,
    norm_eps = 1e-5 }
  for key, value in pairs(given) do config[key] = value end
  local out = tensors_of(model, entry)
  if change then change(out, entry) end
  assert(core.make_folders(folder))
  local file <close> = assert(io.open(folder .. "/config.json", "w"))
  file:write(lab.json.encode(config))
  assert(lab.save_safetensors(folder .. "/model.safetensors", out))
end

--- Train a little, so that no parameter has its first value; gammas are rounded, since a
-- file may hold gamma - 1.
local function trained(options)
  options.task, options.d_model, options.layers = task, D, options.layers or 2
  options.init = lab.init.normal(0.3)
  local model = lab.model.transformer(options)
  local before = model.params.flat:clone()
  lab.train(model, task, { steps = 3, batch = 8, quiet = true,
    optimizer = lab.optim.adam { lr = 0.02 } })
  for name, t in pairs(model:parameters()) do
    if name:match "gamma$" then
      local rounded = {}
      for i, x in ipairs(t:reshape({ -1 }):totable()) do
        rounded[i] = math.floor(x * 64 + 0.5) / 64
      end
      t:copy(core.tensor(rounded):reshape(t.shape))
    end
  end
  check.above((model.params.flat - before):abs():max():item(), 0)
  return model
end

for i, case in ipairs(cases) do
  local name, options, config, change = table.unpack(case)
  check.test(name, function()
    local model = trained(options)
    local folder = ("%s/layers-%d"):format(scratch, i)
    write(folder, model, config, change)
    local read = assert(lab.lm.open(folder))
    local x = task:batch { n = 3, seed = 5 }.x
    local trained_logits, read_logits = model:forward(x), read:logits(x)
    check.equal(read_logits:totable(), trained_logits:totable(), name)
    -- Part of a batch, padded: attention keeps to the valid tokens.
    local length = core.tensor { TOKENS, 7, 3 }
    check.equal(read:logits(x, { length = length }):totable(),
      model:forward(x, length):totable(), name .. ", padded")
  end)
end

check.test("a packed weight gives the bits of the numbers that it unpacks to", function()
  local product = require "sinklab.layers.product"
  local function same(file, name, rows)
    local w = file:weight(name)
    local x = lab.generator(rows):normal(0, 1, { rows, w.shape[2] })
    check.equal(product.linear({ weight = w }, x):totable(),
      product.linear({ weight = w:tensor "f32" }, x):totable(), name)
  end
  -- A strip of 256 columns is unpacked at a time.
  for _, inputs in ipairs { 255, 256, 257, 1000 } do
    local path = ("%s/w-%d.safetensors"):format(scratch, inputs)
    local w = lab.generator(1):normal(0, 1, { 37, inputs })
    assert(lab.save_safetensors(path, { w = w }))
    for _, rows in ipairs { 1, 9 } do same(assert(lab.lm.file(path)), "w", rows) end
  end
  local llm = arg[0]:match "^(.*)/lua/[^/]*$" .. "/models/llm/"
  for _, name in ipairs { "blk.0.ffn_up.weight", "blk.0.ffn_down.weight" } do -- Q8_0, F16
    same(assert(lab.lm.file(llm .. "stories260K-q8_0.gguf")), name, 9)
  end
end)

--- Gradients in f64 of everything that is not in every model.
check.test("gradients of every ability", function()
  for _, case in ipairs(cases) do
    local options = {}
    for key, value in pairs(case[2]) do options[key] = value end
    options.task, options.d_model, options.dtype = task, D, "f64"
    options.layers, options.init = 1, lab.init.normal(0.3)
    options.attention = options.attention or "softmax"
    local model = lab.model.transformer(options)
    local batch = task:batch { n = 2, dtype = "f64" }
    local program, loss = core.record(function()
      return core.cross_entropy(model:forward(batch.x), batch.y)
    end)
    program:want(model.params.flat):loss(loss)
    check.close(program:check(), 0, 1e-6, 0, case[1])
  end
end)

check.test("options that do not go together", function()
  local function refuse(part, options)
    options.task, options.d_model = task, D
    check.raises(part, lab.model.transformer, options)
  end
  refuse("mlp_norm = false needs a parallel block", { mlp_norm = false })
  refuse("norm_place \"post\" does not go with a parallel block",
    { parallel = true, norm_place = "post" })
  refuse("need a norm, and norm is \"none\"", { norm = "none", qk_norm = "head" })
  refuse("qk_norm needs a row plugin as mechanism; 'linear' is a mixer",
    { qk_norm = "head", attention = "linear" })
  refuse("clip_qkv needs a row plugin as mechanism; 'linear' is a mixer",
    { clip_qkv = 1, attention = "linear" })
  refuse("rotary_part 0.1 rotates 1 numbers of a head of 16",
    { positions = "rotary", rotary_part = 0.1 })
  refuse("rope_scaling and rope_local_base need rotary positions",
    { rope_scaling = { type = "linear", factor = 2 } })
  refuse("attention: window[2] must be a whole number from 0, got -1",
    { attention = { window = { 4, -1 } } })
  refuse("attention: window must be a number or a list of numbers",
    { attention = { window = {} } })
  refuse("option 'embedding_scale' is 'square'", { embedding_scale = "square" })
end)

check.done()
