--- undefined.lua - "did you mean" behind Lua's own "attempt to call a nil value".
local core = require "sinklab.core"

local function names_of_globals()
  local names = {}
  for name in next, _G do if type(name) == "string" then names[#names + 1] = name end end
  return names
end

--- The last part of every public name: methods and functions alike.
local function names_of_members()
  local names, seen = {}, {}
  for _, entry in ipairs(require "sinklab.help".index()) do
    local name = entry.name:match "([%w_]+)$"
    if not seen[name] then names[#names + 1], seen[name] = name, true end
  end
  return names
end

local kinds = { global = names_of_globals, method = names_of_members,
  field = names_of_members }

--- The message of an error with a suggestion, if it names a thing that is not there.
return function(message)
  local kind, name = message:match "attempt to call a nil value %((%l+) '([%w_]+)'%)"
  if not kinds[kind] or message:find("did you mean", 1, true) then return message end
  local near = core.nearest(name, kinds[kind]())
  if not near or near == name then return message end
  return (message:gsub("%(" .. kind .. " '" .. name .. "'%)",
    ("%%0 (did you mean '%s'?)"):format(near), 1))
end
