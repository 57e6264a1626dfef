--- test_lm_file.lua - lab.lm.file: what is in a model's files, products with it.
local check = require "check"
local lab = require "sinklab"
local scratch = os.getenv "SINKLAB_TEST_SCRATCH"
local models = arg[0]:match "^(.*)/lua/[^/]*$" .. "/models/"

local function write(name, text)
  local path = scratch .. "/" .. name
  local file <close> = assert(io.open(path, "wb"))
  file:write(text)
  return path
end

check.test("a GGUF file in Lua", function()
  local file = assert(lab.lm.file(models .. "bad/gguf/ok_micro.gguf"))
  check.equal({ file.format, file.version }, { "gguf", 3 })
  check.equal(file.metadata["general.architecture"], "llama")
  check.equal(file.metadata["no.such.key"], nil)
  check.equal(#file.tensors, 12)
  check.equal(file:has "token_embd.weight", true)
  check.equal(file:has "nothing", false)
  local keys = 0
  for key, value in pairs(file.metadata) do
    keys = keys + 1
    check.equal(file.metadata[key], value)
  end
  check.equal(keys, 18)
  local w = assert(file:weight "blk.0.attn_q.weight")
  check.equal({ w.name, w.type, w.shape, w.bytes },
    { "blk.0.attn_q.weight", "F32", { 8, 8 }, 256 })
  check.equal(tostring(w), "weight 'blk.0.attn_q.weight' (8, 8) F32")
  check.equal(w:nonfinite(), 0)
  local t = w:tensor()
  check.equal(t.dtype, "f32")
  check.equal(w:tensor "f64":get(2, 3), t:get(2, 3))
  check.equal(w:narrow(3, 2):tensor():totable(), t:narrow(1, 3, 2):totable())
  check.equal(w:select(8):tensor():totable(), t:select(1, 8):totable())
  check.raises("'totensor' (did you mean 'tensor'?)", function() w:totensor() end)
  for _, part in ipairs { { 8, 2 }, { 0, 1 }, { 1, -1 }, { math.mininteger, 1 },
    { math.maxinteger, math.maxinteger } } do
    check.raises(("narrow: start %d with length %d is not on the first axis"):format(
      table.unpack(part)), w.narrow, w, table.unpack(part))
  end
  check.raises("select: start 0 with length 1 is not", function() w:select(0) end)
  local none, message = file:weight "blk.0.attn_q.weigth"
  check.equal(none, nil)
  check.contains(message, "(did you mean 'blk.0.attn_q.weight'?)")
end)

check.test("values and tensors of every type", function()
  local file = assert(lab.lm.file(models .. "../fuzz/corpus/gguf/every_type"))
  for _, type in ipairs { 0, 1, 2, 3, 4, 5, 10, 11 } do
    check.equal(file.metadata["k" .. type], 1)
  end
  check.equal({ file.metadata.k6, file.metadata.k12, file.metadata.k7 },
    { 1.0, 1.0, true })
  check.equal(file.metadata.bools, { false, true })
  local read, refused = 0, {}
  for _, tensor in ipairs(file.tensors) do
    local w, message = file:weight(tensor.name)
    if w then
      read = read + 1
      check.equal(w:tensor().shape, tensor.shape)
    else
      refused[#refused + 1] = message:match "is of type ([%w_]+);"
    end
  end
  check.equal({ read, refused }, { 13, { "Q2_K", "I8" } })
end)

--- Memory of this process that is no file's, in kB; nil where the system is silent.
local function memory()
  local status <close> = io.open "/proc/self/status"
  return status and tonumber(status:read "a":match "RssAnon:%s*(%d+)")
end

check.test("a product leaves a packed weight in its file", function()
  local n = 4096 -- 32 MiB as F16, 64 as f32
  local header = ('{"w":{"dtype":"F16","shape":[%d,%d],"data_offsets":[0,%d]}}'):format(n,
    n, 2 * n * n)
  local path = write("large.safetensors", string.pack("<s8", header)
    .. ("\0\x3c"):rep(n * n))
  collectgarbage()
  local w = assert(lab.lm.file(path)):weight "w"
  local before = memory()
  local y = lab.lm.linear(lab.ones { 2, n }, w)
  check.equal({ y:get(1, 1), y:get(2, n) }, { n + 0.0, n + 0.0 })
  if before then
    local grown = memory() - before
    check.equal(grown < 24 * 1024 or grown, true)
  end
  os.remove(path)
end)

check.test("products and rows of a packed weight", function()
  local file = assert(lab.lm.file(models .. "bad/gguf/ok_micro.gguf"))
  local w = file:weight "blk.0.attn_q.weight"
  local t = w:tensor()
  local x = lab.sin(lab.arange(24):reshape { 3, 8 })
  local bias = lab.arange(8)
  check.equal(lab.lm.linear(x, w, bias):totable(), lab.linear(x, t, bias):totable())
  check.equal(lab.lm.embedding(w, { { 1, 0 }, { 7, 1 } }):totable(),
    lab.embedding(t, lab.tensor { { 1, 0 }, { 7, 1 } }):totable())
  check.raises("the last axis of x must be 8", lab.lm.linear, lab.zeros { 3, 7 }, w)
  check.raises("the id 8 (number 2) is not", lab.lm.embedding, w, { 1, 8 })
  check.raises("lab.lm.linaer: no such name (did you mean lab.lm.linear?)",
    function() return lab.lm.linaer end)
end)

check.test("a Hugging Face folder and its config", function()
  local path = write("model.safetensors", "")
  assert(lab.save_safetensors(path, { w = lab.ones { 2, 3 } }, { format = "pt" }))
  local config = write("config.json", '{"model_type": "llama", "hidden_size": 3}')
  for _, name in ipairs { scratch, path } do
    local file = assert(lab.lm.file(name))
    check.equal({ file.format, file.version, file.folder },
      { "safetensors", nil, scratch })
    check.equal(file.metadata.format, "pt")
    check.equal(file.config.hidden_size, 3)
    check.equal(file:weight "w":tensor():totable(), lab.ones { 2, 3 }:totable())
  end
  write("config.json", "{")
  local none, message = lab.lm.file(path)
  check.equal(none, nil)
  check.contains(message, "config.json: JSON, line 1")
  os.remove(config)
  check.equal(assert(lab.lm.file(path)).config, nil)
  os.remove(path)
end)

check.test("trouble of the outside world is nil and a sentence", function()
  for name, part in pairs {
    ["/no/such/file"] = "/no/such/file: cannot read: No such file or directory",
    [models .. "bad/gguf/magic_ggml_v0.gguf"] =
    "is neither a GGUF nor a safetensors file",
    [models .. "bad/gguf"] = "the folder has no model.safetensors",
  } do
    local none, message = lab.lm.file(name)
    check.equal(none, nil)
    check.contains(message, part)
  end
  check.raises("the path must be a string, got nil", lab.lm.file)
end)

check.done()
