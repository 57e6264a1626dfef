-- test_options.lua - lab.options: types, ranges, names and what errors say.
local check = require "check"
local process = require "process"

local folder = process.folder "options"
process.write(folder .. "/o.lua", [[
-- Prints its options.
--
-- Used by a test.
local lab = require "sinklab"
local opt = lab.options { num_layers = { default = 2,
  doc = "layers", min = 1, max = 9 }, lr = 1e-4,
  attention = { "softmax", "relu" }, ks = { default = { 1, 2 },
    doc = "some" }, verbose = false,
  fast = true, name = "x", dtype = { default = "f32", doc = "precision",
  choices = { "f32", "f64" } } }
print(math.type(opt.num_layers), opt.num_layers, opt.lr, opt.verbose, opt.fast,
  opt.name, opt.dtype, table.concat(opt.attention, "+"), table.concat(opt.ks, "+"))
]])

local function run(...) return process.run({ "run", "o", ... }, { folder = folder }) end

check.test("defaults", function()
  local r = run()
  check.equal(r.err, "")
  check.equal(r.code, 0)
  check.equal(r.out, "integer\t2\t0.0001\tfalse\ttrue\tx\tf32\tsoftmax+relu\t1+2\n")
end)

check.test("every type from the command line, - and _ alike", function()
  local r = run("--num-layers=3", "--lr=1e-3", "--verbose", "--no-fast", "--name=a=b",
    "--dtype=f64", "--attention=relu", "--ks=7,8,9")
  check.equal(r.err, "")
  check.equal(r.out, "integer\t3\t0.001\ttrue\tfalse\ta=b\tf64\trelu\t7+8+9\n")
end)

check.test("a whole number may be written with an exponent", function()
  check.contains(run("--num_layers=0.9e1").out, "integer\t9")
end)

check.test("a wrong value is one sentence and exit 1", function()
  local cases = {
    ["--num_layer=3"] = "--num_layer: no such option (did you mean --num_layers?)",
    ["--zzzzzzzzzz=3"] = "--zzzzzzzzzz: no such option",
    ["--num_layers=two"] = "--num_layers: expected a whole number, got 'two'",
    ["--num_layers=2.5"] = "--num_layers: expected a whole number, got '2.5'",
    ["--num_layers="] = "--num_layers: expected a whole number, got ''",
    ["--num_layers=0"] = "--num_layers=0: must be at least 1",
    ["--num_layers=10"] = "--num_layers=10: must be at most 9",
    ["--num_layers"] = "--num_layers needs a value: write --num_layers=VALUE",
    ["--lr=nan"] = "--lr: expected a number, got 'nan'",
    ["--lr=0x10"] = "--lr: expected a number, got '0x10'",
    ["--verbose=maybe"] = "--verbose: expected true or false, got 'maybe'",
    ["--no-lr"] = "--no-lr: no such option",
    ["--lr=1e999"] = "--lr: expected a number, got '1e999'",
    ["--dtype=f46"] = "--dtype=f46: must be f32 or f64 (did you mean f64?)",
    ["--attention=a,,b"] = "--attention=a,,b: an empty item in the list",
    ["--ks=1,x"] = "--ks: expected a list, each a whole number, got '1,x'",
    ["stray"] = "unexpected argument 'stray': options are --key=VALUE",
    ["--threads=-1"] = "--threads: expected a whole number from 0 (all) to 1024",
    ["--threads"] = "--threads needs a value",
    ["--out="] = "--out: expected a folder, got ''",
  }
  for argument, want in pairs(cases) do
    local r = run(argument)
    check.equal(r.code, 1, argument)
    check.equal(r.out, "", argument)
    check.contains(r.err, "sinklab: " .. want, argument)
  end
  check.contains(run("--lr=1", "--lr=2").err, "--lr is given twice")
end)

check.test("--help prints the header, types, defaults and choices", function()
  local r = run("--help")
  check.equal(r.code, 0)
  check.equal(r.err, "")
  for _, part in ipairs { "Prints its options.", "Used by a test.", "--num_layers=2",
    "layers (whole number, at least 1, at most 9)", "--attention=softmax,relu",
    "(list of text)", "--fast=true", "--no-fast is false", "precision (f32 or f64)",
    "--out=DIR" } do
    check.contains(r.out, part)
  end
end)

--- What a script that declares `text` says.
local function declared(text, ...)
  process.write(folder .. "/d.lua", 'local lab = require "sinklab"\n'
    .. "local opt = lab.options " .. text .. "\n")
  return process.run({ "run", "d.lua", ... }, { folder = folder })
end

