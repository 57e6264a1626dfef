--- test_lm_open.lua - what lab.lm.open refuses, and models with something changed.
local lab = require "sinklab"
local check = require "check"
local models = arg[0]:match "^(.*)/lua/[^/]*$" .. "/models/"
local scratch = assert(os.getenv "SINKLAB_TEST_SCRATCH")

local function refused(path, words)
  local model, message = lab.lm.open(path)
  check.equal(model, nil, path)
  check.contains(message, words, path)
end

check.test("malformed models", function()
  local bad = models .. "bad/gguf/sem_"
  refused(bad .. "head_count_0.gguf",
    "attention.head_count is 0; it must be a whole number from 1 to 65536")
  refused(bad .. "kv_heads_0.gguf", "attention.head_count_kv is 0")
  refused(bad .. "block_count_4G.gguf", "block_count is 4294967")
  refused(bad .. "missing_arch.gguf", "does not name its architecture")
  refused(bad .. "wq_shape.gguf", "tensor 'blk.0.attn_q.weight' has shape (4, 8)")
end)

check.test("a number that is not finite names its tensor", function()
  local model = assert(lab.lm.open(models .. "bad/gguf/sem_weights_nan.gguf"))
  local message = check.raises("infinite or NaN", function() model:logits { 1, 2, 3 } end)
  check.contains(message, "tensor '")
end)

--- A Hugging Face folder of a tiny llama whose config and tensors may be changed.
local function folder(name, config, tensors)
  local path = scratch .. "/" .. name
  assert(lab.lm.random { layers = 1, d_model = 8, heads = 2, vocab = 16, folder = path })
  if config then
    local file = assert(io.open(path .. "/config.json"))
    local values = lab.json.decode(file:read "a")
    file:close()
    for key, value in pairs(config) do values[key] = value end
    file = assert(io.open(path .. "/config.json", "w"))
    file:write(lab.json.encode(values))
    file:close()
  end
  if tensors then
    local all = assert(lab.load_safetensors(path .. "/model.safetensors"))
    tensors(all)
    assert(lab.save_safetensors(path .. "/model.safetensors", all))
  end
  return path
end

check.test("architectures, sizes and tensors by name", function()
  refused(folder("a", { model_type = "lama" }),
    "architecture 'lama' is not known (did you mean 'llama'?)")
  refused(folder("b", { max_position_embeddings = 1 << 32 }),
    "max_position_embeddings is 4294967296; it must be a whole number from 1 to "
    .. "2147483647")
  refused(folder("c", { num_key_value_heads = 3 }),
    "2 heads cannot share 3 key/value heads")
  refused(folder("d", { hidden_act = "tanh" }), "the activation is 'tanh'")
  refused(folder("e", { rope_scaling = { rope_type = "dynamic", factor = 2 } }),
    "scaled by 'dynamic'")
  refused(folder("f", { rms_norm_eps = 0 }), "rms_norm_eps is 0")
  refused(folder("g", nil, function(t) t["model.norm.weight"] = nil end),
    "there is no tensor 'model.norm.weight'")
  refused(folder("h", nil, function(t) t["model.layers.0.odd"] = lab.ones { 2 } end),
    "tensor 'model.layers.0.odd' is nothing that the architecture llama uses")
  refused(folder("i", nil, function(t)
    t["model.layers.0.mlp.up_proj.weight"] = lab.ones { 8, 32 }
  end), "tensor 'model.layers.0.mlp.up_proj.weight' has shape (8, 32); "
    .. "it must be (32, 8)")
  refused(folder("j", nil, function(t) t["lm_head.weight"] = nil end),
    "there is no tensor 'lm_head.weight', and the embedding is not tied to it")
  refused(folder("k", { model_type = "opt", do_layer_norm_before = false }),
    "this library follows opt models with true only")
  refused(scratch .. "/nowhere", "nowhere")
end)

check.test("rotary positions in the words of later config.json files", function()
  local function rope(name, parameters)
    return assert(lab.lm.open(folder(name, { rope_theta = lab.json.null,
      rope_parameters = parameters }))).config.rope
  end
  check.equal(rope("r1", { rope_type = "default", rope_theta = 500000 }).base, 500000)
  local scaled = rope("r2", { rope_type = "linear", rope_theta = 20000, factor = 4 })
  check.equal({ scaled.base, scaled.divisors[1] }, { 20000, 4 })
  local two = rope("r3", { full_attention = { rope_type = "default", rope_theta = 1e6 },
    sliding_attention = { rope_type = "default", rope_theta = 3e4 } })
  check.close({ two.base, two.local_base }, { 1e6, 3e4 }, 0)
  check.equal(rope("r4", { rope_theta = 100, partial_rotary_factor = 0.5 }).rotated, 2)
end)

