--- foreign.lua - what the sinklab executable does for the library, done in another
-- program.
--
-- core/lua/module.c loads it when a stock Lua requires "sinklab". The options of a script
-- (lua5.4 SCRIPT --lr=0.1 --out=DIR --quiet) are read from the global table `arg`; a
-- program that is no script keeps its arguments to itself.
local core = require "sinklab.core"

local host = { foreign = true, arguments = {}, shown = "lua" }
local arg = rawget(_G, "arg")
local quiet = false

if type(arg) == "table" and arg[-1] ~= nil then
  host.script, host.shown = arg[0], arg[0]
  for _, word in ipairs(arg) do
    local out = word:match "^%-%-out=(.+)$"
    if word == "--help" then
      host.help = true
    elseif word == "--quiet" then
      quiet = true
    elseif out then
      host.out = out
    else
      host.arguments[#host.arguments + 1] = word
    end
  end
end

core.host = host
function core.quiet() return quiet end
function core.quit(status) os.exit(status, true) end

return host
