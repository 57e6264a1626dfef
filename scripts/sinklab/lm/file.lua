--- file.lua - lab.lm.file: the contents of a model's files, read in place.
local core = require "sinklab.core"
local schema = require "sinklab.base.schema"
local json = require "sinklab.base.json"

local files = {}

-- The metadata of a file, each value read when it is first asked for: a vocabulary
-- is a list of a hundred thousand strings.
local function metadata_of(handle)
  local Metadata = { __name = "metadata of a model file" }
  function Metadata.__index(metadata, key)
    local value = handle:value(tostring(key))
    rawset(metadata, key, value)
    return value
  end
  function Metadata.__pairs(metadata)
    local keys, i = handle:keys(), 0
    return function()
      i = i + 1
      if keys[i] then return keys[i], metadata[keys[i]] end
    end
  end
  return setmetatable({}, Metadata)
end

--- The text of a file, or nil and a sentence; nil alone if there is no such file.
local function text_of(path)
  if not core.file_exists(path) then return end
  return core.file_read(path)
end

--- The table that a JSON file holds, nil if there is no such file; or nil and a
-- sentence.
local function config_of(path)
  local text, message = text_of(path)
  if not text then return nil, message end
  local value
  value, message = json.decode(text)
  if type(value) == "table" then return value end
  return nil, path .. ": " .. (message or "is no JSON object")
end

local methods = {}
local File = { __index = methods, __name = "sinklab.lm.file" }

methods.weight = schema.func("lm.file:weight", {
  doc = [[A weight of the file, which stays where and as it is.

    `w.name`, `w.type` ("Q4_K"), `w.shape` (as Hugging Face has it: a matrix is {out,
    in}) and `w.bytes` say what it is; `w:tensor(dtype)` gives its numbers (F32 in
    place, anything else converted), `w:narrow(start, length)` and `w:select(i)` parts
    along the first axis, `w:nonfinite()` how many numbers are infinite or NaN.]],
  args = { { "name", "string", doc = "as in `file.tensors`" } },
  returns = "the weight",
  errors = "nil and a sentence if there is none of this name, or its type is not read",
  example = [[
    local path = os.tmpname()
    lab.save_safetensors(path, { w = lab.ones { 3, 2 } })
    local file = lab.lm.file(path)
    print(file:weight "w", file:weight "w":tensor():get(3, 2))
    os.remove(path)]],
}, function(self, name)
  return self.handle:weight(name)
end)

methods.has = schema.func("lm.file:has", {
  doc = "Whether there is a tensor of this name.",
  args = { { "name", "string" } },
  returns = "true or false",
  example = [[
    local path = os.tmpname()
    lab.save_safetensors(path, { w = lab.ones { 3, 2 } })
    print(lab.lm.file(path):has "w")
    os.remove(path)]],
}, function(self, name)
  if not self.index then
    self.index = {}
    for _, tensor in ipairs(self.tensors) do self.index[tensor.name] = tensor end
  end
  return self.index[name] ~= nil
end)

function File:__tostring()
  return ("%s: %s%s, %d tensors, %d bytes"):format(self.path, self.format,
    self.version and " " .. self.version or "", #self.tensors, self.bytes)
end

files.file = schema.func("lab.lm.file", {
  doc = [[Open the files of a model: GGUF (versions 1 to 3), safetensors, an index of
    shards, or a Hugging Face folder.

    The object has `path`, `format` ("gguf" or "safetensors"), `version` (of GGUF),
    `bytes`, `folder`, `metadata` (a table, read as it is used), `tensors` (a list of
    {name=, type=, shape=, bytes=} in the file's order), `config` (the table of the
    config.json beside safetensors, nil without one). Files are mapped, not copied.]],
  args = { { "path", "string", doc = "a file or a folder" } },
  returns = "the file object",
  errors = [[nil and a sentence for what cannot be read: the file, the thing in it, what
    was allowed]],
  example = [[
    local path = os.tmpname()
    lab.save_safetensors(path, { w = lab.ones { 3, 2 } }, { made = "here" })
    local file = lab.lm.file(path)
    print(file.format, file.metadata.made, file.tensors[1].name)
    os.remove(path)]],
}, function(path)
  local handle, message = core.lm.open(path)
  if not handle then return nil, message end
  local file = handle:about()
  if file.format == "safetensors" then
    file.config, message = config_of(file.folder .. "/config.json")
    if message then return nil, message end
  end
  file.handle = handle
  file.metadata = metadata_of(handle)
  file.tensors = handle:tensors()
  return setmetatable(file, File)
end)

files.linear = schema.func("lab.lm.linear", {
  doc = [[x times a packed weight, transposed: (..., in) -> (..., out).

    The weight stays packed: a strip of it is unpacked at a time, so memory does not
    grow with it. Uses all threads; the result has the same bits for any number of them.
    It cannot be recorded and has no gradient.]],
  args = {
    { "x", "tensor", doc = "(..., in)" },
    { "weight", "weight", doc = "of shape (out, in), from `file:weight`" },
    { "bias", "tensor", optional = true, doc = "(out), in x's precision" },
  },
  returns = "a new tensor (..., out)",
  example = [[
    local path = os.tmpname()
    lab.save_safetensors(path, { w = lab.ones { 3, 2 } })
    local w = lab.lm.file(path):weight "w"
    print(lab.lm.linear(lab.tensor { { 1, 2 } }, w))
    os.remove(path)]],
}, function(x, weight, bias)
  return core.lm.linear(x, weight, bias)
end)

files.embedding = schema.func("lab.lm.embedding", {
  doc = "The rows of a packed weight that ids choose.",
  args = {
    { "weight", "weight", doc = "of shape (n, d), from `file:weight`" },
    { "ids", "tensor table",
      doc = "tensor or nested list of whole numbers from 0 to n - 1" },
    { "dtype", "string", default = "f32", choices = { "f32", "f64" } },
  },
  returns = "a new tensor of the ids' shape and d",
  example = [[
    local path = os.tmpname()
    lab.save_safetensors(path, { w = lab.tensor { { 1, 2 }, { 3, 4 } } })
    print(lab.lm.embedding(lab.lm.file(path):weight "w", { 1, 0, 1 }))
    os.remove(path)]],
}, function(weight, ids, dtype)
  return core.lm.embedding(weight, ids, dtype)
end)

return files
