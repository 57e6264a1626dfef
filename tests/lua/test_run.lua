-- test_run.lua - lab.run: the directory, run.json, claims, and how runs end.
local check = require "check"
local process = require "process"
local lab = require "sinklab"

local folder = process.folder "run"

local function run(script, ...)
  process.write(folder .. "/s.lua", script)
  return process.run({ "run", "s", "--out=o", ... }, { folder = folder })
end

local function record(path)
  local text = process.read(folder .. "/" .. (path or "o/run.json"))
  return assert(lab.json.decode(text)), text
end

local begin = [[
local lab = require "sinklab"
local opt = lab.options { seed = 3, lr = 0.1, dtype = "f64" }
local run = lab.run()
]]

check.test("results and progress are in the order in which they happened", function()
  process.write(folder .. "/s.lua", begin .. [[
    print "one"
    run:claim("two", 1, "<", 2)
    io.stderr:write "three\n"
    run:table({ "four" }, { { 5 } })
    io.stderr:write "six\n"]])
  local r = process.shell(("cd '%s' && '%s' run s --out=o --quiet 2>&1"):format(folder,
    os.getenv "SINKLAB_BINARY"))
  check.equal(r.out, "one\nholds  two: 1 < 2\nthree\nfour\n----\n   5\nsix\n")
end)

check.test("a complete run: keys in order, values with their types", function()
  local r = run(begin .. [[
    local log = { steps = 2, stopped_by = "max_abs_error", loss = 0.5,
      max_abs_error = 0.004,
      wall_s = 1.5, steps_per_s = 4.0 / 3, eval = { samples = 10, max_abs_error = 0.1 },
      log = { { step = 0, loss = 1.5, lr = 0.1, time = 0.0 },
        { step = 1, loss = 0 / 0, lr = 0.1, time = 0.5, gap = 2 } } }
    run:add("softmax", { train = log, sinks = { samples = 4, threshold = 0.3,
      heads = { { layer = 1, head = 1, first_mean = 0.99, contribution = 0 / 0 } },
      first = { min = 0.99, mean = 0.99, max = 0.99 } } })
    print(run.softmax.train == log, run.softmax.sinks.first.max)
    run:claim("it sinks", run.softmax.sinks.first.max, ">=", 0.98)
    run:table({ "a", "b" }, { { 1, "x" } })]], "--lr=0.25", "--threads=1")
  check.equal(r.code, 0, r.err)
  check.contains(r.out, "true\t0.99\n")
  check.contains(r.out, "holds  it sinks: 0.99 >= 0.98\n")
  check.contains(r.out, "a  b\n-  -\n1  x\n")
  check.contains(r.err, "complete after ")
  local t, text = record()
  check.equal(t.sinklab, lab.version)
  check.equal(t.script, "s.lua")
  check.equal(t.options, { dtype = "f64", lr = 0.25, seed = 3 })
  check.equal(t.seed, 3)
  check.equal(t.dtype, "f64")
  check.equal(t.threads, 1)
  check.equal(t.isa, lab.isa())
  check.equal(t.status, "complete")
  check.equal(t.error, nil)
  check.equal(t.started:match "^%d%d%d%d%-%d%d%-%d%dT%d%d:%d%d:%d%dZ$", t.started)
  check.equal(type(t.wall_s), "number")
  check.equal(t.results.softmax.train, { steps = 2, stopped_by = "max_abs_error",
    loss = 0.5,
    max_abs_error = 0.004, wall_s = 1.5, steps_per_s = 4.0 / 3 })
  check.equal(t.results.softmax.eval, { samples = 10, max_abs_error = 0.1 })
  check.equal(t.results.softmax.sinks.heads, { { layer = 1, head = 1,
    first_mean = 0.99, contribution = "nan" } })
  check.equal(t.claims, { { text = "it sinks", value = 0.99, op = ">=", bound = 0.98,
    holds = true } })
  check.equal(t.files, { "train-softmax.csv", "table-1.csv" })
  check.equal(t.tables, { { names = { "a", "b" }, rows = { { 1, "x" } } } })
  check.equal(process.read(folder .. "/o/table-1.csv"), "a,b\n1,x\n")
  local last = 0
  for _, key in ipairs { "sinklab", "script", "options", "seed", "dtype", "threads",
    "isa", "host", "pid", "started", "wall_s", "status", "plugins", "results", "claims",
    "tables", "files" } do
    local at = text:find('\n  "' .. key .. '": ', 1, true)
    check.equal(at and at > last, true, key)
    last = at
  end
  check.equal(process.read(folder .. "/o/train-softmax.csv"),
    "step,loss,max_abs_error,lr,time,gap\n0,1.5,,0.1,0.0,\n1,nan,,0.1,0.5,2\n")
end)

