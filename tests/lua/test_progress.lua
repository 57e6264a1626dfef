-- test_progress.lua - progress of long work: when it shows, how long it says is left.
local check = require "check"
local process = require "process"
local core = require "sinklab.core"
local progress = require "sinklab.base.progress"

--- Run f with a clock of its own and standard error kept; what was written.
local function watched(f)
  local clock, err, out, now = core.clock, io.stderr, {}, 100
  core.clock = function() return now end
  io.stderr = { write = function(_, ...)
    for i = 1, select("#", ...) do out[#out + 1] = (select(i, ...)) end
  end }
  local ok, message = pcall(f, function(seconds) now = now + seconds end)
  core.clock, io.stderr = clock, err
  assert(ok, message)
  return table.concat(out)
end

check.test("durations", function()
  check.equal({ progress.duration(8.12), progress.duration(65), progress.duration(7500) },
    { "8.1 s", "1 min 05 s", "2 h 05 min" })
end)

check.test("plain: a line every five seconds, with what is left", function()
  local said = watched(function(pass)
    local work <close> = progress.work("certify", 10)
    for i = 1, 10 do
      pass(2)
      work:at(i)
    end
  end)
  check.equal(said, "certify  3 of 10  about 14.0 s left\n"
    .. "certify  6 of 10  about 8.0 s left\ncertify  9 of 10  about 2.0 s left\n")
end)

check.test("on a terminal: after a second, and gone at the end", function()
  local is_terminal, columns = core.is_terminal, core.columns
  core.is_terminal = function() return true end
  core.columns = function() return 30 end
  local term = os.getenv
  os.getenv = function(name) return name == "TERM" and "xterm" or term(name) end
  local said = watched(function(pass)
    local work <close> = progress.work("certify", 10)
    for i = 1, 4 do
      pass(0.5)
      work:at(i)
    end
  end)
  local quick = watched(function(pass)
    local work <close> = progress.work("certify", 10)
    pass(0.5)
    work:at(5)
  end)
  core.is_terminal, core.columns, os.getenv = is_terminal, columns, term
  check.equal(said, ("\rcertify  2 of 10  about 4.0 s\27[K"):sub(1, 30) .. "\27[K"
    .. "\rcertify  3 of 10  about 3.5 s\27[K"
    .. "\rcertify  4 of 10  about 3.0 s\27[K" .. "\r\27[K")
  check.equal(quick, "")
end)

check.test("--quiet: nothing; otherwise on standard error only", function()
  local folder = process.folder "progress"
  process.write(folder .. "/s.lua", [[
    local lab = require "sinklab"
    local task = lab.task.trigger_mean {}
    lab.train(lab.model.attention_only { task = task }, task, { steps = 3, eval = 0 })]])
  local r = process.run({ "run", "s" }, { folder = folder })
  check.equal({ r.code, r.out }, { 0, "" })
  check.contains(r.err, "softmax  step 3")
  r = process.run({ "run", "s", "--quiet" }, { folder = folder })
  check.equal({ r.code, r.out, r.err }, { 0, "", "" })
end)

check.done()
