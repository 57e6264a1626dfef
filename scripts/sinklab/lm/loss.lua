--- loss.lua - cross entropy of a language model in nats a token, some rows of logits at
-- a time.
local core = require "sinklab.core"
local forward = require "sinklab.lm.forward"
local sequences = require "sinklab.lm.sequences"

local loss = {}

-- Rows of logits at once: a vocabulary of 128,000 in f32 takes 128 MB for them.
local ROWS = 256

--- Loss of the rows of h that have a target; calls f (place of the row, nats).
local function rows_of(model, h, targets, f)
  local width = h.shape[#h.shape]
  local rows = h:reshape { -1, width }
  local places = {}
  for place in pairs(targets) do places[#places + 1] = place end
  table.sort(places)
  for first = 1, #places, ROWS do
    local last = math.min(first + ROWS - 1, #places)
    local at, ids = {}, {}
    for i = first, last do
      at[#at + 1], ids[#ids + 1] = places[i] - 1, targets[places[i]]
    end
    local chosen = core.embedding(rows, core.tensor(at))
    local logits <close> = forward.logits(model, chosen)
    local _, each = core.cross_entropy(logits, core.tensor(ids))
    for i, nats in ipairs(each:totable()) do f(places[first + i - 1], nats) end
  end
end

--- Losses of sequences: for each a table from the number of a token to its nats.
-- @param h      (B, T, D) hidden states of a batch
-- @param list   its sequences
-- @param shift  how many places of padding stand before each, or nil
function loss.of_batch(model, h, list, shift)
  local tokens, targets, where = h.shape[2], {}, {}
  for b, s in ipairs(list) do
    for i, target in ipairs(sequences.targets(s)) do
      if target then
        local place = (b - 1) * tokens + i + (shift and shift[b] or 0)
        targets[place], where[place] = target[1], { b, target[2] }
      end
    end
  end
  local out = {}
  for b = 1, #list do out[b] = {} end
  rows_of(model, h, targets, function(place, nats)
    local w = where[place]
    out[w[1]][w[2]] = nats
  end)
  return out
end

--- Mean over all tokens that both have; `a` and `b` as of_batch gives them.
function loss.compare(a, b)
  local sum_a, sum_b, n = 0, 0, 0
  for s, by_number in ipairs(a) do
    local numbers = {}
    for number in pairs(by_number) do
      if b[s] and b[s][number] then numbers[#numbers + 1] = number end
    end
    table.sort(numbers)
    for _, number in ipairs(numbers) do
      sum_a, sum_b, n = sum_a + by_number[number], sum_b + b[s][number], n + 1
    end
  end
  return sum_a / n, sum_b / n, n
end

--- Mean of all losses, and how many there are.
function loss.mean(a)
  local mean, _, n = loss.compare(a, a)
  return mean, n
end

return loss
