--- unsupported.lua - a model file that this library does not follow, and why.
--
-- Reading a model is many calls deep; each ends it with a sentence, which lab.lm.open
-- returns as nil, message. Any other error is raised as it is.
local Unsupported = { __name = "sinklab.lm.unsupported" }
Unsupported.__tostring = function(self) return self.text end

local unsupported = {}

--- End the reading of a model with one sentence.
function unsupported.raise(text) error(setmetatable({ text = text }, Unsupported), 0) end

--- f (...), or nil and the sentence that ended it.
function unsupported.catch(f, ...)
  local results = table.pack(pcall(f, ...))
  if results[1] then return table.unpack(results, 2, results.n) end
  if getmetatable(results[2]) == Unsupported then return nil, results[2].text end
  error(results[2], 0)
end

return unsupported
