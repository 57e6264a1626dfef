--- sequences.lua - token sequences: texts cut up, batched, changed.
--
-- A sequence is { ids = list of token ids, source = name of its text, documents = list
-- of the places (from 1) where packed documents begin, or nil; positions = list of the
-- positions (from 0), or nil: 0, 1, 2, ...; targets = for each place { id, number } of
-- the token that it predicts or false: none; nil: the next token of its document; numbers
-- = of each token, its place in the unchanged sequence }. A token keeps its number when
-- the sequence is changed, so that losses of the same token are compared.
local core = require "sinklab.core"

local sequences = {}

--- A sequence of one document, unchanged.
function sequences.new(ids, source)
  local new = { ids = ids, source = source, numbers = {} }
  for i = 1, #ids do new.numbers[i] = i end
  return new
end

--- Mark where documents begin: at the first token, and at every `id` that does not
-- follow another `id` (two in a row begin one document).
function sequences.split_at(sequence, id)
  local begins, ids = {}, sequence.ids
  for i, token in ipairs(ids) do
    if i == 1 or token == id and ids[i - 1] ~= id then begins[#begins + 1] = i end
  end
  sequence.documents = #begins > 1 and begins or nil
  return sequence
end

--- Several sequences packed into one, whose documents do not attend to each other.
function sequences.pack(list, source)
  local ids, begins = {}, {}
  for _, sequence in ipairs(list) do
    begins[#begins + 1] = #ids + 1
    table.move(sequence.ids, 1, #sequence.ids, #ids + 1, ids)
  end
  local packed = sequences.new(ids, source)
  packed.documents = #begins > 1 and begins or nil
  return packed
end

--- The document (from 1) and its first place, for every place.
local function document_of(sequence)
  local of, begin, d = {}, {}, 1
  local begins = sequence.documents or { 1 }
  for i = 1, #sequence.ids do
    if begins[d + 1] == i then d = d + 1 end
    of[i], begin[i] = d, begins[d]
  end
  return of, begin
end

--- Targets of each place: { id, number } or false.
function sequences.targets(sequence)
  if sequence.targets then return sequence.targets end
  local of, out = document_of(sequence), {}
  for i = 1, #sequence.ids do
    out[i] = of[i + 1] == of[i] and { sequence.ids[i + 1], sequence.numbers[i + 1] }
        or false
  end
  return out
end

--- Sequences side by side, padded to the longest.
-- @param side  "right" or "left": where the padding is
-- @return { ids = (B, T), tokens = T, and where there is any: length = (B),
--         first_key = (B, T), start = (B), positions = (B, T), documents = (B, T) }
function sequences.batch(list, side)
  local most, shortest, documents, placed = 0, math.huge, false, false
  for _, s in ipairs(list) do
    most, shortest = math.max(most, #s.ids), math.min(shortest, #s.ids)
    documents = documents or s.documents ~= nil
    placed = placed or s.positions ~= nil
  end
  local left = side == "left" and shortest < most
  local ids, begins, positions, lengths, starts, numbers = {}, {}, {}, {}, {}, {}
  for b, s in ipairs(list) do
    local of, first = document_of(s)
    local shift = left and most - #s.ids or 0
    ids[b], begins[b], positions[b], numbers[b] = {}, {}, {}, {}
    lengths[b], starts[b] = left and most or #s.ids, shift
    for i = 1, most do
      local k = i - shift
      local token = k >= 1 and k <= #s.ids
      ids[b][i] = token and s.ids[k] or 0
      numbers[b][i] = token and of[k] or 0
      -- Left padding has a first key past itself: no key is visible to it.
      begins[b][i] = token and first[k] - 1 + shift or k < 1 and i or 0
      positions[b][i] = token and (s.positions and s.positions[k] or k - first[k]) or 0
    end
  end
  return { ids = core.tensor(ids), tokens = most,
    length = not left and shortest < most and core.tensor(lengths) or nil,
    start = left and core.tensor(starts) or nil,
    first_key = (left or documents) and core.tensor(begins) or nil,
    positions = (left or documents or placed) and core.tensor(positions) or nil,
    documents = documents and core.tensor(numbers) or nil }
end

--- Batches of at most `size` neighbours of about `tokens` tokens: calls f (batch,
-- first, list) for each.
function sequences.each_batch(list, size, side, f)
  for first = 1, #list, size do
    local part = table.move(list, first, math.min(first + size - 1, #list), 1, {})
    f(sequences.batch(part, side), first, part)
  end
end

-- Changes: sequence -> another sequence, whose targets keep their numbers.

local changes = {}

--- Without its first token: position 0 is the second.
function changes.drop_first(s)
  local out = sequences.new(table.move(s.ids, 2, #s.ids, 1, {}), s.source)
  out.numbers = table.move(s.numbers, 2, #s.numbers, 1, {})
  return out
end

--- The first token moved to position k, behind the k - 1 tokens after it.
function changes.move_first(s, k)
  local out = sequences.new({}, s.source)
  out.numbers = {}
  local function add(i)
    out.ids[#out.ids + 1], out.numbers[#out.numbers + 1] = s.ids[i], s.numbers[i]
  end
  for i = 2, #s.ids do
    add(i)
    if i == k then add(1) end
  end
  return out
end

--- Keys hidden from every query: the tokens are left out, the others keep their
-- positions and targets. (A token reaches others only through its key and value.)
function changes.mask(s, masked)
  local out, targets = sequences.new({}, s.source), sequences.targets(s)
  out.numbers, out.positions, out.targets = {}, {}, {}
  for i = 1, #s.ids do
    if not masked[i] then
      local n = #out.ids + 1
      out.ids[n], out.numbers[n] = s.ids[i], s.numbers[i]
      out.positions[n], out.targets[n] = i - 1, targets[i]
    end
  end
  return out
end

sequences.changes = changes

return sequences
