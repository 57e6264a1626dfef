--- measure.lua - lab.lm.sinks: attention sinks of a language model over sequences.
--
-- The prefill is measured as it runs: lab.sinks.collect observes attention block by
-- block, so that memory grows with heads x tokens. Sequences may have any lengths and
-- hold packed documents; results do not depend on batches and padding.
local core = require "sinklab.core"
local check = require "sinklab.base.check"
local schema = require "sinklab.base.schema"
local loss = require "sinklab.lm.loss"
local progress = require "sinklab.base.progress"
local sequences = require "sinklab.lm.sequences"
local measures = require "sinklab.measure.measures"
local sinks = require "sinklab.measure.sinks"

local measure = {}

-- Options that lab.sinks.collect gets unchanged.
local passed = { "measures", "maps", "keep", "threshold", "thresholds", "dormant" }

--- W_O of a layer: (d_model, heads * d_value).
local function output_of(model, layer)
  local o = model.layers[layer].o
  return o.transposed or o.weight:tensor "f32"
end

--- Sequences as this library has them: lists of ids become sequences.
function measure.sequences(what, given)
  if type(given[1]) == "number" then given = { given } end
  if #given == 0 then check.fail("%s: there are no sequences", what) end
  local out = {}
  for i, s in ipairs(given) do
    if type(s) ~= "table" then
      check.fail("%s: sequence %d must be a list of token ids, got a %s", what, i,
        type(s))
    end
    out[i] = s.numbers and s or sequences.new(s.ids or s, s.source)
    out[i].documents = s.documents
    if #out[i].ids == 0 then check.fail("%s: sequence %d is empty", what, i) end
  end
  return out
end

--- Labels of all sequences, as the collector takes them: (S) and (S, T), the padding of
-- a batch on the side where it will be.
local function labels_of(list, tokens, o)
  local length, start, documents, groups, packed = {}, {}, {}, {}, false
  for first = 1, #list, o.batch do
    local last, widest = math.min(first + o.batch - 1, #list), 0
    for i = first, last do widest = math.max(widest, #list[i].ids) end
    for i = first, last do
      local s = list[i]
      local shift = o.padding == "left" and widest - #s.ids or 0
      local d, begins = 1, s.documents or { 1 }
      packed = packed or #begins > 1
      start[i], length[i], documents[i] = shift, shift + #s.ids, {}
      if o.groups then groups[i] = {} end
      for at = 1, tokens do
        local k = at - shift
        if begins[d + 1] == k then d = d + 1 end
        documents[i][at] = d
        if o.groups then
          local own = o.groups[i]
          groups[i][at] = type(own) == "table" and own[k] or k >= 1 and k <= #s.ids
              and type(own) == "number" and own or -1
        end
      end
    end
  end
  return { length = core.tensor(length),
    start = o.padding == "left" and core.tensor(start) or nil,
    documents = packed and core.tensor(documents) or nil,
    groups = o.groups and core.tensor(groups) or nil }
end

local as_in_sinks = schema.pick(measures.rows, table.unpack(passed))

--- Options of lab.lm.sinks.
measure.rows = schema.join({
  { "batch", "integer", default = 1, min = 1, unit = "sequences", doc = "at once" },
  { "padding", "string", default = "right", choices = { "right", "left" } },
  { "loss", "boolean", default = true, doc = "how well the sequences are predicted" },
  { "groups", "table", doc = [[for each sequence a class (from 0) of its plain rows, or a
    list with one for each place (negative: none)]] },
}, as_in_sinks)

measure.sinks = schema.func("lab.lm.sinks", {
  doc = [[Measure a language model's sinks on token sequences.

    The measures and the result are those of lab.sinks. Rows are kept apart by class
    (first, plain, boundary), documents in one sequence by their own first tokens.]],
  args = {
    { "model", "language_model" },
    { "list", "table", doc = [[of token ids, or of such lists; or of sequences { ids =,
      documents = the places, from 1, where packed documents begin }]] },
  },
  options = measure.rows,
  returns = [[the result of lab.sinks, and { loss = nats a token, predicted = how many,
    losses = for each sequence the nats by the number of a token, seconds }]],
  errors = "sequences that are empty or hold ids outside the vocabulary",
  example = [[
    local model = lab.lm.random { layers = 2 }
    local found = lab.lm.sinks(model, { { 1, 9, 4, 7 }, { 1, 3 } }, { batch = 2 })
    print(found, found.loss)]],
}, function(model, list, o)
  local what = "lab.lm.sinks"
  list = measure.sequences(what, list)
  local c, tokens, declared = model.config, 0, false
  for _, s in ipairs(list) do tokens = math.max(tokens, #s.ids) end
  for _, own in ipairs(model.blocks) do
    declared = declared or own.mechanism.properties.null_mass
    if not own.mechanism.has_weights then
      check.fail("%s: '%s' is a mixer without weights: there is nothing to measure", what,
        own.mechanism.name)
    end
  end
  o.batch = math.min(o.batch, #list)
  local options = labels_of(list, tokens, o)
  for _, key in ipairs(passed) do options[key] = o[key] end
  options.layers, options.heads, options.tokens = c.layers, c.heads, tokens
  options.samples, options.batch, options.null_mass = #list, o.batch, declared or nil
  local collector = sinks.collect(options)
  local losses, seconds = {}, 0
  -- A single batch shows no progress.
  local work <close> = #list > o.batch and progress.work("sinks", #list) or nil
  sequences.each_batch(list, o.batch, o.padding, function(batch, first, part)
    local began = core.clock()
    -- One W_O is unpacked at a time: that of the layer that comes next.
    local function after(layer, states)
      if collector.states then collector:hidden(layer, states, first) end
      if layer > 0 then collector:output(layer, nil) end
      if layer < c.layers then
        collector:output(layer + 1, output_of(model, layer + 1))
      end
    end
    local h = collector:watch(first, function()
      return model:forward(batch.ids, { length = batch.length,
        first_key = batch.first_key,
        positions = batch.positions, layer = after })
    end, { n = #part })
    seconds = seconds + core.clock() - began
    if o.loss then
      local shift = batch.start and batch.start:totable()
      for i, own in ipairs(loss.of_batch(model, h, part, shift)) do
        losses[first + i - 1] = own
      end
    end
    if work then work:at(first + #part - 1) end
    core.stop_if_interrupted()
  end)
  local found = collector:finish()
  found.seconds = seconds
  if o.loss then
    found.losses = losses
    found.loss, found.predicted = loss.mean(losses)
  end
  return found
end)

--- Losses alone, one sequence at a time: as in what sinks gives.
function measure.losses(model, list)
  local out = {}
  sequences.each_batch(list, 1, "right", function(batch, first, part)
    local h = model:forward(batch.ids, { positions = batch.positions })
    out[first] = loss.of_batch(model, h, part)[1]
    core.stop_if_interrupted()
  end)
  return out
end

--- language_model:attention, with its options.
function measure.attention(model, o)
  local ids = o.ids
  if core.is_tensor(ids) then ids = ids:reshape { -1 }:totable() end
  local found = measure.sinks(model, { ids }, { keep = { { o.layer, o.head } },
    loss = false })
  return found.kept[1].mean
end

return measure
