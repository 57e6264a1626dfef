--- progress.lua - the progress lines of training and other long work.
--
-- On a terminal one line is rewritten in place; elsewhere, and where the cursor cannot
-- move, a plain line every few seconds, so that a log file stays short; with --quiet
-- nothing.
local core = require "sinklab.core"

local progress = {}
local methods = {}
local Progress = { __index = methods }

-- Seconds between plain lines where there is no terminal.
local PLAIN_EVERY = 5
-- Seconds between changes of the line that shows other work than training.
local WORK_EVERY = 0.25

--- @param label, steps (the most there can be) of a training; quiet (nil: as --quiet
-- says)
function progress.new(o)
  local quiet = o.quiet
  if quiet == nil then quiet = core.quiet() end
  local now = core.clock()
  return setmetatable({ label = o.label, steps = o.steps, quiet = quiet,
    terminal = core.is_terminal "stderr" and os.getenv "TERM" ~= "dumb",
    shown_at = now, started = now }, Progress)
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
  if p.max_abs_error then
    parts[#parts + 1] = ("max_abs_error %.4f"):format(p.max_abs_error)
  end
  return parts, rate
end

--- Show some words, if it is time to.
-- @param left  seconds left, or nil; `bound`: a word before them
function methods:show(parts, left, bound)
  if self.quiet then return end
  local now = core.clock()
  if not self.terminal and now - self.shown_at < PLAIN_EVERY then return end
  self.shown_at = now
  if left then
    parts[#parts + 1] = ("%s %s left"):format(bound or "about", progress.duration(left))
  end
  local line = core.escape(table.concat(parts, "  "))
  if self.terminal then
    local columns = core.columns "stderr" or 80
    io.stderr:write("\r", line:sub(1, columns - 1), "\27[K")
    self.open = true
  else
    io.stderr:write(line, "\n")
  end
end

--- Show where training stands, if it is time to.
function methods:update(p)
  if self.quiet then return end
  local parts, rate = text(self, p)
  self:show(parts, rate > 0 and (self.steps - p.step) / rate or nil, "at most")
end

--- The last line of a training: how it ended.
function methods:finish(p)
  self:close(text(self, p), progress.duration(p.seconds), "stopped by " .. p.stopped)
end

--- The last line.
function methods:close(parts, ...)
  if self.quiet then return end
  for _, more in ipairs { ... } do parts[#parts + 1] = more end
  io.stderr:write(self.open and "\r" or "", core.escape(table.concat(parts, "  ")),
    self.open and "\27[K\n" or "\n")
end

-- Other work that may take long.
local Work = { __index = {} }

--- Work in `total` parts, which a terminal shows once it has taken a second:
--   local work <close> = progress.work("certify", #groups)
--   for i, group in ipairs(groups) do ... work:at(i) end
-- The line goes away when the work ends, whether or not by an error.
function progress.work(label, total)
  local line = progress.new { label = label }
  if line.terminal then line.shown_at = line.shown_at + 1 - WORK_EVERY end
  return setmetatable({ line = line, label = label, total = total }, Work)
end

--- Show that `done` parts of the work are finished, if it is time to.
function Work.__index:at(done)
  local now = core.clock()
  local line, took = self.line, now - self.line.started
  if now - line.shown_at < WORK_EVERY then return end
  line:show({ ("%s  %d of %d"):format(self.label, done, self.total) },
    done > 0 and took / done * (self.total - done) or nil)
end

function Work:__close()
  if self.line.open then io.stderr:write "\r\27[K" end
  self.line.open = false
end

return progress
