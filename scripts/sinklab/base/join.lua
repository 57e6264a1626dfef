--- join.lua - tensors end to end, however many: an operation takes eight at a time.
local core = require "sinklab.core"

local MOST = 8

--- The tensors of a list, one behind the other along an axis.
return function(list, axis)
  while #list > 1 do
    local shorter = {}
    for i = 1, #list, MOST do
      local part = table.move(list, i, math.min(i + MOST - 1, #list), 1, {})
      shorter[#shorter + 1] = core.concat(part, axis)
    end
    list = shorter
  end
  return list[1]
end
