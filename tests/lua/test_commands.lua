-- test_commands.lua - new experiment, doctor, completions, and what is generated.
local check = require "check"
local process = require "process"
local lab = require "sinklab"

local folder = process.folder "commands"
local source = arg[0]:match "^(.*)/tests/lua/[^/]*$"
local binary = os.getenv "SINKLAB_BINARY"

local function sinklab(...) return process.run({ ... }, { folder = folder }) end

check.test("new experiment: a script that runs, holds its claims and has options",
  function()
    local r = sinklab("new", "experiment", "mine")
    check.equal({ r.code, r.err }, { 0, "" })
    check.contains(r.out, "sinklab run mine.lua")
    r = sinklab("run", "mine", "--samples=50", "--stop_max_abs_error=0.2", "--out=out")
    check.equal(r.code, 0, r.err)
    check.contains(r.out, "holds  softmax sinks")
    check.contains(r.out, "holds  relu does not")
    local record = lab.json.decode(process.read(folder .. "/out/run.json"))
    check.equal({ record.status, #record.claims, record.options.samples },
      { "complete", 2, 50 })
    for _, name in ipairs { "loss.png", "softmax-weights.svg", "train-relu.csv" } do
      check.above(#process.read(folder .. "/out/" .. name), 0, name)
    end
    r = sinklab("run", "mine", "--help")
    check.contains(r.out, "mine: the purpose of the experiment in one line")
    check.contains(r.out, "--max_steps=3000           at most so many updates")
  end)

check.test("new experiment: names are checked, nothing is overwritten", function()
  process.write(folder .. "/taken.lua", "mine")
  process.write(folder .. "/a_file", "mine")
  local cases = {
    { want = "taken.lua exists already; nothing was written", "taken" },
    { want = "'9x' is no name", "9x" }, { want = "'a/b' is no name", "a/b" },
    { want = "there is an experiment 'theorem2' already", "theorem2" },
    { want = "new experiment needs a name" },
    { want = "unexpected argument 'y'", "x", "y" },
    { want = "new experiment: ", "x", "--dir=a_file/inside" },
  }
  for _, case in ipairs(cases) do
    local r = sinklab("new", "experiment", table.unpack(case))
    check.equal({ r.code, r.out }, { 1, "" }, case.want)
    check.contains(r.err, case.want)
  end
  check.equal(process.read(folder .. "/taken.lua"), "mine")
  check.equal(sinklab("new", "experiment", "x.lua", "--dir=made/here").code, 0)
  check.contains(process.read(folder .. "/made/here/x.lua"),
    "-- x: the purpose of the experiment")
  check.contains(sinklab("new", "experment", "x").err, "did you mean 'experiment'?")
end)

check.test("a word in the wrong place says what to try", function()
  process.write(folder .. "/some.gguf", "GGUF")
  check.contains(sinklab("run", "some.gguf").err,
    "some.gguf is no script\n  try: sinklab model info some.gguf")
  check.contains(sinklab("model", "some.gguf").err,
    "model: no action 'some.gguf': expected info\n  try: sinklab model --help")
end)

-- Doctor.

check.test("doctor: all is well", function()
  local r = sinklab("doctor")
  check.equal({ r.code, r.err }, { 0, "" }, r.out)
  for _, part in ipairs { "sinklab          " .. lab.version,
    "instruction set  " .. lab.isa(),
    "GFLOP/s in f32", "softmax", "terminal         none", "  ok    gradients against" } do
    check.contains(r.out, part)
  end
  r = sinklab("doctor", "--json", "--threads=1")
  check.equal(r.code, 0, r.err)
  local found = lab.json.decode(r.out)
  check.equal({ found.sinklab, found.isa, found.threads, found.well },
    { lab.version, lab.isa(), 1, true })
  check.above(found.gemm.f32, 0)
  check.at_least(#found.tests, 5)
  for _, test in ipairs(found.tests) do check.equal(test.holds, true, test.name) end
  local names = {}
  for _, l in ipairs(found.libraries) do names[l.name] = l.version end
  check.equal(names.Lua, _VERSION:match "%d.%d" .. "." .. names.Lua:match "%d+$")
end)

check.test("doctor: a plugin that does not load is told, with status 1", function()
  local plugins = process.folder "commands-plugins"
  process.write(plugins .. "/broken.so", "no library")
  process.shell(("cp '%s/plugins/relu.so' '%s'"):format(binary:match "^(.*)/", plugins))
  local options = { folder = folder, env = { SINKLAB_PLUGIN_PATH = plugins } }
  local r = process.run({ "doctor" }, options)
  check.equal(r.code, 1)
  check.contains(r.out, "does not load    ")
  check.contains(r.out, "broken.so")
  check.contains(r.out,
    "shadowed         " .. binary:match "^(.*)/" .. "/plugins/relu.so")
  r = process.run({ "doctor", "--json" }, options)
  check.equal(r.code, 1)
  check.equal(lab.json.decode(r.out).plugins.broken[1].name, "broken")
end)

-- Completions.

local function words(...)
  local r = process.run({ "completion", "words" }, { folder = folder,
    input = table.concat({ ... }, "\n") .. "\n" })
  check.equal({ r.code, r.err }, { 0, "" })
  return (r.out:gsub("\n$", ""):gsub("\n", " "))
end

check.test("what may follow", function()
  local cases = {
    { "plugin", "pl" }, { "check info list new", "plugin", "" },
    { "softmax softmax1 :file", "plugin", "info", "softma" },
    { "--seed=", "plugin", "check", "relu", "--se" },
    { "gate mixer row", "plugin", "new", "" }, { "", "plugin", "new", "row", "x" },
    { "theorem1 theorem2 theorem3 :file", "run", "theo" },
    { "--num_heads= --num_layers=", "run", "theorem2", "--num" },
    { "--attention=softmax --attention=softmax1", "run", "theorem2",
      "--attention=softma" },
    { ":folder", "run", "theorem2", "--out=x" }, { "plugin", "help", "pl" },
    { "--threads= --traceback", "--t" }, { "", "nonsense", "x" },
    { "experiment", "new", "" },
    { "--quick --quiet", "run", "theorem1", "--qui" },
    { "--attention=relu,softmax --attention=relu,softmax1", "run", "theorem2",
      "--attention=relu,softma" },
    { "--mechanism=softpick", "sinks", "x.gguf", "--mechanism=softpi" },
    { "--bos=none", "sinks", "x.gguf", "--bos=n" },
    { "last one", "runs", "show", "" }, { "last one", "runs", "compare", "one", "" },
    { "--only=gradient,reads --only=gradient,repeat", "plugin", "check", "relu",
      "--only=gradient,re" },
  }
  process.shell(("mkdir -p '%s/runs/one' '%s/runs/none'"):format(folder, folder))
  process.write(folder .. "/runs/one/run.json", "{}")
  for _, case in ipairs(cases) do
    local want = table.remove(case, 1)
    check.equal(words(table.unpack(case)), want, table.concat(case, " "))
  end
  -- The options of a script are read, not run: strings and comments do not confuse.
  process.write(folder .. "/odd.lua", [[
    error "not run"
    local opt = lab.options {
      -- comment = 1, { not = this }
      first = { default = 1,
        doc = "a } in -- a string, other = 2", min = 1 }, --[=[ x = 1, ]=]
      second = "x", third = { default = { "a" }, doc = 'it''s' }, off = false,
      on = { default = true, doc = "a switch" } }]])
  check.equal(words("run", "odd.lua", "--"), "--first= --fresh --help --no-on --off "
    .. "--out= --quiet --retry-failed --second= --third= --threads= --traceback")
end)

--- The folder of the generated pages.
local pages = folder .. "/pages"
do
  local r = sinklab("run", source .. "/docs/generate.lua", "--pages=" .. pages)
  if r.code ~= 0 then error(r.err) end
end

--- What bash completes a line to.
local function bash(line)
  process.write(folder .. "/complete.sh", [[
    source "$1"
    COMP_LINE=$2 COMP_POINT=${#2}
    _sinklab
    printf '%s\n' "${COMPREPLY[@]}"]])
  local r = process.shell(("cd '%s' && bash complete.sh "
    .. "'%s/sinklab' '%s'"):format(folder, pages, binary .. " " .. line))
  check.equal({ r.code, r.err }, { 0, "" }, line)
  return (r.out:gsub("%s+$", ""):gsub("\n", " "))
end

check.test("bash completes", function()
  process.shell(("mkdir -p '%s/afolder'; touch '%s/afile'"):format(folder, folder))
  local cases = { ["plu"] = "plugin", ["plugin "] = "check info list new",
    ["run theorem2 --attention=softpi"] = "softpick", ["run theorem2 --num_h"] =
    "--num_heads=", ["run theorem2 --out=afol"] = "afolder",
    ["run afi"] = "afile", ["plugin check softpi"] = "softpick", ["nonsense "] = "" }
  for line, want in pairs(cases) do check.equal(bash(line), want, line) end
end)

check.test("the scripts of zsh and fish are well formed", function()
  for shell, file in pairs { zsh = "_sinklab", fish = "sinklab.fish" } do
    if os.execute("command -v " .. shell .. " >/dev/null") then
      local r = process.shell(("%s -n '%s/%s'"):format(shell, pages, file))
      check.equal({ r.code, r.err }, { 0, "" }, shell)
    end
    check.equal(sinklab("completion", shell).out, process.read(pages .. "/" .. file))
  end
end)

-- Pages.

check.test("the reference is what the schemas say", function()
  local r = sinklab("run", source .. "/docs/generate.lua", "--check")
  check.equal({ r.code, r.err, r.out }, { 0, "", "" })
end)

check.test("a page that is stale is named", function()
  process.shell(("mkdir -p '%s/docs' && cp '%s/docs/generate.lua' '%s/docs'"):format(
    folder, source, folder))
  local generate = folder .. "/docs/generate.lua"
  local r = sinklab("run", generate)
  check.equal(r.code, 0, r.err)
  check.contains(r.out, "wrote " .. folder .. "/docs/reference.md")
  check.equal(sinklab("run", generate, "--check").code, 0)
  process.write(folder .. "/docs/reference.md", "old")
  r = sinklab("run", generate, "--check")
  check.equal(r.code, 1)
  check.contains(r.err, "docs/reference.md: not what the schemas say")
  check.contains(r.err, "try: build/sinklab run docs/generate.lua")
end)

check.test("man can read the man pages", function()
  for _, page in ipairs { "sinklab.1", "sinklab.3" } do
    local text = process.read(pages .. "/" .. page)
    check.contains(text, ".SH NAME\nsinklab \\- ")
    for line in text:gmatch "[^\n]+" do -- every request is one of man's
      local request = line:match "^[.'](%S*)"
      if request then
        check.contains(" TH SH SS PP TP B I BI br nf fi ", request, line)
      end
    end
  end
end)

check.done()
