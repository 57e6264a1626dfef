--- measures.lua - the table of what lab.sinks can measure, by group and name.
--
-- The measures of a group are switched on together, because they cost one pass more;
-- "rows" is always on. docs/measures.md says each measure's formula, source and traps.
local core = require "sinklab.core"
local check = require "sinklab.base.check"
local hidden = require "sinklab.measure.hidden"

local measures = {}

--- group -> the names it gives: of heads[i], unless said in docs/measures.md. Those of
-- the core's tables (core/sinks/measures.c) are added.
measures.groups = {
  rows = { "first_mean", "first_min", "first_std", "first_all", "trigger_first", "curve",
    "classes", "groups" },
  columns = { "sink", "sink_over_rowsum", "column", "column_over_rowsum", "peak_key" },
  share = { "share_1", "share_4", "share_8", "boost_1", "boost_4", "boost_8",
    "largest_1", "largest_4", "largest_8" },
  norms = { "key_norms", "value_norms", "output_norms" },
  logits = {},
  hidden = { "hidden", "massive", "peak", "kurtosis", "max_norm", "secondary" },
}
for name, group in pairs(core.sink_measures) do
  table.insert(measures.groups[group], name)
end

-- Groups that the core measures while attention runs.
local watching = { columns = true, share = true, norms = true, logits = true }

local group_of = {}
for group, names in pairs(measures.groups) do
  group_of[group] = group
  for _, name in ipairs(names) do group_of[name] = group end
end

--- Raise on values that the core would not know how to name.
-- @param what  the function, for messages
-- @param o     options as `rules` has read them
function measures.check(what, o)
  for i, t in ipairs(o.thresholds or {}) do
    if type(t) ~= "number" or not (t > 0 and t <= 1) then
      check.fail("%s: thresholds[%d] is %s; it must be a number above 0 and at most 1",
        what, i, tostring(t))
    end
  end
  if o.keep and o.maps then
    check.fail("%s: option 'keep' names some heads, 'maps' keeps all: one of the two",
      what)
  end
end

--- Which groups a user's list of groups and measures asks for.
-- @param what   the function, for messages
-- @param given   nil, "all", a name, or a list of names of groups or measures
-- @param hidden  options of the residual stream, which must be asked for then; or nil
-- @return list for the core, whether the residual stream is asked for
function measures.read(what, given, hidden)
  local on, list = {}, {}
  if given == "all" then
    for group in pairs(measures.groups) do on[group] = true end
  else
    for _, name in ipairs(type(given) == "table" and given or { given }) do
      if not group_of[name] then
        local names = { "all" }
        for known in pairs(group_of) do names[#names + 1] = known end
        check.unknown(what, name, names, "measure")
      end
      on[group_of[name]] = true
    end
  end
  for group in pairs(on) do
    if watching[group] then list[#list + 1] = group end
  end
  if hidden and not on.hidden then
    check.fail("%s: option 'hidden' is for the residual stream, which is not measured "
      .. "(try measures = { \"hidden\" })", what)
  end
  return list, on.hidden or false
end

--- Options that every way of measuring takes.
measures.rows = {
  { "measures", "string table", list = "names of measures", doc = [[names of measures or
    of their groups, or "all"; always: "rows"; more: "columns" (Sink_k for every k,
    column entropy, random positions), "share" (the first 1, 4, 8 keys), "norms" (keys,
    values), "logits" (sink logit), "hidden" (the residual stream)]] },
  { "maps", "boolean", default_doc = "up to 512 tokens, without keep",
    doc = "mean and std over samples of every weight" },
  { "keep", "table", list = "{ layer, head }", doc = "maps of these heads only" },
  { "threshold", "number", default = 0.3, above = 0, max = 1,
    doc = "eps of the sink rate Sink_1^eps (Gu et al. 2025)" },
  { "thresholds", "table", list = "numbers",
    doc = "more of them: heads[i].curve has the rates at each" },
  { "share_rows", "integer", default = 64, min = 1,
    doc = [[last rows of a document that "share" counts]] },
  { "dormant", "number", default = 0.89, doc = [[weight on position 1 from which a row
    of a group is dormant (Guo et al. 2024)]] },
  { "hidden", "table", fields = hidden.limits, doc = "options of lab.sinks.hidden" },
}

--- Groups count from 0 to the largest one named.
function measures.groups_of(what, groups)
  if groups == nil then return nil end
  if not core.is_tensor(groups) then
    check.fail("%s: groups must be a tensor of whole numbers from 0, got a %s", what,
      type(groups))
  end
  local top = groups:max():item()
  if not (top < 2 ^ 20) then
    check.fail("%s: the largest of the groups is %g; "
      .. "allowed are whole numbers up to 2^20, or below 0 for none", what, top)
  end
  return math.max(1, math.floor(top) + 1)
end

--- A list of heads, checked.
-- @param place   the function and what of it, for messages
-- @param layers  how many the model has
-- @param heads   of each
-- @return function (layer, head): whether it is among them; their names, "1:2 2:1"
function measures.read_heads(place, list, layers, heads)
  local chosen, names = {}, {}
  check.list(place, "heads", list, "{ layer, head }")
  if #list == 0 then check.fail("%s: heads is an empty list", place) end
  for i, pair in ipairs(list) do
    local layer, head
    if type(pair) == "table" then layer, head = pair[1], pair[2] end
    if math.type(layer) ~= "integer" or math.type(head) ~= "integer" or layer < 1
        or head < 1 or layer > layers or head > heads then
      check.fail("%s: heads[%d] must be { layer, head } within %d layers of %d heads",
        place, i, layers, heads)
    end
    chosen[layer] = chosen[layer] or {}
    chosen[layer][head] = true
    names[i] = layer .. ":" .. head
  end
  return function(layer, head)
    return chosen[layer] ~= nil and chosen[layer][head] == true
  end, table.concat(names, " ")
end

return measures
