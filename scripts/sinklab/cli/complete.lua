--- complete.lua - the candidates that a shell offers for an unfinished command line.
local core = require "sinklab.core"
local command = require "sinklab.cli.command"
local experiments = require "sinklab.cli.experiments"
local scan = require "sinklab.prompt.scan"

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
  if not at then return out end
  local keys, values = scan.table_keys(source, at)
  for i, key in ipairs(keys) do
    local word = source:match("^%s*(%l+)%f[%W]", values[i])
        or source:match("^%s*{%s*default%s*=%s*(%l+)%f[%W]", values[i])
    out[i] = word == "false" and "--" .. key or word == "true" and "--no-" .. key
        or "--" .. key .. "="
  end
  return out
end

local function plugins()
  local out = {}
  for _, p in ipairs(core.plugins()) do out[#out + 1] = p.name end
  return out
end

--- The candidates of the field `complete` of a word or an option.
local function offered(complete)
  if complete == "plugins" then return plugins() end
  if type(complete) == "function" then return complete() end
  if type(complete) == "table" then return complete end
  return {}, complete
end

--- "--key=value" for each value of an option that completes the typed text: of a list
-- "a,b" the last item.
local function values(option, key, typed)
  local complete = option and (option.complete or option.kind)
  if not option and (key == "attention" or key == "mechanism") then
    complete = "plugins"
  end
  local list, kind = offered(complete)
  local before, out = "--" .. key .. "=" .. (typed:match "^.*," or ""), {}
  for i, value in ipairs(list) do out[i] = before .. value end
  return out, (kind == "file" or kind == "folder") and kind or nil
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
  local key, value = last:match "^%-%-([%w_-]+)=(.*)$"
  if key then
    local option
    for _, o in ipairs(spec.options or {}) do if o[1] == key then option = o end end
    return values(option, key, value)
  elseif last:sub(1, 1) == "-" then
    local out = option_names(spec.options or {}, {})
    if spec.others and before[1] then
      local own = script_options(before[1])
      table.move(own, 1, #own, #out + 1, out)
    end
    return option_names(command.host_options, out)
  end
  local wanted = spec.words or {}
  local w = wanted[#before + 1] or wanted[#wanted] and wanted[#wanted].many
      and wanted[#wanted]
  if not w then return {} end
  return offered(w.complete)
end

--- @return the candidates that go on with the last word, sorted, and "file", "folder" or
-- nil: the kind of paths that the shell should add
return function(typed)
  local list, kind = candidates(typed)
  local stem, out = typed[#typed], {}
  for _, word in ipairs(list) do
    if word:sub(1, #stem) == stem then out[#out + 1] = word end
  end
  table.sort(out)
  return out, kind
end
