--- check.lua - options tables: known keys, types, ranges, defaults.
--
-- Every public function that takes a table of options reads it through
-- check.options, so that a misspelt key or a value of the wrong type is one
-- sentence at the caller's line and never a silent default.
local core = require "sinklab.core"

local check = {}

--- "a, b or c" from a list of texts.
function check.alternatives(list)
  if #list < 2 then return tostring(list[1]) end
  return table.concat(list, ", ", 1, #list - 1) .. " or " .. tostring(list[#list])
end

local alternatives = check.alternatives

--- Raise `message` (a format) at the line of the script that called the library.
function check.fail(message, ...)
  if select("#", ...) > 0 then message = message:format(...) end
  core.raise(message)
end

--- " (did you mean 'NAME'?)", or `otherwise` (default nothing) where no name is near.
-- @param form  how the name is written, default "'%s'"
function check.did_you_mean(word, names, otherwise, form)
  local near = core.nearest(tostring(word), names)
  if not near then return otherwise or "" end
  return (" (did you mean %s?)"):format((form or "'%s'"):format(near))
end

--- Raise that `name` is not among `names`, with the nearest one.
-- @param kind  of name, default "option"
function check.unknown(what, name, names, kind)
  table.sort(names)
  check.fail("%s: no such %s '%s'%s", what, kind or "option", tostring(name),
    check.did_you_mean(name, names,
      "; it takes " .. (#names > 0 and alternatives(names) or "none")))
end

local function is_tensor(value)
  return type(value) == "userdata" and core.is_tensor(value)
end

--- Whether a value is an object of the library, by the name of its metatable.
local function made_by(name)
  return function(value)
    local meta = type(value) ~= "string" and debug.getmetatable(value)
    return type(meta) == "table" and meta.__name == name
  end
end

--- The kinds a rule may name: the phrase of messages, and the test of a value.
local kinds = {
  number = { "a number", function(v) return type(v) == "number" end },
  integer = { "a whole number", function(v) return math.type(v) == "integer" end },
  boolean = { "true or false", function(v) return type(v) == "boolean" end },
  string = { "a string", function(v) return type(v) == "string" end },
  table = { "a table", function(v) return type(v) == "table" end },
  ["function"] = { "a function", function(v) return type(v) == "function" end },
  tensor = { "a tensor", is_tensor },
  task = { "a task made by lab.task", made_by "sinklab.task" },
  model = { "a model made by lab.model", made_by "sinklab.model" },
  language_model = { "a model from lab.lm.open", made_by "sinklab.language_model" },
  mechanism = { "a mechanism made by lab.mechanism", made_by "sinklab.mechanism" },
  weight = { "a weight of a file from lab.lm.file", made_by "sinklab.lm.weight" },
  figure = { "a figure of lab.plot", made_by "sinklab.figure" },
  generator = { "a generator made by lab.generator", made_by "sinklab.generator" },
  program = { "a program made by lab.record", made_by "sinklab.program" },
  any = { "a value", function() return true end },
}

--- Whether a rule may name this kind.
function check.is_kind(name) return kinds[name] ~= nil end

local function shown(value)
  if type(value) == "string" then return "'" .. value .. "'" end
  if type(value) == "number" or type(value) == "boolean" then
    return tostring(value)
  end
  return "a " .. (is_tensor(value) and "tensor" or type(value))
end

--- Raise unless a method was given an object of its class.
function check.object(what, value, class)
  if made_by("sinklab." .. class)(value) then return end
  check.fail("%s: expected a %s before the ':', got %s", what, class,
    value == nil and "nil" or shown(value))
end

--- Raise unless a table is a list: values at 1, 2, ... and at no other keys, which would
-- be ignored.
-- @param name  of the table in messages
-- @param of    the kind of its elements, plural
function check.list(what, name, list, of)
  local n = 0
  for _ in pairs(list) do n = n + 1 end
  if n ~= #list then
    check.fail("%s: %s must be a list of %s, without names and gaps", what, name, of)
  end
end

-- "string table" -> the kinds of these names, read once.
local read = {}

local function kinds_of(rule)
  local list = read[rule[1]]
  if not list then
    list = {}
    for name in rule[1]:gmatch "[%w_]+" do list[#list + 1] = kinds[name] end
    read[rule[1]] = list
  end
  return list
end

--- A rule's kinds in messages: "a string or a table".
local function expected(rule)
  local names = {}
  for i, kind in ipairs(kinds_of(rule)) do names[i] = kind[1] end
  return alternatives(names)
end

--- The limits of a rule's numbers, "at least 1 and at most 9"; nil without limits.
function check.limits(rule)
  local low = rule.above and "above " .. rule.above
      or rule.min and "at least " .. rule.min
  local high = rule.below and "below " .. rule.below
      or rule.max and "at most " .. rule.max
  return low and high and low .. " and " .. high or low or high
end

-- How messages call a value by its name.
local OPTION, ARGUMENT = "option '%s'", "the %s"

local function in_messages(form, name)
  return form:format(form == ARGUMENT and name:gsub("_", " ") or name)
end

local function refuse(what, form, name, message, ...)
  check.fail("%s: %s " .. message, what, in_messages(form, name), ...)
end

--- The value as the rule has it, or raise.
-- @param form  OPTION or ARGUMENT
local function one(what, form, name, value, rule)
  local found = false
  for _, kind in ipairs(kinds_of(rule)) do
    -- A float with a whole value is as good as an integer: 1e3 steps.
    if kind == kinds.integer and math.type(value) == "float" then
      value = math.tointeger(value) or value
    end
    found = found or kind[2](value)
  end
  if not found then
    refuse(what, form, name, "must be %s, got %s", expected(rule),
      value == nil and "nil" or shown(value))
  end
  if type(value) == "number" then
    if value ~= value and not rule.nan then refuse(what, form, name, "is NaN") end
    if (rule.min and value < rule.min) or (rule.max and value > rule.max)
        or (rule.above and value <= rule.above)
        or (rule.below and value >= rule.below) then
      refuse(what, form, name, "is %s; it must be %s", tostring(value),
        check.limits(rule))
    end
  elseif rule.choices and type(value) == "string" then
    for _, choice in ipairs(rule.choices) do
      if choice == value then return value end
    end
    refuse(what, form, name, "is '%s'; it must be %s%s", value,
      alternatives(rule.choices), check.did_you_mean(value, rule.choices))
  elseif rule.fields and type(value) == "table" then
    return check.options(what .. ": " .. name, value, rule.fields)
  elseif rule.list and type(value) == "table" then
    check.list(what, in_messages(form, name), value, rule.list)
    local of = rule.of and kinds[rule.of]
    for i = 1, of and #value or 0 do
      if not of[2](value[i]) then
        refuse(what, form, name, "must be a list of %s; element %d is %s", rule.list, i,
          shown(value[i]))
      end
    end
  end
  return value
end

--- A default; tables are copied, so that no caller changes them for the next.
local function default_of(what, rule, key)
  local value = rule.default
  if type(value) ~= "table" then return value end
  if rule.fields then return one(what, OPTION, key, value, rule) end
  local copy = {}
  for k, v in pairs(value) do copy[k] = v end
  return copy
end

--- A positional argument as its rule has it, or raise.
function check.positional(what, value, rule)
  if value == nil and (rule.optional or rule.default ~= nil) then
    return default_of(what, rule, rule.name)
  end
  if rule[1] == "any" then return value end
  return one(what, ARGUMENT, rule.name, value, rule)
end

--- A new table with the checked values of `given` and the defaults of `rules`.
-- @param what   the function as the user knows it, for messages
-- @param given  the user's table, or nil
-- @param rules  key -> { kinds, default =, required =, min =, max =, above =, below =,
--               choices =, fields = }, as in schema.lua; or the result of schema.rules
function check.options(what, given, rules)
  if given ~= nil and type(given) ~= "table" then
    check.fail("%s: expected a table of options, got %s", what, shown(given))
  end
  local out, keys = {}, {}
  for key in pairs(given or {}) do keys[#keys + 1] = key end
  -- Of several wrong options the same one is blamed every time.
  if #keys > 1 then
    table.sort(keys, function(a, b) return tostring(a) < tostring(b) end)
  end
  for _, key in ipairs(keys) do
    local value = given[key]
    local rule = type(key) == "string" and rules[key]
    if not rule then
      local names = {}
      for name in pairs(rules) do
        if type(name) == "string" then names[#names + 1] = name end
      end
      check.unknown(what, key, names)
    end
    out[key] = one(what, OPTION, key, value, rule)
  end
  local missing -- the first one by name, so that messages repeat
  local function fill(key, rule)
    if out[key] ~= nil then return end
    if rule.required and (not missing or key < missing) then missing = key end
    if rule.default ~= nil then out[key] = default_of(what, rule, key) end
  end
  for _, rule in ipairs(rules) do fill(rule.name, rule) end
  for key, rule in pairs(rules[1] and {} or rules) do fill(key, rule) end
  if missing then
    local rule = rules[missing]
    check.fail("%s: option '%s' is missing (%s)", what, missing,
      rule.required == true and expected(rule) or rule.required)
  end
  return out
end

return check
