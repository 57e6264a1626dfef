--- command_complete.lua - what a shell offers at the end of an unfinished command line.
local core = require "sinklab.core"
local command = require "sinklab.command"
local experiments = require "sinklab.experiments"
local scan = require "sinklab.repl.scan"

--- "--name=" or "--name" of every option.
local function option_names(list, out)
  for _, o in ipairs(list) do out[#out + 1] = "--" .. o[1] .. (o[2] and "=" or "") end
  return out
end

--- The file of a script as `sinklab run` would find it, or nil.
local function script_path(name)
  for _, path in ipairs { name, name .. ".lua", experiments.path(name),
    experiments.path((name:gsub("%.lua$", ""))), core.scripts .. "/" .. name } do
    if core.file_exists(path) and not core.folder_exists(path) then return path end
  end
end

--- The options of a script, read from its text: nothing of it runs.
local function script_options(name)
  local file = io.open(script_path(name) or "")
  if not file then return {} end
  local source = file:read "a"
  file:close()
  local at, out = source:match "lab%.options%s*%(?%s*(){", {}
  for _, key in ipairs(at and scan.table_keys(source, at) or {}) do
    out[#out + 1] = "--" .. key .. "="
  end
  return out
end

local function plugins()
  local out = {}
  for _, p in ipairs(core.plugins()) do out[#out + 1] = p.name end
  return out
end

--- Values of an option: of a list "a,b" the last item.
local function values(option, name)
  local kind = option and option.kind
  if kind == "folder" or kind == "file" then return {}, kind end
  if not option and (name == "attention" or name == "mechanism") then return plugins() end
  return {}
end

local function words_of(w)
  if type(w.complete) == "function" then return w.complete() end
  if type(w.complete) == "table" then return w.complete end
  return {}, w.complete
end

--- Words that follow a command, and whether files do too.
-- @param typed  the words behind the program's name; the last one is unfinished
local function candidates(typed)
  local last, before = typed[#typed], {}
  for i = 1, #typed - 1 do
    if typed[i]:sub(1, 1) ~= "-" then before[#before + 1] = typed[i] end
  end
  local name = table.remove(before, 1)
  if not name then
    if last:sub(1, 1) == "-" then return option_names(command.host_options, {}) end
    return command.names
  end
  local spec = command.is_known(name) and command.find(name)
  if not spec then return {} end
  if spec.actions then
    local action = table.remove(before, 1)
    if not action and last:sub(1, 1) ~= "-" then return command.action_names(spec) end
    for _, a in ipairs(spec.actions) do
      if a.name == action then spec = a end
    end
  end
  local key = last:match "^%-%-([%w_-]+)="
  if key then
    local option
    for _, o in ipairs(spec.options or {}) do if o[1] == key then option = o end end
    local list, kind = values(option, key)
    local out = {}
    for i, value in ipairs(list) do out[i] = "--" .. key .. "=" .. value end
    return out, kind
  elseif last:sub(1, 1) == "-" then
    local out = option_names(spec.options or {}, {})
    if spec.others and before[1] then
      table.move(script_options(before[1]), 1, 1000, #out + 1, out)
    end
    return option_names(command.host_options, out)
  end
  local wanted = spec.words or {}
  local w = wanted[#before + 1] or wanted[#wanted] and wanted[#wanted].many
      and wanted[#wanted]
  if not w then return {} end
  return words_of(w)
end

--- @return the candidates that go on with the last word, sorted, and "file", "folder" or
-- nil: what else the shell should offer
return function(typed)
  local list, kind = candidates(typed)
  local stem, out = typed[#typed], {}
  for _, word in ipairs(list) do
    if word:sub(1, #stem) == stem then out[#out + 1] = word end
  end
  table.sort(out)
  return out, kind
end
