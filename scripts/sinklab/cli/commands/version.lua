--- version.lua - sinklab version.
local core = require "sinklab.core"

return {
  doc = "version, instruction set and Lua",
  run = function()
    print(("sinklab %s (%s, %s)"):format(core.version, core.isa(), core.lua_release))
  end,
}
