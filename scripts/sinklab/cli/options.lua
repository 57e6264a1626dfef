--- options.lua - lab.options: a script's --key=VALUE options from a table of defaults.
local core = require "sinklab.core"
local check = require "sinklab.base.check"
local schema = require "sinklab.base.schema"
local contexts = require "sinklab.cli.context"
local text = require "sinklab.base.text"

local options = {}

-- The host takes these for every script.
local reserved = { "out", "threads", "quiet", "traceback", "help" }

-- Keys of a table that describes an option, besides `default`: name -> type.
local settings = { doc = "string", min = "number", max = "number",
  above = "number", choices = "table" }

local fail = check.fail

--- Raise an error of the command line, which names no line of the script.
local function refuse(message, ...) error(message:format(...), 0) end

--- --num-layers and --num_layers are one option.
local function plain(name) return (name:gsub("%-", "_")) end

-- Types of values on the command line. Each function gives the value of a
-- text or nil.
local types = {
  ["a whole number"] = function(s)
    return s:match "^[+-]?[%d.]+[eE]?[+-]?%d*$" and math.tointeger(tonumber(s))
  end,
  ["a number"] = function(s)
    local x = s:match "^[+-]?[%d.]+[eE]?[+-]?%d*$" and tonumber(s)
    if x and math.abs(x) < math.huge then return x end
  end,
  ["true or false"] = function(s)
    if s == "true" then return true elseif s == "false" then return false end
  end,
  ["text"] = function(s) return s end,
}

local function type_of(value)
  if math.type(value) == "integer" then return "a whole number" end
  if math.type(value) == "float" then return "a number" end
  if type(value) == "boolean" then return "true or false" end
  if type(value) == "string" then return "text" end
end

-- A table without names is a list of values.
local HINT = "; a default with its meaning is { default = VALUE, doc = \"...\" }"

--- The type of a list's elements: the widest of them.
local function element_type(name, list)
  local found
  check.list("lab.options", ("the list of '%s'"):format(name), list, "numbers or strings")
  for _, value in ipairs(list) do
    local t = type_of(value)
    if not t or t == "true or false" then
      fail("lab.options: the list of '%s' may hold numbers or strings, not a %s%s",
        name, type(value), HINT)
    end
    if found and found ~= t and (found == "text" or t == "text") then
      fail("lab.options: the list of '%s' mixes numbers and strings%s", name, HINT)
    end
    found = (found == "a number" or t == "a number") and "a number" or t
  end
  return found or "text"
end

--- The checked settings of an option from a table that is not a list.
local function described(name, spec)
  for key, value in pairs(spec) do
    if math.type(key) == "integer" then
      fail("lab.options: '%s' has names and a value without a name%s", name, HINT)
    elseif key ~= "default" and key ~= "quick" and settings[key] == nil then
      fail("lab.options: '%s' has no setting '%s'%s", name, tostring(key),
        check.did_you_mean(key, { "default", "quick", "doc", "min", "max", "above",
          "choices" }))
    elseif settings[key] and type(value) ~= settings[key] then
      fail("lab.options: '%s': %s must be a %s, got a %s", name, key,
        settings[key], type(value))
    end
  end
  if spec.default == nil then fail("lab.options: '%s' has no default%s", name, HINT) end
  return spec
end

--- One option from the script's declaration: { name, default, doc, type, list, ... }.
local function declare(name, given)
  if type(name) ~= "string" or not name:match "^%a[%w_]*$" then
    fail("lab.options: '%s' is no name for an option", tostring(name))
  end
  for _, taken in ipairs(reserved) do
    if name == taken then
      fail("lab.options: --%s belongs to sinklab itself", name)
    end
  end
  local spec = { default = given }
  for key in pairs(type(given) == "table" and given or {}) do
    if type(key) == "string" then spec = described(name, given) end
  end
  local o = { name = name, default = spec.default, quick = spec.quick,
    doc = spec.doc or "", min = spec.min, max = spec.max, above = spec.above,
    choices = spec.choices }
  o.list = type(o.default) == "table"
  if o.list then
    o.type = element_type(name, o.default)
  else
    o.type = type_of(o.default)
  end
  if not o.type then
    fail("lab.options: '%s' cannot have a %s as its default", name,
      type(o.default))
  end
  return o
end

--- Why a value is not allowed, or nil.
local function objection(o, value)
  if type(value) == "number" then
    if o.min and value < o.min then return "must be at least " .. o.min end
    if o.max and value > o.max then return "must be at most " .. o.max end
    if o.above and value <= o.above then return "must be above " .. o.above end
  end
  if not o.choices then return end
  for _, choice in ipairs(o.choices) do
    if choice == value then return end
  end
  return "must be " .. text.alternatives(o.choices) .. (type(value) == "string"
    and check.did_you_mean(value, o.choices, nil, "%s") or "")
end

local function read_one(o, s, whole)
  local value = types[o.type](s)
  if value == nil then
    refuse("--%s: expected %s%s, got '%s'", o.name, o.list and "a list, each " or "",
      o.type, whole)
  end
  local why = objection(o, value)
  if why and s ~= whole then refuse("--%s: '%s' %s", o.name, s, why) end
  if why then refuse("--%s=%s: %s", o.name, whole, why) end
  return value
end

