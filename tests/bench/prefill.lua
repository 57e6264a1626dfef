--- prefill.lua - how fast a prefill with all measurements is, and what it holds.
--
-- Makes a Llama with random weights (100 million parameters by default) and runs texts of
-- random tokens through it: alone, with every measurement, and, with --peer=PATH to
-- llama.cpp's llama-bench (or to llama.mjs beside this file), through that, on the same
-- file and threads. Prints tokens a second, the share of the arithmetic peak, and how
-- memory grows with the length.
local lab = require "sinklab"
local core = require "sinklab.core"

local opt = lab.options {
  layers = { default = 12, doc = "of the model", min = 1 },
  d_model = { default = 768, doc = "width", min = 2 },
  heads = { default = 12, doc = "a layer", min = 1 },
  kv_heads = { default = 12, doc = "key/value heads", min = 1 },
  d_ffn = { default = 2048, doc = "width of the MLP", min = 1 },
  vocab = { default = 16000, doc = "tokens", min = 2 },
  tokens = { default = 512, doc = "of the text", min = 2 },
  longest = { default = 2048, doc = "tokens of the text for memory", min = 2 },
  repeats = { default = 3, doc = "the fastest counts", min = 1 },
  peer = { default = "", doc = "path of llama-bench or llama.mjs" },
  folder = { default = "", doc = "where the model is left; default: none" },
}

local folder = opt.folder ~= "" and opt.folder or os.tmpname() .. "-prefill"
assert(lab.lm.random { layers = opt.layers, d_model = opt.d_model,
  heads = opt.heads, kv_heads = opt.kv_heads, d_ffn = opt.d_ffn, vocab = opt.vocab,
  context = math.max(opt.tokens, opt.longest), folder = folder })
collectgarbage() -- the weights are in the file now
local model = assert(lab.lm.open(folder))

local function text(n)
  local ids = core.generator(3):uniform(0, opt.vocab, { n }):totable()
  for i, x in ipairs(ids) do ids[i] = math.min(opt.vocab - 1, math.floor(x)) end
  return ids
end

local function fastest(f)
  local best = math.huge
  for _ = 1, opt.repeats do
    local began = core.clock()
    f()
    best = math.min(best, core.clock() - began)
  end
  return best
end

--- Start the high-water mark of resident memory anew, where the system can.
local function forget_peak()
  collectgarbage()
  local file <close> = io.open("/proc/self/clear_refs", "w")
  if file then file:write "5" end
end

--- The mark in MiB, the mapped weights included; nil where the system does not tell.
local function peak_memory()
  local file <close> = io.open "/proc/self/status"
  local kb = file and file:read "a":match "VmHWM:%s*(%d+)"
  return kb and tonumber(kb) / 1024
end

local parameters = 0
for _, tensor in ipairs(model.file.tensors) do
  local n = 1
  for _, d in ipairs(tensor.shape) do n = n * d end
  parameters = parameters + n
end
print(("%.1f million parameters, %d threads, %s"):format(parameters / 1e6,
  core.threads(), core.isa()))

