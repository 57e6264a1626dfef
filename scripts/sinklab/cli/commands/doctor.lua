--- doctor.lua - sinklab doctor: the program, the machine, the plugins, the terminal, and
-- a self-test of about a second.
local core = require "sinklab.core"
local json = require "sinklab.base.json"
local strings = require "sinklab.base.strings"

local print = strings.print

local function first_line(path, pattern)
  local file <close> = io.open(path)
  for line in file and file:lines() or function() end do
    local found = line:match(pattern)
    if found then return found end
  end
end

--- The name of the processor, from Linux.
local function processor()
  return first_line("/proc/cpuinfo", "^model name%s*:%s*(.+)$") or "unknown"
end

--- GFLOP/s of the product of two matrices (384, 384) of a dtype: the best product within
-- 0.2 s.
local function gemm_speed(dtype)
  local n = 384
  local a = core.generator(0, { dtype = dtype }):uniform(-1, 1, { n, n })
  local best, stop = 0, core.clock() + 0.2
  repeat
    local start = core.clock()
    core.matmul(a, a)
    best = math.max(best, 2 * n ^ 3 / (core.clock() - start) / 1e9)
  until core.clock() > stop
  return tonumber(("%.3g"):format(best))
end

--- Names of the plugins that load, those that do not load, and the files that are
-- shadowed by a plugin of the same name before them.
local function plugins()
  local out = { found = {}, broken = {}, shadowed = {} }
  for _, p in ipairs(core.plugins()) do
    local ok, message = pcall(core.plugin, p.path, true)
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
  return { is_terminal = is_terminal, kind = environment "TERM" or "unknown",
    columns = core.columns() or 80, colour = colour,
    utf8 = locale:lower():find "utf%-?8" ~= nil }
end

-- The self-test: each test returns whether it holds, and its figure as text. Results are
-- compared with exact or independent ones, not with earlier output of this program.
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
local function self_test()
  local out = {}
  for i, test in ipairs(tests) do
    local start = core.clock()
    local ok, holds, figure = pcall(test.run)
    out[i] = { name = test.name, holds = ok and holds or false,
      figure = tostring(ok and figure or holds), seconds = core.clock() - start }
  end
  return out
end

--- All findings as a table.
local function examine()
  local libraries = {}
  for i, l in ipairs(core.libraries()) do
    libraries[i] = { name = l[1], version = l[2] }
  end
  return { sinklab = core.version, libraries = libraries, isa = core.isa(),
    threads = core.threads(), processor = processor(), scripts = core.scripts,
    gemm = { f32 = gemm_speed "f32", f64 = gemm_speed "f64" }, plugins = plugins(),
    terminal = terminal(), tests = self_test() }
end

local function join(list, key)
  local out = {}
  for i, item in ipairs(list) do out[i] = key and item[key] or item end
  return #out > 0 and table.concat(out, ", ") or "none"
end

local function show(found)
  local libraries = {}
  for i, l in ipairs(found.libraries) do libraries[i] = l.name .. " " .. l.version end
  local t = found.terminal
  local rows = {
    { "sinklab", found.sinklab .. " with " .. join(libraries) },
    { "processor", found.processor },
    { "instruction set", found.isa },
    { "threads", tostring(found.threads) },
    { "matrix product", ("its own, one call: %.3g GFLOP/s in f32, %.3g in f64"):format(
      found.gemm.f32, found.gemm.f64) },
    { "scripts", found.scripts },
    { "plugins", join(found.plugins.found) },
    { "terminal", t.is_terminal
      and ("%s, %d columns, colours: %s, %s"):format(t.kind, t.columns, t.colour,
        t.utf8 and "UTF-8" or "ASCII")
      or "none: the output is not a terminal" },
  }
  for _, row in ipairs(rows) do print(("%-15s  %s"):format(row[1], row[2])) end
  for _, p in ipairs(found.plugins.broken) do
    print(("%-15s  %s"):format("does not load", strings.visible(p.message)))
  end
  for _, path in ipairs(found.plugins.shadowed) do
    print(("%-15s  %s: an earlier folder has this plugin"):format("shadowed",
      strings.visible(path)))
  end
  print "\nself-test"
  for _, test in ipairs(found.tests) do
    print(("  %-4s  %s: %s"):format(test.holds and "ok" or "FAIL", test.name,
      test.figure))
  end
end

local function as_json(found)
  for _, name in ipairs { "found", "broken", "shadowed" } do
    json.array(found.plugins[name])
  end
  return json.encode(json.object(found, { "sinklab", "well", "libraries", "processor",
    "isa", "threads", "gemm", "scripts", "plugins", "terminal", "tests" }))
end

return {
  doc = "print versions and the machine; run a self-test (about 1 s)",
  text = [[
The exit status is 0 if the self-test passes and every plugin loads, else 1.]],
  options = { { "json", doc = "print JSON" } },
  run = function(_, given)
    local found = examine()
    found.well = #found.plugins.broken == 0
    for _, test in ipairs(found.tests) do found.well = found.well and test.holds end
    if given.json then
      print(as_json(found))
    else
      show(found)
    end
    if not found.well then core.quit(1) end
  end,
}
