--- schema.lua - a public function declared together with its description.
--
-- Name, types, ranges, defaults, units and meaning are data beside the function. The
-- check of its arguments, ?help, completion, the reference and the man page read them.
--
-- How a function is declared:
--
--   plot.mean_and_std = schema.func("lab.plot.mean_and_std", {
--     doc = [[The first sentence is the summary. More follows.
--
--     Another paragraph; lines indented by two more blanks keep their line breaks.]],
--     args = { { "sinks", "table", doc = "from lab.sinks, with maps" } },
--     options = {
--       { "layer", "integer", min = 1, default = 1, doc = "of the head" },
--       { "title", "string", doc = "above the figure" },
--     },
--     returns = "panel of the mean, panel of the standard deviation",
--     errors = "sinks without maps",          -- these three are
--     source = "Gu et al. 2025",              -- left out where there
--     example = [[print(1)]],                 -- is nothing to say; an example is needed
--   }, function(sinks, o) ... end)            -- o: a new table, checked and filled
--
-- Positional arguments come first, the table of options last; args or options may be
-- left out. A method is declared as "CLASS:NAME" and its function takes `self` first:
-- methods.batch = schema.func("task:batch", { ... }, function(self, o) ... end).
-- A callable table passes the declared function as the field __doc of its metatable.
--
-- A row is { name, kinds, ... }; `kinds` is one or more kinds of check.lua, separated by
-- blanks ("integer table"; "any" is not checked). Its fields:
--   doc          meaning
--   default      the value where none is given; nil: the option stays nil
--   default_doc  the default in words, where it is computed: "the task's d_model"
--   required     of an option: true, or the missing thing in words. Positional
--                arguments are required unless they have a default or optional = true
--   min, max, above and below (both excluded), choices (of a string), unit ("steps");
--                nan: NaN may be
--   list         of a table: a list, of "numbers"; of: the kind of each element
--   fields       rows of a nested table, which is checked and filled in the same way
--   keys         rows of a nested table that the function itself checks, for help alone
-- A list of rows is plain data: schema.join (rows, more) and schema.pick (rows, "a", "b")
-- make lists that share rows. schema.rules (rows) gives the rules of check.options.
--
-- A function of the C half is declared in sinklab/core_api/ without a Lua function:
-- schema.core("lab.rope", { ... }). With `options` it becomes a Lua function that checks
-- them; with `unchecked = true`, or without options, it is the C function itself.
local core = require "sinklab.core"
local check = require "sinklab.base.check"

local schema = {}

-- Public name -> entry; function -> entry.
local named, by_function = {}, setmetatable({}, { __mode = "k" })

--- A row as a rule of check.lua, which also has its name.
local function rule_of(row)
  local rule = {}
  for key, value in pairs(row) do rule[key] = value end
  rule.name, rule[1], rule[2] = row[1], row[2], nil
  rule.fields = row.fields and schema.rules(row.fields)
  rule.keys = row.keys and schema.rules(row.keys)
  return rule
end

--- The rules of a list of rows: name -> rule, and in their order at 1, 2, ...
function schema.rules(rows)
  local rules = {}
  for i, row in ipairs(rows) do
    local rule = rule_of(row)
    rules[i] = rule
    if rule.name ~= "..." then rules[rule.name] = rule end
  end
  return rules
end

--- One list of the rows of several lists.
function schema.join(...)
  local out = {}
  for _, rows in ipairs { ... } do table.move(rows, 1, #rows, #out + 1, out) end
  return out
end

--- The rows of these names; without names, all.
function schema.pick(rows, ...)
  local out = {}
  for _, name in ipairs { ... } do
    for _, row in ipairs(rows) do
      if row[1] == name then out[#out + 1] = row end
    end
  end
  return out
end

--- The entry of a public name, "lab.train" or "task:batch", or of a function; or nil.
function schema.entry(of) return named[of] or by_function[of] end

--- Every entry by its public name.
function schema.entries() return named end

--- The module in which the caller of the library's function at this level is.
local function module_at(level)
  return debug.getinfo(level + 1, "S").source:match "^@<sinklab>/(.*)%.lua$"
end

--- An entry has the fields of its spec; args and options as rules, made when they are
-- first read, so that a declaration costs little.
local Entry = {}

function Entry.__index(entry, key)
  local value = entry.spec[key]
  if key == "args" or key == "options" and value then
    value = schema.rules(value or {})
    rawset(entry, key, value)
  end
  return value
end

-- A call that is no tail call keeps the named function on the stack, where errors
-- look for it.
local function through(...) return ... end

--- The function with its arguments checked.
local function checked(entry, f)
  local first, class = entry.method and 1 or 0, entry.name:match "^(.*):"
  return function(...)
    local given, args, options = table.pack(...), entry.args, entry.options
    if class then check.object(entry.name, given[1], class) end
    local what, last = entry.what, first + #args
    if type(what) == "function" then what = what(given[1]) end
    for i, rule in ipairs(args) do
      given[first + i] = check.positional(what, given[first + i], rule)
    end
    if options then
      last = last + 1
      given[last] = check.options(what, given[last], entry.more and entry.more(given[1])
        or options)
    end
    return through(f(table.unpack(given, 1, math.max(last, given.n))))
  end
end

local function declare(name, spec, f, module)
  local entry = setmetatable({ name = name, module = module, code = f, spec = spec,
    method = name:find(":", 1, true) ~= nil,
    -- A class inside a part of the library is named without the part in messages.
    what = spec.what or name:gsub("^%l+%.(.*:)", "%1") }, Entry)
  named[name] = entry
  return entry
end

--- Every error that leaves the function begins with the entry's name (lua_common.c).
local function name_function(f, entry)
  by_function[f] = entry
  core.name(f, entry.name)
end

--- Declare a public function.
-- @param name  "lab.plot.heat", or "task:batch" for a method
--     spec.what: of a method, its name in messages, as function (self)
--     spec.more: of a method, function (self) that gives the rules of its options, for an
--     object that adds some; a row named "..." in `options` describes them
-- @return the function that checks its arguments and calls `f`
function schema.func(name, spec, f)
  local entry = declare(name, spec, f, module_at(2))
  local out = checked(entry, f)
  name_function(out, entry)
  return out
end

--- Declare a function of the C half, a method of its objects or a value.
-- @param f  the function or value, default the one of core with that name
-- @param module  where it is declared, default the caller's
function schema.core(name, spec, f, module)
  local entry = declare(name, spec, nil, module or module_at(2))
  if entry.method then return end
  f = f or core[name:match "([%w_]+)$"]
  entry.is_value = type(f) ~= "function"
  if spec.options and not spec.unchecked then f = checked(entry, f) end
  if type(f) == "function" then name_function(f, entry) end
  return f
end

--- The same, with the common fields of the spec as arguments.
-- @param more  the spec's other fields, or nil
function schema.describe(name, doc, args, returns, example, more, f)
  local spec = { doc = doc, args = args, returns = returns, example = example }
  for key, value in pairs(more or {}) do spec[key] = value end
  return schema.core(name, spec, f, module_at(2))
end

return schema
