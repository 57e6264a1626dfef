--- command.lua - the commands that are written in Lua: list, help of a script.
local core = require "sinklab.core"
local options = require "sinklab.options"

local command = {}

local function refuse(message, ...) error(message:format(...), 0) end

--- The comment at the top of a script, without its dashes: a list of lines.
local function header(path)
  local lines, file = {}, io.open(path)
  if not file then return lines end
  for line in file:lines() do
    local words = line:match "^%-%-+ ?(.*)$"
    if words then
      lines[#lines + 1] = words
    elseif not (line:match "^#!" and #lines == 0) then
      break
    end
  end
  file:close()
  return lines
end

local function experiments()
  local names = {}
  for _, name in ipairs(core.folder(core.scripts .. "/experiments") or {}) do
    names[#names + 1] = name:match "^([^.].*)%.lua$"
  end
  table.sort(names)
  return names
end

--- sinklab list
function command.list()
  local width = 0
  for _, name in ipairs(experiments()) do width = math.max(width, #name) end
  for _, name in ipairs(experiments()) do
    local purpose = header(core.scripts .. "/experiments/" .. name .. ".lua")[1]
    print(("%s%s  %s"):format(name, (" "):rep(width - #name), purpose or ""))
  end
end

--- Raise that there is no script of this name.
function command.no_script(name)
  local near = core.nearest(name:match "([^/]*)$":gsub("%.lua$", ""), experiments())
  refuse("no script '%s' here or in %s%s", name, core.scripts,
    near and (" (did you mean '%s'?)"):format(near)
    or "\n  sinklab list shows the experiments")
end

--- What can be done about --help and options before a script runs: print what it says
-- of itself; refuse options if it can have none. Returns true if it is to run, which
-- with --help ends at its lab.options.
function command.before_script(path, shown)
  local file <close> = assert(io.open(path))
  local may_have_options = file:read "a":find("options", 1, true) ~= nil
  if not core.host.help then
    if not may_have_options then options.unread() end
    return true
  end
  print("sinklab run " .. shown .. " [--key=VALUE ...]\n")
  for _, line in ipairs(header(path)) do print(line) end
  print "\nOptions of every script: --out=DIR --threads=N --quiet --traceback"
  if not may_have_options then print "It has no options of its own." end
  return may_have_options
end

--- sinklab plugin ACTION ...
function command.plugin(...) require "sinklab.plugin" (...) end

return command
