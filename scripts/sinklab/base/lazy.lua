--- lazy.lua - a table of public names whose modules are loaded when a name is used.
local core = require "sinklab.core"

--- @param name     of the table's metatable, "sinklab.lm"
-- @param label    how messages call it, "lab.lm"
-- @param modules  public name -> module of this name in sinklab/, or { module, field }
-- @param about    what tostring begins with
return function(name, label, modules, about)
  local names = {}
  for public in pairs(modules) do names[#names + 1] = public end
  table.sort(names)
  local Lazy = { __name = name }

  function Lazy.__index(self, public)
    local module = modules[public]
    if not module then
      local check = require "sinklab.base.check"
      check.fail("%s.%s: no such name%s", label, tostring(public),
        check.did_you_mean(public, names, nil, label .. ".%s"))
    end
    local field = type(module) == "table" and module[2]
    local value = require("sinklab." .. (field and module[1] or module))
    if field then value = value[field] end
    rawset(self, public, value)
    return value
  end

  function Lazy.__newindex(_, public)
    core.raise(("%s.%s: the library's table takes no new names"):format(label,
      tostring(public)))
  end

  function Lazy.__pairs(self)
    local i = 0
    return function()
      i = i + 1
      if names[i] then return names[i], self[names[i]] end
    end
  end

  function Lazy.__tostring() return about .. ": " .. table.concat(names, " ") end

  return setmetatable({}, Lazy)
end
