--- head_scan.lua - tables and figures of all heads of a language model.
local plot = require "sinklab.plot"
local text = require "sinklab.base.text"

local head_scan = {}

-- So many heads are listed; of more, those with the largest weight on position 1.
local LISTED = 40

local columns = { { "layer", "%d" }, { "head", "%d" }, { "first_mean", "%.4f" },
  { "rate", "%.2f" }, { "second_most", "%s" }, { "row_mass", "%.4f" },
  { "null_mass", "%.4f" }, { "first_over_rowsum", "%.4f" }, { "entropy", "%.3f" },
  { "contribution", "%.4f" }, { "value_norm", "%.3g" }, { "first_norm_ratio", "%.3f" } }

--- The position after the first that gets most weight (mean over the rows that see it),
-- and that weight; nil where columns were not measured.
local function second_most(found, layer, head)
  if not found.column or found.tokens < 3 then return nil end
  local column = found.column:select(1, layer):select(1, head):totable()
  local best
  -- The last few positions have few rows: one row alone is a mean of itself.
  for k = 2, math.max(2, found.tokens // 2) do
    if column[k] == column[k] and (not best or column[k] > column[best]) then best = k end
  end
  return best, best and column[best]
end

--- The table of heads: names and rows of text.
function head_scan.heads(found)
  local heads = table.move(found.heads, 1, #found.heads, 1, {})
  local cut = #heads > LISTED
  if cut then
    table.sort(heads, function(a, b)
      if a.first_mean ~= b.first_mean then return a.first_mean > b.first_mean end
      return a.layer < b.layer or a.layer == b.layer and a.head < b.head
    end)
    for i = #heads, LISTED + 1, -1 do heads[i] = nil end
  end
  local names, rows, shown = {}, {}, {}
  for _, c in ipairs(columns) do
    local there = heads[1][c[1]] ~= nil or c[1] == "second_most" and found.column
    if there then shown[#shown + 1], names[#names + 1] = c, c[1] end
  end
  for i, head in ipairs(heads) do
    rows[i] = {}
    for j, c in ipairs(shown) do
      local value = head[c[1]]
      if c[1] == "second_most" then
        local k, weight = second_most(found, head.layer, head.head)
        value = k and ("%d: %.3f"):format(k, weight) or "-"
      end
      rows[i][j] = (value == nil or value ~= value) and "-" or c[2]:format(value)
    end
  end
  return names, rows, cut and #found.heads - LISTED or 0
end

--- Layers in a table, where there are many heads.
function head_scan.layers(found, heads)
  local rows = {}
  for layer = 1, #found.heads // heads do
    local sum, most, over, at = 0, -1, 0, 0
    for h = 1, heads do
      local head = found.heads[(layer - 1) * heads + h]
      sum, over = sum + head.first_mean, over + head.rate
      if head.first_mean > most then most, at = head.first_mean, h end
    end
    rows[layer] = { layer, ("%.4f"):format(sum / heads), ("%.4f"):format(most), at,
      ("%.1f"):format(100 * over / heads) }
  end
  return { "layer", "first_mean", "largest", "of head", "Sink_1 %" }, rows
end

local function mean_and_std(list)
  local mean, m2 = 0, 0
  for i, x in ipairs(list) do
    local d = x - mean
    mean = mean + d / i
    m2 = m2 + d * (x - mean)
  end
  return mean, #list > 1 and math.sqrt(m2 / (#list - 1)) or 0 / 0
end

--- Sources in a table, with their mean and standard deviation.
-- @param list  of { name =, sinks = }
function head_scan.sources(list)
  local rows, ones, firsts, losses = {}, {}, {}, {}
  for i, source in ipairs(list) do
    local s = source.sinks
    ones[i], firsts[i], losses[i] = s:sink_k(1), s.first.mean, s.loss
    rows[i] = { source.name, s.samples, s.tokens, ("%.2f"):format(ones[i]),
      ("%.4f"):format(firsts[i]), ("%.4f"):format(losses[i]) }
  end
  if #list > 1 then
    local row = { "mean +- std", "", "" }
    for j, values in ipairs { ones, firsts, losses } do
      local mean, std = mean_and_std(values)
      row[3 + j] = (j == 1 and "%.2f +- %.2f" or "%.4f +- %.4f"):format(mean, std)
    end
    rows[#rows + 1] = row
  end
  return { "text", "samples", "tokens", "Sink_1 %", "first_mean", "loss" }, rows
end

--- A map of layers and heads of one number of every head, from 0 to 1, or, if it may be
-- `signed`, around 0.
function head_scan.map(found, heads, key, quantity, title, signed)
  local layers, data, ticks, sides = #found.heads // heads, {}, {}, {}
  local most = 0
  for layer = 1, layers do
    data[layer], sides[layer] = {}, tostring(layer)
    for h = 1, heads do
      data[layer][h] = found.heads[(layer - 1) * heads + h][key]
      most = math.max(most, math.abs(data[layer][h]))
      ticks[h] = tostring(h)
    end
  end
  return plot.heat(data, { title = title, xlabel = "head", ylabel = "layer",
    quantity = quantity, keys = ticks, queries = sides, samples = found.samples,
    palette = signed and "rdbu" or nil, vmin = signed and (most > 0 and -most or -1) or 0,
    vmax = signed and most > 0 and most or 1 })
end

-- Up to so many layers all have a tick on the axis.
local FEW = 9

--- Norms of the residual stream, layer by layer, at position 1 and elsewhere.
function head_scan.residual(found, title)
  local x, first, other = {}, {}, {}
  for i, state in ipairs(found.hidden.states) do
    x[i], first[i], other[i] = state.layer, state.first_norm, state.other_norm
  end
  return plot.lines({ { x = x, y = first, label = "position 1" },
    { x = x, y = other, label = "other positions" } }, { title = title,
    xlabel = "after layer", ylabel = "norm of the residual stream", scale = "log",
    xticks = #x <= FEW and x or nil, samples = found.samples })
end

--- Sink_k of every position: is the first one special, or is another one too?
function head_scan.positions(found, title)
  local y = found.sink:mean(1):mean(1):totable()
  for k, share in ipairs(y) do y[k] = 100 * share end
  return plot.lines({ { y = y, markers = #y <= 64 } }, { title = title,
    xlabel = "position k", ylabel = ("Sink_k at %g, %%"):format(found.threshold),
    ymin = 0, ymax = 100, samples = found.samples })
end

--- One head in full; with tokens on its axes where there was one sequence.
function head_scan.head(kept, title, tokens, samples)
  local named = tokens and #tokens == kept.mean.shape[1] and #tokens <= 96
  return plot.heat(kept.mean, { title = title, mask_upper = true,
    tokens = named and tokens or nil, size = named and #tokens > 20 and 5 or nil,
    samples = samples, vmin = 0, vmax = 1 })
end

--- The numbers of a measurement that run.json records.
function head_scan.record(found)
  local out = found:record()
  out.losses, out.kept, out.sink_1 = nil, nil, found:sink_k(1)
  return out
end

head_scan.table = text.table

return head_scan
