--- lab.lm: language models from files; parts are loaded when used.
local lazy = require "sinklab.base.lazy"

local modules = {}
for module, names in pairs { file = "file linear embedding", open = "open",
  measure = "sinks", intervene = "intervene", contrast = "contrast", speed = "speed",
  random = "random", tokenizer = "tokenizer", info = "info" } do
  for name in names:gmatch "%S+" do modules[name] = { "lm." .. module, name } end
end

return lazy("sinklab.lm", "lab.lm", modules, "lab.lm")