check.test("what early Gemma 2 files leave out", function()
  local source <close> = assert(io.open(models .. "arch/gemma2/model.gguf", "rb"))
  local bytes = source:read "a"
  for _, key in ipairs { "attn_logit_softcapping", "final_logit_softcapping" } do
    bytes = bytes:gsub(key, ("x"):rep(#key))
  end
  local path = scratch .. "/early.gguf"
  local file = assert(io.open(path, "wb"))
  file:write(bytes)
  file:close()
  local early = assert(lab.lm.open(path)).config
  check.equal({ early.softcap, early.logit_softcap }, { 50, 30 })
  local given = assert(lab.lm.open(models .. "arch/gemma2/model.gguf")).config
  check.equal({ given.softcap, given.logit_softcap }, { 3.0, 4.0 })
end)

check.test("token ids", function()
  local model = lab.lm.random { layers = 1, vocab = 10 }
  check.raises("token id 10 at position 2 is outside 0 to 9",
    function() model:logits { 3, 10 } end)
  check.raises("there are no token ids", function() model:logits {} end)
  check.raises("language_model:logits: the ids must be a table or a tensor",
    function() model:logits "3" end)
  local learned = assert(lab.lm.open(models .. "arch/gpt2/hf"))
  local many = {}
  for i = 1, 129 do many[i] = 1 end
  check.raises("129 tokens are too many: the model has 128 learned positions",
    function() learned:logits(many) end)
end)

local model = assert(lab.lm.open(models .. "arch/gpt_oss/model.gguf"))
local ids = { 1, 33, 8, 70, 5, 5, 61, 20 }

local function difference(a, b) return (a - b):abs():max():item() end

check.test("another mechanism", function()
  local own = model:logits(ids)
  -- Softmax with its learned logit put back is the model again.
  local softmax = model:with { mechanism = "softmax" }
  if difference(softmax:logits(ids), own) < 1e-3 then error "softmax changed nothing" end
  local other = model:with { mechanism = { "sinklogit", init = 0 } }
  local one = model:with { mechanism = "softmax1" }
  check.close(difference(other:logits(ids), one:logits(ids)), 0, 1e-5, 0, "logit 0")
  local part = model:with { mechanism = "softmax", layers = { 2 } }
  if difference(part:logits(ids), softmax:logits(ids)) < 1e-4 then
    error "layer 1 was changed too"
  end
  check.equal(difference(model:logits(ids), own), 0.0, "the first model")
end)

check.test("mechanisms that a trained model can and cannot be given", function()
  local llama = assert(lab.lm.open(models .. "arch/llama_gqa/model.gguf"))
  for _, name in ipairs { "linear", "retention", "relu", "sparsemax", "softpick" } do
    local logits = llama:with { mechanism = name }:logits(ids)
    check.equal(logits:sum():item() == logits:sum():item(), true, name)
  end
  check.raises("'forgetting' needs its input 'f'",
    function() llama:with { mechanism = "forgetting" } end)
  check.raises("'head_gate' is a gate",
    function() llama:with { mechanism = "head_gate" } end)
  check.raises("cannot do the window of layer 1",
    function() model:with { mechanism = "retention" } end)
  check.raises("there is no layer 3: layers are 1 to 2",
    function() model:with { mechanism = "relu", layers = { 3 } } end)
end)

check.test("heads taken away", function()
  local llama = assert(lab.lm.open(models .. "arch/llama_gqa/model.gguf"))
  -- Without any head the attention adds nothing: the order of tokens before the last
  -- one no longer matters.
  local all = {}
  for layer = 1, 2 do for head = 1, 4 do all[#all + 1] = { layer, head } end end
  local none = llama:with { zero = true, heads = all }
  local a, b = none:logits { 1, 9, 30, 7 }, none:logits { 30, 1, 9, 7 }
  check.equal(difference(a:narrow(2, 4, 1), b:narrow(2, 4, 1)), 0.0)
  local some = llama:with { zero = true, heads = { { 2, 3 } } }
  if difference(some:logits(ids), llama:logits(ids)) < 1e-3 then
    error "a head was not missed"
  end
  check.raises("heads[1] must be { layer, head } within 2 layers of 4 heads", function()
    llama:with { zero = true, heads = { { 1, 5 } } }
  end)
end)

check.test("a random model repeats by its seed", function()
  local options = { layers = 1, d_model = 16, heads = 2, vocab = 20, seed = 7 }
  local a = lab.lm.random(options):logits { 3, 4 }
  local b = lab.lm.random(options):logits { 3, 4 }
  check.equal(difference(a, b), 0.0)
  options.seed = 8
  local c = lab.lm.random(options):logits { 3, 4 }
  if difference(c, a) == 0 then error "seed unused" end
  check.raises("3 heads do not divide d_model = 16",
    function() lab.lm.random { d_model = 16, heads = 3 } end)
end)

check.done()
