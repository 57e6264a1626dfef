--- worker.lua - the script of a worker process of lab.sweep: points in, results out.
local core = require "sinklab.core"
local send = require "sinklab.sweep.send"

--- One point: true and the value as text, or false and why not.
local function try(run, point, with)
  local ok, value = xpcall(run, function(e) return tostring(e) end, point, with)
  if not ok then return false, value end
  local text, message = send.write(value, "the result", false)
  return text ~= nil, text or message
end

assert(core.parent_begin())
local job = assert(send.read(core.parent_receive() or "", true))
package.path, package.cpath = job.path, job.cpath
rawset(_G, "lab", require "sinklab") -- a function typed at the prompt knows it so
local run, problem = job.run, nil
if type(run) == "string" then
  local ok, found = pcall(require, run)
  problem = not ok and tostring(found) or type(found) ~= "function"
      and ("module '%s' returns a %s, not a function"):format(run, type(found)) or nil
  run = found
end
while true do
  local text = core.parent_receive()
  if not text then return end
  local ok, value = false, problem
  if not problem then ok, value = try(run, send.read(text), job.with) end
  if core.interrupted() then return end
  if not core.parent_send(send.write({ ok, value }, "the answer")) then return end
end
