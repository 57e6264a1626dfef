--- init.lua - the table that `require "sinklab"` gives: every part, loaded when used.
local core = require "sinklab.core"

-- name -> module and, where a module has several parts, which one.
local parts = {
  options = { "sinklab.cli.options", "options" },
  run = { "sinklab.record.run", "run" },
  task = { "sinklab.task" },
  model = { "sinklab.model" },
  init = { "sinklab.model.init_values" },
  train = { "sinklab.train" },
  optim = { "sinklab.train.optim", "optim" },
  schedule = { "sinklab.train.optim", "schedule" },
  sweep = { "sinklab.sweep" },
  sinks = { "sinklab.measure.sinks" },
  intervene = { "sinklab.measure.intervene" },
  plot = { "sinklab.plot" },
  witness = { "sinklab.theorem.witness" },
  certify = { "sinklab.theorem.certify" },
  text = { "sinklab.base.text" },
  json = { "sinklab.base.json" },
  runs = { "sinklab.record.runs" },
  csv = { "sinklab.base.csv" },
  lm = { "sinklab.lm" },
}

-- What the library keeps to itself; the rest of the core (tensors, operations,
-- mechanisms, files of arrays) is lab's too.
local private = {}
for name in ([[
  check_plugin checks columns database figure file_exists file_stamp file_write folder
  folder_exists hidden_measures host interrupted is_terminal json_decode json_null
  libraries lua_release make_folder make_folders measure_sinks nearest
  pending_interrupt plugin plugins_loaded quiet quit raise scripts
  parent_begin parent_receive parent_send process process_wait row_classes sink_collector
  stop_if_interrupted trainer
]]):gmatch "%S+" do
  private[name] = true
end

local function names()
  local list = {}
  for name in pairs(parts) do list[#list + 1] = name end
  for name in pairs(core) do
    if not private[name] and not parts[name] then list[#list + 1] = name end
  end
  table.sort(list)
  return list
end

local Lab = { __name = "sinklab" }

function Lab.__index(lab, name)
  local part, value = parts[name], nil
  if part then
    value = require(part[1])
    if part[2] then value = value[part[2]] end
  elseif not private[name] then
    value = core[name]
  end
  if value == nil then
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
