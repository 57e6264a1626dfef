--- init.lua - the table that `require "sinklab"` gives: every part, loaded when used.
local core = require "sinklab.core"
local lazy = require "sinklab.base.lazy"

-- Every public name. A module's value is the part of this name ...
local modules = { task = "task", model = "model", init = "model.init_values",
  train = "train", optim = "train.optim", schedule = "train.schedule", sweep = "sweep",
  sinks = "measure.sinks", intervene = "measure.intervene", plot = "plot",
  witness = "theorem.witness",
  certify = "theorem.certify", text = "base.text", json = "base.json",
  runs = "record.runs", csv = "base.csv", lm = "lm" }

-- ... or a table of the parts of these names.
for module, names in pairs {
  ["cli.options"] = "options",
  ["record.run"] = "run",
  ["core_api.tensor"] = "tensor zeros ones full arange is_tensor",
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

-- ... and every operation that has a description.
for name in pairs(require "sinklab.core_api.ops") do
  modules[name] = { "core_api.ops", name }
end

return lazy("sinklab", "lab", modules, "sinklab " .. core.version)
