--- store.lua - the results of a sweep in a folder, one file a point, so that a sweep that
-- was stopped goes on where it was.
--
-- sweep.txt holds the code of every point (the function, its captures, `with`), as
-- send.lua writes it; N.txt a point and its result or failure. Files are written whole.
local core = require "sinklab.core"
local live = require "sinklab.record.live"
local send = require "sinklab.sweep.send"

local store = {}
local methods = {}
local Store = { __index = methods }

--- Open a folder of results, making it if need be.
-- @param folder  its path
-- @param job     text of what every point runs
-- @param fresh   whether the results of another job are removed; else they are refused
-- @return store; or nil and a message
function store.open(folder, job, fresh)
  local ok, why = core.make_folders(folder)
  if not ok then return nil, why end
  local self = setmetatable({ folder = folder, known = {}, taken = {} }, Store)
  live.remove_temporary(folder)
  local head, known = folder .. "/sweep.txt", false
  if core.file_exists(head) then
    local text, message = core.file_read(head)
    if not text then return nil, message end
    known = text == job
    if not known and not fresh then
      return nil, ("%s: it has results of another function, of the same function with "
        .. "other captured values, or of another `with`; choose another folder, or start "
        .. "over with `fresh` (--fresh)"):format(folder)
    end
  end
  for _, name in ipairs(assert(core.folder(folder))) do
    if name:match "^%d+%.txt$" then
      local path = folder .. "/" .. name
      if fresh then
        ok, why = os.remove(path)
        if not ok then return nil, why end
      else
        local text, message = core.file_read(path)
        local entry = text and send.read_data(text)
        if type(entry) ~= "table" or type(entry.key) ~= "string" then
          return nil, ("%s: no result of a sweep%s"):format(path,
            message and " (" .. message .. ")" or "")
        end
        entry.name = name
        self.known[entry.key], self.taken[name] = entry, true
      end
    end
  end
  if not known then ok, why = core.file_write(head, job) end
  if not ok then return nil, why end
  return self
end

--- The entry of a point, { result =, failed =, seconds = }, or nil.
-- @param key  the point's text
function methods:get(key) return self.known[key] end

--- Keep the entry of a point.
-- @return true; or nil and a message
function methods:put(key, entry)
  local text, why = send.write({ key = key, result = entry.result, failed = entry.failed,
    seconds = entry.seconds }, "the result", false)
  if not text then return nil, why end
  local name = self.known[key] and self.known[key].name
  if not name then
    local n = self.last or 0
    repeat
      n = n + 1
      name = ("%06d.txt"):format(n)
    until not self.taken[name]
    self.last, self.taken[name] = n, true
  end
  local ok, message = core.file_write(self.folder .. "/" .. name, text .. "\n")
  if not ok then return nil, message end
  self.known[key] = { name = name, result = entry.result, failed = entry.failed,
    seconds = entry.seconds }
  return true
end

return store
