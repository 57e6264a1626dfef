--- live.lua - run directories: new ones, and which process works in one.
--
-- A process holds the lock of its run directory (core.lock_folder) from lab.run() to the
-- end of the run; the system releases it when the process ends, however it ends. So a
-- record that says "running" in a directory without a lock is that of a run that died.
local core = require "sinklab.core"
local index = require "sinklab.record.index"

local live = {}

--- The sentence that refuses a folder in which a process works.
function live.message(folder)
  local record = index.read(folder) or {}
  local where = ""
  if math.type(record.pid) == "integer" then
    where = (" (process %d on %s, since %s)"):format(record.pid, tostring(record.host),
      tostring(record.started))
  end
  return ("%s: a process works in it%s"):format(folder, where)
end

--- Take the lock of a run directory.
-- @return a lock, held until lock:release (); or nil and a message that names the process
--         that has it, or says why there can be no lock, and whether another has it
function live.take(folder)
  local lock, message, held = core.lock_folder(folder)
  if lock then return lock end
  return nil, held and live.message(folder) or message, held
end

--- Make runs/<script>-<UTC time>, with a number after it if that is taken.
-- @return its path, or nil and a message
function live.new_folder(script)
  local name = script:match "([^/]+)$":gsub("%.lua$", "")
  local base = ("runs/%s-%s"):format(name, core.utc "%Y%m%dT%H%M%SZ")
  local ok, message = core.make_folders "runs"
  if not ok then return nil, message end
  for n = 1, math.huge do
    local folder = n == 1 and base or base .. "-" .. n
    local made, why = core.make_folder(folder)
    if made then return folder end
    if made == nil then return nil, why end
  end
end

--- Remove the temporary files that a process left here which was killed while it wrote.
-- Their names have its number (core.file_write).
-- @param file  only those of the file of this name; nil: of every file
function live.remove_temporary(folder, file)
  for _, name in ipairs(core.folder(folder) or {}) do
    local of, pid = name:match "^(.*)%.(%d+)%-%d+%.tmp$"
    pid = (not file or file == of) and math.tointeger(pid)
    if pid and not core.process_lives(pid) then os.remove(folder .. "/" .. name) end
  end
end

return live
