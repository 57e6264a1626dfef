-- test_help.lua - every public name is documented, every example runs, every option of
-- a function is in its doc comment; and how doc comments are read.
local check = require "check"
local process = require "process"
local core = require "sinklab.core"
local doc = require "sinklab.help.doc"
local help = require "sinklab.help"
local lab = require "sinklab"
local contexts = require "sinklab.cli.context"
local options = require "sinklab.base.check"
local schema = require "sinklab.base.schema"


-- What a doc comment says.

local function comment(text)
  local lines = {}
  for line in text:gmatch "[^\n]+" do lines[#lines + 1] = line end
  return doc.comment(lines)
end

check.test("sentences, paragraphs, tags", function()
  local d = comment [[
--- Softmax of x, e.g. of scores (see Fig. 2 of the paper). It sums to one.
-- More of this.
--
-- Another paragraph:
--   kept as
--   it is
-- @param x, y   tensors of
--               one shape
-- @param axis   default the last
-- @param title
-- @return tensor
-- @error no axis
-- @source Bridle 1990
-- @example
--   print(1)
--
--   if x then
--     print(2)
--   end
-- after]]
  check.equal(d.summary, "Softmax of x, e.g. of scores (see Fig. 2 of the paper).")
  check.equal(d.paragraphs, { { text = "It sums to one. More of this." },
    { text = "Another paragraph:" }, { text = "kept as\nit is", block = true },
    { text = "after" } })
  check.equal(d.params, { { names = "x, y", text = "tensors of one shape" },
    { names = "axis", text = "default the last" }, { names = "title", text = "" } })
  check.equal({ d["return"], d.error, d.source }, { "tensor", "no axis", "Bridle 1990" })
  check.equal(d.example, "print(1)\n\nif x then\n  print(2)\nend")
end)

check.test("a file: its title, what is documented, its code", function()
  local folder = process.folder "help-file"
  local path = process.write(folder .. "/f.lua", [[
--- f.lua - what it is for.
--
-- And more.
local f = {}

--- Plain.
-- @param a  x
function f.plain(a)
  if a then
    return 1
  end
end

--- Made.
f.made = maker "x"

--- Nothing follows.

return f
]])
  local read = doc.file(path)
  check.equal({ read.title, read.paragraphs[1].text }, { "what it is for.", "And more." })
  local names = {}
  for i, e in ipairs(read.entries) do names[i] = e.name .. ":" .. e.line end
  check.equal(names, { "f.plain:8", "f.made:15" })
  check.equal({ read.entries[1].arguments, read.entries[2].arguments }, { "a" })
  check.equal(doc.code(read, 8),
    "function f.plain(a)\n  if a then\n    return 1\n  end\nend")
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
    if not entry.documented then
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
      if not (entry and entry.documented) then
        error(("%s:%s has no doc comment"):format(class, name), 0)
      end
    end
  end
end)

check.test("a schema is of something that is there, and stands for it alone", function()
  local known = help.index()
  for name, entry in pairs(schema.entries()) do
    if not known[name] then error(name .. " is not public", 0) end
    check.equal(known[name].schema == entry, true, name)
    local read = doc.file(("%s/sinklab/%s.lua"):format(core.scripts, entry.module))
    for _, comment in ipairs(read.entries) do
      if comment.line == known[name].line then error(name .. " has a doc comment", 0) end
    end
  end
  -- The arguments of a doc comment are the names of the signature, or options.
  for _, entry in ipairs(known) do
    local own = " " .. (entry.arguments or ""):gsub("[%s,]+", " ") .. " "
    local takes_options = own:find " options " or own:find " given "
        or entry.arguments == nil or own:find "..."
    local first = help.options(entry)[1]
    if first and not takes_options then
      error(("%s: no argument '%s'"):format(entry.name, first[1]), 0)
    end
  end
end)

-- Options that the library was asked to read while the examples ran: by the function
-- as messages call it, its keys.
local read_options = {}
local read = options.options
function options.options(what, given, rules)
  read_options[what] = read_options[what] or {}
  for key in pairs(rules) do
    if type(key) == "string" then read_options[what][key] = true end
  end
  return read(what, given, rules)
end

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

check.test("every option is in the doc comment", function()
  local missing, seen = {}, 0
  for what, keys in pairs(read_options) do
    -- model:forward is that of lab.model and that of lab.lm.open.
    local entry, documented = nil, {}
    for _, candidate in ipairs(help.index()) do
      if candidate.name == what or candidate.name:match "^%l+%.(%l+:.*)$" == what then
        entry = candidate
        for _, o in ipairs(help.options(entry)) do documented[o[1]] = true end
      end
    end
    for key in pairs(entry and keys or {}) do
      seen = seen + 1
      if not documented[key] then missing[#missing + 1] = what .. ": " .. key end
    end
  end
  table.sort(missing)
  check.equal(table.concat(missing, ", "), "")
  check.equal(seen > 80, true)
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
