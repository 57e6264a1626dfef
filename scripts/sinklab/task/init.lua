--- task.lua - lab.task: the tasks that models are trained on, as samplers of tensors.
--
-- lab.task { ... } makes a task from a sampler; lab.task.NAME { ... } is one of the table
-- below. Each names its source: a paper, or "ours" for a task that no known text uses in
-- the study of sinks.
local base = require "sinklab.task.base"

local task = {}

--- Every task: name, module, source, target.
task.list = {
  { "trigger_mean", "trigger", "arXiv 2603.11487",
    "the mean of the tokens so far at a trigger" },
  { "trigger_max", "trigger", "ours", "their largest, coordinate by coordinate" },
  { "trigger_sum", "trigger", "ours", "their sum" },
  { "trigger_copy", "trigger", "ours", "the token before the trigger" },
  { "trigger_kinds", "trigger", "ours", "several triggers, each with its own answer" },
  { "idle", "trigger", "ours", "nothing, ever" },
  { "retrieval", "context", "ours", "the value that belongs to the trigger's key" },
  { "induction", "context", "ours", "the second half of a repeated string" },
  { "regression", "context", "ours", "a linear map learnt from examples in the context" },
  { "backcopy", "text", "arXiv 2410.13835",
    "bigrams; after a trigger, the token before it" },
  { "unigram", "text", "negative control", "independent tokens: nothing to attend to" },
}

for _, entry in ipairs(task.list) do
  task[entry[1]] = require("sinklab.task." .. entry[2])[entry[1]]
end

return setmetatable(task, { __call = function(_, given) return base.new(given) end,
  __doc = base.new })
