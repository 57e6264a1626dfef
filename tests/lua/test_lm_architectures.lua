--- test_lm_architectures.lua - an architecture is one table, also from outside.
local lab = require "sinklab"
local check = require "check"
local architectures = require "sinklab.lm.architectures"
local scratch = assert(os.getenv "SINKLAB_TEST_SCRATCH")

--- A tiny llama in a folder: other settings of config.json, other names of tensors.
local function folder(name, settings, rename)
  local path = scratch .. "/" .. name
  assert(lab.lm.random { layers = 1, d_model = 8, heads = 2, vocab = 16, seed = 3,
    std = 0.5, folder = path })
  local file = assert(io.open(path .. "/config.json"))
  local config = lab.json.decode(file:read "a")
  file:close()
  for key, value in pairs(settings) do config[key] = value end
  file = assert(io.open(path .. "/config.json", "w"))
  file:write(lab.json.encode(config))
  file:close()
  local tensors = {}
  local weights = assert(lab.load_safetensors(path .. "/model.safetensors"))
  for tensor, value in pairs(weights) do
    tensors[tensor:gsub(rename[1], rename[2])] = value
  end
  assert(lab.save_safetensors(path .. "/model.safetensors", tensors))
  return path
end

check.test("an architecture from outside the library", function()
  local path = folder("mine", { model_type = "relu_llama", hidden_act = "silu" },
    { "up_proj", "wide" })
  local model, message = lab.lm.open(path)
  check.equal(model, nil)
  check.contains(message, "architecture 'relu_llama' is not known")
  local llama = architectures.find("hf", "llama")
  table.insert(architectures.list, architectures.extend(llama, {
    gguf = false, hf = "relu_llama", activation = "relu", activation_fixed = true,
    names = architectures.extend(llama.names, { up = "mlp.wide" }),
    needs = { odd = 1 },
  }))
  for _, name in ipairs(select(2, architectures.find("gguf", "relu_llama"))) do
    check.equal(type(name), "string")
  end
  model = assert(lab.lm.open(path))
  check.equal({ model.config.architecture, model.config.activation },
    { "relu_llama", "relu" })
  local same = assert(lab.lm.open(folder("llama", { hidden_act = "relu" }, { "", "" })))
  local ids = { 3, 1, 4, 1, 5 }
  check.equal((model:logits(ids) - same:logits(ids)):abs():max():item(), 0.0)
  model, message = lab.lm.open(folder("odd", { model_type = "relu_llama", odd = 2 },
    { "up_proj", "wide" }))
  check.equal(model, nil)
  check.contains(message, "odd is 2; this library follows relu_llama models with 1 only")
end)

check.test("no architecture is known by name outside the table", function()
  local names = {}
  for _, entry in ipairs(architectures.list) do
    for _, form in ipairs { "gguf", "hf" } do
      local own = entry[form]
      for _, name in ipairs(type(own) == "table" and own or { own or nil }) do
        names[name] = true
      end
    end
  end
  local source = arg[0]:match "^(.*)/tests/lua/[^/]*$" .. "/scripts/sinklab/lm/"
  for _, file in ipairs { "config", "rope", "windows", "settings", "forward",
    "weights" } do
    for line in io.lines(source .. file .. ".lua") do
      for text in line:gsub("%-%-.*", ""):gmatch '"([^"]*)"' do
        if names[text] then error(("%s.lua names %s"):format(file, text)) end
      end
    end
  end
end)

check.done()
