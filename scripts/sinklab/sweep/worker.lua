--- worker.lua - the script of a worker process of lab.sweep: points in, results out.
local core = require "sinklab.core"
local send = require "sinklab.sweep.send"

--- The parent's message: the function, its captured values and `with`, made anew for each
-- point, so that no point sees what another one has changed.
local function read_job(text)
  local job = assert(send.read(text, true))
  package.path, package.cpath = job.path, job.cpath
  if type(job.run) == "function" then return job.run, job.with end
  local ok, found = pcall(require, job.run)
  if not ok then return nil, tostring(found) end
  if type(found) == "function" then return found, job.with end
  return nil, ("module '%s' returns a %s, not a function"):format(job.run, type(found))
end

--- One point: true and the value as text, or false and why not.
local function try(run, point, with)
  local ok, value = xpcall(run, function(e) return tostring(e) end, point, with)
  if not ok then return false, value end
  local text, message = send.write(value, "the result", false)
  return text ~= nil, text or message
end

assert(core.parent_begin())
local job = core.parent_receive() or ""
rawset(_G, "lab", require "sinklab") -- a function typed at the prompt knows it so
while true do
  local text = core.parent_receive()
  if not text then return end
  local message = send.read(text)
  math.randomseed(message.number)
  local run, with = read_job(job)
  local ok, value = false, with
  if run then ok, value = try(run, message.point, with) end
  if core.interrupted() then return end
  if not core.parent_send(send.write({ ok, value }, "the answer")) then return end
end
