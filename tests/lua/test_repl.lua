-- test_repl.lua - what the prompt makes of an input: run, completed, asked about, shown.
-- check_lua_repl.c types into a real terminal.
local check = require "check"
local process = require "process"
local complete = require "sinklab.prompt.complete"
local help_text = require "sinklab.help.text"
local lab = require "sinklab"
local repl = require "sinklab.prompt"
local scan = require "sinklab.prompt.scan"
local show = require "sinklab.prompt.show"

local folder = process.folder "repl"

local function piped(text)
  return process.run({}, { folder = folder, input = text })
end

check.test("whole, unfinished and wrong inputs", function()
  local cases = { ["1 + 1\n"] = "run", ["x = 1\n"] = "run",
    ["for i = 1, 2 do\n"] = "more",
    ["x =\n"] = "more", ["f(\n"] = "more", ["s = [[\n"] = "more", ["x = = 1\n"] = "error",
    ["\n"] = "none", ["   \n"] = "none", ["?lab.train\n"] = "run",
    ["lab.train??\n"] = "run",
    ["%time 1\n"] = "run", ["%time\n"] = "error", ["%rn x\n"] = "error",
    ["quit\n"] = "error", ["'a\n"] = "error" }
  for input, want in pairs(cases) do check.equal((repl.read(input)), want, input) end
  check.contains(select(2, repl.read "%rn x"), "no command '%rn' (did you mean '%run'?)")
  check.contains(select(2, repl.read "quit"), "Ctrl-D")
  local _, f, silent = repl.read "2 * 21;\n"
  check.equal({ f(), silent }, { 42, true })
  _, f = repl.read "2 * 21; -- said\n"
  check.equal(f(), 42)
  _, f, silent = repl.read "2 * 21\n"
  check.equal({ f(), silent }, { 42, false })
end)

check.test("a local of its own outside blocks", function()
  local cases = { ["local x = 1"] = "x", ["print(1) local y"] = "y",
    ["local function f() end"] = "f", ["do local x = 1 end"] = false,
    ["for i = 1, 2 do local x = i end"] = false, ["s = 'local x'"] = false,
    ["-- local x"] = false, ["f(function() local x end)"] = false,
    ["repeat local x until true local z"] = "z", ["locals = 1"] = false,
    ["if a then local b elseif c then local d else local e end"] = false,
    ["x = [[ local x ]] --[[ local y ]]"] = false }
  for source, want in pairs(cases) do
    check.equal(scan.outer_local(source) or false, want, source)
  end
  local r = piped "%time 1\nlocal lost = 1\nlost"
  check.contains(r.err, "note: the local 'lost' is gone after this input")
  check.equal(r.out, "1\nnil\n")
end)

