--- test_lm_info.lua - sinklab model info, and lab.lm.info behind it.
local check = require "check"
local process = require "process"
local lab = require "sinklab"
local models = arg[0]:match "^(.*)/lua/[^/]*$" .. "/models/"
local micro = models .. "bad/gguf/ok_micro.gguf"
local folder = process.folder "info"

check.test("what a small model says", function()
  local o = assert(lab.lm.info(micro))
  check.equal({ o.format, o.version, o.bytes, o.architecture, o.parameters },
    { "gguf", 3, 4320, "llama", 680 })
  check.equal({ o.layers, o.d_model, o.heads, o.kv_heads, o.d_head, o.d_ffn, o.vocab,
    o.context }, { 1, 8, 2, 1, 4, 16, 5, 16 })
  check.equal(o.types, { { type = "F32", tensors = 12, numbers = 680, bytes = 2720 } })
  check.equal(o.tokenizer, { kind = "SentencePiece", pre = "", size = 5,
    bos = "<s> (1)", eos = "</s> (2)", begins = "<s> (1), as is usual for this kind" })
  check.equal({ o.scanned, o.unusual, o.refused }, { true, {} })
end)

check.test("what is unusual", function()
  local function says(name, part, list)
    local o = assert(lab.lm.info(models .. "bad/gguf/" .. name .. ".gguf"))
    if list == "unusual" then
      check.contains(table.concat(o.unusual, "; "), part)
      check.equal(o.refused, nil)
    elseif list == "tokenizer" then
      check.contains(o.tokenizer.refused, part)
    else
      check.contains(o.refused, part)
    end
  end
  says("sem_weights_nan", "blk.0.attn_q.weight has 64 numbers that are infinite or NaN, "
    .. "the first at 0", "unusual")
  says("sem_bos_out_of_range", "bos_token_id 99999 is none of the 5 tokens", "unusual")
  says("sem_vocab_fewer_tokens", "there is no tokenizer.ggml.tokens", "tokenizer")
  says("sem_head_count_0", "llama.attention.head_count is 0")
  says("sem_kv_heads_0", "llama.attention.head_count_kv is 0")
  says("sem_block_count_4G", "llama.block_count is 4294967295")
  says("sem_wq_shape", "attn_q.weight")
  says("sem_missing_arch", "it does not name its architecture")
  local quick = assert(lab.lm.info(models .. "bad/gguf/sem_weights_nan.gguf",
    { scan = false }))
  check.equal({ quick.scanned, quick.unusual }, { false, {} })
end)

check.test("types that are not read, and weights without a config", function()
  local header = [[{"w":{"dtype":"I64","shape":[2],"data_offsets":[0,16]}}]]
  local path = process.write(folder .. "/x.safetensors",
    string.pack("<s8", header) .. ("\0"):rep(16))
  local o = assert(lab.lm.info(path))
  check.contains(o.unusual[1], "1 tensor is of type I64; read are F32 F16")
  check.contains(o.refused, "it does not name its architecture (model_type)")
  check.contains(o.tokenizer.refused, "there is no tokenizer.json")
  check.equal((lab.lm.info(folder .. "/none")), nil)
end)

check.test("the command", function()
  local run = process.run { "model", "info", micro }
  check.equal({ run.code, run.err }, { 0, "" })
  for _, part in ipairs { "GGUF version 3, 4.219 KiB", "1 layer of width 8, MLP 16",
    "2 of 4, 1 for keys and values", "F32        12      680  2.656 KiB",
    "unusual       nothing" } do
    check.contains(run.out, part)
  end
  run = process.run { "model", "info", micro, "--json" }
  local o, expected = assert(lab.json.decode(run.out)), lab.lm.info(micro)
  check.equal(o, expected)
  run = process.run { "model", "info", models .. "bad/gguf/sem_head_count_0.gguf" }
  check.equal(run.code, 1)
  check.contains(run.out, "not opened")
  run = process.run { "model", "info", models .. "bad/gguf/version_0.gguf" }
  check.equal({ run.code, run.out }, { 1, "" })
  check.contains(run.err, "is GGUF of version 0; read are 1 to 3\n")
end)

check.done()
