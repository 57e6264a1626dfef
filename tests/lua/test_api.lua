-- test_api.lua - wrong use of the public functions: no crash, no call of over two
-- seconds, and every error is a sentence that begins with the place and the function's
-- whole name.
--
-- Arguments are replaced at random (api_calls.lua); SINKLAB_API_SEED and
-- SINKLAB_API_CALLS choose others. A fault names its call.
local check = require "check"
local process = require "process"

local worker = arg[0]:match "^(.*/)" .. "api_calls.lua"
local seed = math.tointeger(tonumber(os.getenv "SINKLAB_API_SEED" or 1))
local wanted = math.tointeger(tonumber(os.getenv "SINKLAB_API_CALLS" or 3000))
-- Calls of one process: a crash or a hang costs the rest of them.
local BATCH = 5000
-- A sanitizer's own memory is no limit's business.
local limit = os.getenv "SINKLAB_NO_MEMORY_LIMIT" and "" or "ulimit -v 8000000"

local function batch(number, count)
  local folder = process.folder "api"
  local log = folder .. "/call"
  local calls = ("%d %d %s"):format(number, count, log)
  local r = process.shell(([[
    cd '%s'
    %s
    SINKLAB_CALLS='%s' timeout -k 5 300 '%s' run '%s' </dev/null]]):format(folder, limit,
    calls, os.getenv "SINKLAB_BINARY", worker))
  if r.code ~= 0 then
    local call = process.read(log):match "^[^\n]*"
    error(("seed %d: status %d after the call %s\n%s"):format(number, r.code, call,
      r.err:sub(1, 4000)), 0)
  end
  local summary = r.out:match "[^\n]*\n$"
  local faults = r.out:sub(1, -#summary - 1)
  if faults ~= "" then error(("seed %d:\n%s"):format(number, faults:sub(1, 8000)), 0) end
  return math.tointeger(tonumber(summary:match "^(%d+) calls"))
end

check.test("public functions with arguments replaced at random", function()
  local done, number = 0, seed
  for from = 0, wanted - 1, BATCH do
    done = done + batch(number, math.min(BATCH, wanted - from))
    number = number + 1
  end
  print(("%d calls, seeds %d to %d"):format(done, seed, number - 1))
end)

check.done()
