--- heads.lua - the heads that a change is of, named as { { layer, head }, ... }.
local check = require "sinklab.base.check"

--- A list of heads, checked.
-- @param place   the function and what of it, for messages
-- @param layers  how many the model has
-- @param heads   of each
-- @return function (layer, head): whether it is among them; their names, "1:2 2:1"
return function(place, list, layers, heads)
  local chosen, names = {}, {}
  check.list(place, "heads", list, "{ layer, head }")
  if #list == 0 then check.fail("%s: heads is an empty list", place) end
  for i, pair in ipairs(list) do
    local layer, head
    if type(pair) == "table" then layer, head = pair[1], pair[2] end
    if math.type(layer) ~= "integer" or math.type(head) ~= "integer" or layer < 1
        or head < 1 or layer > layers or head > heads then
      check.fail("%s: heads[%d] must be { layer, head } within %d layers of %d heads",
        place, i, layers, heads)
    end
    chosen[layer] = chosen[layer] or {}
    chosen[layer][head] = true
    names[i] = layer .. ":" .. head
  end
  return function(layer, head)
    return chosen[layer] ~= nil and chosen[layer][head] == true
  end, table.concat(names, " ")
end
