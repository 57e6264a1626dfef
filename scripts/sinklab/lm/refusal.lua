--- refusal.lua - what is wrong with a model file, from wherever it is found.
--
-- Reading a model is many steps deep; each ends it with a sentence, and lab.lm.open
-- turns the sentence into nil, message. Anything else that is raised goes on.
local Refusal = { __name = "sinklab.lm.refusal" }
Refusal.__tostring = function(refusal) return refusal.text end

local refusal = {}

--- End the reading of a model with one sentence.
function refusal.raise(text) error(setmetatable({ text = text }, Refusal), 0) end

--- f (...), or nil and the sentence that ended it.
function refusal.catch(f, ...)
  local results = table.pack(pcall(f, ...))
  if results[1] then return table.unpack(results, 2, results.n) end
  if getmetatable(results[2]) == Refusal then return nil, results[2].text end
  error(results[2], 0)
end

return refusal
