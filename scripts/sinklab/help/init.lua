--- help.lua - everything public by name, and what its doc comment says.
--
-- What `lab` leads to is found by walking it. A function is declared with its schema
-- (base/schema.lua), or has a doc comment right above its definition; methods are
-- declared as "CLASS:NAME". A table that is called documents itself by the field __doc
-- of its metatable, the function that the call runs.
local core = require "sinklab.core"
local declared = require "sinklab.help.declared"
local doc = require "sinklab.help.doc"
local schema = require "sinklab.base.schema"

local help = {}

-- Classes that no script gets hold of.
local internal = { params = true }

-- Objects of the C half that have methods.
local c_classes = { "tensor", "generator", "program", "replica", "mechanism", "figure" }

local files = {}

--- The doc comments of a file of the library, read once.
local function file(name)
  if files[name] == nil then
    local read = doc.file(("%s/sinklab/%s.lua"):format(core.scripts, name))
    if read then
      read.name, read.by_line, read.by_name = name, {}, {}
      for _, entry in ipairs(read.entries) do
        entry.file = read
        read.by_line[entry.line] = entry
        read.by_name[entry.name] = entry
      end
    end
    files[name] = read or false
  end
  return files[name] or nil
end

--- The doc comment of a Lua function of the library.
local function of_function(f)
  local info = debug.getinfo(f, "S")
  local name = info.source:match "^@<sinklab>/(.*)%.lua$"
  local f_file = name and file(name)
  return f_file and f_file.by_line[info.linedefined]
end

--- A function that another one made is documented where it gets its name:
-- optim.adam = maker (...).
local function of_name(name, f)
  local short = name:match "([^.]+%.[^.]+)$"
  local made_in = debug.getinfo(f, "S").source:match "^@<sinklab>/(.*)%.lua$"
  return made_in and file(made_in).by_name[short]
end

local function of_schema(entry) return declared.entry(entry, file(entry.module)) end

local function of_value(name, value)
  if type(value) == "table" then
    local meta = getmetatable(value)
    if meta and meta.__doc then value = meta.__doc end
  end
  local known = schema.entry(name) or type(value) == "function" and schema.entry(value)
  if known then return of_schema(known) end
  if type(value) ~= "function" then return nil end
  return of_function(value) or of_name(name, value)
end

local index

