--- patching.lua - a trained model with one change: another mechanism in some layers,
-- ablated heads, patched weights or values.
--
-- Another row plugin gets the scores of the model's own attention, a mixer its queries,
-- keys and values. Parameters start where the plugin says; a plugin that would have to
-- learn something from the layer's input is refused.
local core = require "sinklab.core"
local attention = require "sinklab.model.attention"
local check = require "sinklab.base.check"
local read_heads = require "sinklab.measure.measures".read_heads

local patching = {}

-- Inputs of a mixer that a trained layer has.
local given_inputs = { q = true, k = true, v = true }

--- Parameters as the plugin declares that they start: list of (heads, n).
local function parameters(what, m, heads, d_head)
  local parts = {}
  for i, p in ipairs(m.params) do
    if p.init == "normal" or p.init == "uniform" then
      check.fail("%s: '%s' of '%s' starts at random: a trained model has nothing for it",
        what, p.name, m.name)
    end
    parts[i] = core.full({ heads, p.width_per_dhead * d_head + p.width_fixed },
      p.init == "const" and p.scale or 0)
  end
  return parts
end

local function check_mixer(what, m, c, layer)
  for _, input in ipairs(m.inputs) do
    if not given_inputs[input.name] then
      check.fail("%s: '%s' needs its input '%s', which a trained model does not have",
        what, m.name, input.name)
    end
    if input.shared or input.width_per_dhead ~= 1 or input.width_fixed ~= 0 then
      check.fail("%s: '%s' needs its input '%s' in another width than this model's heads",
        what, m.name, input.name)
    end
  end
  if m.properties.causal_only and c.windows[layer] > 0 then
    check.fail("%s: '%s' cannot do the window of layer %d", what, m.name, layer)
  end
  if c.positions == "alibi" then
    check.fail("%s: '%s' is a mixer, which has no scores that ALiBi could tilt", what,
      m.name)
  end
end

--- A layer's table with another mechanism.
-- @param given  a plugin's name, or { NAME, OPTION = VALUE }
local function with_mechanism(what, model, layer, given)
  local c, m = model.config, attention.plugin(what, given, {})
  if m.shape == "gate" then
    check.fail("%s: '%s' is a gate; expected a row or mixer plugin", what, m.name)
  elseif m.shape == "mixer" then
    check_mixer(what, m, c, layer)
  end
  return { mechanism = m, params = parameters(what, m, c.heads, c.d_head) }
end

--- The layers of a model, some with other fields: `changes[layer]`.
local function layers_with(model, changes)
  local out = {}
  for layer, block in ipairs(model.blocks) do
    out[layer] = block
    if changes[layer] then
      out[layer] = {}
      for key, value in pairs(block) do out[layer][key] = value end
      for key, value in pairs(changes[layer]) do out[layer][key] = value end
    end
  end
  return out
end

--- Another mechanism in `layers`, a list of numbers, or in all.
local function mechanisms(what, model, given, layers)
  local changes = {}
  for i = 1, layers and #layers or #model.blocks do
    local layer = layers and layers[i] or i
    if not model.blocks[layer] then
      check.fail("%s: there is no layer %s: layers are 1 to %d", what, tostring(layer),
        #model.blocks)
    end
    changes[layer] = with_mechanism(what, model, layer, given)
  end
  return layers_with(model, changes)
end

--- Heads ablated: their output is multiplied by 0.
local function ablated(model, chosen)
  local c, changes = model.config, {}
  for layer = 1, c.layers do
    for head = 1, c.heads do
      if chosen(layer, head) then
        changes[layer] = changes[layer] or { kept = core.ones { c.heads * c.d_value } }
        changes[layer].kept:narrow(1, (head - 1) * c.d_value + 1, c.d_value):fill(0)
      end
    end
  end
  return layers_with(model, changes)
end

-- Changes of attention weights and values, computed densely.
local dense_changes = { "mask", "onto", "off", "remove", "value" }

--- The fields of a model that the options of language_model:with change.
function patching.changed(what, model, o)
  local c, out = model.config, {}
  if o.layers and not o.mechanism then
    check.fail("%s: layers are those of a mechanism, and none is given", what)
  end
  local chosen = o.heads == "all" and function() return true end
      or read_heads(what, o.heads, c.layers, c.heads)
  if o.mechanism then
    out.blocks = mechanisms(what, model, o.mechanism, o.layers)
  elseif o.zero then
    out.blocks = ablated(model, chosen)
  end
  for _, name in ipairs(dense_changes) do
    if o[name] then
      local dense = require "sinklab.theorem.dense_attention"
      local attend = dense.attend({ [name] = o[name] }, chosen, 0)
      -- A mixer has no weights or values that could be changed.
      function out.attend(call)
        return call.inputs and core.mixer(call) or attend(call)
      end
    end
  end
  return out
end

return patching
