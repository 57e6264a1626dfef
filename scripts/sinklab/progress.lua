--- progress.lua - how training shows that it is alive.
--
-- On a terminal one line is rewritten in place; elsewhere a plain line every few
-- seconds, so that a log file stays short; with --quiet nothing.
local core = require "sinklab.core"

local progress = {}
local methods = {}
local Progress = { __index = methods }

-- Seconds between plain lines where there is no terminal.
local PLAIN_EVERY = 5

--- @param label, steps (the most there can be), quiet (nil: as --quiet says)
function progress.new(o)
  local quiet = o.quiet
  if quiet == nil then quiet = core.quiet() end
  return setmetatable({ label = o.label, steps = o.steps, quiet = quiet,
    terminal = core.is_terminal "stderr", shown_at = core.clock(),
    started = core.clock() }, Progress)
end

--- "1 min 05 s" or "8.1 s".
function progress.duration(seconds)
  if seconds < 60 then return ("%.1f s"):format(seconds) end
  if seconds < 3600 then
    return ("%d min %02d s"):format(seconds // 60, seconds // 1 % 60)
  end
  return ("%d h %02d min"):format(seconds // 3600, seconds // 60 % 60)
end

local function text(self, p)
  local rate = p.seconds > 0 and p.step / p.seconds or 0
  local parts = { ("%s  step %d"):format(self.label, p.step),
    ("%.0f steps/s"):format(rate), ("loss %.2e"):format(p.loss) }
  if p.linf then parts[#parts + 1] = ("linf %.4f"):format(p.linf) end
  return parts, rate
end

--- Show where training stands, if it is time to.
function methods:update(p)
  if self.quiet then return end
  local now = core.clock()
  if not self.terminal and now - self.shown_at < PLAIN_EVERY then return end
  self.shown_at = now
  local parts, rate = text(self, p)
  if rate > 0 then
    parts[#parts + 1] = "at most "
        .. progress.duration((self.steps - p.step) / rate) .. " left"
  end
  local line = table.concat(parts, "  ")
  if self.terminal then
    local columns = core.columns "stderr" or 80
    io.stderr:write("\r", line:sub(1, columns - 1), "\27[K")
    self.open = true
  else
    io.stderr:write(line, "\n")
  end
end

--- The last line: how training ended.
function methods:finish(p)
  if self.quiet then return end
  local parts = text(self, p)
  parts[#parts + 1] = progress.duration(p.seconds)
  parts[#parts + 1] = "stopped by " .. p.stopped
  io.stderr:write(self.open and "\r" or "", table.concat(parts, "  "),
    self.open and "\27[K\n" or "\n")
end

return progress
