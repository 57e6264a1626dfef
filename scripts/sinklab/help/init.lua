--- help.lua - everything public by name, and its description.
--
-- Names are found by walking `lab`, and the methods of objects among the schemas
-- (base/schema.lua). A table that is called has the field __doc in its metatable, the
-- function that the call runs.
local core = require "sinklab.core"
local declared = require "sinklab.help.declared"
local doc = require "sinklab.help.doc"
local schema = require "sinklab.base.schema"

local help = {}

local files = {}

--- A file of the library by its module, read once.
local function file(name)
  if not files[name] then
    files[name] = doc.file(("%s/sinklab/%s.lua"):format(core.scripts, name))
    files[name].name = name
  end
  return files[name]
end

--- Add the entry of a public name; without a schema it says nothing.
local function add(list, name, known, value)
  local entry = known and declared.entry(known, file(known.module)) or {}
  entry.name, entry.value = name, value
  list[#list + 1], list[name] = entry, entry
end

local function walk(list, prefix, t, depth)
  local names = {}
  for name in pairs(t) do
    if type(name) == "string" and name:match "^[%a_]" then names[#names + 1] = name end
  end
  table.sort(names)
  for _, name in ipairs(names) do
    local value, whole = t[name], prefix .. name
    local meta = getmetatable(value)
    local called = type(value) == "table" and meta and meta.__call
    if type(value) ~= "table" or called then
      add(list, whole, schema.entry(whole) or schema.entry(meta and meta.__doc or value),
        value)
    end
    if type(value) == "table" and depth < 3 then
      walk(list, whole .. ".", value, depth + 1)
    end
  end
end

local index

--- Every public name: a list of entries { name, summary, ... } (declared.lua) that is
-- also indexed by name.
function help.index()
  if index then return index end
  require "sinklab.core_api.figure" -- methods only: no name of lab leads there
  index = {}
  walk(index, "lab.", require "sinklab", 1)
  local methods = {}
  for name in pairs(schema.entries()) do
    if name:find(":", 1, true) then methods[#methods + 1] = name end
  end
  table.sort(methods)
  for _, name in ipairs(methods) do add(index, name, schema.entry(name)) end
  return index
end

--- The options inside an option that is a table, as help.options gives them.
function help.fields(rule)
  local out = {}
  for i, field in ipairs(rule.fields or rule.keys or {}) do
    out[i] = { field.name, declared.meaning(field, true), field }
  end
  return out
end

--- The options of an entry.
-- @return list of { name, meaning, rule }
function help.options(entry)
  local out = {}
  for _, p in ipairs(entry.params or {}) do
    if p.rule then out[#out + 1] = { p.names, p.text, p.rule } end
  end
  return out
end

--- How it is called: "lab.train(model, task, { options })".
function help.call(entry)
  local known = entry.schema
  if not known or known.is_value then return entry.name end
  local out = {}
  for i, rule in ipairs(known.args) do out[i] = rule.name end
  if known.options and #out == 0 then return entry.name .. " { options }" end
  if known.options then out[#out + 1] = "{ options }" end
  return entry.name .. "(" .. table.concat(out, ", ") .. ")"
end

--- The class of an object, from the name of its metatable; or nil.
function help.class_of(value)
  local meta = debug.getmetatable(value)
  local name = type(meta) == "table" and type(value) ~= "string" and meta.__name
  return type(name) == "string" and name:match "^sinklab%.([%w_.]+)$" or nil
end

--- The entry of a name as a person types it: lab.train, train, tensor:sum, x:sum where
-- x is a variable, x where it holds a function of the library; or nil.
-- @param globals  where variables are looked up
function help.find(name, globals)
  local list = help.index()
  if list[name] then return list[name] end
  if list["lab." .. name] then return list["lab." .. name] end
  local object, method = name:match "^([%w_.]+)[:.]([%w_]+)$"
  if object then
    local value = globals and rawget(globals, object)
    local class = value ~= nil and help.class_of(value) or object
    local entry = list[class .. ":" .. method]
    if not entry and class == "tensor" then entry = list["lab." .. method] end
    if entry then return entry end
  end
  local value = globals and rawget(globals, name)
  for _, entry in ipairs(value ~= nil and list or {}) do
    if rawequal(entry.value, value) then return entry end
  end
end

--- Entries that have a word in their name, summary, text, parameters or source.
function help.search(word)
  local out = {}
  word = word:lower()
  for _, entry in ipairs(help.index()) do
    local said = { entry.name, entry.summary or "", entry["return"] or "",
      entry.source or "" }
    for _, p in ipairs(entry.paragraphs or {}) do said[#said + 1] = p.text end
    for _, p in ipairs(entry.params or {}) do
      said[#said + 1] = p.names .. " " .. p.text
    end
    if table.concat(said, "\n"):lower():find(word, 1, true) then
      out[#out + 1] = entry
    end
  end
  return out
end

--- Every name that can be asked for, for suggestions: also without "lab.".
function help.names()
  local out = {}
  for _, entry in ipairs(help.index()) do
    out[#out + 1] = entry.name
    out[#out + 1] = entry.name:match "^lab%.(.*)$"
  end
  return out
end

--- The code of an entry, for ??name; nil for C functions.
function help.code(entry)
  local f = entry.file
  if not f or not entry.line then return nil end
  return doc.code(f, entry.line)
end

return help