check.test("results keep the order in which they were added", function()
  local r = run(begin .. 'run:add("z", { n = 1 }) run:add("a", { n = 2 })')
  check.equal(r.code, 0, r.err)
  local t, text = record()
  check.equal(t.results, { z = { n = 1 }, a = { n = 2 } })
  check.below(text:find('"z"', 1, true), (text:find('"a"', 1, true)))
end)

check.test("a claim that does not hold: exit 2, NaN holds nothing", function()
  local r = run(begin .. [[
    print(run:claim("a", 1, "<", 1), run:claim("b", 0 / 0, "<=", 1),
      run:claim("c", 1, "==", 1.0), run:claim("d", 1 - 3e-8, ">=", 1 - 4e-8))]])
  check.equal(r.code, 2, r.err)
  check.contains(r.out, "FAILS  a: 1 < 1\nFAILS  b: NaN <= 1\nholds  c: 1 == 1\n"
    .. "holds  d: 0.99999997 >= 0.99999996\n")
  check.contains(r.out, "false\tfalse\ttrue\ttrue")
  local t = record()
  check.equal(t.status, "complete")
  check.equal(t.claims[2], { text = "b", value = "nan", op = "<=", bound = 1,
    holds = false })
end)

check.test("--quiet: results and claims, nothing on stderr", function()
  local r = run(begin .. [[
    print "x"
    run:claim("a", 1, "<", 1)
    run:claim("b", 1, "<=", 1)
    run:table({ "a" }, { { 1 } })]], "--quiet")
  check.equal(r.code, 2)
  check.equal(r.out, "x\nFAILS  a: 1 < 1\nholds  b: 1 <= 1\na\n-\n1\n")
  check.equal(r.err, "")
end)

