--- intervene.lua - lab.lm.intervene: the effect of a change on loss and sinks.
--
-- The changes have the names of lab.intervene; move_first and mechanism are only here.
local head_changes = require "sinklab.measure.head_changes"
local check = require "sinklab.base.check"
local schema = require "sinklab.base.schema"
local loss = require "sinklab.lm.loss"
local measure = require "sinklab.lm.measure"
local sequences = require "sinklab.lm.sequences"
local text = require "sinklab.base.text"

local intervene = {}

local Effects = { __name = "sinklab.lm.effects" }

-- Changes of heads, where attention is computed; of texts; of the whole model.
local text_rows = { { "drop_first", "boolean" }, { "move_first", "integer", min = 2 } }
local of_heads, of_text = schema.rules(head_changes.of_heads), schema.rules(text_rows)
local kinds = schema.join(head_changes.of_heads, text_rows,
  { { "mechanism", "string table" } })
local kind_rules = schema.rules(kinds)
local rules = schema.rules(schema.join(kinds, { { "name", "string" },
  { "layers", "table", list = "layers", of = "integer" },
  { "heads", "string table", default = "each", choices = { "each", "all" } } }))

--- The numbers of `after` minus those of `before`; keys in `same` are copied.
local function differences(before, after, same)
  local out = {}
  for key, value in pairs(after) do
    local was = before[key]
    if same[key] then
      out[key] = value
    elseif type(value) == "number" and type(was) == "number" then
      out[key] = value - was
    end
  end
  return out
end

--- The same, table by table of two lists.
local function all_differences(before, after, same)
  local out = {}
  for i, each in ipairs(after) do out[i] = differences(before[i], each, same) end
  return out
end

local of_head, of_state = { layer = true, head = true }, { layer = true }

local function heads_text(heads)
  if type(heads) ~= "table" then return heads end
  local names = {}
  for i, pair in ipairs(heads) do
    names[i] = type(pair) == "table" and ("%s:%s"):format(tostring(pair[1]),
      tostring(pair[2])) or tostring(pair)
  end
  return table.concat(names, " ")
end

--- The one change that a user's table names, and its name.
local function read_change(place, given)
  local o = check.options(place, given, rules)
  local kind = head_changes.one(place, o, kind_rules)
  local argument = head_changes.text(o[kind])
  local said = kind == "mechanism" and "" or (kind:gsub("_", " "))
  if argument ~= "" then said = said .. " " .. argument end
  if of_heads[kind] then
    said = said .. " in " .. heads_text(o.heads)
  elseif given.heads ~= nil then
    check.fail("%s: %s is of all heads: heads does not go with it", place, kind)
  end
  if kind == "mechanism" and o.layers then
    said = said .. " in layers " .. table.concat(o.layers, " ")
  elseif o.layers then
    check.fail("%s: layers are those of a mechanism, and none is given", place)
  end
  return { kind = kind, argument = o[kind], heads = o.heads, layers = o.layers,
    name = o.name or (said:gsub("^ ", "")) }
end

