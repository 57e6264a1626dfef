--- head_changes.lua - changes of attention heads, by the names that lab.intervene,
-- lab.lm.intervene and language_model:with share.
local check = require "sinklab.base.check"

local head_changes = {}

-- Rows of schema.lua: the argument of each change.
head_changes.of_heads = {
  { "zero", "boolean", doc = "true: heads give 0" },
  { "mask", "integer table", min = 1,
    doc = "position or list: keys that are not visible to the heads" },
  { "onto", "integer", min = 1, doc = "position that gets all of a row's weight" },
  { "off", "integer", min = 1, doc = "position that gives its weight to the rest" },
  { "remove", "integer", min = 1, doc = "position that loses its weight" },
  { "value", "table", doc = "{ position =, to = }: as for lab.intervene" },
}

--- The one change among `rules` that a user's table gives: its name.
-- @param o  the table, checked
function head_changes.one(place, o, rules)
  local names, all = {}, {}
  for i, rule in ipairs(rules) do
    all[i] = rule.name
    if o[rule.name] ~= nil then names[#names + 1] = rule.name end
  end
  table.sort(names)
  table.sort(all)
  if #names > 1 then
    check.fail("%s: %s; give one change at a time", place, table.concat(names, " and "))
  elseif #names == 0 then
    check.fail("%s changes nothing (try one of %s)", place, table.concat(all, ", "))
  elseif o[names[1]] == false then
    check.fail("%s: %s = false changes nothing", place, names[1])
  end
  return names[1]
end

--- The argument of a change in words; "" where the name says all.
function head_changes.text(argument)
  if type(argument) == "number" then return tostring(argument) end
  if type(argument) == "string" then return argument end
  if type(argument) ~= "table" then return "" end
  if argument.position then
    local to = argument.to or 0
    return ("%d to %s"):format(argument.position,
      (type(to) == "string" or type(to) == "number") and tostring(to) or "a vector")
  end
  if type(argument[1]) == "string" then return argument[1] end
  local words = {}
  for i, word in ipairs(argument) do words[i] = tostring(word) end
  return table.concat(words, " ")
end

return head_changes
