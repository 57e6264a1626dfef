--- declared.lua - schemas as entries of help: texts of meanings, ranges, defaults.
local check = require "sinklab.base.check"
local doc = require "sinklab.help.doc"
local json = require "sinklab.base.json"
local text = require "sinklab.base.text"

local declared = {}

-- Kinds as a reader of the reference knows them.
local kind_names = { integer = "whole number", number = "number", string = "text",
  boolean = "true or false", ["function"] = "function", table = "table",
  language_model = "model of lab.lm.open" }

--- A text on one line.
local function plain(said) return said and (said:gsub("%s+", " ")) end

local function quoted(names)
  local out = {}
  for i, name in ipairs(names) do out[i] = ('"%s"'):format(name) end
  return text.alternatives(out)
end

--- A value as a script would write it.
local function written(value)
  if type(value) == "string" then return ('"%s"'):format(value) end
  if type(value) == "number" then return json.number(value) end
  if type(value) ~= "table" then return tostring(value) end
  local out = {}
  for i, item in ipairs(value) do out[i] = written(item) end
  return #out > 0 and "{ " .. table.concat(out, ", ") .. " }" or "{}"
end

--- The values that a rule allows: "whole number, at least 1, steps"; nil for any value.
local function allowed(rule)
  local names = {}
  for kind in rule[1]:gmatch "[%w_]+" do
    local choices = kind == "string" and rule.choices
    names[#names + 1] = choices and quoted(choices)
        or kind == "table" and rule.list and "list of " .. rule.list
        or kind_names[kind] or kind
  end
  local out = {}
  if rule[1] ~= "any" then out[1] = text.alternatives(names) end
  out[#out + 1] = check.limits(rule)
  out[#out + 1] = rule.unit
  return #out > 0 and table.concat(out, ", ") or nil
end

--- The meaning, the range and the default of a rule in one text.
function declared.meaning(rule, is_option)
  local said, range = plain(rule.doc or ""), allowed(rule)
  if rule.required and is_option then
    range = (range and range .. "; " or "") .. "needed"
  end
  if range then said = said .. (said ~= "" and " " or "") .. "(" .. range .. ")" end
  local default = rule.default_doc
  if not default and rule.default ~= nil and not rule.fields then
    default = written(rule.default)
  end
  if default then said = said .. ", default " .. default end
  return said
end

--- The entry of help.index for one of schema.lua.
-- @param file  the doc.file of its module
-- @return { name, file, line of its Lua function, schema, summary, paragraphs = { { text,
--         block = keeps its lines } }, params = { { names, text, rule of an option } },
--         ["return"], error, source, example }
function declared.entry(of, file)
  local out = { name = of.name, file = file, schema = of, params = {},
    ["return"] = plain(of.returns), error = plain(of.errors), source = plain(of.source) }
  out.summary, out.paragraphs = doc.text(of.doc)
  out.example = of.example and doc.code_text(of.example)
  if of.code then out.line = debug.getinfo(of.code, "S").linedefined end
  --- A rule, and below it those of the table that it is, as "stop.loss".
  local function put(prefix, rule, is_option)
    local name = prefix .. rule.name
    table.insert(out.params, { names = name, text = declared.meaning(rule, is_option),
      rule = prefix == "" and is_option and rule or nil })
    for _, field in ipairs(rule.fields or rule.keys or {}) do
      put(name .. ".", field, true)
    end
  end
  for _, rule in ipairs(of.args) do put("", rule) end
  for _, rule in ipairs(of.options or {}) do put("", rule, true) end
  return out
end

return declared
