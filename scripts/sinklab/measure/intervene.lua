--- intervene.lua - lab.intervene: the effect of a change of some heads on the loss.
local core = require "sinklab.core"
local check = require "sinklab.base.check"
local schema = require "sinklab.base.schema"
local head_changes = require "sinklab.measure.head_changes"
local dense = require "sinklab.theorem.dense_attention"
local join = require "sinklab.base.tensors".join
local progress = require "sinklab.base.progress"
local read_heads = require "sinklab.measure.measures".read_heads
local segments = require "sinklab.measure.segments"
local text = require "sinklab.base.text"

local methods = {}
local Effects = { __index = methods, __name = "sinklab.effects" }

local classes = { "plain", "first", "trigger", "boundary" }

-- Sequences changed at once.
local SHARD = 64

local kinds = schema.join(head_changes.of_heads, { { "freeze", "boolean tensor" },
  { "drop_first", "boolean" } })
local rules = schema.rules(schema.join(kinds, { { "name", "string" },
  { "heads", "string table", default = "each", choices = { "each", "all" } } }))
local kind_rules = schema.rules(kinds)

-- Losses of rows.

--- (B, T): the mean squared error of a row, or its cross entropy; rows without a target
-- are 0 in the second tensor.
local function row_losses(what, prediction, y)
  local p, t = prediction.shape, y.shape
  if #p == 3 and #t == 3 and table.concat(p, " ") == table.concat(t, " ") then
    return core.mean(core.square(prediction - y), 3), core.ones({ p[1], p[2] }, y.dtype)
  elseif #p == 3 and #t == 2 and p[1] == t[1] and p[2] == t[2] then
    local scored = core.ge(y, 0)
    local index = core.where(scored, y, y * 0):reshape { p[1], p[2], 1 }
    local picked = core.gather(core.log_softmax(prediction, 3), 3, index)
    return picked:reshape { p[1], p[2] } * scored * -1, scored
  end
  check.fail("%s: predictions are (%s) and targets (%s); allowed are equal shapes, "
    .. "or classes for each token", what, table.concat(p, ", "), table.concat(t, ", "))
end

--- Mean loss of each class of rows that there are.
local function by_class(losses, scored, row_class)
  local out, all, n = {}, 0, 0
  for i, name in ipairs(classes) do
    local mask = core.eq(row_class, i - 1) * scored
    local count = core.sum(mask):item()
    if count > 0 then
      local sum = core.sum(core.where(mask, losses, losses * 0)):item()
      out[name] = sum / count
      all, n = all + sum, n + count
    end
  end
  out.all = all / n
  return out
end

-- Running the model.

