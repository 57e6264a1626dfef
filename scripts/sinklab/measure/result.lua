--- result.lua - the result of a measurement of sinks: its summaries and its text.
local check = require "sinklab.base.check"
local schema = require "sinklab.base.schema"
local text = require "sinklab.base.text"

local methods = {}
local Sinks = { __index = methods, __name = "sinklab.sinks" }

--- Smallest, largest and mean of one measure over heads (NaN heads left out).
local function summary(heads, key)
  local low, high, sum, n = math.huge, -math.huge, 0, 0
  for _, h in ipairs(heads) do
    local v = h[key]
    if v and v == v then
      low, high, sum, n = math.min(low, v), math.max(high, v), sum + v, n + 1
    end
  end
  if n == 0 then return { min = 0 / 0, max = 0 / 0, mean = 0 / 0 } end
  return { min = low, max = high, mean = sum / n }
end

-- Summaries over heads, of what was measured.
local summarised = { "first_over_rowsum", "row_mass", "abs_mass", "contribution",
  "null_mass", "virtual_mass", "rate", "first_over_rowsum_rate", "value_norm",
  "entropy", "null_rate", "first_norm_ratio" }

methods.sink_k = schema.func("sinks:sink_k", {
  doc = [[Sink_k^eps over all heads, in percent: 100 times the mean share of (sequence,
    head) pairs whose mean weight on position k is above the threshold (Gu et al.
    2025).]],
  args = { { "k", "integer", default = 1,
    doc = [[position; others than 1 need measures = { "columns" }]] } },
  options = { { "over_rowsum", "boolean", doc = "of row-normalised weights" } },
  returns = "percent",
  errors = "when position k was not measured",
  source = "Gu et al. 2025, arXiv 2410.10781",
  example = [[
    local task = lab.task.trigger_mean {}
    local model = lab.model.attention_only { task = task }
    local found = lab.sinks(model, task:batch { n = 16 }, { measures = "columns" })
    print(found:sink_k(), found:sink_k(2), found:sink_k(1, { over_rowsum = true }))]],
}, function(self, k, o)
  local over_rowsum = o.over_rowsum
  if k == 1 then
    return 100 * (over_rowsum and self.first_over_rowsum_rate or self.rate).mean
  end
  local sink = over_rowsum and self.sink_over_rowsum or self.sink
  if not sink then
    check.fail("sinks:sink_k: position %s needs measures = { \"columns\" }", tostring(k))
  end
  if k < 1 or k > self.tokens then
    check.fail("sinks:sink_k: position %d; there are 1 to %d", k, self.tokens)
  end
  return 100 * sink:select(3, k):mean():item()
end)

--- A copy without tensors, tables in tables too.
local function without_tensors(t)
  local out = {}
  for key, value in pairs(t) do
    if type(value) == "table" then
      out[key] = without_tensors(value)
    elseif type(value) ~= "userdata" then
      out[key] = value
    end
  end
  return out
end

methods.record = schema.func("sinks:record", {
  doc = "The part of a measurement that run.json keeps: everything except tensors.",
  returns = "table",
  example = [[
    local task = lab.task.trigger_mean {}
    local model = lab.model.attention_only { task = task }
    print(lab.sinks(model, task:batch { n = 16 }):record().heads[1].first_mean)]],
}, function(self)
  local out = without_tensors(self)
  local secondary = out.hidden and out.hidden.secondary
  if secondary then -- counts beside a list of tokens: two values for JSON
    out.hidden.secondary = { tokens = {} }
    for key, value in pairs(secondary) do
      local to = type(key) == "string" and out.hidden.secondary
          or out.hidden.secondary.tokens
      to[key] = value
    end
  end
  return out
end)

local columns = {
  { "layer", "%d" }, { "head", "%d" }, { "first_mean", "%.4f" },
  { "first_min", "%.4f" }, { "first_std", "%.1e" }, { "trigger_first", "%.4f" },
  { "row_mass", "%.4f" }, { "null_mass", "%.4f" }, { "virtual_mass", "%.4f" },
  { "first_over_rowsum", "%.4f" }, { "entropy", "%.3f" },
  { "contribution", "%.4f" }, { "first_norm_ratio", "%.3f" }, { "sink_logit", "%.2f" },
  { "rate", "%.2f" }, { "null_rate", "%.2f" },
}

methods.rows = schema.func("sinks:rows", {
  doc = [[Rows of text, one a head, under a row of column names; columns that were not
    measured are left out.]],
  returns = "names, rows: for lab.text.table",
  example = [[
    local task = lab.task.trigger_mean {}
    local model = lab.model.attention_only { task = task }
    local names, rows = lab.sinks(model, task:batch { n = 16 }):rows()
    print(lab.text.table(names, rows))]],
}, function(self)
  local names, out, shown = {}, {}, {}
  for _, c in ipairs(columns) do
    if self.heads[1][c[1]] ~= nil then
      shown[#shown + 1] = c
      names[#names + 1] = c[1]
    end
  end
  for i, h in ipairs(self.heads) do
    out[i] = {}
    for j, c in ipairs(shown) do
      local v = h[c[1]]
      local word = (v == nil or v ~= v) and "-" or c[2]:format(v)
      out[i][j] = word:match "^%-(0%.0+)$" or word
    end
  end
  return names, out
end)

function Sinks:__tostring()
  local names, rows = self:rows()
  return ("sinks over %d sample%s of %d tokens: weight on position 1, "):format(
      self.samples, self.samples == 1 and "" or "s", self.tokens)
      .. "means over plain rows\n" .. text.table(names, rows)
end

--- Complete the core's measurements.
-- @param found    its table
-- @param virtual  keys that are no tokens
-- @param declared  whether the mechanism declares a null mass
-- @param keep     the heads that were to be kept, or nil: the list may be empty
local function finish(found, virtual, declared, keep)
  found.kept = found.kept or keep and {}
  found.first = summary(found.heads, "first_mean")
  for _, key in ipairs(summarised) do
    if found.heads[1][key] then found[key] = summary(found.heads, key) end
  end
  local function split(t)
    local null_mass_map, axis = t.null_mass_map, #t.null_mass_map.shape
    if declared then t.null = null_mass_map:select(axis, 1):clone() end
    if virtual > 0 then t.virtual = null_mass_map:narrow(axis, 2, virtual):clone() end
    t.null_mass_map = nil
  end
  if found.null_mass_map then split(found) end
  for _, kept in ipairs(found.kept or {}) do split(kept) end
  return setmetatable(found, Sinks)
end

return finish
