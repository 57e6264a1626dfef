--- probes.lua - what lab.train measures on the way: probes = { sinks = { ... } }.
local sinks = require "sinklab.measure.sinks"

local probes = {}
local Probes = { __index = {} }

-- Summaries over heads that become columns of the log.
local summaries = { "first", "first_over_rowsum", "row_mass", "contribution",
  "value_norm", "rate" }
-- Of each head, with heads = true.
local of_head = { "first_mean", "contribution", "value_norm" }

--- The rows of lab.train's option `probes`.
probes.rows = { { "sinks", "table", required = true, fields = {
  { "every", "integer", default = 100, min = 1, unit = "steps" },
  { "samples", "integer", default = 64, min = 1, max = 1 << 24, doc = "fresh sequences" },
  { "batch", "table", doc = "a batch to measure on instead" },
  { "seed", "integer", default = 1, min = 0, doc = "of the fresh sequences" },
  { "heads", "boolean", default = false, doc = "columns of each head too" },
}, doc = [[lab.sinks from step 0 on, as sinks_* of the log's entries: first (weight on
  position 1), first_over_rowsum, row_mass, contribution, value_norm and rate, _mean and
  _max over heads]] } }

--- The probes of a training, or nil.
-- @param given  the option, checked
function probes.new(given, model, task)
  local o = given and given.sinks
  return o and setmetatable({ model = model, every = o.every, heads = o.heads,
    batch = o.batch or task:batch { n = o.samples, seed = o.seed, dtype = model.dtype } },
    Probes)
end

--- The next step after this one at which there is something to measure.
function Probes.__index:next(step) return (step // self.every + 1) * self.every end

--- Measure if it is time, or the last entry: new keys of a log's entry.
function Probes.__index:add(entry, stopped)
  local last = stopped and stopped ~= "interrupted" and stopped ~= "not_finite"
  if entry.step % self.every ~= 0 and not last or stopped and not last then return end
  local found = sinks(self.model, self.batch, { maps = false })
  for _, key in ipairs(summaries) do
    entry["sinks_" .. key .. "_mean"] = found[key].mean
    entry["sinks_" .. key .. "_max"] = found[key].max
  end
  for _, h in ipairs(self.heads and found.heads or {}) do
    for _, key in ipairs(of_head) do
      entry[("sinks_l%dh%d_%s"):format(h.layer, h.head, key)] = h[key]
    end
  end
end

return probes