local function read(o, s)
  if not o.list then return read_one(o, s, s) end
  local list = {}
  for item in (s .. ","):gmatch "([^,]*)," do
    if item == "" then refuse("--%s=%s: an empty item in the list", o.name, s) end
    list[#list + 1] = read_one(o, item, s)
  end
  return list
end

local function unknown(key, specs, context)
  local names = {}
  for name in pairs(specs) do names[#names + 1] = name end
  for _, name in ipairs(reserved) do
    -- A stock Lua takes some of them only.
    if context.stock and name == key then
      refuse("--%s: only `sinklab run %s` takes it", key, tostring(context.script))
    end
    names[#names + 1] = name
  end
  refuse("--%s: no such option%s", key, check.did_you_mean(plain(key), names,
    "\n  try: sinklab run " .. tostring(context.script) .. " --help", "--%s"))
end

--- The values of the command line, by name.
local function parse(context, specs)
  local values = {}
  for _, argument in ipairs(context.arguments) do
    local key, value = argument:match "^%-%-([^=]+)=(.*)$"
    key = key or argument:sub(3)
    local o = specs[plain(key)]
    if not o and not value and key:match "^no[-_]" then
      o = specs[plain(key:sub(4))]
      if o and o.type == "true or false" then value = "false" else o = nil end
    end
    if not o then unknown(key, specs, context) end
    if not value and o.type == "true or false" then value = "true" end
    if not value then
      refuse("--%s needs a value: write --%s=VALUE", o.name, o.name)
    end
    if values[o.name] ~= nil then refuse("--%s is given twice", o.name) end
    values[o.name] = read(o, value)
  end
  return values
end

local function value_text(o, value)
  return o.list and table.concat(value, ",") or tostring(value)
end

local function limits(o)
  local out = { (o.list and "list of " or "") .. o.type:gsub("^a ", "") }
  if o.list then out[1] = out[1]:gsub("number$", "numbers") end
  if o.above then out[#out + 1] = "above " .. o.above end
  if o.min then out[#out + 1] = "at least " .. o.min end
  if o.max then out[#out + 1] = "at most " .. o.max end
  if o.choices then out[1] = text.alternatives(o.choices) end
  if o.quick ~= nil then
    out[#out + 1] = "with --quick " .. value_text(o, o.quick)
  end
  if o.default == true then out[2] = "--no-" .. o.name .. " is false" end
  return table.concat(out, ", ")
end

local function sorted(specs)
  local list = {}
  for _, o in pairs(specs) do list[#list + 1] = o end
  table.sort(list, function(a, b) return a.name < b.name end)
  return list
end

local function help(specs)
  local width, lines = 0, {}
  for i, o in ipairs(sorted(specs)) do
    local left = o.default == false and "--" .. o.name
        or ("--%s=%s"):format(o.name, value_text(o, o.default))
    lines[i] = { left, o.doc, limits(o) }
    width = math.max(width, #left)
  end
  print "\nOptions, with their defaults:"
  for _, l in ipairs(lines) do
    print(("  %s%s  %s%s(%s)"):format(l[1], (" "):rep(width - #l[1]), l[2],
      l[2] == "" and "" or " ", l[3]))
  end
end

options.options = schema.func("lab.options", {
  doc = [[A script's options, read from the command line.

    Each key of `defaults` becomes --key=VALUE; `-` and `_` are the same in names. The
    type is that of the default: a whole number, a number, a boolean (--key, --no-key),
    a string, or a list of numbers or strings (--key=a,b). A default may be described: {
    default = 1000, quick = 10, doc = "what it means", min =, max =, above =, choices =
    }; `quick` takes the place of the default when the script's option `quick` is given. A
    value of the wrong type or out of range and an unknown option end the script with one
    sentence. In the REPL there is no command line and the defaults are returned.]],
  args = { { "defaults", "table", doc = "name -> default" } },
  returns = "a table of the values; reading a name that is not among them raises",
  example = [[
    local opt = lab.options { attention = { "softmax", "relu" },
      steps = { default = 1000, doc = "at most so many updates", min = 1 } }
    print(opt.steps, opt.attention[1])]],
}, function(defaults)
  local context = contexts.current()
  if context.options then fail "lab.options: a script has one table of options" end
  local specs, names = {}, {}
  for name, given in pairs(defaults) do
    specs[name] = declare(name, given)
    names[#names + 1] = name
    local o = specs[name]
    for which, value in pairs { default = o.default, ["quick value"] = o.quick } do
      local list = type(value) == "table"
      local kind = list and element_type(name, value) or type_of(value)
      if kind ~= o.type or list ~= o.list then
        fail("lab.options: the %s of '%s' must be %s%s", which, name,
          o.list and "a list, each " or "", o.type)
      end
      for _, each in ipairs(o.list and value or { value }) do
        local why = objection(o, each)
        if why then fail("lab.options: the %s of '%s' %s", which, name, why) end
      end
    end
  end
  if context.help then
    help(specs)
    core.quit(0)
  end
  local values = parse(context, specs)
  for name, o in pairs(specs) do
    if values[name] == nil and values.quick and o.quick ~= nil then
      values[name] = o.quick
    elseif values[name] == nil then
      values[name] = o.default
    end
  end
  if context.script then
    context.options = values
    if math.type(values.seed) == "integer" then math.randomseed(values.seed) end
  end
  return setmetatable(values, {
    __name = "sinklab.options",
    __index = function(_, name)
      fail("no option '%s' was declared%s", tostring(name),
        check.did_you_mean(name, names))
    end,
    __newindex = function(_, name)
      fail("no option '%s' was declared: it cannot be set", tostring(name))
    end,
  })
end)

--- Raise if the command line gave options that no lab.options has read.
function options.unread()
  local context = contexts.current()
  if context.stock then return end -- they may be for others
  local first = context.arguments[1]
  if first and not context.options then
    refuse("%s: this script has no options of its own", first:match "^[^=]+")
  end
end

return options