--- Losses (B, T) of the batch, in f64, and which rows have a target.
local function evaluate(what, model, batch, first_key, attend)
  local samples = batch.x.shape[1]
  local losses, scored = {}, {}
  for first = 1, samples, SHARD do
    local n = math.min(SHARD, samples - first + 1)
    local function part(t) return t and t:narrow(1, first, n) end
    local l, s = row_losses(what, model:forward(part(batch.x), part(batch.length),
      part(first_key), { attend = attend }), part(batch.y))
    losses[#losses + 1], scored[#scored + 1] = l:to "f64", s:to "f64"
  end
  return join(losses, 1), join(scored, 1)
end

-- Changes.

local function check_position(place, name, position, tokens)
  if math.type(position) ~= "integer" or position < 1 or position > tokens then
    check.fail("%s: %s is position %s; there are 1 to %d", place, name,
      tostring(position), tokens)
  end
end

--- The argument of one change, checked, and its name.
local function read_argument(place, model, batch, name, argument)
  local tokens = batch.x.shape[2]
  if model.mechanism.shape ~= "row" and name ~= "zero" then
    check.fail("%s: '%s' is a mixer, whose heads can be zeroed only", place,
      model.mechanism.name)
  end
  if model.attention.virtual_keys > 0 and name ~= "zero" then
    check.fail("%s: a model with a key bias can have heads zeroed only", place)
  end
  local packed = batch.documents or batch.start
  if packed and (name == "freeze" or name == "value" and argument.to == "mean"
      or name == "mask" and argument ~= 1) then
    check.fail("%s: %s does not go with packed documents or left padding, "
      .. "where a position is not one column%s",
      place, name, name == "mask" and " (but mask = 1 does)" or "")
  end
  if name == "mask" and type(argument) == "table" then
    if #argument == 0 then check.fail("%s: mask is an empty list", place) end
    local copy, seen = {}, {}
    for i, p in ipairs(argument) do
      check_position(place, name, p, tokens)
      if seen[p] then check.fail("%s: mask has position %d twice", place, p) end
      copy[i], seen[p] = p, true
    end
    return copy
  elseif name == "onto" or name == "off" or name == "remove" or name == "mask" then
    check_position(place, name, argument, tokens)
  elseif name == "value" then
    local o = check.options(place .. ": value", argument, {
      position = { "integer", default = 1, min = 1, max = tokens },
      to = { "number string table tensor", default = 0,
        choices = { "mean", "others" } } })
    return o
  elseif name == "freeze" then
    if model.registers > 0 then
      check.fail("%s: freeze does not go with registers", place)
    end
    if argument == true then
      local maps = require "sinklab.measure.sinks" (model, batch, { maps = true })
      return maps.mean
    end
    local want = { model.layers, model.heads, tokens, tokens }
    if not core.is_tensor(argument)
        or table.concat(argument.shape, " ") ~= table.concat(want, " ") then
      check.fail("%s: freeze must be true or a tensor (%s)", place,
        table.concat(want, ", "))
    end
  end
  return argument
end

--- A user's change: { change = { name = argument }, name = words, heads = }.
local function read_change(place, model, batch, given)
  local o = check.options(place, given, rules)
  local name = head_changes.one(place, o, kind_rules)
  local gone = name == "drop_first"
  local change = gone and "mask" or name
  local argument = read_argument(place, model, batch, change, gone and 1 or o[name])
  local said = gone and "" or head_changes.text(argument)
  return { change = { [change] = argument }, heads = gone and "all" or o.heads,
    name = o.name or name:gsub("_", " ") .. (said == "" and "" or " " .. said),
    first_is_gone = gone }
end

--- The sets of heads that a change is tried on: { layer, head, chosen = function }.
local function sets_of(place, model, heads)
  local sets = {}
  if heads == "all" then
    return { { chosen = function() return true end } }
  elseif heads == "each" then
    for l = 1, model.layers do
      for h = 1, model.heads do
        sets[#sets + 1] = { layer = l, head = h,
          chosen = function(layer, head) return layer == l and head == h end }
      end
    end
    return sets
  end
  local chosen, names = read_heads(place, heads, model.layers, model.heads)
  return { { heads = names, chosen = chosen } }
end

local intervene = schema.func("lab.intervene", {
  doc = [[Change some heads of a model while it is evaluated, one change at a time, and
    compare the loss of each class of rows.

    Positions count from 1. Changes are of attention weights (before a gate) and values,
    in the chosen heads; everything after has their effect. `onto` and `off` keep a
    row's mass, `remove` and `mask` do not: mask hides a key before the mechanism, which
    then has one key less. Everything is computed densely: for small models.]],
  args = {
    { "model", "model",
      doc = "from lab.model; a mixer or a model with a key bias can have heads zeroed" },
    { "batch", "table", doc = [[with x and y, and trigger, length, start and documents
      where there are any: positions are those in the document]] },
    { "changes", "table", list = "changes such as { zero = true }", doc = [[{ one of:
      zero = true, onto = position, off = position (the rest grows), remove = position
      (the rest stays), mask = position or list, value = { position = 1, to = 0: a
      number, a vector, "mean" over samples or "others": mean of the sequence's other
      positions }, freeze = true (the mean pattern over the batch) or a tensor (layers,
      heads, T, T), drop_first = true (no layer sees position 1); heads = "each"
      (default: one at a time), "all" or a list of { layer, head } together; name = }]] },
  },
  returns = [[{ samples =, before = { plain =, first =, trigger =, boundary =, all = mean
    losses }, { name =, layer =, head = (or heads =), loss = { plain =, ... }, change =
    { plain = difference, ... } }, ... }; effects:rows(), effects:figure()]],
  errors = "a change that does nothing or does not fit the model",
  source = [[Guo et al. 2024, arXiv 2410.13835 (zeroed heads); Sun et al. 2024, arXiv
    2402.17762 (values set to a mean)]],
  example = [[
    local task = lab.task.trigger_mean { seq_len = 6 }
    local model = lab.model.attention_only { task = task, heads = 2 }
    local effects = lab.intervene(model, task:batch { n = 8 }, {
      { zero = true }, { off = 1 }, { value = { position = 1, to = "mean" } },
      { drop_first = true } })
    print(effects, effects[1].change.trigger)]],
}, function(model, batch, changes)
  local what = "lab.intervene"
  if type(batch) ~= "table" or not core.is_tensor(batch.x)
      or not core.is_tensor(batch.y) then
    check.fail("%s: the second argument must be a batch with x and y "
      .. "(try task:batch { n = 100 })", what)
  end
  local first_key = segments.first_key(what, model, batch)
  local list = {}
  for i, given in ipairs(changes) do
    local place = ("%s: change %d"):format(what, i)
    list[i] = read_change(place, model, batch, given)
    list[i].sets = sets_of(place, model, list[i].heads)
  end
  local shape = batch.x.shape
  local row_class = core.row_classes { samples = shape[1], tokens = shape[2], layers = 1,
    heads = 1, trigger = batch.trigger, length = batch.length, start = batch.start,
    documents = batch.documents }
  local function losses(attend, gone)
    local l, scored = evaluate(what, model, batch, first_key, attend)
    local found = by_class(l, scored, row_class)
    if gone then found.first, found.boundary, found.all = nil, nil, nil end
    return found
  end
  local before = losses(dense.attend(nil, nil, model.registers))
  local out = { before = before, samples = shape[1] }
  local parts = 0
  for _, change in ipairs(list) do parts = parts + #change.sets end
  local work <close> = progress.work("intervene", parts)
  for _, change in ipairs(list) do
    for _, set in ipairs(change.sets) do
      local effect = { name = change.name, layer = set.layer, head = set.head,
        heads = set.heads or not set.layer and "all" or nil, change = {} }
      effect.loss = losses(dense.attend(change.change, set.chosen, model.registers),
        change.first_is_gone)
      for class, loss in pairs(effect.loss) do
        effect.change[class] = loss - before[class]
      end
      out[#out + 1] = effect
      work:at(#out)
    end
  end
  return setmetatable(out, Effects)
end)

--- The classes of rows that there are, in their order.
local function present(self)
  local out = {}
  for _, class in ipairs(classes) do
    if self.before[class] then out[#out + 1] = class end
  end
  return out
end

methods.rows = schema.func("effects:rows", {
  doc = "Rows of text under a row of column names: losses before, then the differences.",
  returns = "names, rows: for lab.text.table",
  example = [[
    local task = lab.task.trigger_mean { seq_len = 6 }
    local model = lab.model.attention_only { task = task }
    local effects = lab.intervene(model, task:batch { n = 8 }, { { zero = true } })
    print(lab.text.table(effects:rows()))]],
}, function(self)
  local names, rows = { "change", "layer", "head" }, {}
  local shown_classes = present(self)
  local function row(name, layer, head, values, format)
    local out = { name, layer, head }
    for i, class in ipairs(shown_classes) do
      out[3 + i] = values[class] and format:format(values[class]) or "-"
    end
    rows[#rows + 1] = out
  end
  for _, class in ipairs(shown_classes) do names[#names + 1] = class end
  row("(loss before)", "", "", self.before, "%.3e")
  for _, e in ipairs(self) do
    row(e.name, e.layer and tostring(e.layer) or "",
      e.head and tostring(e.head) or e.heads, e.change, "%+.3e")
  end
  return names, rows
end)

methods.record = schema.func("effects:record", {
  doc = "A table for run:add: { samples =, before =, effects = list of the changes }.",
  returns = "table without methods",
  example = [[
    local task = lab.task.trigger_mean { seq_len = 6 }
    local model = lab.model.attention_only { task = task }
    local effects = lab.intervene(model, task:batch { n = 8 }, { { zero = true } })
    print(effects:record().effects[1].name)]],
}, function(self)
  return { samples = self.samples, before = self.before,
    effects = table.move(self, 1, #self, 1, {}) }
end)

function Effects:__tostring()
  return "loss by class of rows: before, and the difference that a change makes\n"
      .. text.table(self:rows())
end

methods.figure = schema.func("effects:figure", {
  doc = [[Heat maps of the differences, layers down and heads across: a row of panels
    for each change that was tried on each head, a column for each class of rows.]],
  options = { { "title", "string" } },
  returns = "figure",
  errors = "effects of which none was tried head by head",
  example = [[
    local task = lab.task.trigger_mean { seq_len = 6 }
    local model = lab.model.attention_only { task = task, heads = 2 }
    print(lab.intervene(model, task:batch { n = 8 }, { { zero = true } }):figure())]],
}, function(self, o)
  local what = "effects:figure"
  local names, maps = {}, {}
  for _, e in ipairs(self) do
    if e.layer then
      if not maps[e.name] then
        names[#names + 1], maps[e.name] = e.name, {}
      end
      for class, change in pairs(e.change) do
        local map = maps[e.name][class] or {}
        map[e.layer] = map[e.layer] or {}
        map[e.layer][e.head] = change
        maps[e.name][class] = map
      end
    end
  end
  if #names == 0 then
    check.fail("%s: no change was tried head by head (heads = \"each\")", what)
  end
  local panels, shown_classes = {}, present(self)
  for _, name in ipairs(names) do
    for _, class in ipairs(shown_classes) do
      local map, most = maps[name][class], 0
      for _, row in ipairs(map) do
        for _, x in ipairs(row) do most = math.max(most, math.abs(x)) end
      end
      if most == 0 then most = 1 end
      panels[#panels + 1] = { data = map, title = name .. ": " .. class .. " rows",
        xlabel = "head", ylabel = "layer", quantity = "change of the loss",
        palette = "rdbu", vmin = -most, vmax = most }
    end
  end
  return require "sinklab.plot".panels(panels, { columns = #shown_classes,
    title = o.title, samples = self.samples })
end)

return intervene
