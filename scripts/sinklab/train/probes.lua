--- probes.lua - what lab.train measures on the way: probes = { sinks = { ... } }.
local check = require "sinklab.base.check"
local sinks = require "sinklab.measure.sinks"

local probes = {}
local Probes = { __index = {} }

-- Summaries over heads that become columns of the log.
local summaries = { "first", "first_over_rowsum", "row_mass", "contribution",
  "value_norm", "rate" }
-- Of each head, with heads = true.
local of_head = { "first_mean", "contribution", "value_norm" }

local rules = {
  every = { "integer", default = 100, min = 1 },
  samples = { "integer", default = 64, min = 1 },
  batch = { "table" },
  seed = { "integer", default = 1, min = 0 },
  heads = { "boolean", default = false },
}

--- The probes of a training, or nil.
-- @param what   the function, for messages
-- @param given  { sinks = { every = 100, samples = 64 fresh sequences, seed = 1 of them,
--               batch = a batch to measure on instead, heads = false: columns of each
--               head too } }
function probes.new(what, given, model, task)
  if given == nil then return nil end
  local o = check.options(what .. ": probes", given,
    { sinks = { "table", required = true } }).sinks
  o = check.options(what .. ": probes.sinks", o, rules)
  return setmetatable({ model = model, every = o.every, heads = o.heads,
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
