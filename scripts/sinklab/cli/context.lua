--- context.lua - the program that the library works for: a script or the prompt.
--
-- The host (the executable, `%run` at the prompt, a stock Lua) makes one and enters it;
-- lab.options and lab.run, which scripts call without one, take the current one. Fields:
--   script     the script as it was typed; nil at the prompt
--   shown      how messages and the record call it
--   arguments  list of its --key=VALUE options
--   help       whether --help was given
--   out        where results go, from --out; nil: a new folder in runs/
--   fresh, retry_failed  from --fresh and --retry-failed, for lab.sweep
--   stock      whether the host is a stock Lua
--   options    the values that lab.options has read; nil before that
local context = {}

local current = { arguments = {} }

--- The context of the program that runs now.
function context.current() return current end

--- Make `new` the current context. Returns the one before.
function context.enter(new)
  local before = current
  current = new
  return before
end

return context
