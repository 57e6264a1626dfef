--- random.lua - lab.lm.random: a language model that has learned nothing.
local core = require "sinklab.core"
local check = require "sinklab.base.check"
local schema = require "sinklab.base.schema"
local json = require "sinklab.base.json"
local lm = require "sinklab.lm"

local random = {}

--- Tensors of a llama under their Hugging Face names.
local function tensors(o)
  local d, head = o.d_model, o.d_model // o.heads
  local g = core.generator(o.seed)
  local out = {}
  local function matrix(name, rows, columns)
    out[name .. ".weight"] = g:normal(0, o.std, { rows, columns })
  end
  local function norm(name) out[name .. ".weight"] = core.ones { d } end
  matrix("model.embed_tokens", o.vocab, d)
  for layer = 0, o.layers - 1 do
    local function name(part) return ("model.layers.%d.%s"):format(layer, part) end
    norm(name "input_layernorm")
    matrix(name "self_attn.q_proj", o.heads * head, d)
    matrix(name "self_attn.k_proj", o.kv_heads * head, d)
    matrix(name "self_attn.v_proj", o.kv_heads * head, d)
    matrix(name "self_attn.o_proj", d, o.heads * head)
    norm(name "post_attention_layernorm")
    matrix(name "mlp.gate_proj", o.d_ffn, d)
    matrix(name "mlp.up_proj", o.d_ffn, d)
    matrix(name "mlp.down_proj", d, o.d_ffn)
  end
  norm "model.norm"
  matrix("lm_head", o.vocab, d)
  return out
end

random.random = schema.func("lab.lm.random", {
  doc = [[A Llama with normally distributed weights: the control without training, and a
    model of any size for measurements of speed.]],
  options = {
    { "layers", "integer", default = 2, min = 1, max = 1024 },
    { "d_model", "integer", default = 64, min = 2, max = 1 << 16, doc = "width" },
    { "heads", "integer", default = 4, min = 1, max = 1024 },
    { "kv_heads", "integer", min = 1, max = 1024, default_doc = "heads" },
    { "d_ffn", "integer", min = 1, max = 1 << 18,
      default_doc = "4 d_model", doc = "width of the MLP" },
    { "vocab", "integer", default = 256, min = 2, max = 1 << 20 },
    { "context", "integer", default = 2048, min = 1, max = 1 << 24 },
    { "std", "number", default = 0.02, above = 0, max = 100, doc = "of the weights" },
    { "seed", "integer", default = 0, min = 0 },
    { "folder", "string", doc = [[where config.json and model.safetensors are left;
      without it nothing is left on the disk]] },
  },
  returns = [[the model, as lab.lm.open gives it; or nil and a sentence when a file cannot
    be written]],
  errors = "sizes that do not divide",
  example = "print(lab.lm.random { layers = 1, seed = 3 })",
}, function(o)
  local what = "lab.lm.random"
  o.kv_heads, o.d_ffn = o.kv_heads or o.heads, o.d_ffn or 4 * o.d_model
  if o.d_model % o.heads ~= 0 or o.d_model // o.heads % 2 ~= 0 then
    check.fail("%s: %d heads do not divide d_model = %d into even parts", what, o.heads,
      o.d_model)
  elseif o.heads % o.kv_heads ~= 0 then
    check.fail("%s: %d heads cannot share %d key/value heads: it must divide them", what,
      o.heads, o.kv_heads)
  end
  local config = { model_type = "llama", hidden_size = o.d_model,
    intermediate_size = o.d_ffn, num_hidden_layers = o.layers,
    num_attention_heads = o.heads, num_key_value_heads = o.kv_heads,
    vocab_size = o.vocab, max_position_embeddings = o.context, rms_norm_eps = 1e-5,
    rope_theta = 10000, hidden_act = "silu", tie_word_embeddings = false }
  local folder = o.folder or os.tmpname() .. "-model"
  local ok, message = core.make_folders(folder)
  if ok then
    ok, message = core.file_write(folder .. "/config.json", json.encode(config) .. "\n")
  end
  if ok then
    ok, message = core.save_safetensors(folder .. "/model.safetensors", tensors(o))
  end
  local model
  if ok then model, message = lm.open(folder) end
  if not o.folder then -- mapped files live on without a name
    os.remove(folder .. "/config.json")
    os.remove(folder .. "/model.safetensors")
    os.remove(folder)
    os.remove((folder:gsub("%-model$", "")))
  end
  return model, message
end)

return random
