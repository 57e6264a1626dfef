--- experiments.lua - the scripts that come with sinklab, and the comments at their top.
local core = require "sinklab.core"

local experiments = {}

--- The comment at the top of a script, without its dashes: a list of lines.
function experiments.header(path)
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

--- Their names, sorted.
function experiments.names()
  local names = {}
  for _, name in ipairs(core.folder(core.scripts .. "/experiments") or {}) do
    names[#names + 1] = name:match "^([^.].*)%.lua$"
  end
  table.sort(names)
  return names
end

--- Where one of them is.
function experiments.path(name)
  return core.scripts .. "/experiments/" .. name .. ".lua"
end

return experiments
