--- stock_lua.lua - the host of the library in a stock Lua, as the executable is one.
--
-- core/lua/module.c loads it when a stock Lua requires "sinklab". The options of a script
-- (lua5.4 SCRIPT --lr=0.1 --out=DIR --quiet) are read from the global table `arg`; a
-- program that is no script keeps its arguments to itself.
local core = require "sinklab.core"
local contexts = require "sinklab.cli.context"

local context = { stock = true, arguments = {}, shown = "lua" }
local arg = rawget(_G, "arg")
local quiet = false

if type(arg) == "table" and arg[-1] ~= nil then
  context.script, context.shown = arg[0], arg[0]
  for _, word in ipairs(arg) do
    local out = word:match "^%-%-out=(.+)$"
    if word == "--help" then
      context.help = true
    elseif word == "--quiet" then
      quiet = true
    elseif out then
      context.out = out
    else
      context.arguments[#context.arguments + 1] = word
    end
  end
end

contexts.enter(context)
function core.quiet() return quiet end
function core.quit(status)
  local run = package.loaded["sinklab.record.run"]
  if run then run.exit(status) end
  os.exit(status, true)
end

return context
