--- doctor.lua - what sinklab doctor finds: the program, the machine, the plugins, the
-- terminal, and a self-test of about a second.
local core = require "sinklab.core"

local doctor = {}

local function first_line(path, pattern)
  local file <close> = io.open(path)
  for line in file and file:lines() or function() end do
    local found = line:match(pattern)
    if found then return found end
  end
end

--- The name of the processor, where the system tells.
local function processor()
  return first_line("/proc/cpuinfo", "^model name%s*:%s*(.+)$") or "not told"
end

--- GFLOP/s of one product of two square matrices in a precision: the best of some
-- within a fifth of a second.
local function gemm_speed(dtype)
  local n = 384
  local a = core.generator(0, { dtype = dtype }):uniform(-1, 1, { n, n })
  local best, stop = 0, core.clock() + 0.2
  repeat
    local start = core.clock()
    core.matmul(a, a)
    best = math.max(best, 2 * n ^ 3 / (core.clock() - start) / 1e9)
  until core.clock() > stop
  return tonumber(("%.3g"):format(best)) -- of a slow machine too, more than nothing
end

--- Plugins that load, that do not, and those that another one of the name hides.
local function plugins()
  local out = { found = {}, broken = {}, shadowed = {} }
  for _, p in ipairs(core.plugins()) do
    local ok, message = pcall(core.plugin, p.path)
    if not ok then
      out.broken[#out.broken + 1] = { name = p.name, path = p.path,
        message = tostring(message) }
    elseif p.shadowed then
      out.shadowed[#out.shadowed + 1] = p.path
    else
      out.found[#out.found + 1] = p.name
    end
  end
  table.sort(out.found)
  return out
end

local function environment(name)
  local value = os.getenv(name)
  return value ~= "" and value or nil
end

local function terminal()
  local locale = environment "LC_ALL" or environment "LC_CTYPE" or environment "LANG"
      or "C"
  local is_terminal, dumb = core.is_terminal(), environment "TERM" == "dumb"
  local colour = "none"
  if is_terminal and not dumb and not environment "NO_COLOR" then
    local how = environment "COLORTERM"
    colour = (how == "truecolor" or how == "24bit") and "24-bit" or "256"
  end
  return { is_terminal = is_terminal, kind = environment "TERM" or "not told",
    columns = core.columns() or 80, colour = colour,
    utf8 = locale:lower():find "utf%-?8" ~= nil }
end

-- The self-test: each returns whether it holds and a figure for people. All numbers are
-- compared with something known, not with what this program printed before.
local tests = {}

local function add(name, f) tests[#tests + 1] = { name = name, run = f } end

add("gradients against differences (f64)", function()
  local g = core.generator(1, { dtype = "f64" })
  local w, x = g:normal(0, 1, { 3, 4 }), g:normal(0, 1, { 5, 4 })
  local program, loss = core.record(function()
    return core.square(core.softmax(core.linear(x, w), 2) * 3):mean()
  end)
  local worst = program:want(w):loss(loss):check {}
  return worst < 1e-6, ("largest difference %.1e"):format(worst)
end)

add("a witness solves its task exactly (f64)", function()
  local witness = require "sinklab.theorem.witness"
  local task = require "sinklab.task".trigger_mean {}
  local max_abs_error, found = witness.measure(witness.relu(task), task, 64)
  return max_abs_error < 1e-12 and found.first.max == 0,
    ("error %.1e, weight on position 1 %g"):format(max_abs_error, found.first.max)
end)

add("training lowers the loss", function()
  local task = require "sinklab.task".trigger_mean {}
  local model = require "sinklab.model".attention_only { task = task }
  local log = require "sinklab.train" (model, task, { steps = 60, eval = 0, quiet = true,
    log_every = 10 })
  local first, last = log.log[1].loss, log.log[#log.log].loss
  return last < first, ("%.2e to %.2e, %.0f steps/s"):format(first, last,
    log.steps_per_s)
end)

add("arrays come back from a file", function()
  local path, t = os.tmpname(), core.generator(2):normal(0, 1, { 7, 5 })
  local ok, message = core.save_npy(path, t)
  local back
  if ok then back, message = core.load_npy(path) end
  os.remove(path)
  if not back then return false, message end
  return core.max_abs_error(t, back):item() == 0, "35 numbers, bit for bit"
end)

add("figures are drawn", function()
  local path = os.tmpname()
  local figure = require "sinklab.plot".heat { { 1, 0 }, { 0.5, 0.5 } }
  os.remove(path)
  local ok, message = figure:save(path .. ".png")
  local file <close> = io.open(path .. ".png", "rb")
  local mark = file and file:read(8)
  os.remove(path .. ".png")
  return ok and mark == "\x89PNG\r\n\x1a\n", ok and "a PNG file" or message
end)

--- Run the self-test: list of { name, holds, figure, seconds }.
function doctor.test()
  local out = {}
  for i, test in ipairs(tests) do
    local start = core.clock()
    local ok, holds, figure = pcall(test.run)
    out[i] = { name = test.name, holds = ok and holds or false,
      figure = tostring(ok and figure or holds), seconds = core.clock() - start }
  end
  return out
end

--- Everything that doctor says, as a table.
function doctor.look()
  local libraries = {}
  for i, l in ipairs(core.libraries()) do
    libraries[i] = { name = l[1], version = l[2] }
  end
  return { sinklab = core.version, libraries = libraries, isa = core.isa(),
    threads = core.threads(), processor = processor(), scripts = core.scripts,
    gemm = { f32 = gemm_speed "f32", f64 = gemm_speed "f64" }, plugins = plugins(),
    terminal = terminal(), tests = doctor.test() }
end

return doctor
