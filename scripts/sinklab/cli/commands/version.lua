--- version.lua - sinklab version.
local core = require "sinklab.core"

return {
  doc = "print the version, instruction set and Lua release",
  run = function()
    print(("sinklab %s (%s, %s)"):format(core.version, core.isa(), core.lua_release))
  end,
}
