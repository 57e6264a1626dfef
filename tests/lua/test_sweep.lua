-- test_sweep.lua - lab.sweep: many runs in processes of their own.
local check = require "check"
local process = require "process"
local lab = require "sinklab"

local function results(runs)
  local list = {}
  for i, r in ipairs(runs) do list[i] = r.result end
  return list
end

check.test("results come in the order of the points", function()
  local seen = 0
  local runs = lab.sweep { points = { 30, 1, 20, 2, 0 }, workers = 3, quiet = true,
    run = function(p)
      local until_then = os.clock() + p / 1e3
      repeat until os.clock() >= until_then
      return { p, lab.threads() }
    end,
    on_result = function(entry, i)
      check.equal(entry.result[1], ({ 30, 1, 20, 2, 0 })[i])
      seen = seen + 1
    end }
  check.equal(results(runs), { { 30, 1 }, { 1, 1 }, { 20, 1 }, { 2, 1 }, { 0, 1 } })
  check.equal({ seen, runs.failed, runs.interrupted }, { 5, 0, nil })
  check.equal(runs[3].point, 20)
  check.at_least(runs[1].seconds, 0.03)
  check.at_least(runs.wall_s, runs[1].seconds)
end)

check.test("a grid is every combination, the last name changing fastest", function()
  local runs = lab.sweep { grid = { b = { "x", "y" }, a = { 1, 2.5 } }, quiet = true,
    run = function(p, with) return p.a .. p.b .. with.c end, with = { c = "!" } }
  check.equal(results(runs), { "1x!", "1y!", "2.5x!", "2.5y!" })
  check.equal(#lab.sweep { points = {}, run = function() end, quiet = true }, 0)
end)

check.test("numbers keep every bit, text every byte", function()
  local numbers = { 0.1, -0.0, 1 / 3, 2 ^ -1074, math.huge, -math.huge, math.mininteger,
    2 ^ 53 + 1, 1, 1.0 }
  local text = "\0\1\r\n\"\\\255 " .. ("x"):rep(100000)
  local got = lab.sweep { points = { { numbers, text } }, quiet = true,
    run = function(p)
      return { p[1], p[2], 0 / 0, { deep = { true, false } } }
    end }[1].result
  for i, x in ipairs(numbers) do
    check.equal(("%q"):format(got[1][i]), ("%q"):format(x))
  end
  check.equal(got[2], text)
  check.equal(got[3] ~= got[3], true, "NaN")
  check.equal(got[4], { deep = { true, false } })
end)

check.test("a function takes along what it captures", function()
  local factor, names = 3, { "one", nested = { 2 } }
  local function times(x) return x * factor end
  local function factorial(n) return n < 2 and 1 or n * factorial(n - 1) end
  local runs = lab.sweep { points = { 5 }, quiet = true, run = function(p)
    return { times(p), factorial(p), names.nested[1], lab.version, times(0) }
  end }
  check.equal(runs[1].result, { 15, 120, 2, lab.version, 0 })
end)

check.test("a module's name stands for its function", function()
  local folder = process.folder "modules"
  process.write(folder .. "/doubled.lua", "return function (p) return 2 * p end")
  process.write(folder .. "/no_function.lua", "return 7")
  package.path = folder .. "/?.lua;" .. package.path
  check.equal(results(lab.sweep { points = { 1, 2 }, run = "doubled", quiet = true }),
    { 2, 4 })
  check.contains(lab.sweep { points = { 1 }, run = "no_function",
    quiet = true }[1].failed, "module 'no_function' returns a number, not a function")
  check.contains(lab.sweep { points = { 1 }, run = "not_there", quiet = true }[1].failed,
    "module 'not_there' not found")
end)

check.test("a run that fails or crashes fails alone", function()
  local runs = lab.sweep { points = { "well", "raise", "exit", "crash", "tensor", "nil" },
    workers = 1, quiet = true,
    run = function(p)
      if p == "raise" then error "no luck" end
      if p == "exit" then os.exit(3) end
      if p == "crash" then os.execute "kill -KILL $PPID; sleep 1" end
      if p == "tensor" then return { lab.zeros { 2 } } end
      if p == "nil" then return nil end
      return p
    end }
  check.equal(runs.failed, 4)
  check.equal(runs[1].result, "well")
  check.contains(runs[2].failed, "test_sweep.lua:")
  check.contains(runs[2].failed, "no luck")
  check.contains(runs[3].failed, "the worker ended with status 3")
  check.contains(runs[4].failed, "the worker was killed by signal 9")
  check.contains(runs[5].failed, "the result[1] is a tensor; only plain data can be sent")
  check.equal({ runs[6].result, runs[6].failed }, {})
end)

check.test("trained in a worker or here: the same bits", function()
  local function run(seed)
    local task = lab.task.trigger_mean {}
    local model = lab.model.attention_only { task = task, seed = seed }
    return lab.train(model, task,
      { steps = 30, seed = seed, quiet = true, eval = 0 }).loss
  end
  local runs = lab.sweep { points = { 0, 1 }, run = run, quiet = true }
  check.equal(results(runs), { run(0), run(1) })
end)

check.test("what cannot be sent is named", function()
  local function refuse(part, more)
    more.points = more.points or { 1 }
    check.raises(part, lab.sweep, more)
  end
  local task = lab.task.trigger_mean {}
  local x = lab.zeros { 2 }
  local loop = {}
  loop[1] = loop
  refuse("'task', which option 'run' captures, is a sinklab.task; only plain data",
    { run = function() return task end })
  refuse("'x', which option 'run' captures, is a tensor",
    { run = function() return x end })
  refuse("option 'with'.model is a table with a metatable",
    { run = function() end, with = { model = setmetatable({}, {}) } })
  refuse("point 2[1][1] contains itself",
    { run = function() end, points = { 1, { loop } } })
  refuse("point 1 is a function", { run = function() end, points = { print } })
  refuse("option 'run' is missing", {})
  refuse("no such option 'worker' (did you mean 'workers'?)",
    { run = function() end, worker = 2 })
  check.raises("give either 'points' or 'grid'", lab.sweep, { run = function() end })
  check.raises("look at 'seed'", lab.sweep, { run = function() end, grid = { seed = 3 } })
end)

check.test("an interrupt ends the workers and keeps what is done", function()
  local script = process.write(process.folder "interrupted" .. "/s.lua", [[
    local lab = require "sinklab"
    io.stdout:setvbuf "no"
    local runs = lab.sweep { points = { 0, 60, 60 }, workers = 2, quiet = true,
      on_result = function () print "ready" end,
      run = function (p)
        local task = lab.task.trigger_mean {}
        local model = lab.model.attention_only { task = task }
        lab.train(model, task, { steps = p * 1000000, eval = 0 })
        return p
      end }
    print(runs.interrupted, runs[1].result, runs[2].failed, runs[3].failed)
  ]])
  for _, signal in ipairs { "INT", "TERM" } do
    local r = process.signalled({ "run", script }, signal, "ready")
    check.equal({ r.code, r.out }, { signal == "INT" and 130 or 143,
      "ready\ntrue\t0\tinterrupted\tinterrupted\n" })
    check.equal(r.err, "")
  end
end)

check.test("progress is shown, failures counted, prints kept apart", function()
  local script = process.write(process.folder "shown" .. "/s.lua", [[
    local lab = require "sinklab"
    lab.sweep { points = { 1, 2 }, label = "two", workers = 1,
      run = function (p) if p == 2 then error "x" end print "from a worker" end }
    print "done"
  ]])
  local r = process.run { "run", script }
  check.equal({ r.code, r.out }, { 0, "done\n" })
  check.contains(r.err, "two  2 of 2  1 failed")
  check.contains(r.err, "from a worker")
  check.equal(process.run({ "run", script, "--quiet" }).err, "from a worker\n")
end)

check.test("points do not see each other, and draw the same random numbers", function()
  local cfg = { lr = 1 }
  local function run(p)
    cfg.lr = cfg.lr * p
    return { cfg.lr, math.random(), math.random(1000) }
  end
  local drawn
  for _, workers in ipairs { 1, 2, 3 } do
    local got = results(lab.sweep { points = { 0.5, 0.1, 1 }, run = run, quiet = true,
      workers = workers })
    check.equal({ got[1][1], got[2][1], got[3][1] }, { 0.5, 0.1, 1 })
    check.equal(got[1][2] ~= got[2][2], true)
    check.equal(got, drawn or got, workers .. " workers")
    drawn = got
  end
end)

check.test("with out, results are kept and only the rest runs", function()
  local out = process.folder "kept" .. "/sweep"
  local ran = process.folder "ran"
  local function go(points, more)
    local o = { points = points, out = out, quiet = true, workers = 2, with = ran,
      run = function(p, folder)
        io.open(folder .. "/" .. p.n, "a"):write("x"):close()
        if p.n == 3 and not io.open(folder .. "/mended") then error "not yet" end
        return { p.n / 3, 0 / 0, "\"a\0\n", { deep = math.huge } }
      end }
    for key, value in pairs(more or {}) do o[key] = value end
    return lab.sweep(o)
  end
  local function count(n)
    local file <close> = io.open(ran .. "/" .. n)
    return file and #file:read "a" or 0
  end
  local points = { { n = 1, a = 2, b = 3 }, { n = 2 }, { n = 3 } }
  local first = go(points)
  check.equal({ first.failed, first[1].kept }, { 1, nil })
  points[#points + 1] = { n = 4 }
  points[1] = { b = 3, a = 2, n = 1 } -- the same point
  local second = go(points)
  check.equal({ count(1), count(2), count(3), count(4) }, { 1, 1, 1, 1 })
  check.equal({ second[1].kept, second[4].kept, second.failed }, { true, nil, 1 })
  check.contains(second[3].failed, "not yet")
  for i = 1, 2 do
    check.equal(("%q"):format(second[i].result[1]), ("%q"):format(first[i].result[1]))
    check.equal(second[i].result[2] ~= second[i].result[2], true)
    check.equal({ second[i].result[3], second[i].result[4] }, { "\"a\0\n",
      { deep = math.huge } })
  end
  process.write(ran .. "/mended", "")
  check.equal(go(points, { retry_failed = true }).failed, 0)
  check.equal({ count(1), count(3) }, { 1, 2 })
  check.equal(#require "sinklab.core".folder(out), 5) -- four points, and the function
  -- Another function, other captured values.
  check.raises(out .. ": it has results of another function", go, points,
    { run = function() return 1 end })
  check.raises("or of another `with`", go, points, { with = "else" })
  local function other() return 1 end
  check.equal(go(points, { run = other, fresh = true })[4].result, 1)
  check.equal(go(points, { run = other })[4].kept, true)
  process.write(out .. "/000009.txt", "return os.exit(3)")
  check.raises("000009.txt: no result of a sweep", go, points, { run = other })
end)

check.test("a text from a file is plain data or nothing", function()
  local send = require "sinklab.sweep.send"
  for _, value in ipairs { { 1, "a\"--[[\\", { x = true, [2.5] = false } }, "while", -0.0,
    math.mininteger, 1e300, math.huge, -math.huge, { ["return"] = "\n\r\0" } } do
    check.equal(send.read_data(assert(send.write(value, "v"))), value)
  end
  for _, text in ipairs { "return os.exit(1)", "while true do end", "return [[x]]",
    'return "a" --" \n .. f()', "return 'x'", "return (function() end)()", "return {",
    'return "a', "return [=[x]=]", "x = 1", "goto a", "return ('a'):rep(9)",
    "return a" } do
    check.equal(send.read_data(text), nil, text)
  end
end)

check.test("a killed sweep goes on where it was, with the same result", function()
  local folder = process.folder "killed"
  process.write(folder .. "/s.lua", [[
    local lab = require "sinklab"
    local run = lab.run()
    local done = lab.sweep { grid = { seed = { 1, 2, 3, 4, 5, 6 } }, workers = 2,
      out = run.folder .. "/points", run = function(p)
        local task = lab.task.trigger_mean {}
        local model = lab.model.attention_only { task = task, seed = p.seed }
        return lab.train(model, task, { steps = 400, seed = p.seed, eval = 0 }).loss
      end }
    local losses = {}
    for i, r in ipairs(done) do losses[i] = r.result end
    run:add("sweep", { losses = losses })]])
  local function losses(out)
    return lab.json.decode(process.read(folder .. "/" .. out .. "/run.json"))
      .results.sweep.losses
  end
  check.equal(process.run({ "run", "s.lua", "--out=whole", "--quiet" },
    { folder = folder }).code, 0)
  for i = 1, 4 do -- the n-th start ends after some points
    process.shell(([[cd '%s' && { '%s' run s.lua --out=parts --quiet </dev/null & }
      tries=0
      until [ "$(ls parts/points 2>/dev/null | wc -l)" -gt %d ] || [ $tries -ge 600 ]; do
        sleep 0.02; tries=$((tries + 1))
      done
      kill -%s $!; wait $!]]):format(folder, os.getenv "SINKLAB_BINARY", i,
      i % 2 == 0 and "KILL" or "TERM"))
  end
  local r = process.run({ "run", "s.lua", "--out=parts", "--quiet" }, { folder = folder })
  check.equal(r.code, 0, r.err)
  check.equal(losses "parts", losses "whole")
  for _, name in ipairs(require "sinklab.core".folder(folder .. "/parts/points")) do
    check.equal(name:find("%.tmp$"), nil, name)
  end
end)

check.test("a point that takes too long fails, and the rest goes on", function()
  local runs = lab.sweep { points = { "quick", "endless", "stopped", "last" },
    workers = 2, timeout = 0.7, quiet = true, run = function(p)
      if p == "endless" then while true do end end
      if p == "stopped" then os.execute "kill -STOP $PPID; sleep 0.1" end
      return p
    end }
  check.equal({ runs[1].result, runs[4].result, runs.failed }, { "quick", "last", 2 })
  check.equal(runs[2].failed, "took longer than the timeout, 0.7 s")
  check.equal(runs[3].failed, "took longer than the timeout, 0.7 s")
end)

check.test("too few descriptors mean fewer workers", function()
  local folder = process.folder "few"
  process.write(folder .. "/s.lua", [[
    local lab = require "sinklab"
    local points = {}
    for i = 1, 40 do points[i] = i end
    local runs = lab.sweep { points = points, workers = 30,
      run = function(p) return p end }
    local sum = 0
    for _, r in ipairs(runs) do sum = sum + r.result end
    print(runs.failed, sum)]])
  local r = process.shell(("ulimit -n 20 && '%s' run '%s/s.lua' --quiet --threads=1")
    :format(os.getenv "SINKLAB_BINARY", folder))
  check.equal({ r.code, r.out }, { 0, "0\t820\n" }, r.err)
end)

check.done()
