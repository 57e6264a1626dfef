-- test_cli.lua - the command line: commands, scripts, errors, exit status.
local check = require "check"
local process = require "process"
local lab = require "sinklab"

local folder = process.folder "cli"

local function sinklab(...) return process.run({ ... }, { folder = folder }) end

local function script(text, ...)
  process.write(folder .. "/s.lua", text)
  return sinklab("run", "s.lua", ...)
end

check.test("version", function()
  for _, word in ipairs { "version", "--version" } do
    local r = sinklab(word)
    check.equal(r.code, 0)
    check.equal(r.out, ("sinklab %s (%s, Lua %s)\n"):format(lab.version, lab.isa(),
      r.out:match "Lua (%d%.%d%.%d+)"))
  end
  check.equal(sinklab("version", "x").code, 1)
end)

check.test("help names every command", function()
  local r = sinklab("help")
  check.equal(r.code, 0)
  for _, part in ipairs { "run SCRIPT", "repl", "list", "plugin list|info|check|new",
    "version", "--out=DIR", "--threads=N", "--quiet", "--traceback", "Exit status" } do
    check.contains(r.out, part)
  end
  check.equal(sinklab("--help").out, r.out)
  check.equal(sinklab("-h").out, r.out)
end)

check.test("help and --help of one command", function()
  local r = sinklab("help", "plugin")
  check.equal({ r.code, r.err }, { 0, "" })
  for _, part in ipairs { "sinklab plugin check NAME|PATH [--seed=N] [--timeout=S]",
    "sinklab plugin new row|gate|mixer NAME [--dir=FOLDER]", "--threads=N" } do
    check.contains(r.out, part)
  end
  r = sinklab("plugin", "check", "--help")
  check.equal({ r.code, r.err }, { 0, "" })
  for _, part in ipairs { "--timeout=S       limits each check, default 20",
    "\nChecks:\n  load " } do
    check.contains(r.out, part)
  end
  check.contains(sinklab("run", "--help").out, "SCRIPT is a file as given")
  for word, want in pairs { nonsense = "help: no command 'nonsense'\n  try: sinklab help",
    plugn = "help: no command 'plugn' (did you mean 'plugin'?)" } do
    r = sinklab("help", word)
    check.equal({ r.code, r.out }, { 1, "" }, word)
    check.contains(r.err, want)
  end
  check.contains(sinklab("help", "run", "x").err,
    "help: 'run' has no actions, so no 'x'\n  try: sinklab help run")
  check.contains(sinklab("help", "plugin", "chek").err,
    "plugin: no action 'chek' (did you mean 'check'?)")
  check.contains(sinklab("help", "run", "x", "y").err, "unexpected argument 'y'")
  check.equal(sinklab("help", "plugin", "check").out,
    sinklab("plugin", "check", "--help").out)
  check.contains(sinklab("help", "model").out, "FILE is a GGUF file")
  -- A usage too long for a line is not part of an error, and is wrapped in the help.
  check.contains(sinklab("sinks").err,
    "sinks needs a GGUF file or a folder: sinklab sinks --help\n")
  for line in sinklab("help", "sinks").out:gmatch "[^\n]+" do
    check.at_most(#line, 92, line)
  end
end)

check.test("every command says what it takes, and takes no more", function()
  local command = require "sinklab.cli.command"
  local function each(name, spec)
    for _, action in ipairs(spec.actions or {}) do
      each(name .. " " .. action.name, action)
    end
    check.equal(type(spec.doc), "string", name)
    if spec.actions then return end
    check.equal(type(spec.run), "function", name)
    for _, o in ipairs(spec.options or {}) do
      check.equal(type(o.doc), "string", name .. " --" .. o[1])
    end
    local words = {}
    for word in name:gmatch "%S+" do words[#words + 1] = word end
    if not spec.others and name ~= "repl" then
      words[#words + 1] = "--no-such-option"
      local r = sinklab(table.unpack(words))
      check.equal({ r.code, r.out }, { 1, "" }, name)
      check.contains(r.err, "no option '--no-such-option'", name)
    end
  end
  for _, name in ipairs(command.names) do each(name, command.find(name)) end
end)

check.test("list: every experiment with its purpose", function()
  local r = sinklab("list")
  check.equal(r.code, 0)
  check.contains(r.out, "theorem2")
  for line in r.out:gmatch "[^\n]+" do
    check.equal(line:match "^[%w_-]+  +%S.*$", line)
  end
  check.contains(sinklab("list", "--x").err, "no option '--x'")
end)

check.test("an unknown command names the nearest", function()
  local cases = { rn = "no command 'rn' (did you mean 'run'?)",
    lst = "did you mean 'list'?", ["s.lua"] = "try: sinklab run s.lua",
    qqqqqqqq = "try: sinklab help" }
  for word, want in pairs(cases) do
    local r = sinklab(word)
    check.equal(r.code, 1, word)
    check.equal(r.out, "", word)
    check.contains(r.err, want, word)
  end
end)

check.test("plugin list and info", function()
  local r = sinklab("plugin", "list")
  check.equal(r.code, 0, r.err)
  for _, part in ipairs { "name", "file", "relu", "softmax", "softmax.so" } do
    check.contains(r.out, part)
  end
  r = sinklab("plugin", "info", "relu")
  check.equal(r.code, 0, r.err)
  for _, part in ipairs { "relu ", "file ", "/relu.so", "sha256 ", "shape       row",
    "weights are never negative", "the gradient has kinks", "normaliser=earlier",
    "(earlier, visible or length)" } do
    check.contains(r.out, part)
  end
  local cases = {
    { want = "plugin needs an action: sinklab plugin list|info", "plugin" },
    { want = "no action 'lst' (did you mean 'list'?)", "plugin", "lst" },
    { want = "plugin info needs a name", "plugin", "info" },
    { want = "unexpected argument 'x'", "plugin", "list", "x" },
    { want = "(did you mean 'softmax'?)", "plugin", "info", "softmx" },
    { want = "unexpected argument 'x'", "plugin", "info", "relu", "x" },
  }
  for _, case in ipairs(cases) do
    r = sinklab(table.unpack(case))
    check.equal(r.code, 1, case.want)
    check.contains(r.err, case.want)
    check.equal(r.out, "", case.want)
  end
end)

check.test("a script is found as given, with .lua, and among the experiments", function()
  process.write(folder .. "/here.lua", "print(arg[0], ...)")
  for _, name in ipairs { "here", "here.lua", "./here.lua", folder .. "/here" } do
    check.equal(sinklab("run", name).code, 0, name)
  end
  check.equal(sinklab("run", "here").out, "here.lua\n")
  for _, name in ipairs { "theorem2", "theorem2.lua", "experiments/theorem2",
    "experiments/theorem2.lua" } do
    local r = sinklab("run", name, "--help")
    check.equal(r.code, 0, name)
    check.contains(r.out, "sinklab run experiments/theorem2.lua [--key=VALUE ...]")
    check.contains(r.out, "--num_layers=2")
  end
end)

check.test("a script that is not there", function()
  local r = sinklab("run", "theorm2")
  check.equal(r.code, 1)
  check.contains(r.err, "sinklab: no script 'theorm2' here or in ")
  check.contains(r.err, "(did you mean 'theorem2'?)")
  check.contains(sinklab("run").err, "run needs a script")
  check.equal(sinklab("run", folder).code, 1)
end)

check.test("an error is one line with the script's place; --traceback shows more",
  function()
    local r = script 'local t = nil\nprint(t.x)'
    check.equal(r.code, 1)
    check.equal(r.err,
      "sinklab: s.lua:2: attempt to index a nil value (local 't')\n")
    r = script('error "x"', "--traceback")
    check.contains(r.err, "sinklab: s.lua:1: x\nstack traceback:")
    check.contains(script("x = = 1").err, "sinklab: s.lua:1: unexpected symbol")
    check.contains(script("error { code = 3 }").err,
      "sinklab: the error raised is a table, not a text: { code = 3 }\n")
    check.contains(script("error(print)").err, "the error raised is a function, not")
    local own = '{ __tostring = function() return "mine" end }'
    check.contains(script("error(setmetatable({}, " .. own .. "))").err, "sinklab: mine")
    check.equal(script("error(42)").err, "sinklab: 42\n")
  end)

check.test("output that cannot be written is an error", function()
  local full = io.open "/dev/full"
  if not full then return end -- Linux has it
  full:close()
  process.write(folder .. "/s.lua", "print(1)")
  for _, command in ipairs { "version", "help", "list", "run s.lua" } do
    local r = process.shell(("cd '%s' && %s %s >/dev/full"):format(folder,
      os.getenv "SINKLAB_BINARY", command))
    check.equal(r.code, 1, command)
    check.contains(r.err, "sinklab: standard output cannot be written", command)
  end
end)

check.test("a closed standard output is not the next file", function()
  process.write(folder .. "/s.lua", [[local f <close> = io.open("f", "w")
    print "to nobody" io.stdout:flush() f:write "mine"]])
  local r = process.shell(("cd '%s' && %s run s.lua >&-"):format(folder,
    os.getenv "SINKLAB_BINARY"))
  check.equal(r.code, 0, r.err)
  check.equal(process.read(folder .. "/f"), "mine")
end)

check.test("a stack overflow is told at once", function()
  local r = process.shell(("cd '%s' && timeout -s KILL 60 %s run s.lua"):format(
    process.write(folder .. "/s.lua", "local function f() return f() + 1 end f()")
      :match "^(.*)/", os.getenv "SINKLAB_BINARY"))
  check.equal(r.code, 1)
  check.contains(r.err, "sinklab: s.lua:1: stack overflow")
end)

check.test("a script that is no text is named", function()
  local r = script(string.dump(function() end))
  check.equal(r.code, 1)
  check.contains(r.err, "sinklab: s.lua: attempt to load a binary chunk")
  check.contains(script(("("):rep(300)).err, "sinklab: s.lua: ")
end)

check.test("globals must be declared", function()
  check.contains(script("return prnt").err,
    "s.lua:1: undeclared global 'prnt' (did you mean 'print'?)")
  check.contains(script("\nx = 1").err,
    "s.lua:2: assignment to undeclared global 'x' (make it local)")
  check.equal(script('rawset(_G, "x", 1) print(x)').out, "1\n")
end)

check.test("library errors are blamed on the script", function()
  local r = script 'local lab = require "sinklab"\nlab.json.decode()'
  check.contains(r.err, "sinklab: s.lua:2: lab.json.decode: the text must be a string")
  r = script 'local lab = require "sinklab"\nlab.optin {}'
  check.contains(r.err, "s.lua:2: lab.optin: no such name (did you mean lab.")
  r = script 'local lab = require "sinklab"\nlab.x = 1'
  check.contains(r.err, "s.lua:2: lab.x: the library's table takes no new names")
end)

check.test("modules: beside the script, then SINKLAB_PATH, never the library's",
  function()
  local other = process.folder "cli-path"
  process.write(folder .. "/near.lua", 'return "beside"')
  process.write(other .. "/near.lua", 'return "path"')
  process.write(other .. "/far.lua", 'return "path"')
  process.write(folder .. "/sinklab.lua", 'return "an impostor"')
  process.write(folder .. "/s.lua", [[
    print(require "near", require "far", type(require "sinklab"))
    print(pcall(require, "nowhere"))]])
  local r = process.run({ "run", "s" }, { folder = folder,
    env = { SINKLAB_PATH = "/nowhere:" .. other, LUA_PATH = "/x/?.lua" } })
  os.remove(folder .. "/sinklab.lua")
  check.equal(r.code, 0, r.err)
  check.contains(r.out, "beside\tpath\ttable\nfalse\t")
  check.equal(r.out:find("/x/", 1, true), nil)
end)

check.test("a script may start with #! or a byte order mark", function()
  check.equal(script("#!/usr/bin/env -S sinklab run\nprint(1)").out, "1\n")
  check.equal(script("\xEF\xBB\xBFprint(1)").out, "1\n")
  check.contains(script("#!x\nprint(nil + 1)").err, "s.lua:2:")
  check.contains(script("\27Lua").err, "binary")
  check.equal(script("").code, 0)
end)

check.test("a pipe on the standard input is run", function()
  local function piped(text, ...)
    return process.run({ ... }, { folder = folder, input = text })
  end
  check.equal(piped("local x = 2\nprint(x + 1)").out, "3\n")
  check.equal(piped("1 + 1, lab.isa()").out, "2\n" .. lab.isa() .. "\n")
  check.equal(piped("x = { b = 1, a = 2 } print(x.a)", "repl").out, "2\n")
  local r = piped 'print "a"\nerror "x"'
  check.equal(r.code, 1)
  check.equal(r.out, "a\n")
  check.equal(r.err, "sinklab: stdin:2: x\n")
  r = piped "x = = 1"
  check.equal(r.code, 1)
  check.contains(r.err, "sinklab: stdin:1: unexpected symbol")
  check.equal(piped("", "--threads=2").code, 0)
  check.equal(piped("lab.threads()", "--threads=2").out, "2\n")
end)

check.test("Ctrl-C reaches endless code in coroutines and around pcall", function()
  -- io.write: ThreadSanitizer keeps a signal until the program calls the C library.
  local endless = "while true do io.write '' end"
  local cases = {
    "coroutine.wrap(function() LOOP end)()",
    "coroutine.wrap(function() coroutine.wrap(function() LOOP end)() end)()",
    "while true do pcall(function() LOOP end) end",
    "while true do coroutine.resume(coroutine.create(function() LOOP end)) end",
    "local c = coroutine.wrap(function() while true do coroutine.yield() end end) "
      .. "while true do c() end",
  }
  for _, case in ipairs(cases) do
    process.write(folder .. "/s.lua", "print 'ready' io.stdout:flush() "
      .. case:gsub("LOOP", endless))
    local r = process.signalled({ "run", folder .. "/s.lua" }, "INT", "ready")
    check.equal(r.code, 130, case)
    check.contains(r.err, "interrupted", case)
  end
end)

check.test("coroutines are as Lua's own", function()
  local f = coroutine.wrap(function(a)
    local b = coroutine.yield(a + 1)
    error("mine " .. b)
  end)
  check.equal(f(1), 2)
  check.contains(select(2, pcall(f, "x")), "mine x")
  check.contains(select(2, pcall(f)), "cannot resume dead coroutine")
  local co = coroutine.create(function(...) return 7, nil, select("#", ...) end)
  check.equal(table.pack(coroutine.resume(co, nil, nil)), { true, 7, nil, 2, n = 4 })
  check.equal({ coroutine.resume(co) }, { false, "cannot resume dead coroutine" })
  check.equal({ coroutine.status(co), coroutine.close(co) }, { "dead", true })
  check.equal({ coroutine.resume(coroutine.running()) },
    { false, "cannot resume non-suspended coroutine" })
  check.contains(select(2, pcall(coroutine.resume, 5)), "coroutine expected")
  check.contains(select(2, pcall(coroutine.wrap, 5)), "function expected")
  -- What an error leaves open is closed.
  local closed, object = false, {}
  local w = coroutine.wrap(function()
    local _ <close> = setmetatable({}, { __close = function() closed = true end })
    error(object)
  end)
  local ok, raised = pcall(w)
  check.equal({ ok, rawequal(raised, object), closed }, { false, true, true })
  local depth = 0
  local function deep()
    depth = depth + 1
    return coroutine.wrap(deep)()
  end
  check.contains(select(2, pcall(deep)), "C stack overflow")
  check.above(depth, 150)
end)

check.test("SINKLAB_ISA that cannot be used", function()
  process.write(folder .. "/s.lua", "print(1)")
  for _, arguments in ipairs { { "version" }, { "run", "s" }, { "list" } } do
    local r = process.run(arguments, { folder = folder, env = { SINKLAB_ISA = "z80" } })
    check.equal(r.code, 1)
    check.equal(r.out, "")
    check.contains(r.err, "sinklab: SINKLAB_ISA=z80: ")
  end
end)

check.test("SINKLAB_SCRIPTS that is not there", function()
  local r = process.run({ "list" }, { env = { SINKLAB_SCRIPTS = "/nowhere" } })
  check.equal(r.code, 1)
  check.contains(r.err, "SINKLAB_SCRIPTS=/nowhere: no such folder")
end)

check.done()
