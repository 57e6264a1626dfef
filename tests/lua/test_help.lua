-- test_help.lua - every public name is described, every example runs; how the texts of
-- schemas are read.
local check = require "check"
local process = require "process"
local core = require "sinklab.core"
local doc = require "sinklab.help.doc"
local help = require "sinklab.help"
local lab = require "sinklab"
local contexts = require "sinklab.cli.context"
local schema = require "sinklab.base.schema"


-- What is read of a schema's texts and of files.

check.test("sentences and paragraphs, without the indentation of the file", function()
  local summary, paragraphs = doc.text [[Softmax of x, e.g. of scores (see Fig. 2 of the
    paper). It sums to one.
    More of this.

    Another paragraph:
      kept as
      it is

    after]]
  check.equal(summary, "Softmax of x, e.g. of scores (see Fig. 2 of the paper).")
  check.equal(paragraphs, { { text = "It sums to one. More of this." },
    { text = "Another paragraph:" }, { text = "kept as\nit is", block = true },
    { text = "after" } })
  check.equal(doc.code_text "\n    print(1)\n\n    if x then\n      print(2)\n    end",
    "\nprint(1)\n\nif x then\n  print(2)\nend")
end)

check.test("a file: its title, the code of a function", function()
  local folder = process.folder "help-file"
  local path = process.write(folder .. "/f.lua", [[
--- f.lua - what it is for.
--
-- And more.
local f = {}

f.plain = func("f.plain", { doc = "Plain." }, function(a)
  if a then
    return 1
  end
end)

return f
]])
  local read = doc.file(path)
  check.equal({ read.title, read.paragraphs[1].text }, { "what it is for.", "And more." })
  check.equal(doc.code(read, 6), "f.plain = func(\"f.plain\", { doc = \"Plain.\" }, "
    .. "function(a)\n  if a then\n    return 1\n  end\nend)")
  local none, why = doc.file(folder .. "/none.lua")
  check.equal(none, nil)
  check.contains(why, "none.lua")
end)

-- The library.

