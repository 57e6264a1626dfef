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
  check.equal({ read, refused }, { 14, { "I8" } })
end)

--- A GGUF file of F32 vectors { name, numbers, place } and keys { name, whole number }.
local function write_gguf(path, tensors, keys)
  local head, data = {}, {}
  for i, key in ipairs(keys) do head[i] = string.pack("<s8I4I4", key[1], 4, key[2]) end
  local at = 0
  for _, t in ipairs(tensors) do
    head[#head + 1] = string.pack("<s8I4I8I4I8", t[1], 1, #t[2], 0, t[3] or at)
    local numbers = string.pack("<" .. ("f"):rep(#t[2]), table.unpack(t[2]))
    data[#data + 1] = numbers .. ("\0"):rep(-#numbers % 32)
    at = at + #data[#data]
  end
  local bytes = "GGUF" .. string.pack("<I4I8I8", 3, #tensors, #keys) .. table.concat(head)
  local file <close> = assert(io.open(path, "wb"))
  file:write(bytes, ("\0"):rep(-#bytes % 32), table.concat(data))
end

check.test("tensors of GGUF that share bytes are refused", function()
  local path = scratch .. "/shared.gguf"
  local a, b = { 1, 2, 3, 4, 5, 6, 7, 8, 9 }, { 5, 6 }
  write_gguf(path, { { "a", a }, { "b", b, 32 } }, { { "k", 1 } })
  local none, message = lab.lm.file(path)
  check.equal(none, nil)
  check.contains(message, "has the tensors 'a' and 'b' that share bytes")
  write_gguf(path, { { "a", a }, { "b", b } }, { { "k", 1 } })
  check.equal(assert(lab.lm.file(path)):weight "b":tensor():totable(), { 5.0, 6.0 })
end)

check.test("a GGUF model in several files", function()
  local function part(i, tensors, total, count)
    local path = ("%s/m-%05d-of-%05d.gguf"):format(scratch, i, count or 3)
    write_gguf(path, tensors, { { "split.no", i - 1 }, { "split.count", 3 },
      { "split.tensors.count", total or 4 }, { "general.number", i } })
    return path
  end
  local first = part(1, { { "a", { 1, 2 } }, { "b", { 3 } } })
  local second, third = part(2, { { "c", { 4 } } }), part(3, { { "d", { 5, 6, 7 } } })
  for _, path in ipairs { first, second, third } do
    local file = assert(lab.lm.file(path))
    check.equal(#file.tensors, 4)
    check.equal(file.metadata["general.number"], 1)
    check.equal(file:weight "d":tensor():totable(), { 5.0, 6.0, 7.0 })
    check.equal(file:weight "a":tensor():totable(), { 1.0, 2.0 })
  end
  local function refused(words)
    local none, message = lab.lm.file(first)
    check.equal(none, nil, words)
    check.contains(message, words)
  end
  part(2, { { "a", { 4 } } })
  refused("two parts have the tensor 'a'")
  part(2, { { "c", { 4 } }, { "e", { 4 } } })
  refused("its parts have 5 tensors; split.tensors.count is 4")
  write_gguf(second, { { "c", { 4 } } }, { { "split.no", 2 }, { "split.count", 3 } })
  refused("is not part 2 of 3 by its keys split.no and split.count")
  os.remove(second)
  refused("cannot read")
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
  check.raises("lab.lm.linear: the weight must be a weight of a file from lab.lm.file, "
    .. "got a tensor", lab.lm.linear, x, t)
  check.raises("lab.lm.embedding: the weight must be a weight of a file from "
    .. "lab.lm.file, got 1", lab.lm.embedding, 1, { 1 })
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