check.test("an error leaves a valid record that says so", function()
  local r = run(begin .. 'run:claim("a", 1, "<", 1)\nlocal x = nil + 1')
  check.equal(r.code, 1)
  check.contains(r.err, "sinklab: s.lua:5: attempt to perform arithmetic on a nil")
  local t = record()
  check.equal(t.status, "failed")
  check.contains(t.error, "s.lua:5: attempt to perform")
  check.equal(#t.claims, 1)
end)

check.test("os.exit closes the record", function()
  for code, want in pairs { [0] = "complete", [7] = "failed" } do
    local r = run(begin .. ("os.exit(%d)"):format(code))
    check.equal(r.code, code)
    local t = record()
    check.equal(t.status, want)
    check.equal(t.error, code > 0 and "os.exit (7)" or nil)
  end
end)

check.test("os.exit is Lua's own, and closes the record from anywhere", function()
  local r = run(begin .. [[
    assert(debug.getinfo(os.exit, "S").what == "C")
    coroutine.wrap(function() pcall(os.exit, 7) end)()]])
  check.equal(r.code, 7, r.err)
  check.equal({ record().status, record().error }, { "failed", "os.exit (7)" })
  r = run(begin .. "os.exit(3, true)")
  check.equal(r.code, 3, r.err)
  check.equal(record().status, "failed")
end)

check.test("the record exists and says running while the script runs", function()
  local r = run(begin .. [[
    local file <close> = io.open(run.folder .. "/run.json")
    print(lab.json.decode(file:read "a").status)]])
  check.contains(r.out, "running\n")
end)

check.test("wrong use is blamed on the script's line", function()
  local cases = {
    ['run:claim("a", nil, "<", 1)'] = "run:claim: the value must be a number, got nil",
    ['run:claim("a", 1, "<", "x")'] = "run:claim: the bound must be a number, got 'x'",
    ['run:claim("a", 1, "=<", 1)'] = "the op is '=<'; it must be >=, <=, >, < or ==",
    ['run:claim(1, 1, "<", 1)'] = "run:claim: the claim must be a string, got 1",
    ['run:add("a/b", {})'] = "the label 'a/b' must be letters",
    ['run:add("claim", {})'] = "the label 'claim' is taken by run.claim itself",
    ['run:add("record", {})'] = "the label 'record' is taken",
    ['run:add("a", 1)'] = "run:add: the results must be a table, got 1",
    ['run:add("a", {}) run:add("a", {})'] = "'a' has been added before",
    ['run:add("a", { f = { print } })'] = "JSON has no form for a function",
    ['run:add("soft", {}) print(run.sof)'] =
      "nothing was added under this label (did you mean 'soft'?)",
    ['run:figure("f", 1)'] = "run:figure: the figure must be a figure of lab.plot, got 1",
    ['run:array("f", 1)'] = "run:array: the tensor must be a tensor, got 1",
    ['run:weights("f", {})'] =
      "run:weights: the model must be a model made by lab.model, got a table",
    ['run:csv("f", 1)'] = "run:csv: the log must be a table, got 1",
    ["lab.run()"] = "this script has opened its run already",
  }
  for line, want in pairs(cases) do
    local r = run(begin .. line)
    check.equal(r.code, 1, line)
    check.contains(r.err, want, line)
    check.contains(r.err, "sinklab: s.lua:4: ", line)
    check.equal(record().status, "failed", line)
  end
end)

check.test("without --out the directory is runs/<script>-<UTC time>", function()
  local where = process.folder "runs"
  process.write(where .. "/my.lua", 'print(require "sinklab".run().folder)')
  local first = process.run({ "run", "my" }, { folder = where })
  local second = process.run({ "run", "my" }, { folder = where })
  check.equal(first.code, 0, first.err)
  local a, b = first.out:match "^(.-)\n", second.out:match "^(.-)\n"
  check.equal(a:match "^runs/my%-%d%d%d%d%d%d%d%dT%d%d%d%d%d%dZ[-%d]*$", a)
  check.equal(a ~= b, true, "two runs in one second share a directory")
  for _, path in ipairs { a, b } do
    local t = lab.json.decode(process.read(where .. "/" .. path .. "/run.json"))
    check.equal(t.status, "complete")
  end
end)

check.test("a directory that cannot be made", function()
  process.write(folder .. "/file", "")
  process.write(folder .. "/s.lua", begin)
  local r = process.run({ "run", "s", "--out=file/below" }, { folder = folder })
  check.equal(r.code, 1)
  check.contains(r.err, "file/below")
end)

for signal, code in pairs { INT = 130, TERM = 143, HUP = 129, XFSZ = 153 } do
  check.test("SIG" .. signal .. " ends the script and the record says so", function()
    process.write(folder .. "/s.lua", begin
      .. 'run:claim("a", 1, "<", 2)\nprint "ready" io.stdout:flush()\nwhile true do end')
    local r = process.signalled({ "run", "s", "--out=o" }, signal, "ready",
      { folder = folder })
    check.equal(r.code, code, r.err)
    check.contains(r.err, "s.lua:6: interrupted")
    check.contains(r.err, "interrupted after ")
    local t = record()
    check.equal(t.status, "interrupted")
    check.equal(#t.claims, 1)
  end)
end

check.test("a file over the size limit ends the script", function()
  process.write(folder .. "/s.lua", begin .. [[
    io.stdout:write "ready" io.stdout:flush()
    local f = io.open("o/large", "w")
    while true do f:write(("x"):rep(1000)) end]])
  local r = process.shell(("cd '%s' && ulimit -f 64 && '%s' run s --out=o"):format(folder,
    os.getenv "SINKLAB_BINARY"))
  check.equal(r.code, 153, r.err)
  check.equal(record().status, "interrupted")
end)

check.test("the record lists the files that were written, and no others", function()
  process.shell(("rm -rf '%s/o' && mkdir -p '%s/o/bad.npy' '%s/o/m.svg'"):format(folder,
    folder, folder))
  local r = run(begin .. [[
    run:array("good", lab.arange(3))
    print(pcall(run.array, run, "bad", lab.arange(3)))
    print(pcall(run.figure, run, "m", lab.plot.heat { { 1, 0 } }))
    run:array("good", lab.arange(4))]])
  check.equal(r.code, 0, r.err)
  check.contains(r.out, "o/bad.npy: cannot write: it is a folder")
  check.equal(record().files, { "good.npy", "m.png" })
  process.shell(("rm -rf '%s/o'"):format(folder))
end)

check.test("out of memory: the record says so", function()
  local binary = os.getenv "SINKLAB_BINARY"
  local search = "LC_ALL=C grep -q '__[at]san_init' '" .. binary .. "'"
  if process.shell(search).code == 0 then return end -- it maps more
  process.write(folder .. "/s.lua", begin .. [[
    local kept = {}
    rawset(_G, "kept", kept) -- garbage collection does not help
    while true do kept[#kept + 1] = ("x"):rep(1000 + #kept % 7) end]])
  for _, size in ipairs { 200, 260 } do -- MB
    local r = process.shell(("cd '%s' && ulimit -v %d && '%s' run s --out=o --threads=1")
      :format(folder, size * 1000, binary))
    check.equal(r.code, 1, r.err)
    check.contains(r.err, "not enough memory")
    check.equal({ record().status, record().error }, { "failed", "not enough memory" })
  end
end)

check.test("temporary files of a process that was killed are removed", function()
  process.write(folder .. "/s.lua", begin)
  local me = select(2, require "sinklab.core".this_process())
  process.shell(([[mkdir -p '%s/o' && cd '%s/o' && sh -c 'echo $$' >pid
    touch run.json.$(cat pid)-0.tmp run.json.%d-0.tmp notes.tmp]]):format(folder, folder,
    me))
  check.equal(process.run({ "run", "s", "--out=o" }, { folder = folder }).code, 0)
  local names = {}
  for _, name in ipairs(require "sinklab.core".folder(folder .. "/o")) do
    names[name] = true
  end
  check.equal(names["run.json." .. me .. "-0.tmp"], true)
  check.equal(names["run.json." .. process.read(folder .. "/o/pid"):match "%d+"
    .. "-0.tmp"], nil)
  check.equal(names["notes.tmp"], true)
end)

check.test("a reader that goes away ends the script, and the record says so",
  function()
    process.write(folder .. "/s.lua", begin .. "while true do print(1) end")
    local r = process.shell(("cd '%s' && { %s run s --out=o; echo $? >code; } | "
      .. "head -1"):format(
      folder, os.getenv "SINKLAB_BINARY"))
    check.equal(r.out, "1\n")
    check.equal(process.read(folder .. "/code"), "141\n")
    check.equal(record().status, "interrupted")
  end)

check.test("a run opened at the prompt ends with it; a new one ends the one before",
  function()
    local where = process.folder "prompt"
    local r = process.run({}, { folder = where, input = [[
      a = lab.run() a:claim("x", 1, "<", 2)
      b = lab.run() print(a.folder, b.folder)]] })
    check.equal(r.code, 0, r.err)
    local a, b = r.out:match "(runs/repl%-%S+)\t(runs/repl%-%S+)"
    for _, path in ipairs { a, b } do
      local t = lab.json.decode(process.read(where .. "/" .. path .. "/run.json"))
      check.equal(t.status, "complete")
      check.equal(t.script, "repl")
    end
    r = process.run({ "--out=o" }, { folder = where, input = "lab.run() error 'x'" })
    check.equal(r.code, 1)
    check.equal(lab.json.decode(process.read(where .. "/o/run.json")).status, "failed")
  end)

local model = [[
local task = lab.task.trigger_mean { d_model = 8, seq_len = 6 }
local model = lab.model.attention_only { task = task,
  attention = { mechanism = "softmax", scale = 1 } }
]]

check.test("arrays and weights read back", function()
  local r = run(begin .. model .. [[
    run:array("t", lab.tensor { { 1, 2, 3 }, { 4, 5, 6 } })
    run:weights("m", model)]])
  check.equal(r.code, 0, r.err)
  check.equal(record().files, { "t.npy", "m.safetensors" })
  local t = assert(lab.load_npy(folder .. "/o/t.npy"))
  check.equal(t.shape, { 2, 3 })
  check.equal(t:sum():item(), 21.0)
  local weights = assert(lab.load_safetensors(folder .. "/o/m.safetensors"))
  check.equal(next(weights) ~= nil, true)
end)

check.test("a figure is saved as PNG, SVG and PDF", function()
  local r = run(begin .. [[
    run:figure("f", lab.plot.heads(lab.zeros { 1, 2, 4, 4 }, { title = "t" }))]])
  check.equal(r.code, 0, r.err)
  check.equal(record().files, { "f.png", "f.svg", "f.pdf" })
  for extension, start in pairs { png = "\x89PNG\r\n", svg = "<?xml", pdf = "%PDF-" } do
    check.equal(process.read(folder .. "/o/f." .. extension):sub(1, #start), start)
  end
end)

check.test("the record names the plugins with the hash of their files", function()
  local r = run(begin .. model .. 'run:claim("a", 1, "==", 1)')
  check.equal(r.code, 0, r.err)
  local p = record().plugins[1]
  check.equal(#record().plugins, 1)
  check.equal(p.name, "softmax")
  check.contains(p.path, "/softmax.so")
  check.equal(p.hash, "sha256:" .. lab.sha256(p.path))
end)

for signal, code in pairs { INT = 130, TERM = 143 } do
  check.test("SIG" .. signal .. " in training: the log so far is kept", function()
    process.write(folder .. "/s.lua", begin .. model .. [[
      print "ready" io.stdout:flush()
      local log = lab.train(model, task, { steps = 10 ^ 9, log_every = 50,
        optimizer = lab.optim.adam { lr = 1e-6 } })
      run:add("a", { train = log })
      run:claim("never reached", 1, "==", 1)]])
    local r = process.signalled({ "run", "s", "--out=o" }, signal, "ready",
      { folder = folder })
    check.equal(r.code, code, r.err)
    check.contains(r.err, "interrupted")
    local t = record()
    check.equal(t.status, "interrupted")
    check.equal(t.results.a.train.stopped_by, "interrupted")
    check.equal(#t.claims, 0)
    local csv = process.read(folder .. "/o/train-a.csv")
    check.contains(csv, "step,loss,max_abs_error,lr,time\n")
    check.contains(csv, "\n" .. t.results.a.train.steps .. ",")
  end)
end

check.test("math.random is the same in every run, by the seed of the script", function()
  local function drawn(options, ...)
    local r = run("local lab = require 'sinklab' lab.options " .. options
      .. " print(math.random(1 << 40))", ...)
    check.equal(r.code, 0, r.err)
    return r.out
  end
  local none, three = drawn "{}", drawn "{ seed = 3 }"
  check.equal({ drawn "{}", drawn "{ seed = 3 }" }, { none, three })
  check.equal(none ~= three, true)
end)

check.done()