check.test("every public name is described, with an example", function()
  local missing = {}
  for _, entry in ipairs(help.index()) do
    local value = type(entry.value)
    local is_value = value ~= "function" and value ~= "table" and value ~= "nil"
    if not entry.schema then
      missing[#missing + 1] = entry.name
    elseif entry.summary == "" then
      missing[#missing + 1] = entry.name .. " (no sentence)"
    elseif not entry.example then
      missing[#missing + 1] = entry.name .. " (no example)"
    elseif not is_value and not entry["return"]
        and not entry.name:match "^run:" then
      missing[#missing + 1] = entry.name .. " (no returns)"
    end
  end
  check.equal(table.concat(missing, ", "), "")
  check.equal(#help.index() > 150, true)
end)

--- Everything that objects of the C half answer to.
local function methods_of(object)
  local meta, names = debug.getmetatable(object), {}
  local from = meta.methods or meta.__index
  if type(from) == "function" then from = debug.getuservalue(object, 1) end
  for name, value in pairs(from) do
    if type(value) == "function" then names[#names + 1] = name end
  end
  table.sort(names)
  return names
end

check.test("so has every method of the C half", function()
  local program, y = lab.record(function() return lab.ones({ 2 }) * 2 end)
  local objects = { tensor = y, generator = lab.generator(0), program = program,
    replica = program:replica(), mechanism = lab.mechanism "relu",
    figure = lab.plot.heat { { 1 } } }
  for class, object in pairs(objects) do
    local names = methods_of(object)
    check.equal(#names > 0, true, class)
    check.equal(help.class_of(object), class)
    for _, name in ipairs(names) do
      local entry = help.find(class .. ":" .. name)
      if not (entry and entry.schema) then
        error(("%s:%s has no schema"):format(class, name), 0)
      end
    end
  end
end)

check.test("a schema is of something that is there", function()
  local known = help.index()
  for name, entry in pairs(schema.entries()) do
    if not known[name] then error(name .. " is not public", 0) end
    check.equal(known[name].schema == entry, true, name)
  end
end)

--- An example as a script would run it, its output thrown away; nil, or what it raised.
local function run(entry)
  local program, print_it, write_it = contexts.enter { arguments = {} }, print, io.write
  local f, message = load('local lab = require "sinklab" ' .. entry.example,
    "=" .. entry.name, "t")
  local ok = false
  function _G.print(...)
    for i = 1, select("#", ...) do tostring((select(i, ...))) end
  end
  function io.write() end
  if f then ok, message = pcall(f) end
  contexts.enter(program)
  _G.print, io.write = print_it, write_it
  return not ok and ("the example of %s: %s"):format(entry.name, message) or nil
end

check.test("every example runs", function()
  local slowest, name, failed = 0, nil, {}
  for _, entry in ipairs(help.index()) do
    if entry.example then
      local start = os.clock()
      failed[#failed + 1] = run(entry)
      local took = os.clock() - start
      if took > slowest then slowest, name = took, entry.name end
    end
  end
  check.equal(table.concat(failed, "\n"), "")
  print(("the slowest example took %.2f s: %s"):format(slowest, name))
end)

check.test("wrong use of any function is told in a sentence", function()
  local program, write_it = contexts.enter { arguments = {} }, io.write
  function io.write() end
  local raw = {}
  for _, entry in ipairs(help.index()) do
    local f = entry.value
    if type(f) == "function" or type(f) == "table" then
      for _, arguments in ipairs { {}, { 5 }, { "x" }, { {} }, { { 1 } },
        { true, true }, { {}, 5 }, { "x", {} } } do
        local ok, message = pcall(function() f(table.unpack(arguments)) end)
        message = tostring(message)
        if not ok and message:find "attempt to" then
          raw[#raw + 1] = entry.name .. ": " .. message
          break
        end
      end
    end
  end
  contexts.enter(program)
  io.write = write_it
  check.equal(table.concat(raw, "\n"), "")
end)

check.test("every plugin and each of its options says what it is", function()
  for _, p in ipairs(core.plugins()) do
    local d = core.plugin(p.path)
    check.equal(d.doc:match "%S+ %S+" ~= nil, true, p.name)
    for _, o in ipairs(d.options) do
      check.equal(o.doc ~= "", true, p.name .. "." .. o.name)
    end
  end
end)

check.test("names as they are typed", function()
  local globals = { x = lab.zeros(2), m = lab.model.attention_only {
    task = lab.task.trigger_mean {} }, f = lab.train, n = 5 }
  local cases = { train = "lab.train", ["lab.train"] = "lab.train",
    ["plot.heat"] = "lab.plot.heat", ["x:get"] = "tensor:get",
    ["x.get"] = "tensor:get", ["x:softmax"] = "lab.softmax", f = "lab.train",
    ["m:forward"] = "model:forward", ["tensor:sum"] = "lab.sum",
    ["task:batch"] = "task:batch" }
  for typed, want in pairs(cases) do
    local entry = help.find(typed, globals)
    check.equal(entry and entry.name, want, typed)
  end
  for _, typed in ipairs { "n", "nothing", "x:nothing", "", "1 +" } do
    check.equal(help.find(typed, globals), nil, typed)
  end
end)

check.test("how they are called, and their options", function()
  local cases = { ["lab.train"] = "lab.train(model, task, { options })",
    ["lab.model.transformer"] = "lab.model.transformer { options }",
    ["lab.sum"] = "lab.sum(x, axes, { options })", ["tensor:get"] = "tensor:get(...)",
    ["lab.version"] = "lab.version" }
  for name, want in pairs(cases) do check.equal(help.call(help.find(name)), want) end
  local keep = help.options(help.find "lab.sum")[1]
  check.equal({ { keep[1], keep[2] } },
    { { "keep", "reduced axes stay, with size 1 (true or false), default false" } })
  local kinds = help.options(help.find "lab.task.trigger_max")
  check.equal(kinds[1][1], "d_model") -- as lab.task.trigger_mean
end)

check.done()
