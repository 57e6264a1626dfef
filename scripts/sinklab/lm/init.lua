--- lm.lua - lab.lm: language models from files; parts are loaded when used.
local check = require "sinklab.base.check"

-- name -> the module that has it, under the same name.
local parts = {
  file = "sinklab.lm.file",
  linear = "sinklab.lm.file",
  embedding = "sinklab.lm.file",
  open = "sinklab.lm.open",
  sinks = "sinklab.lm.measure",
  intervene = "sinklab.lm.intervene",
  contrast = "sinklab.lm.contrast",
  speed = "sinklab.lm.speed",
  random = "sinklab.lm.random",
  tokenizer = "sinklab.lm.tokenizer",
  info = "sinklab.lm.info",
}

local Lm = { __name = "sinklab.lm" }

local function names()
  local list = {}
  for name in pairs(parts) do list[#list + 1] = name end
  table.sort(list)
  return list
end

function Lm.__index(lm, name)
  local part = parts[name]
  if not part then
    check.fail("lab.lm.%s: no such name%s", tostring(name),
      check.did_you_mean(name, names(), nil, "lab.lm.%s"))
  end
  local value = require(part)[name]
  rawset(lm, name, value)
  return value
end

function Lm.__pairs(lm)
  local list, i = names(), 0
  return function()
    i = i + 1
    if list[i] then return list[i], lm[list[i]] end
  end
end

function Lm.__tostring() return "lab.lm: " .. table.concat(names(), " ") end

return setmetatable({}, Lm)
