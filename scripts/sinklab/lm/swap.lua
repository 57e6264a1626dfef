--- swap.lua - another mechanism in place of a trained model's attention.
--
-- A row plugin gets the scores that the model's own attention would, a mixer its queries,
-- keys and values. Parameters start where the plugin says; what a plugin would have to
-- learn from the layer's input cannot be had from a trained model, and is refused.
local core = require "sinklab.core"
local check = require "sinklab.base.check"

local swap = {}

-- What a trained layer can give a mixer.
local given_inputs = { q = true, k = true, v = true }

--- The plugin of "softmax1" or { "sinklogit", init = 2 }.
local function plugin(what, given)
  if type(given) == "string" then return core.mechanism(given, {}) end
  if type(given) ~= "table" or type(given[1]) ~= "string" then
    check.fail("%s: expected a plugin's name, or { NAME, OPTION = VALUE }", what)
  end
  local options = {}
  for key, value in pairs(given) do
    if key ~= 1 then options[key] = value end
  end
  return core.mechanism(given[1], options)
end

--- Parameters (heads, n) as the plugin declares that they start; nil without any.
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
  if #parts == 0 then return nil end
  return #parts == 1 and parts[1] or core.concat(parts, 2)
end

local function check_mix(what, m, c, layer)
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
  if m.claims.causal_only and c.windows[layer] > 0 then
    check.fail("%s: '%s' cannot do the window of layer %d", what, m.name, layer)
  end
  if c.positions == "alibi" then
    check.fail("%s: '%s' is a mixer, which has no scores that ALiBi could tilt", what,
      m.name)
  end
end

--- What stands in for the attention of one layer: { mechanism, param }.
-- @param what   for messages
-- @param given  a plugin's name, or { NAME, OPTION = VALUE }
function swap.of(what, model, layer, given)
  local c, m = model.config, plugin(what, given)
  if m.shape == "gate" then
    check.fail("%s: '%s' is a gate; expected a row or mixer plugin", what, m.name)
  elseif m.shape == "mixer" then
    check_mix(what, m, c, layer)
  end
  return { mechanism = m, param = parameters(what, m, c.heads, c.d_head) }
end

--- Keys or values of the key/value heads for every head: (B, T, heads * d).
local function spread(c, x, d)
  if c.kv_heads == c.heads then return x end
  local s = x.shape
  local groups = x:reshape { s[1], s[2], c.kv_heads, 1, d }
  groups = groups:broadcast { s[1], s[2], c.kv_heads, c.heads // c.kv_heads, d }
  return groups:reshape { s[1], s[2], c.heads * d }
end

--- The heads' output by a mixer.
-- @param own  from swap.of
function swap.mixer(model, layer, own, q, k, v, run)
  local c = model.config
  local by_name = { q = q, k = spread(c, k, c.d_head), v = spread(c, v, c.d_value) }
  local inputs = {}
  for i, input in ipairs(own.mechanism.inputs) do inputs[i] = by_name[input.name] end
  if run.first_key then
    check.fail("'%s' is a mixer: it cannot keep documents or left padding apart",
      own.mechanism.name)
  end
  return core.mixer { inputs = inputs, mechanism = own.mechanism, heads = c.heads,
    d_head = c.d_head, scale = c.scale, window = c.windows[layer], layer = layer,
    param = own.param, length = run.length }
end

return swap
