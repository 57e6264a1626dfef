--- host.lua - the program and the machine that a script runs on.
--
-- This file documents core/lua/lua_system.c; nothing in it runs.

--- The version of sinklab, as text.
-- @example
--   print(lab.version)
lab.version = "0.1.0"

--- Seconds on a clock that never jumps.
-- @return number
-- @example
--   local start = lab.clock()
--   print(lab.clock() - start < 60)
function lab.clock() end

--- The time of day in UTC.
-- @param format  as for os.date; default "%Y-%m-%dT%H:%M:%SZ"
-- @return text
-- @example
--   print(lab.utc "%Y")
function lab.utc(format) end

--- How many threads work (--threads).
-- @return whole number
-- @example
--   print(lab.threads())
function lab.threads() end

--- The instruction set in use.
-- @return "x86-64", "x86-64-v3", "x86-64-v4" or "arm64"
-- @example
--   print(lab.isa())
function lab.isa() end

--- The learning rate of a list of points at a step; as lab.schedule.at.
-- @param points  from lab.schedule
-- @param step    from 0
-- @return number
-- @example
--   print(lab.schedule_at(lab.schedule.constant { lr = 1e-3 }, 5))
function lab.schedule_at(points, step) end

--- What JSON's null reads as and is written from.
-- @example
--   print(lab.json.encode { lab.json.null })
lab.json.null = nil

--- Read JSON text.
-- @param text  JSON
-- @return the value, or nil and a message that says where the text is wrong
-- @example
--   print(lab.json.decode('{ "a": [1, 2] }').a[2])
function lab.json.decode(text) end
