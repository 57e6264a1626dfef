--- architectures.lua - the language-model architectures, a table each.
--
-- A new architecture is one entry here. Keys of an entry:
--
-- gguf, hf         its names: general.architecture in GGUF, model_type in config.json
--                  (both may be lists); nil or false: that form does not exist
-- names            the names of its Hugging Face tensors (below). GGUF has one list
--                  for all architectures; `gguf_names` are exceptions to it
-- outer, parts     the tensors it has, outside layers and in each. "q" is a weight;
--                  "q+" has a bias too, "q?" where the file has one; "(q)" may be
--                  missing as a whole
-- norm             "rms" or "layer"; norm_shift = { hf = 1 }: the file holds gamma - 1
-- parallel         attention and MLP both read h, the MLP through ffn_norm or, without
--                  one, through attn_norm (else: h + attention, then h + MLP). true,
--                  or what the file says, by default this: { default = false }
-- qkv              how the rows of a fused q, k, v lie: "blocks" (all q, all k, all v)
--                  or "groups" (the q of the heads that share a key/value head, its k,
--                  its v; the next), or one for each form
-- qk_norm          "head" (each head, one gamma), "heads" (each head, its own gamma,
--                  LayerNorm), "full" (all heads as one vector)
-- positions        "rope" pairs k and k + d/2, "rope_interleaved" 2k and 2k + 1 (GGUF
--                  permutes the rows of llama's q and k for that), "learned", "alibi"
-- rotary_part      the share of a head that rotates, where the file does not say
-- position_offset  row of the table of learned positions for the first token
-- activation       of the MLP, or one for each form; a config.json that names another
--                  is followed, unless activation_fixed = true
-- gating           "clamped_swiglu": how experts join gate x and up x (else the MLP
--                  with a gate is activation (gate x) * (up x))
-- embedding_scale  "sqrt": token embeddings times sqrt (d_model)
-- windows          which layers see a window where the file has a size: "all", n (all
--                  but every n-th), or "late": those past max_window_layers, where
--                  use_sliding_window is true
-- local_base       rotary base of layers with a window, whose angles are not scaled
-- hf_config        function (config): keys of config.json in the words of other
--                  families, put over those of the file
-- gguf_width_scale { [layers] = true }: models of so many layers divide scores by
--                  sqrt (d_model / heads), and their GGUF files do not say so
-- conv1d           Hugging Face weights are (inputs, outputs)
-- gguf_defaults    values of settings that early GGUF files leave out
-- by_tensors       keys of config.json that repeat what tensors the file has
-- needs            values of config.json that this library knows how to follow, and no
--                  others
--
-- Sources: the published model code of each family; where the two forms differ, the
-- manifest of the test models says how (tests/models).

local architectures = {}

--- An entry like `base` with other values.
local function extend(base, other)
  local out = {}
  for key, value in pairs(base) do out[key] = value end
  for key, value in pairs(other) do out[key] = value end
  return out
end

architectures.extend = extend

-- GGUF: the name behind blk.N. of each part, or outside layers.
architectures.gguf_names = {
  layer = "blk.%d.", prefix = { "" },
  embedding = "token_embd", position = "position_embd",
  embedding_norm = "token_embd_norm", final_norm = "output_norm",
  unembedding = "output", rope_divisors = "rope_freqs",
  rope_long = "rope_factors_long", rope_short = "rope_factors_short",
  attn_norm = "attn_norm", q = "attn_q", k = "attn_k", v = "attn_v", qkv = "attn_qkv",
  o = "attn_output", q_norm = "attn_q_norm", k_norm = "attn_k_norm",
  sinks = "attn_sinks", attn_post_norm = "post_attention_norm",
  ffn_norm = "ffn_norm", gate = "ffn_gate", up = "ffn_up", down = "ffn_down",
  gate_up = "ffn_up", ffn_post_norm = "post_ffw_norm", router = "ffn_gate_inp",
  expert_gate = "ffn_gate_exps", expert_up = "ffn_up_exps",
  expert_down = "ffn_down_exps",
}

-- Hugging Face: names by family; the first of a list that the file has. A name with a
-- dot at its end takes no ".weight" and "_bias" for ".bias", one that begins with "^" no
-- prefix.
local llama_names = {
  prefix = { "model.", "" }, layer = "layers.%d.",
  embedding = "embed_tokens", final_norm = "norm", unembedding = "^lm_head",
  attn_norm = "input_layernorm", q = "self_attn.q_proj", k = "self_attn.k_proj",
  v = "self_attn.v_proj", qkv = "self_attn.qkv_proj", o = "self_attn.o_proj",
  q_norm = "self_attn.q_norm", k_norm = "self_attn.k_norm",
  ffn_norm = "post_attention_layernorm", gate = "mlp.gate_proj", up = "mlp.up_proj",
  gate_up = "mlp.gate_up_proj", down = "mlp.down_proj",
}

local gemma2_names = extend(llama_names, {
  attn_post_norm = "post_attention_layernorm", ffn_norm = "pre_feedforward_layernorm",
  ffn_post_norm = "post_feedforward_layernorm",
})

local gpt2_names = {
  prefix = { "transformer.", "" }, layer = "h.%d.",
  embedding = "wte", position = "wpe", final_norm = "ln_f", unembedding = "^lm_head",
  attn_norm = "ln_1", qkv = "attn.c_attn", o = "attn.c_proj", ffn_norm = "ln_2",
  up = "mlp.c_fc", down = "mlp.c_proj",
}

local neox_names = {
  prefix = { "gpt_neox.", "" }, layer = "layers.%d.",
  embedding = "embed_in", final_norm = "final_layer_norm", unembedding = "^embed_out",
  attn_norm = "input_layernorm", qkv = "attention.query_key_value",
  o = "attention.dense", ffn_norm = "post_attention_layernorm",
  up = "mlp.dense_h_to_4h", down = "mlp.dense_4h_to_h",
}

local bloom_names = {
  prefix = { "transformer.", "" }, layer = "h.%d.",
  embedding = "word_embeddings", embedding_norm = "word_embeddings_layernorm",
  final_norm = "ln_f", unembedding = "^lm_head", attn_norm = "input_layernorm",
  qkv = "self_attention.query_key_value", o = "self_attention.dense",
  ffn_norm = "post_attention_layernorm", up = "mlp.dense_h_to_4h",
  down = "mlp.dense_4h_to_h",
}

local llama = {
  gguf = "llama", hf = { "llama", "mistral" }, names = llama_names,
  outer = "embedding final_norm (unembedding)",
  parts = "attn_norm q? k? v? o? ffn_norm gate? up? down?",
  norm = "rms",
  positions = { gguf = "rope_interleaved", hf = "rope" },
  activation = "silu", windows = "all",
}

local gemma = extend(llama, {
  gguf = "gemma", hf = "gemma", norm_shift = { hf = 1 }, positions = "rope",
  parts = "attn_norm q k v o ffn_norm gate up down", windows = false,
  -- The first files of the family say gelu and mean its tanh form.
  activation = "gelu_tanh", activation_fixed = true, embedding_scale = "sqrt",
})

local gemma2 = extend(gemma, {
  gguf = "gemma2", hf = "gemma2", names = gemma2_names, windows = 2,
  gguf_defaults = { softcap = 50, logit_softcap = 30, window = 4096 },
  activation_fixed = false, gguf_width_scale = { [46] = true, [62] = true },
  parts = "attn_norm q k v o attn_post_norm ffn_norm gate up down ffn_post_norm",
})

local gpt2 = {
  gguf = "gpt2", hf = "gpt2", names = gpt2_names,
  outer = "embedding position final_norm+ (unembedding)",
  parts = "attn_norm+ qkv+ o+ ffn_norm+ up+ down+",
  norm = "layer", qkv = "blocks", positions = "learned",
  activation = "gelu_tanh", conv1d = true,
  needs = { scale_attn_by_inverse_layer_idx = false, add_cross_attention = false },
}

-- The two norms of large models: GGUF calls that of the MLP as that of the only one.
local falcon = {
  gguf = "falcon", hf = "falcon",
  names = extend(bloom_names, { attn_norm = { "ln_attn", "input_layernorm" },
    ffn_norm = { "ln_mlp", "post_attention_layernorm" } }),
  gguf_names = { attn_norm = { "attn_norm_2", "attn_norm" }, ffn_norm = "attn_norm" },
  outer = "embedding final_norm+ (unembedding)",
  parts = "attn_norm+ qkv? o? (ffn_norm+) up? down?",
  norm = "layer", parallel = { default = true },
  qkv = { gguf = "blocks", hf = "groups" }, positions = "rope",
  activation = { gguf = "gelu_tanh", hf = "gelu" }, needs = { alibi = false },
  hf_config = function(config)
    if config.new_decoder_architecture == true then return { parallel_attn = true } end
    return { num_key_value_heads = config.multi_query == true and 1
      or config.num_attention_heads or config.n_head }
  end,
}

-- In the order in which a listing shows them.
architectures.list = {
  llama,
  extend(llama, { gguf = "qwen2", hf = "qwen2", positions = "rope",
    parts = "attn_norm q+ k+ v+ o ffn_norm gate up down", windows = "late" }),
  extend(llama, { gguf = "qwen3", hf = "qwen3", positions = "rope", qk_norm = "head",
    parts = "attn_norm q? k? v? o? q_norm k_norm ffn_norm gate up down",
    windows = "late" }),
  gemma,
  gemma2,
  extend(gemma2, { gguf = "gemma3", hf = "gemma3_text", windows = 6, qk_norm = "head",
    gguf_defaults = {},
    parts = "attn_norm q k v o q_norm k_norm attn_post_norm ffn_norm gate up down "
      .. "ffn_post_norm", local_base = 10000 }),
  gpt2,
  { gguf = "gptneox", hf = "gpt_neox", names = neox_names,
    outer = "embedding final_norm+ unembedding",
    parts = "attn_norm+ qkv? o? ffn_norm+ up+ down+",
    norm = "layer", parallel = { default = true },
    qkv = { gguf = "blocks", hf = "groups" }, positions = "rope", rotary_part = 0.25,
    activation = { gguf = "gelu_tanh", hf = "gelu" } },
  extend(llama, { gguf = "phi3", hf = "phi3", positions = "rope", qkv = "blocks",
    parts = "attn_norm qkv o ffn_norm gate_up down" }),
  extend(llama, { gguf = "olmo2", hf = "olmo2", positions = "rope", qk_norm = "full",
    names = gemma2_names, windows = false,
    parts = "q k v o q_norm k_norm attn_post_norm gate up down ffn_post_norm" }),
  { hf = "opt",
    names = { prefix = { "model.decoder.", "decoder.", "" }, layer = "layers.%d.",
      embedding = "embed_tokens", position = "embed_positions",
      final_norm = "final_layer_norm", unembedding = "^lm_head",
      attn_norm = "self_attn_layer_norm", q = "self_attn.q_proj",
      k = "self_attn.k_proj", v = "self_attn.v_proj", o = "self_attn.out_proj",
      ffn_norm = "final_layer_norm", up = "fc1", down = "fc2" },
    outer = "embedding position final_norm+ (unembedding)",
    parts = "attn_norm+ q? k? v? o? ffn_norm+ up? down?",
    norm = "layer", positions = "learned",
    position_offset = 2, activation = "relu",
    needs = { do_layer_norm_before = true, _remove_final_layer_norm = false } },
  { gguf = "mpt", hf = "mpt",
    names = { prefix = { "transformer.", "" }, layer = "blocks.%d.",
      embedding = "wte", final_norm = "norm_f", unembedding = "^lm_head",
      attn_norm = "norm_1", qkv = "attn.Wqkv", o = "attn.out_proj",
      ffn_norm = "norm_2", up = "ffn.up_proj", down = "ffn.down_proj" },
    outer = "embedding final_norm? (unembedding)",
    parts = "attn_norm? qkv? o? ffn_norm? up? down?",
    norm = "layer", qkv = "blocks", positions = "alibi",
    activation = { gguf = "gelu_tanh", hf = "gelu" },
    hf_config = function(config)
      return type(config.attn_config) == "table" and config.attn_config or {}
    end,
    needs = { prefix_lm = false, learned_pos_emb = false, alibi = true, qk_ln = false,
      rope = false } },
  { gguf = "bloom", hf = "bloom", names = bloom_names,
    outer = "embedding embedding_norm+ final_norm+ (unembedding)",
    parts = "attn_norm+ qkv+ o+ ffn_norm+ up+ down+",
    norm = "layer", qkv = { gguf = "blocks", hf = "groups" },
    positions = "alibi", activation = "gelu_tanh",
    needs = { apply_residual_connection_post_layernorm = false } },
  falcon,
  extend(llama, { gguf = "stablelm", hf = "stablelm", norm = "layer",
    positions = "rope", rotary_part = 0.25, parallel = { default = false },
    names = extend(llama_names, { q_norm = "self_attn.q_layernorm.norms.%d",
      k_norm = "self_attn.k_layernorm.norms.%d" }),
    outer = "embedding final_norm+ (unembedding)", windows = false,
    qk_norm = "heads", by_tensors = { "qk_layernorm" },
    parts = "attn_norm+ q? k? v? o (q_norm) (k_norm) (ffn_norm+) gate up down" }),
  extend(llama, { gguf = "starcoder2", hf = "starcoder2", norm = "layer",
    positions = "rope",
    names = extend(llama_names, { up = "mlp.c_fc", down = "mlp.c_proj" }),
    outer = "embedding final_norm+ (unembedding)",
    parts = "attn_norm+ q? k? v? o? ffn_norm+ up? down?",
    activation = "gelu_tanh" }),
  extend(llama, { gguf = "phi2", hf = "phi", norm = "layer", positions = "rope",
    rotary_part = 0.5, parallel = true,
    names = extend(llama_names, { o = "self_attn.dense", up = "mlp.fc1",
      down = "mlp.fc2", final_norm = "final_layernorm" }),
    outer = "embedding final_norm+ unembedding+", windows = false,
    parts = "attn_norm+ q+ k+ v+ o+ up+ down+",
    activation = "gelu_tanh", needs = { qk_layernorm = false } }),
  extend(llama, { gguf = "gpt-oss", hf = "gpt_oss", positions = "rope", windows = 2,
    names = extend(llama_names, { sinks = "self_attn.sinks.", router = "mlp.router",
      expert_gate_up = "mlp.experts.gate_up_proj.",
      expert_down = "mlp.experts.down_proj." }),
    gguf_names = { ffn_norm = "post_attention_norm" },
    outer = "embedding final_norm unembedding",
    parts = { gguf = "attn_norm q+ k+ v+ o+ sinks ffn_norm router+ expert_gate+ "
        .. "expert_up+ expert_down+",
      hf = "attn_norm q+ k+ v+ o+ sinks ffn_norm router+ expert_gate_up+ "
        .. "expert_down+" },
    activation_fixed = true, gating = "clamped_swiglu", needs = { swiglu_limit = 7 } }),
}

-- Tensors of Hugging Face files that are no parameters: masks and tables that older
-- versions saved.
architectures.no_parameters = { "%.attn%.bias$", "%.attn%.masked_bias$",
  "%.attention%.bias$", "%.attention%.masked_bias$", "rotary_emb%.inv_freq$",
  "^attn%.bias$" }

--- The entry of a name in one of the two forms, or nil and the names there are.
-- @param form  "gguf" or "hf"
function architectures.find(form, name)
  local names = {}
  for _, entry in ipairs(architectures.list) do
    local own = entry[form]
    for _, known in ipairs(type(own) == "table" and own or { own or nil }) do
      if known == name then return entry end
      names[#names + 1] = known
    end
  end
  return nil, names
end

return architectures
