-- test_plugin.lua - sinklab plugin check: table, JSON, options, exit status.
local check = require "check"
local process = require "process"
local lab = require "sinklab"

local folder = process.folder "plugin"
local build = os.getenv "SINKLAB_BINARY":match "^(.*)/[^/]*$"
local bad = build .. "/tests/bad/"

local function plugin(...) return process.run({ "plugin", ... }, { folder = folder }) end

check.test("a plugin that holds: a row for each check, exit 0", function()
  local r = plugin("check", "softmax", "--quiet") -- no progress where it is slow
  check.equal(r.code, 0, r.out .. r.err)
  check.equal(r.err, "")
  for _, part in ipairs { "check ", "figure", "load ", "gradient ", "of 1e-06 in",
    "sums_to_one ", "causal ", "softmax: all checks hold (seed 1)" } do
    check.contains(r.out, part)
  end
  local _, rows = r.out:gsub("\n%w+ +[ok-]+  ", "")
  check.at_least(rows, 16, r.out)
end)

check.test("a plugin that does not: the reason, how to see it again, exit 1", function()
  local path = bad .. "wrong_backward.so"
  local r = plugin("check", path, "--seed=7", "--only=gradient,bounds", "--quiet")
  check.equal(r.code, 1)
  check.equal(r.err, "")
  check.contains(r.out, "gradient  FAIL")
  check.contains(r.out, "bounds    ok")
  check.contains(r.out, "gradient: backward gives ")
  check.contains(r.out, "differences give ")
  check.contains(r.out, ("again: sinklab plugin check %s --only=gradient --seed=7\n")
    :format(path))
  -- The same seed, the same verdict, to the last digit.
  check.equal(plugin("check", path, "--seed=7", "--only=gradient,bounds").out, r.out)
  check.equal(plugin("check", path, "--seed=8", "--only=gradient,bounds").out == r.out,
    false)
end)

