--- tensors.lua - what scripts need beside the operations on tensors.
local core = require "sinklab.core"

local tensors = {}

-- The operation lab.concat takes at most eight tensors.
local MOST = 8

--- The tensors of a list, however many, one behind the other along an axis.
function tensors.join(list, axis)
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

return tensors