--- A copy of an entry under its public name.
local function add(list, name, entry, value)
  local out = { name = name, value = value }
  for key, v in pairs(entry or {}) do if key ~= "name" then out[key] = v end end
  out.documented = entry ~= nil
  list[#list + 1], list[name] = out, out
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
      add(list, whole, of_value(whole, value), value)
    end
    if type(value) == "table" and depth < 3 then
      walk(list, whole .. ".", value, depth + 1)
    end
  end
end

--- Methods of a Lua file's objects: "function methods:NAME", documented or not.
local function lua_methods(f)
  local found = {}
  for i, line in ipairs(f.lines) do
    local method = line:match "^function methods[:.]([%w_]+)"
    if method then found[#found + 1] = { method, f.by_line[i] or false } end
  end
  return found
end

--- The files of a folder of the library and of those below it: "lm/open".
local function library_files(folder, names)
  for _, name in ipairs(core.folder(core.scripts .. "/sinklab/" .. folder)) do
    local stem = name:match "^(.*)%.lua$"
    if stem then
      names[#names + 1] = folder .. stem
    elseif core.folder_exists(core.scripts .. "/sinklab/" .. folder .. name) then
      library_files(folder .. name .. "/", names)
    end
  end
  return names
end

--- The classes of the Lua half: a file that has methods and __name = "sinklab.CLASS".
local function lua_classes()
  local found, names = {}, library_files("", {})
  table.sort(names)
  for _, name in ipairs(names) do
    local f = file(name)
    for _, line in ipairs(f and f.lines or {}) do
      local class = line:match '__name = "sinklab%.([%w_.]+)"'
      if class and not internal[class] then
        found[#found + 1] = { class, lua_methods(f) }
      end
    end
  end
  return found
end

local function add_methods(list)
  local classes = lua_classes()
  for i, class in ipairs(c_classes) do
    table.insert(classes, i, { class, {} })
  end
  local known = {}
  for _, class in ipairs(classes) do known[class[1]] = class[2] end
  for name, entry in pairs(schema.entries()) do
    local class, method = name:match "^([%w_.]+):([%w_]+)$"
    if class then
      assert(known[class], class)
      table.insert(known[class], { method, of_schema(entry) })
    end
  end
  for _, class in ipairs(classes) do
    table.sort(class[2], function(a, b) return a[1] < b[1] end)
    for _, pair in ipairs(class[2]) do
      add(list, class[1] .. ":" .. pair[1], pair[2] or nil)
    end
    list.classes[#list.classes + 1] = class[1]
  end
end

--- Every public name: a list of entries { name, documented, summary, ... } that is
-- also indexed by name; `classes` are those of objects with methods.
function help.index()
  if not index then
    require "sinklab.core_api.figure" -- methods only: no name of lab leads there
    index = { classes = {} }
    walk(index, "lab.", require "sinklab", 1)
    add_methods(index)
  end
  return index
end

--- The options that a text names in braces, "{ max_abs_error = ..., loss = ..., quiet }",
-- and behind them those "of lab.sinks: maps, keep".
-- @return list of { name, what it means }
function help.in_braces(said)
  local out, depth, from = {}, 0, 2
  local body = said:match "%b{}" or ""
  for i = 2, #body do
    local c = body:sub(i, i)
    if c == "{" or c == "(" then depth = depth + 1 end
    if depth == 0 and (c == "," or c == "}") then
      local item = body:sub(from, i - 1)
      local name, more = item:match "^%s*([%a_][%w_]*)%s*[=:]%s*(.*)$"
      name = name or item:match "^%s*([%a_][%w_]*)%s*$"
      if name then out[#out + 1] = { name, more or "" } end
      from = i + 1
    end
    if c == ")" or c == "}" then depth = depth - 1 end
  end
  local other, names = said:match "of (lab%.[%w_.]*%w): ([%w_, \n]+)"
  for name in (names or ""):gmatch "[%a_][%w_]*" do
    local text = ""
    for _, o in ipairs(help.options(help.index()[other] or {})) do
      if o[1] == name then text = o[2] end
    end
    out[#out + 1] = { name, text }
  end
  return out
end

--- The options inside an option that is a table, as help.options gives them.
function help.fields(rule)
  local out = {}
  for i, field in ipairs(rule.fields or rule.keys or {}) do
    out[i] = { field.name, declared.meaning(field, true), field }
  end
  return out
end

local function append(list, more) table.move(more, 1, #more, #list + 1, list) end

--- The options of an entry: its parameters that are not among the function's own
-- arguments, in their order, and those of the function that "given" or "..." is
-- documented by: "@param given  as lab.task.trigger_mean", or what their text names in
-- braces: "@param given  { layers = 2, seed = 0 }".
-- @return list of { name, what it means, its rule where a schema has it }
function help.options(entry)
  local own, out = {}, {}
  if entry.schema then
    for _, p in ipairs(entry.params) do
      if p.rule then out[#out + 1] = { p.names, p.text, p.rule } end
    end
    return out
  end
  for name in (entry.arguments or ""):gmatch "[%w_]+" do own[name] = true end
  for _, p in ipairs(entry.params or {}) do
    local whole = p.names == "given" or p.names == "options"
    if whole then append(out, help.in_braces(p.text)) end
    local other = (whole or p.names == "...")
        and p.text:gsub("^as for ", "as "):match "^as (lab%.[%w_.]*%w)"
    if other and help.index()[other] and other ~= entry.name then
      append(out, help.options(help.index()[other]))
    end
    for name in p.names:gmatch "[%w_]+" do
      if not own[name] then out[#out + 1] = { name, p.text } end
    end
  end
  return out
end

--- How it is called: "lab.train(model, task, { options })".
function help.call(entry)
  if not entry.arguments then return entry.name end
  local out = {}
  local has_options = #help.options(entry) > 0
  for name in entry.arguments:gmatch "[%w_.]+" do
    local options = name == "given" or name == "options"
    out[#out + 1] = options and has_options and "{ options }" or name
  end
  if #out == 1 and out[1] == "{ options }" then return entry.name .. " { options }" end
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

--- The code of an entry, for ??name; nil for what is written in C.
function help.code(entry)
  local f = entry.file
  if not f or not entry.line then return nil end
  return doc.code(f, entry.line)
end

return help