check.test("--json", function()
  local r = plugin("check", bad .. "overwrites_dparam.so", "--json",
    "--only=dparam,bounds,causal")
  check.equal(r.code, 1)
  local t = lab.json.decode(r.out)
  check.equal({ t.held, t.seed, #t.checks }, { false, 1, 3 })
  local states = {}
  for _, c in ipairs(t.checks) do
    states[c.name] = c.state
    check.equal(type(c.figure), "string")
    check.at_least(c.seconds, 0)
  end
  check.equal(states, { dparam = "FAIL", bounds = "ok", causal = "-" })
  r = plugin("check", "relu", "--json", "--only=load")
  check.equal({ r.code, lab.json.decode(r.out).held }, { 0, true })
end)

check.test("a crash and an endless loop fail one check each", function()
  local r = plugin("check", bad .. "crash.so")
  check.equal(r.code, 1)
  check.contains(r.out, "runs             FAIL  crash")
  check.contains(r.out, "killed by signal 11")
  check.contains(r.out, "gradient         -     not run")
  r = plugin("check", bad .. "endless.so", "--timeout=1.5")
  check.equal(r.code, 1)
  check.contains(r.out, "did not return within 1.5 s")
end)

check.test("a plugin that does not load: why, and no table of what was not tried",
  function()
    local r = plugin("check", "softmx")
    check.equal(r.code, 1)
    check.contains(r.out, "load: no plugin 'softmx' (did you mean 'softmax'?)")
    check.equal(r.out:find "not run", nil)
  end)

check.test("wrong use of plugin check", function()
  local cases = {
    { want = "plugin check needs a name", "check" },
    { want = "unexpected argument 'x'", "check", "relu", "x" },
    { want = "no option '--sed=1' (did you mean '--seed'?)", "check", "relu",
      "--sed=1" },
    { want = "--seed: expected a whole number from 0, got '-1'", "check", "relu",
      "--seed=-1" },
    { want = "--seed needs a value", "check", "relu", "--seed" },
    { want = "--json takes no value, got '1'", "check", "relu", "--json=1" },
    { want = "--timeout: expected seconds, above 0", "check", "relu", "--timeout=0" },
    { want = "no check 'gradeint' (did you mean 'gradient'?)", "check", "relu",
      "--only=gradeint" },
    { want = "--only: expected some of load, runs", "check", "relu", "--only=" },
    { want = "no option '--json'", "list", "--json" },
  }
  for _, case in ipairs(cases) do
    local r = plugin(table.unpack(case))
    check.equal(r.code, 1, case.want)
    check.equal(r.out, "", case.want)
    check.contains(r.err, case.want)
  end
  local r = plugin("check", "sofmax")
  check.equal(r.code, 1)
  check.contains(r.out, "no plugin 'sofmax' (did you mean 'softmax'?)")
end)

check.test("list and info: purpose, properties, parameters, what is shadowed", function()
  local r = plugin("list")
  check.equal(r.code, 0, r.err)
  check.contains(r.out, "exp (s) over its sum: the usual attention")
  r = plugin("info", build .. "/tests/good/affine.so")
  check.equal(r.code, 0, r.err)
  for _, part in ipairs { "affine 1.2: for tests", "properties  none",
    "factor=1.0  times this (0.25 to 4)", "flag=true  yes or no (true or false)",
    "gain  times this (1, starts at 1.0)",
    "c  added to the weights (d_head, starts normal, deviation 0.5)" } do
    check.contains(r.out, part)
  end
  check.contains(plugin("info", build .. "/tests/good/gate_shape.so").out,
    "z  d_head for each head, starts as other matrices do")
  local copies = folder .. "/copies"
  process.shell(("mkdir -p '%s' && cp '%s/plugins/relu.so' '%s'"):format(copies, build,
    copies))
  local env = { SINKLAB_PLUGIN_PATH = copies }
  r = process.run({ "plugin", "list" }, { folder = folder, env = env })
  check.contains(r.out, "shadowed by " .. copies .. "/relu.so")
  r = process.run({ "plugin", "info", "relu" }, { folder = folder, env = env })
  check.contains(r.out, "file        " .. copies .. "/relu.so")
  check.contains(r.out, "shadows " .. build .. "/plugins/relu.so")
end)

check.test("new: writes a folder once; names are checked", function()
  local r = plugin("new", "gate", "my_gate", "--dir=made")
  check.equal(r.code, 0, r.err)
  check.contains(r.out, "cd made/my_gate && make check")
  for _, file in ipairs { "my_gate.c", "CMakeLists.txt", "Makefile", "README.md" } do
    local all = process.read(folder .. "/made/my_gate/" .. file)
    check.contains(all, "my_gate")
    check.equal(all:find("template_", 1, true), nil, file)
    check.equal(all:find "@%u+@", nil, file)
  end
  r = process.shell(("cd '%s/made/my_gate' && "
    .. "PKG_CONFIG_PATH= PKG_CONFIG_LIBDIR=/none make check"):format(folder))
  if os.execute "command -v make >/dev/null" then
    check.equal(r.code, 2, r.err)
    check.contains(r.err, "pkg-config does not find sinklab; install it")
  end
  process.write(folder .. "/made/my_gate/my_gate.c", "mine")
  process.write(folder .. "/a_file", "mine")
  local cases = {
    { want = "made/my_gate exists already; nothing was written", "gate", "my_gate",
      "--dir=made" },
    { want = "a_file exists already", "row", "a_file" },
    { want = "no shape 'rwo' (did you mean 'row'?)", "rwo", "x" },
    { want = "'9x' is no name for a plugin", "row", "9x" },
    { want = "'a/b' is no name for a plugin", "row", "a/b" },
    { want = "'" .. ("x"):rep(64) .. "' is no name", "row", ("x"):rep(64) },
    { want = "there is a plugin 'softmax': ", "row", "softmax" },
    { want = "'test' is the name of a target", "row", "test" },
    { want = "plugin new needs a shape and a name" },
    { want = "plugin new needs a name", "row" },
    { want = "--dir: expected a folder, got ''", "row", "x", "--dir=" },
  }
  for _, case in ipairs(cases) do
    r = plugin("new", table.unpack(case))
    check.equal(r.code, 1, case.want)
    check.equal(r.out, "", case.want)
    check.contains(r.err, case.want)
  end
  check.equal(process.read(folder .. "/made/my_gate/my_gate.c"), "mine")
  check.equal(process.read(folder .. "/a_file"), "mine")
end)

-- As a user's: the Makefile of the template finds headers and sinklab in a prefix.
check.test("new: each shape is built, checked and trained as its README says", function()
  if not os.execute "command -v make pkg-config >/dev/null" then
    print "skipped: there is no make or pkg-config"
    return
  end
  local source = package.searchpath("check", package.path):match "^(.*)/tests/lua/"
  process.shell(("mkdir -p '%s/prefix/lib/pkgconfig' && cd '%s/prefix' && cp '%s' %s "
    .. "&& ln -s '%s/include' include && ln -s '%s' bin"):format(folder, folder,
    build .. "/sinklab.pc", "lib/pkgconfig", source, build))
  for _, shape in ipairs { "row", "gate", "mixer" } do
    local name = "new_" .. shape
    local place = folder .. "/made/" .. name
    local r = plugin("new", shape, name, "--dir=made")
    check.equal(r.code, 0, r.err)
    r = process.shell(("cd '%s' && PKG_CONFIG_PATH='%s/prefix/lib/pkgconfig' "
      .. "make check"):format(place, folder))
    check.equal(r.code, 0, r.out .. r.err)
    check.contains(r.out, name .. ".so: all checks hold")
    local line = process.read(place .. "/README.md"):match "`(attention = {[^`]*})`"
    check.equal(line ~= nil, true, "README.md has a line to use it")
    process.write(folder .. "/train.lua", ([[
local lab = require "sinklab"
local task = lab.task.trigger_mean { seq_len = 8 }
local model = lab.model.attention_only { task = task, heads = 2, %s }
lab.train(model, task, { optimizer = lab.optim.adam { lr = 1e-2 }, steps = 20 })
print(model)
]]):format(line))
    r = process.run({ "run", "train.lua" }, { folder = folder,
      env = { SINKLAB_PLUGIN_PATH = place } })
    check.equal(r.code, 0, line .. "\n" .. r.out .. r.err)
    check.contains(r.out, name)
  end
end)

check.done()