--- A change of "each" head as one change for each head.
local function expand(list, change, c)
  if not of_heads[change.kind] or change.heads ~= "each" then
    list[#list + 1] = change
    return
  end
  for layer = 1, c.layers do
    for head = 1, c.heads do
      local one = { heads = { { layer, head } }, layer = layer, head = head }
      for key, value in pairs(change) do one[key] = one[key] or value end
      one.name = (change.name:gsub("each$", ("%d:%d"):format(layer, head)))
      list[#list + 1] = one
    end
  end
end

--- Whether a change is one of the text. Keys hidden in all heads are tokens left out,
-- which needs no dense attention, unless ALiBi or a window counts the keys between.
local function is_text_change(change, c)
  if of_text[change.kind] then return true end
  if change.kind ~= "mask" or change.heads ~= "all" then return false end
  local last, n = 0, 0
  for _, p in ipairs(type(change.argument) == "table" and change.argument
    or { change.argument }) do
    last, n = math.max(last, p), n + 1
  end
  local counted = c.positions == "alibi"
  for _, window in ipairs(c.windows) do counted = counted or window > 0 end
  return last == n or not counted
end

local function changed_text(place, s, change)
  if s.documents then
    check.fail("%s: %s is of sequences of one document", place, change.kind)
  end
  if change.kind == "drop_first" then
    s = sequences.changes.drop_first(s)
  elseif change.kind == "move_first" then
    if change.argument > #s.ids then
      check.fail("%s: the first token cannot move to position %d of %d", place,
        change.argument, #s.ids)
    end
    s = sequences.changes.move_first(s, change.argument)
  else
    local masked = {}
    for _, p in ipairs(type(change.argument) == "table" and change.argument
      or { change.argument }) do
      if p > #s.ids then
        check.fail("%s: mask is position %d; there are 1 to %d", place, p, #s.ids)
      end
      masked[p] = true
    end
    s = sequences.changes.mask(s, masked)
  end
  if #s.ids == 0 then check.fail("%s: no token is left", place) end
  return s
end

--- Fill in what is measured for a change: change.model on change.list, and whether its
-- attention is dense.
local function prepare(place, model, list, change)
  change.model, change.list = model, list
  if is_text_change(change, model.config) then
    local others = {}
    for i, s in ipairs(list) do others[i] = changed_text(place, s, change) end
    change.list = others
    return
  elseif change.kind == "mechanism" then
    change.model = model:with { mechanism = change.argument, layers = change.layers }
    return
  end
  change.model = model:with { [change.kind] = change.argument, heads = change.heads }
  change.dense = change.kind ~= "zero"
  for _, s in ipairs(change.dense and list or {}) do
    if s.documents then
      check.fail("%s: %s is of sequences of one document", place, change.kind)
    end
  end
end

--- The changes that a user lists, one for each head of "each"; all are checked before
-- anything is computed.
-- @param what  the function, for messages
function intervene.prepare(what, model, list, changes)
  local wanted = {}
  for i, change in ipairs(changes) do
    expand(wanted, read_change(("%s: change %d"):format(what, i), change), model.config)
  end
  for _, change in ipairs(wanted) do
    prepare(("%s: %s"):format(what, change.name), model, list, change)
  end
  return wanted
end

--- Measure with a change: sinks and losses; sinks nil where attention is dense.
local function apply(change, given)
  if change.dense then return { losses = measure.losses(change.model, change.list) } end
  return measure.sinks(change.model, change.list, given)
end

--- The effects of changes.
-- @param before  what lab.lm.sinks gave without them
-- @param wanted  from intervene.prepare
-- @param given   options of lab.lm.sinks
function intervene.effects(before, wanted, given)
  local out = { before = before }
  for i, change in ipairs(wanted) do
    local after = apply(change, given)
    local was, is, n = loss.compare(before.losses, after.losses)
    local effect = { name = change.name, layer = change.layer, head = change.head,
      loss = is, loss_before = was, loss_change = is - was, predicted = n }
    if after.heads then
      effect.sinks = after
      effect.heads = all_differences(before.heads, after.heads, of_head)
    end
    if after.hidden and before.hidden then
      effect.states = all_differences(before.hidden.states, after.hidden.states, of_state)
    end
    out[i] = effect
  end
  return setmetatable(out, Effects)
end

intervene.intervene = schema.func("lab.lm.intervene", {
  doc = [[Measure a model and the same model with changes, one at a time.

    Losses compare the predictions of the same tokens: those that both predict. A
    dropped or moved first token is really gone, or somewhere else. A key that is masked
    in all heads is a token that nobody sees; the others keep their positions. The
    changes that lab.intervene makes to weights and values (onto, off, remove, value,
    mask in some heads) are computed densely: they have losses, and no sinks are
    measured.]],
  args = {
    { "model", "language_model" },
    { "list", "table", doc = "sequences, as for lab.lm.sinks" },
    { "changes", "table", list = "changes such as { drop_first = true }", doc = [[{ one
      of: drop_first = true, move_first = its new position, mechanism = a plugin's name
      or { NAME, OPTION = VALUE } (with layers = those that get it, default all), zero =
      true, mask = position or list, onto, off, remove = position, value = { position =
      1, to = 0 }: as for lab.intervene, with heads = "each" (default: one at a time),
      "all" or a list of { layer, head } together; name = }]] },
  },
  options = measure.rows,
  returns = [[{ before = sinks, { name =, layer =, head =, loss =, loss_before =,
    loss_change =, predicted = tokens compared, sinks =, heads = { { layer =, head =,
    first_mean = the change, ... } }, states = with "hidden" the same of the residual
    stream by layer }, ... }; prints as a table]],
  errors = "a change that does nothing, or does not fit the model",
  example = [[
    local model = lab.lm.random { layers = 2 }
    print(lab.lm.intervene(model, { 1, 9, 4, 7, 5 }, { { drop_first = true },
      { mechanism = "softmax1", layers = { 2 } }, { off = 1, heads = { { 1, 2 } } } }))]],
}, function(model, list, changes, o)
  local what = "lab.lm.intervene"
  list = measure.sequences(what, list)
  local wanted = intervene.prepare(what, model, list, changes)
  local before = measure.sinks(model, list, o)
  if not before.losses then
    check.fail("%s: loss = false leaves nothing to compare", what)
  end
  return intervene.effects(before, wanted, o)
end)

function Effects:__tostring()
  local function row(name, sinks, nats, was, n)
    return { name, ("%.4f"):format(nats), was and ("%.4f"):format(was) or "-",
      was and ("%+.4f"):format(nats - was) or "-", ("%d"):format(n),
      sinks and ("%.4f"):format(sinks.first.mean) or "-",
      sinks and ("%.1f"):format(sinks:sink_k(1)) or "-" }
  end
  local rows = { row("(unchanged)", self.before, self.before.loss, nil,
    self.before.predicted) }
  for i, e in ipairs(self) do
    rows[i + 1] = row(e.name, e.sinks, e.loss, e.loss_before, e.predicted)
  end
  return text.table({ "change", "loss", "before", "difference", "same tokens",
    "first_mean", "Sink_1 %" }, rows)
end

return intervene
