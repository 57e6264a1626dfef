--- command.lua - the commands that are written in Lua: list, plugin, help of a script.
local core = require "sinklab.core"
local options = require "sinklab.options"
local text = require "sinklab.text"

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

local plugin = {}

function plugin.list()
  local rows = {}
  for i, p in ipairs(core.plugins()) do
    rows[i] = { p.name, p.shadowed and "shadowed" or "", p.path }
  end
  if #rows == 0 then
    print "no plugins were found"
  else
    print(text.table({ "name", "", "file" }, rows))
  end
end

function plugin.info(name)
  if not name then refuse "plugin info needs a name: sinklab plugin info NAME" end
  local p = core.plugin(name)
  print(("%s %s: %s"):format(p.name, p.version, p.doc))
  print(("file    %s\nsha256  %s\nshape   %s\nclaims  %s"):format(p.path, p.hash,
    p.shape, #p.claims > 0 and table.concat(p.claims, ", ") or "none"))
  for i, o in ipairs(p.options) do
    if i == 1 then print "\noptions, with their defaults" end
    local allowed = o.choices and text.alternatives(o.choices)
        or o.min and ("%s to %s"):format(o.min, o.max) or "true or false"
    print(("  %s=%s  %s (%s)"):format(o.name, o.default, o.doc, allowed))
  end
  for i, q in ipairs(p.params) do
    if i == 1 then print "\nparameters of each head" end
    print(("  %s  %s"):format(q.name, q.doc))
  end
end

--- sinklab plugin list, sinklab plugin info NAME
function command.plugin(action, name)
  if not action then refuse "plugin needs to be told what: sinklab plugin list|info NAME" end
  if not plugin[action] then
    local near = core.nearest(action, { "list", "info" })
    refuse("plugin: no action '%s'%s", action,
      near and (" (did you mean '%s'?)"):format(near) or ": it is list or info")
  end
  plugin[action](name)
end

return command