check.test("a wrong declaration is blamed on its line", function()
  local cases = {
    ["{ out = 1 }"] = "--out belongs to sinklab itself",
    ["{ x = print }"] = "'x' cannot have a function as its default",
    ["{ x = { default = 1, mni = 2 } }"] =
      "'x' has no setting 'mni' (did you mean 'min'?)",
    ["{ x = { default = 1, doc = 2 } }"] = "'x': doc must be a string, got a number",
    ["{ x = { default = 1, min = 2 } }"] = "the default of 'x' must be at least 2",
    ["{ x = { min = 2 } }"] = "'x' has no default; a default with its meaning is",
    ["{ x = { 'rotary', doc = 'positions' } }"] = "'x' has names and a value without a "
      .. "name; a default with its meaning is { default = VALUE, doc = \"...\" }",
    ["{ x = { 1, nil, 3, nil } }"] = "the list of 'x' must be a list of numbers or",
    ["{ x = { 1000, 'steps' } }"] =
      "the list of 'x' mixes numbers and strings; a default "
      .. "with its meaning is { default = VALUE, doc = \"...\" }",
    ["{ x = { true, 'switch' } }"] = "the list of 'x' may hold numbers or strings, not a "
      .. "boolean; a default with its meaning is",
    ["{ x = { { 1, 2 }, 'doc' } }"] =
      "may hold numbers or strings, not a table; a default "
      .. "with its meaning is { default = VALUE, doc = \"...\" }",
    ["{ x = { default = { 1, 2 }, min = 2 } }"] = "the default of 'x' must be at least 2",
    ["{ x = { default = { 1, 'a' }, doc = 'doc' } }"] =
      "the list of 'x' mixes numbers and strings",
    ["{ 1 }"] = "'1' is no name for an option",
    ["'x'"] = "lab.options: the defaults must be a table, got 'x'",
    ["{ seed = 0 }\nprint(opt.sed)"] = "no option 'sed' was declared "
      .. "(did you mean 'seed'?)",
    ["{ seed = 0 }\nopt.sed = 1"] = "no option 'sed' was declared",
    ["{ seed = 0 }\nlab.options {}"] = "a script has one table of options",
  }
  for text, want in pairs(cases) do
    local r = declared(text)
    check.equal(r.code, 1, text)
    check.contains(r.err, want, text)
    local line = text:find "\n" and 3 or 2
    check.contains(r.err, ("sinklab: d.lua:%d: "):format(line), text)
  end
end)

check.test("of a list the item that is wrong is named", function()
  local r = declared("{ x = { default = { 'a', 'b' }, choices = { 'a', 'b' } } }",
    "--x=a,c")
  check.equal({ r.code, r.err }, { 1, "sinklab: --x: 'c' must be a or b\n" })
end)

check.test("options for a script that has none", function()
  process.write(folder .. "/n.lua", 'print "ran"')
  local r = process.run({ "run", "n", "--x=1" }, { folder = folder })
  check.equal(r.code, 1)
  check.contains(r.err, "--x: this script has no options of its own")
  r = process.run({ "run", "n", "--help" }, { folder = folder })
  check.equal(r.code, 0)
  check.contains(r.out, "It has no options of its own.")
  check.equal(r.out:find("ran\n", 1, true), nil)
end)

check.test("--quick changes defaults; what is given wins", function()
  process.write(folder .. "/q.lua", [[
    local lab = require "sinklab"
    local opt = lab.options { seeds = { default = 3, quick = 1, min = 1 },
      names = { default = { "a", "b", "c" }, quick = { "a" } }, lr = 0.5,
      quick = { default = false, doc = "less" } }
    lab.run()
    print(opt.seeds, table.concat(opt.names, "+"), opt.lr)]])
  local function go(...)
    local r = process.run({ "run", "q", "--out=o", "--quiet", ... }, { folder = folder })
    check.equal(r.code, 0, r.err)
    return r.out
  end
  check.equal(go(), "3\ta+b+c\t0.5\n")
  check.equal(go "--quick", "1\ta\t0.5\n")
  check.equal(go("--quick", "--seeds=2"), "2\ta\t0.5\n")
  local record = process.read(folder .. "/o/run.json")
  check.contains(record, '"seeds": 2')
  check.contains(record, '"names": ["a"]')
  check.contains(process.run({ "run", "q", "--help" }, { folder = folder }).out,
    "with --quick 1")
  for source, part in pairs { ["{ n = { default = 3, quick = 'x' } }"] =
    "the quick value of 'n' must be a whole number",
    ["{ n = { default = 3, quick = 0, min = 1 } }"] =
      "the quick value of 'n' must be at least",
    ["{ n = { default = { 1 }, quick = 2 } }"] = "must be a list, each a whole" } do
    process.write(folder .. "/w.lua", "require 'sinklab'.options " .. source)
    check.contains(process.run({ "run", "w" }, { folder = folder }).err, part)
  end
end)

check.done()
