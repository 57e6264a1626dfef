--- contrast.lua - lab.lm.contrast: heads that use the first position differently in two
-- classes, with a permutation test.
local core = require "sinklab.core"
local check = require "sinklab.base.check"
local schema = require "sinklab.base.schema"
local measure = require "sinklab.lm.measure"
local progress = require "sinklab.base.progress"
local text = require "sinklab.base.text"

local contrast = {}

local Contrast = { __name = "sinklab.lm.contrast" }

-- Labellings in one matrix product.
local CHUNK = 64

--- Weights on position 1 of every head, row by row of one sequence: [head][row from 2].
local function first_weights(model, s)
  local groups = { -1 }
  for i = 2, #s.ids do groups[i] = i - 2 end
  local found = measure.sinks(model, { s }, { groups = { groups }, loss = false })
  local out = {}
  for h, head in ipairs(found.heads) do
    out[h] = {}
    for i = 1, #s.ids - 1 do out[h][i] = head.groups[i].first end
  end
  return out, found.heads
end

--- Units (rows, or whole sequences) with a class: their weights by head, the class of
-- each, and where each sequence's units begin and end.
local function collect(model, list, classes)
  local x, labels, spans, heads = {}, {}, {}, nil
  local work <close> = progress.work("contrast", #list)
  for s, sequence in ipairs(list) do
    local own, of = first_weights(model, sequence)
    heads = heads or of
    for h = 1, #of do x[h] = x[h] or {} end
    local class = classes[s]
    if type(class) == "table" then
      spans[#spans + 1] = { #labels + 1, #labels + #sequence.ids - 1 }
      for i = 1, #sequence.ids - 1 do
        labels[#labels + 1] = class[i + 1]
        for h = 1, #of do x[h][#labels] = own[h][i] end
      end
    else
      labels[#labels + 1] = class
      for h = 1, #of do
        local sum = 0
        for _, w in ipairs(own[h]) do sum = sum + w end
        x[h][#labels] = sum / math.max(1, #own[h])
      end
    end
    work:at(s)
    core.stop_if_interrupted()
  end
  return x, labels, spans, heads
end

--- Permuted labels: those of rows are rotated within their sequence, which keeps
-- neighbours together; those of sequences are shuffled.
local function relabelled(labels, spans, draw)
  local out = {}
  if #spans > 0 then
    for _, span in ipairs(spans) do
      local n = span[2] - span[1] + 1
      local by = draw(n) - 1
      for i = 0, n - 1 do out[span[1] + i] = labels[span[1] + (i + by) % n] end
    end
    return out
  end
  table.move(labels, 1, #labels, 1, out)
  for i = #out, 2, -1 do
    local j = draw(i)
    out[i], out[j] = out[j], out[i]
  end
  return out
end

--- Coefficients of the units under a labelling: mean of class 1 minus mean of class 0.
local function weights_of(labels)
  local n = { [0] = 0, [1] = 0 }
  for _, label in ipairs(labels) do
    if n[label] then n[label] = n[label] + 1 end
  end
  local out = {}
  for i, label in ipairs(labels) do
    out[i] = label == 1 and 1 / n[1] or label == 0 and -1 / n[0] or 0
  end
  return out, n
end

--- Differences (heads, labellings): the true labelling first, then permuted ones.
local function differences(x, labels, spans, o)
  local units = core.tensor(x, "f64")
  local generator = core.generator(o.seed)
  local pool, at = {}, 0
  local function draw(n) -- 1..n
    at = at + 1
    if at > #pool then
      pool, at = generator:uniform(0, 1, { 4096 }):totable(), 1
    end
    return math.min(n, math.floor(pool[at] * n) + 1)
  end
  local parts, rows = {}, { (weights_of(labels)) }
  local function flush()
    if #rows == 0 then return end
    parts[#parts + 1] = core.linear(units, core.tensor(rows, "f64"))
    rows = {}
    core.stop_if_interrupted()
  end
  for _ = 1, o.permutations do
    rows[#rows + 1] = weights_of(relabelled(labels, spans, draw))
    if #rows == CHUNK then flush() end
  end
  flush()
  local out = {}
  for h = 1, #x do out[h] = {} end
  for _, part in ipairs(parts) do
    for h, row in ipairs(part:totable()) do
      table.move(row, 1, #row, #out[h] + 1, out[h])
    end
  end
  return out
end

--- z of every value by the mean and standard deviation of the permuted ones.
local function standardised(values)
  local n, mean, m2 = #values - 1, 0, 0
  for i = 2, #values do
    local d = values[i] - mean
    mean = mean + d / (i - 1)
    m2 = m2 + d * (values[i] - mean)
  end
  local std = math.sqrt(m2 / math.max(1, n - 1))
  local z = {}
  for i, v in ipairs(values) do z[i] = std > 0 and (v - mean) / std or 0 end
  return z
end

contrast.contrast = schema.func("lab.lm.contrast", {
  doc = [[Rank the heads of a model by how differently they use the first position.

    The difference is between the mean weights on position 1 in two classes of rows, or
    in two classes of sequences. It is compared with what the same classes give when
    they are dealt anew: sequences shuffled, or rows turned around within their
    sequence, so that neighbours stay neighbours. p is of one head; p_family of the
    largest of all heads (Westfall and Young 1993), so that the best of many heads is
    not luck.]],
  args = {
    { "model", "language_model" },
    { "list", "table", doc = "sequences, as for lab.lm.sinks" },
    { "classes", "table",
      doc = "for each 0 or 1; or for each a list with 0, 1 or -1 (left out) a token" },
  },
  options = {
    { "permutations", "integer", default = 999, min = 19, max = 1000000,
      doc = "how often the classes are dealt anew" },
    { "seed", "integer", default = 0, min = 0, doc = "of the permutations" },
  },
  returns = [[list of { layer, head, mean_0, mean_1, difference, z, p, p_family }, the
    most different first, with n0 and n1, how many rows or sequences; prints as a table]],
  errors = "one class only; classes of both kinds",
  source = "Westfall and Young 1993, Resampling-Based Multiple Testing",
  example = [[
    local model = lab.lm.random { layers = 1 }
    print(lab.lm.contrast(model, { { 1, 9, 4, 7, 9, 3 }, { 1, 3, 9, 5, 6, 9 } },
      { { 0, 1, 0, 0, 1, 0 }, { 0, 0, 1, 0, 0, 1 } }, { permutations = 19 }))]],
}, function(model, list, classes, o)
  local what = "lab.lm.contrast"
  list = measure.sequences(what, list)
  if #classes ~= #list then
    check.fail("%s: %d classes for %d sequences", what, #classes, #list)
  end
  for i, class in ipairs(classes) do
    if type(class) ~= type(classes[1]) then
      check.fail("%s: class %d is a %s, the first a %s", what, i, type(class),
        type(classes[1]))
    elseif type(class) == "table" and #class ~= #list[i].ids then
      check.fail("%s: %d classes for the %d tokens of sequence %d", what, #class,
        #list[i].ids, i)
    end
  end
  local x, labels, spans, heads = collect(model, list, classes)
  local true_weights, n = weights_of(labels)
  if n[0] == 0 or n[1] == 0 then
    check.fail("%s: %d of class 0 and %d of class 1: there is nothing to compare", what,
      n[0], n[1])
  end
  local values, most, out = differences(x, labels, spans, o), {}, { n0 = n[0], n1 = n[1] }
  for h, head in ipairs(heads) do
    local z, means, above = standardised(values[h]), { [0] = 0, [1] = 0 }, 0
    for i, w in ipairs(true_weights) do
      local label = labels[i]
      if means[label] then means[label] = means[label] + x[h][i] * math.abs(w) end
    end
    for i = 2, #z do
      most[i] = math.max(most[i] or 0, math.abs(z[i]))
      if math.abs(z[i]) >= math.abs(z[1]) then above = above + 1 end
    end
    out[h] = { layer = head.layer, head = head.head, mean_0 = means[0], mean_1 = means[1],
      difference = values[h][1], z = z[1], p = (1 + above) / (o.permutations + 1) }
  end
  for _, row in ipairs(out) do
    local above = 0
    for i = 2, o.permutations + 1 do
      if most[i] >= math.abs(row.z) then above = above + 1 end
    end
    row.p_family = (1 + above) / (o.permutations + 1)
  end
  table.sort(out, function(a, b)
    if a.p_family ~= b.p_family then return a.p_family < b.p_family end
    if a.z ~= b.z then return math.abs(a.z) > math.abs(b.z) end
    return a.layer < b.layer or a.layer == b.layer and a.head < b.head
  end)
  return setmetatable(out, Contrast)
end)

--- The first n heads as names and rows of text.
function contrast.rows(found, n)
  local rows = {}
  for i = 1, math.min(n or #found, #found) do
    local r = found[i]
    rows[i] = { r.layer, r.head, ("%.4f"):format(r.mean_0), ("%.4f"):format(r.mean_1),
      ("%+.4f"):format(r.difference), ("%.1f"):format(r.z), ("%.4f"):format(r.p),
      ("%.4f"):format(r.p_family) }
  end
  return { "layer", "head", "class 0", "class 1", "difference", "z", "p", "p_family" },
      rows
end

function Contrast:__tostring()
  return ("mean weight on position 1: %d of class 0, %d of class 1\n"):format(self.n0,
    self.n1) .. text.table(contrast.rows(self, 20))
end

return contrast
