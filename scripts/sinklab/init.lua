--- init.lua - the table that `require "sinklab"` gives: every part, loaded when used.
local core = require "sinklab.core"

-- Every public name. A module's value is the part of this name ...
local modules = { task = "task", model = "model", init = "model.init_values",
  train = "train", optim = "train.optim", schedule = "train.schedule", sweep = "sweep",
  sinks = "measure.sinks", intervene = "measure.intervene", plot = "plot", witness = "theorem.witness",
  certify = "theorem.certify", text = "base.text", json = "base.json",
  runs = "record.runs", csv = "base.csv", lm = "lm" }

-- ... or a table of the parts of these names.
for module, names in pairs {
  ["cli.options"] = "options",
  ["record.run"] = "run",
  ["core_api.tensor"] = "tensor zeros ones full arange is_tensor",
  ["core_api.ops"] = [[add sub mul div pow maximum minimum eq ne lt le gt ge where neg exp
    log tanh sigmoid relu silu gelu abs sqrt square sin cos sum mean max var argmax cumsum
    softmax log_softmax concat one_hot embedding gather scatter_add matmul linear
    layer_norm rms_norm cross_entropy mse max_abs_error]],
  ["core_api.generator"] = "generator",
  ["core_api.attention"] = [[mechanism plugins attention row_weights gate mixer rope
    sinusoidal alibi_slopes]],
  ["core_api.program"] = "record",
  ["core_api.files"] = [[load_npy save_npy load_safetensors save_safetensors load_npz
    save_npz sha256]],
  ["core_api.host"] = "version clock utc threads isa",
} do
  for name in names:gmatch "%S+" do modules[name] = { module, name } end
end

local function names()
  local list = {}
  for name in pairs(modules) do list[#list + 1] = name end
  table.sort(list)
  return list
end

local Lab = { __name = "sinklab" }

function Lab.__index(lab, name)
  local module, value = modules[name], nil
  if type(module) == "table" then
    value = require("sinklab." .. module[1])[module[2]]
  elseif module then
    value = require("sinklab." .. module)
  else
    local check = require "sinklab.base.check"
    check.fail("lab.%s: no such name%s", tostring(name),
      check.did_you_mean(name, names(), nil, "lab.%s"))
  end
  rawset(lab, name, value)
  return value
end

function Lab.__newindex(_, name)
  core.raise(("lab.%s: the library's table takes no new names"):format(
    tostring(name)))
end

function Lab.__pairs(lab)
  local list, i = names(), 0
  return function()
    i = i + 1
    if list[i] then return list[i], lab[list[i]] end
  end
end

function Lab.__tostring()
  return "sinklab " .. core.version .. ": " .. table.concat(names(), " ")
end

return setmetatable({}, Lab)
