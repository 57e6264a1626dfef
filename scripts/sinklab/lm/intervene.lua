--- intervene.lua - lab.lm.intervene: what a change does to loss and sinks.
local check = require "sinklab.check"
local loss = require "sinklab.lm.loss"
local measure = require "sinklab.lm.measure"
local sequences = require "sinklab.lm.sequences"
local text = require "sinklab.text"

local intervene = {}

local Effects = { __name = "sinklab.lm.effects" }

-- Changes of the model, which model:with makes; the others are of the sequences.
local of_model = { zero_heads = true, mechanism = true, layers = true }

local rules = {
  name = { "string" },
  zero_heads = { "table" }, mechanism = { "string table" }, layers = { "table" },
  drop_first = { "boolean" }, move_first = { "integer", min = 2 },
  mask_keys = { "integer table", min = 1 },
}

--- What of a head is compared, where it was measured.
local compared = { "first_mean", "row_mass", "proxy", "contribution", "entropy", "rate",
  "value_norm", "null_mass" }

--- A change in a few words.
local function words(o)
  if o.name then return o.name end
  local parts = {}
  if o.drop_first then parts[#parts + 1] = "drop first" end
  if o.move_first then parts[#parts + 1] = "first to " .. o.move_first end
  if type(o.mask_keys) == "number" then
    parts[#parts + 1] = "mask first " .. o.mask_keys
  elseif o.mask_keys then
    parts[#parts + 1] = "mask keys " .. table.concat(o.mask_keys, " ")
  end
  if o.zero_heads then
    local names = {}
    for i, pair in ipairs(o.zero_heads) do
      names[i] = ("%s:%s"):format(tostring(pair[1]), tostring(pair[2]))
    end
    parts[#parts + 1] = "zero " .. table.concat(names, " ")
  end
  if o.mechanism then
    local name = type(o.mechanism) == "table" and o.mechanism[1] or o.mechanism
    parts[#parts + 1] = tostring(name)
        .. (o.layers and " in " .. table.concat(o.layers, " ") or "")
  end
  return table.concat(parts, ", ")
end

local function changed_sequence(what, model, s, o)
  local c = model.config
  local changes = sequences.changes
  if s.documents then
    check.fail("%s: the first token and keys are changed in sequences of one document", what)
  end
  if o.drop_first then s = changes.drop_first(s) end
  if o.move_first then
    if o.move_first > #s.ids then
      check.fail("%s: the first token cannot move to position %d of %d", what, o.move_first,
        #s.ids)
    end
    s = changes.move_first(s, o.move_first)
  end
  if o.mask_keys then
    local masked, inner = {}, false
    if type(o.mask_keys) == "number" then
      for i = 1, o.mask_keys do masked[i] = true end
    else
      for _, i in ipairs(o.mask_keys) do masked[i], inner = true, inner or i > 1 end
    end
    local windowed = false
    for _, window in ipairs(c.windows) do windowed = windowed or window > 0 end
    if inner and (c.positions == "alibi" or windowed) then
      check.fail("%s: mask_keys of other than the first tokens does not go with ALiBi or windows, which count keys",
        what)
    end
    s = changes.mask_keys(s, masked)
  end
  if #s.ids == 0 then check.fail("%s: no token is left", what) end
  return s
end

--- Apply a change: another model and other sequences.
local function apply(what, model, list, o)
  local own, any = {}, false
  for key in pairs(of_model) do
    own[key] = o[key]
    any = any or o[key] ~= nil
  end
  if any then model = model:with(own) end
  local out = {}
  for i, s in ipairs(list) do out[i] = changed_sequence(what, model, s, o) end
  return model, out
end

--- Measure a model and the same model with changes, one at a time.
--
-- Losses compare the prediction of the same tokens: those that both predict. Masking a
-- key hides it from every query in every layer; the other tokens keep their positions.
-- A moved or dropped first token is really somewhere else, or gone.
-- @param model    from lab.lm.open
-- @param list     sequences, as for lab.lm.sinks
-- @param changes  list of { name =, and one or more of: drop_first = true, move_first = k
--                 (its new position), mask_keys = n (the first n) or a list of positions,
--                 zero_heads = { { layer, head }, ... }, mechanism = a plugin, layers =
--                 those that get it }
-- @param given    as for lab.lm.sinks
-- @return { before = sinks, { name =, sinks =, loss =, loss_before =, loss_change =,
--         predicted =, heads = { { layer =, head =, first_mean = the change, ... } } },
--         ... }; prints as a table
-- @error a change that does nothing, or does not fit the model
-- @example
--   local model = lab.lm.random { layers = 2 }
--   print(lab.lm.intervene(model, { 1, 9, 4, 7, 5 }, {
--     { drop_first = true }, { mechanism = "softmax1", layers = { 2 } } }))
function intervene.intervene(model, list, changes, given)
  local what = "lab.lm.intervene"
  list = measure.sequences(what, list)
  check.argument(what, "changes", changes, "table")
  local before = measure.sinks(model, list, given)
  if not before.losses then check.fail("%s: loss = false leaves nothing to compare", what) end
  local out = { before = before }
  for i, change in ipairs(changes) do
    local place = ("%s: change %d"):format(what, i)
    local o = check.options(place, change, rules)
    if words(o) == "" or next(o) == "name" and not next(o, "name") then
      check.fail("%s changes nothing", place)
    end
    local other, others = apply(place, model, list, o)
    local after = measure.sinks(other, others, given)
    local was, is, n = loss.compare(before.losses, after.losses)
    local effect = { name = words(o), sinks = after, loss = is, loss_before = was,
      loss_change = is - was, predicted = n, heads = {} }
    for h, head in ipairs(after.heads) do
      local first, row = before.heads[h], { layer = head.layer, head = head.head }
      for _, key in ipairs(compared) do
        if head[key] and first[key] then row[key] = head[key] - first[key] end
      end
      effect.heads[h] = row
    end
    out[i] = effect
  end
  return setmetatable(out, Effects)
end

function Effects:__tostring()
  local rows = { { "(unchanged)", ("%.4f"):format(self.before.loss), "-",
    ("%.4f"):format(self.before.first.mean), ("%.1f"):format(self.before:sink_k(1)),
    ("%d"):format(self.before.predicted) } }
  for i, e in ipairs(self) do
    rows[i + 1] = { e.name, ("%.4f"):format(e.loss), ("%+.4f"):format(e.loss_change),
      ("%.4f"):format(e.sinks.first.mean), ("%.1f"):format(e.sinks:sink_k(1)),
      ("%d"):format(e.predicted) }
  end
  return text.table({ "change", "loss", "difference", "first_mean", "Sink_1 %",
    "tokens compared" }, rows)
end

return intervene