local short, marks = math.max(2, opt.longest // 4), {}
for i, n in ipairs { short, opt.longest } do
  forget_peak()
  lab.lm.sinks(model, { text(n) }, { loss = false, measures = "all" })
  marks[i] = peak_memory()
end
if marks[2] then
  print(("memory: %.0f MiB with %d tokens, %.0f with %d: %.3f MiB a token"):format(
    marks[1], short, marks[2], opt.longest,
    (marks[2] - marks[1]) / (opt.longest - short)))
end

local ids = text(opt.tokens)
local alone = fastest(function() model:forward(ids) end)
local measured = fastest(function()
  lab.lm.sinks(model, { ids }, { loss = false,
    measures = { "columns", "norms", "hidden" } })
end)
local speed, with = lab.lm.speed(model, opt.tokens, alone),
  lab.lm.speed(model, opt.tokens, measured)
print(("peak: %.0f GFLOP/s"):format(speed.peak_flops_per_s / 1e9))
print(("prefill of %d tokens: %.1f tokens/s, %.0f %% of peak"):format(opt.tokens,
  speed.tokens_per_s, 100 * speed.share))
print(("with measurements: %.1f tokens/s, %.0f %% of peak, %.2f of the prefill alone")
  :format(with.tokens_per_s, 100 * with.share, alone / measured))

-- The peer reads GGUF: the same numbers, copied from the one file into the other. (Its
-- rows of q and k would be permuted; random ones need not be.)

local gguf_names = { ["model.embed_tokens"] = "token_embd",
  ["model.norm"] = "output_norm", lm_head = "output" }
local gguf_parts = { input_layernorm = "attn_norm", ["self_attn.q_proj"] = "attn_q",
  ["self_attn.k_proj"] = "attn_k", ["self_attn.v_proj"] = "attn_v",
  ["self_attn.o_proj"] = "attn_output", post_attention_layernorm = "ffn_norm",
  ["mlp.gate_proj"] = "ffn_gate", ["mlp.up_proj"] = "ffn_up",
  ["mlp.down_proj"] = "ffn_down" }

local function gguf_name(name)
  local stem = name:match "^(.*)%.weight$"
  local layer, part = stem:match "^model%.layers%.(%d+)%.(.*)$"
  return (layer and ("blk.%s.%s"):format(layer, gguf_parts[part]) or gguf_names[stem])
      .. ".weight"
end

-- A vocabulary in name only, which llama.cpp's interfaces ask for: three special tokens,
-- the bytes, numbers.

local function word(id)
  return ({ [0] = "<unk>", "<s>", "</s>" })[id]
    or id < 259 and ("<0x%02X>"):format(id - 3) or tostring(id)
end

local function kind(id)
  return ({ [0] = 2, 3, 3 })[id] or id < 259 and 6 or 1
end

--- The entry of an array with one value a token, of GGUF's type 'code'.
local function array(key, code, format, at)
  local out = {}
  for id = 0, opt.vocab - 1 do out[#out + 1] = string.pack("<" .. format, at(id)) end
  return { key, 9, "I4I8c" .. #table.concat(out), code, opt.vocab, table.concat(out) }
end

local function write_gguf(path)
  local source <close> = assert(io.open(folder .. "/model.safetensors", "rb"))
  local length = string.unpack("<I8", source:read(8))
  local header = assert(lab.json.decode(source:read(length)))
  local list = {}
  for name, entry in pairs(header) do
    if name ~= "__metadata__" then
      list[#list + 1] = { name = gguf_name(name), shape = entry.shape,
        first = entry.data_offsets[1],
        bytes = entry.data_offsets[2] - entry.data_offsets[1] }
    end
  end
  table.sort(list, function(a, b) return a.name < b.name end)
  local out = {}
  local function value(key, code, format, ...)
    out[#out + 1] = string.pack("<s8I4" .. format, key, code, ...)
  end
  local d = opt.d_model
  local keys = { { "general.architecture", 8, "s8", "llama" },
    { "llama.block_count", 4, "I4", opt.layers },
    { "llama.context_length", 4, "I4", math.max(opt.tokens, opt.longest) },
    { "llama.embedding_length", 4, "I4", d },
    { "llama.feed_forward_length", 4, "I4", opt.d_ffn },
    { "llama.attention.head_count", 4, "I4", opt.heads },
    { "llama.attention.head_count_kv", 4, "I4", opt.kv_heads },
    { "llama.attention.layer_norm_rms_epsilon", 6, "f", 1e-5 },
    { "llama.rope.dimension_count", 4, "I4", d // opt.heads },
    { "llama.vocab_size", 4, "I4", opt.vocab },
    { "tokenizer.ggml.model", 8, "s8", "llama" },
    array("tokenizer.ggml.tokens", 8, "s8", word),
    array("tokenizer.ggml.scores", 6, "f", function() return 0 end),
    array("tokenizer.ggml.token_type", 5, "i4", kind) }
  out[1] = "GGUF" .. string.pack("<I4I8I8", 3, #list, #keys)
  for _, k in ipairs(keys) do value(table.unpack(k)) end
  local offset = 0
  for _, t in ipairs(list) do
    local sizes = ""
    for i = #t.shape, 1, -1 do sizes = sizes .. string.pack("<I8", t.shape[i]) end
    out[#out + 1] = string.pack("<s8I4", t.name, #t.shape) .. sizes
      .. string.pack("<I4I8", 0, offset)
    offset = offset + (t.bytes + 31) // 32 * 32
  end
  local head = table.concat(out)
  local file <close> = assert(io.open(path, "wb"))
  assert(file:write(head, ("\0"):rep(-#head % 32)))
  for _, t in ipairs(list) do
    source:seek("set", 8 + length + t.first)
    assert(file:write(source:read(t.bytes), ("\0"):rep(-t.bytes % 32)))
  end
end

if opt.peer ~= "" then
  local path = folder .. "/model.gguf"
  write_gguf(path)
  local other = assert(lab.lm.open(path))
  assert(#other.layers == opt.layers)
  local call = ("%q -m %q -p %d -n 0 -t %d -r %d -o json"):format(opt.peer, path,
    opt.tokens, core.threads(), opt.repeats)
  local stream <close> = assert(io.popen(call))
  local printed = lab.json.decode((stream:read "a"))
  local samples = printed and printed[1] and printed[1].samples_ts
  if not samples then error(opt.peer .. " printed no samples_ts", 0) end
  local rate = math.max(table.unpack(samples)) -- the fastest counts here too
  print(("peer: %.1f tokens/s; sinklab has %.2f of that alone, %.2f with measurements")
    :format(rate, speed.tokens_per_s / rate, with.tokens_per_s / rate))
  os.remove(path)
end

if opt.folder == "" then
  for _, name in ipairs { "config.json", "model.safetensors" } do
    os.remove(folder .. "/" .. name)
  end
  os.remove(folder)
end