check.test("where the end of a text stands", function()
  local cases = { { "f('a', \"b", '"', 1 }, { "f{ 'a', x[", nil, 2 },
    { "[[ a ] b", "[", 0 },
    { "-- f(", nil, 0 }, { "--[[ f( ]] g(", nil, 1 }, { "'a\\'b", "'", 0 },
    { "(1 + 2) * {", nil, 1 }, { "", nil, 0 } }
  for _, case in ipairs(cases) do
    local state = scan.read(case[1])
    check.equal(state.string, case[2], case[1])
    check.equal(#state.brackets, case[3], case[1])
  end
end)

-- Completion.

local globals = { lab = lab, print = print, threshold = 1, x = lab.tensor { 1, 2 },
  task = lab.task.trigger_mean {}, deep = { inner = { value = 5, vary = 6 } },
  m = lab.model.attention_only { task = lab.task.trigger_mean {} },
  relu = lab.mechanism "relu",
  object = setmetatable({}, { __index = setmetatable({ near = print },
    { __index = { far = print } }) }) }

local function tab(text)
  local insert, list = complete(text, globals)
  return insert, table.concat(list, " ")
end

check.test("globals, fields and methods", function()
  local cases = {
    { "thr", "eshold", "threshold" }, { "y = thr", "eshold", "threshold" },
    { "whi", "le", "while" }, { "lab.opt", "i", "optim options" },
    { "lab.optim.adam", "", "adam adamw" }, { "deep.inner.va", "", "value vary" },
    { "x:softm", "ax", "softmax" }, { "x.sha", "pe", "shape" },
    { "x:sha", "", "" }, { "task:ba", "tch", "batch" }, { "m:forw", "ard", "forward" },
    { "m.seq", "_len", "seq_len" }, { "relu.prop", "erties", "properties" },
    { "object:", "", "far near" }, { "nothing.at", "", "" }, { "1 + ", "", "" },
    { "-- thr", "", "" }, { "print(x:softm", "ax", "softmax" },
    { "for i = 1, 2 do\n  thr", "eshold", "threshold" },
    { "%r", "un ", "%run" }, { "%time thr", "eshold", "threshold" },
    { "?lab.tra", "in", "lab.train" }, { "??softpi", "ck", "softpick" },
    { "%run theorem", "", "theorem1 theorem2 theorem3" },
  }
  for _, case in ipairs(cases) do
    local insert, list = tab(case[1])
    check.equal({ insert, list }, { case[2], case[3] }, case[1])
  end
  check.contains(select(2, tab "lab."), " tensor ")
end)

check.test("nothing that completion looks at runs", function()
  local ran = 0
  globals.trap = setmetatable({}, { __index = function() ran = ran + 1 end,
    __pairs = function() ran = ran + 1 return next, {} end, __name = "sinklab.task" })
  tab "trap.x"
  tab "trap.x.y"
  tab "trap:"
  globals.trap = nil
  check.equal(ran, 0)
end)

check.test("option keys inside a call's table", function()
  local cases = {
    { "lab.train(m, task, { opti", "mizer = ", "optimizer" },
    { "lab.train(m, task, { steps = 5, st", "op = ", "stop" },
    { "lab.train(m, task, {\n  steps = 5,\n  sched", "ule = ", "schedule" },
    { "lab.train(m, task, { stop = { pla", "teau", "plateau plateau_delta" },
    { "lab.model.transformer { posi", "tions = ", "positions" },
    { "lab.model.attention_only { task = task, attention = { ga", "te = ", "gate" },
    { "task:batch { se", "ed = ", "seed" },
    { "lab.optim.adam { cl", "ip_norm = ", "clip_norm" },
    { "lab.train(m, task, { steps = thr", "eshold", "threshold" },
    { "print { thr", "eshold", "threshold" },
  }
  for _, case in ipairs(cases) do
    local insert, list = tab(case[1])
    check.equal({ insert, list }, { case[2], case[3] }, case[1])
  end
  check.contains(select(2, tab "lab.train(m, task, { "), "batch")
end)

check.test("in quotes: plugins, choices, files", function()
  process.write(folder .. "/data.npy", "")
  process.shell(("mkdir -p '%s/dataset'"):format(folder))
  local cases = {
    { 'lab.mechanism "softpi', "ck", "softpick" },
    { 'lab.model.attention_only { task = task, attention = "softpi', "ck", "softpick" },
    { "{ attention = { mechanism = 'clipped", "_softmax", "clipped_softmax" },
    { "{ attention = { gate = 'sig", "moid_gate", "sigmoid_gate" },
    { '{ attention = { "softpi', "ck", "softpick" },
    { 'lab.model.transformer { norm = "', "", "layer none rms" },
    { 'lab.model.transformer { mlp = "swi', "glu", "swiglu" },
    { 'task:batch { dtype = "f6', "4", "f64" },
    { ('lab.load_npy "%s/dat'):format(folder), "a",
      ("%s/data.npy %s/dataset/"):format(folder, folder) },
    { ('x:save_npy("%s/data.'):format(folder), "npy", folder .. "/data.npy" },
    { ('%%run %s/data.'):format(folder), "npy", folder .. "/data.npy" },
  }
  for _, case in ipairs(cases) do
    local insert, list = tab(case[1])
    check.equal({ insert, list }, { case[2], case[3] }, case[1])
  end
  -- a gate is no mechanism
  check.equal((select(2, tab '{ attention = { mechanism = "sigmoid_g')), "")
end)

check.test("a blank line is indented", function()
  check.equal({ repl.complete "for i = 1, 2 do\n" }, { "  ", {} })
end)

-- Help.

check.test("help of names, plugins, experiments, commands and variables", function()
  local cases = {
    { "lab.train",
      "lab.train(model, task, { options })\n\nTrain a model on fresh batches" },
    { "train", "\n  optimizer             it holds the learning rate (table), default " },
    { "train",
      "\n  stop.loss             its loss is below this (number, at least 0), " },
    { " lab.optim.sgd() ", "raises a value out of range" },
    { "x:softmax", "returns tensor of the same shape; sums are 1" },
    { '"relu"', "normaliser  weights are divided by" },
    { "relu", "There is also a plugin of this name: ?\"relu\"" },
    { "softpick", '"softpick", a row' }, { "plot", "lab.plot.heat" },
    { "theorem2", "sinklab run theorem2" }, { "sinklab plugin", "sinklab help plugin" },
    { "m", "model:forward" }, { "threshold", "threshold: integer" },
    { "model", "lab.model.transformer" }, { "model", "model:forward" },
    { "task", "further, as lab.task.NAME backcopy idle" },
    { "", "?NAME shows one thing" }, { "lab.rope", "source Su et al. 2021" },
  }
  for _, case in ipairs(cases) do
    check.contains(help_text.of(case[1], globals, 100), case[2], case[1])
  end
  check.contains(help_text.of("lab.optim.sgd", globals, 80, true),
    "o.kind = kind")
  check.contains(help_text.of("lab.sum", globals, 80, true), "This is written in C.")
  check.contains(help_text.of("rotary", globals, 80, true), "lab.model.transformer")
  for word, want in pairs { trian = "no help for 'trian' (did you mean 'train'?)",
    ["lab.train.steps"] = "?lab.train has its options",
    ['"sofmax"'] = "(did you mean 'softmax'?)", zzzzzzzz = "??zzzzzzzz searches" } do
    local found, message = help_text.of(word, globals, 80)
    check.equal(found, nil)
    check.contains(message, want)
  end
end)

check.test("no line of help is wider than asked", function()
  for _, entry in ipairs(require "sinklab.help".index()) do
    local said = help_text.entry(entry, 78):gsub("\nexample\n.*", "")
    for line in said:gmatch "[^\n]+" do
      if lab.text.width(line) > 78 and line:sub(1, 2) ~= "  " then
        error(entry.name .. ": " .. line, 0)
      end
    end
  end
end)

-- Results.

check.test("a training is a curve", function()
  local log = lab.train(globals.m, globals.task, { steps = 40, batch = 16, eval = 32,
    log_every = 4, quiet = true })
  local said = show.text(log)
  check.contains(said, "training: 40 steps, stopped by steps, loss ")
  check.contains(said, "\n  on 32 fresh sequences: mse ")
  check.equal(said:match "\n  loss +([_.:=+*#-]+)  [%d.e-]+ to [%d.e-]+" ~= nil, true,
    said)
end)

check.test("sparklines", function()
  check.equal({ show.sparkline({ 0, 1, 2, 3, 4, 5, 6, 7 }, 8, false) },
    { "_.:-=+*#", false })
  check.equal({ show.sparkline({ 1000, 100, 10, 1 }, 4, true) }, { "█▆▃▁", true })
  check.equal((show.sparkline({ 2, 2, 2 }, 8, false)), "___")
  check.equal((show.sparkline({ 1, 0 / 0, 3 }, 8, false)), "_?#")
  check.equal((show.sparkline({ 0, 0, 4, 4 }, 2, false)), "_#")
end)

check.test("a model is a tree with counts", function()
  local model = lab.model.transformer { task = globals.task, layers = 2, heads = 2 }
  local said = show.text(model)
  check.contains(said, "model transformer: softmax, 2 layers, 6,480 parameters, f32")
  check.contains(said, "|- layer1                             3,104")
  check.contains(said, "|  |- w_q                   (16, 16)    256")
  check.contains(said, "|     `- w_down             (16, 64)  1,024")
  check.contains(said, "`- final_norm.gamma         (16)         16")
end)

check.test("a measurement has its maps, with axes", function()
  local found = lab.sinks(globals.m, globals.task:batch { n = 8, trigger = 8 })
  local said = show.text(found)
  for _, part in ipairs { "sinks over 8 samples", "first_mean", "query position",
    "key position", "8 samples" } do
    check.contains(said, part)
  end
end)

check.test("values in one line", function()
  check.equal(show.line { 1, 2 }, "{ 1, 2 }")
  check.equal(show.line(("x"):rep(5)), "xxxxx")
  local long = {}
  for i = 1, 100 do long[i] = i end
  check.equal(show.line(long), "table of 100 items")
  check.contains(show.line(globals.m), " ...")
end)

-- From a pipe.

check.test("questions and commands among the lines of a pipe", function()
  process.write(folder .. "/s.lua", [[
    local lab = require "sinklab"
    local opt = lab.options { count = 1 }
    made = opt.count
    return opt.count * 2, arg[0] ]])
  local r = piped [[
%run s.lua --count=4
made
%time made + 1
x = 3;
x
%who
?lab.sha256]]
  check.equal(r.code, 0, r.err)
  check.contains(r.out, "8\ns.lua\n4\n5\n3\nmade  4\nx     3\nlab.sha256(path)\n")
  check.contains(r.err, " s on the clock, ")
  r = piped "%run s.lua --coun=4\n1"
  check.equal({ r.code, r.out }, { 1, "" })
  check.contains(r.err, "--coun: no such option (did you mean --count?)")
  r = piped "%run s.lua --help\n1"
  check.equal(r.code, 0, r.err)
  check.contains(r.out, "--count=1")
  check.contains(r.out, "\n1\n")
  r = piped "?lab.train\nfor i = 1, 2 do\n"
  check.equal(r.code, 1)
  check.contains(r.err, "<eof>")
  r = piped "%help"
  check.contains(r.out, "%run SCRIPT")
end)

check.test("an error in a call that is the whole input names its line", function()
  check.contains(piped "lab.softmax()".err, "sinklab: stdin:1: lab.softmax: got 0 inputs")
  check.contains(piped "\nlab.train()".err, "sinklab: stdin:2: lab.train: the model")
  check.contains(piped "lab.ta".err, "sinklab: stdin:1: lab.ta: no such name")
  check.contains(piped "1 +\nlab.ta -- 2".err, "sinklab: stdin:2: lab.ta: no such name")
  check.equal(piped "1 + 1 -- 2".out, "2\n")
end)

check.test("a sweep of a function that is typed at the prompt", function()
  local r = piped [[
    r = lab.sweep { grid = { n = { 2, 3 } }, quiet = true,
      run = function(p) return lab.ones({ p.n }):sum():item() end }
    print(r[1].result, r[2].result, r.failed) ]]
  check.equal({ r.code, r.out }, { 0, "2.0\t3.0\t0\n" }, r.err)
end)

check.test("what is misspelt is suggested", function()
  for code, want in pairs { ["prnt(1)"] = "(global 'prnt') (did you mean 'print'?)",
    ["lab.trian()"] = "lab.trian: no such name (did you mean lab.train?)",
    ["m = lab.model.attention_only { task = lab.task.trigger_mean {} } m:forwrd()"] =
      "(method 'forwrd') (did you mean 'forward'?)",
    ["lab.tensor { 1 }:softmx()"] = "(did you mean 'softmax'?)" } do
    local r = piped(code)
    check.equal(r.code, 1, code)
    check.contains(r.err, want, code)
  end
end)

check.done()
