--- attention.lua - the option `attention` of a model, read: plugins and host features.
local core = require "sinklab.core"
local check = require "sinklab.base.check"
local schema = require "sinklab.base.schema"

local attention = {}

-- The keys of the option's table; with a plugin's name as `mechanism`, the plugin's own
-- options stand beside them: { mechanism = "relu", normaliser = "length" }.
attention.rows = {
  { "mechanism", "string table", default = "softmax", doc = [[a row plugin (weights from
    scores) or a mixer plugin (a head's output from the layer's input): its name, with its
    options beside it, or { NAME, OPTION = VALUE }]] },
  { "gate", "string table",
    doc = "a gate plugin, on the output of every head, as a name or with its options" },
  { "scale", "number", default_doc = "the model's", doc = "factor of q . k" },
  { "causal", "boolean", default = true, doc = "no key after its query" },
  { "window", "integer table", default = 0, min = 0, unit = "keys", doc = [[visible to a
    query; 0: all. A list is repeated over the layers: { 8, 0 } has a window of 8 keys in
    layers 1, 3, 5, ...]] },
  { "kv_bias", "string table", doc = [[a learned key that every query sees before the
    first token, not rotated: "k" (its value is 0), "kv" (the value is learned too), or
    "v": no key, a learned value is added to the output (Gu et al. 2025, arXiv
    2410.10781; Sun et al. 2024, arXiv 2402.17762). One for each key/value head, or one
    for all with { "kv", shared = true }. Starts at N(0, 0.02^2)]] },
}

local host_rules = schema.rules(attention.rows)

--- The plugin that an option names, with its options.
-- @param plugin_options  options beside mechanism = NAME
function attention.plugin(what, given, plugin_options)
  local name, own = given, plugin_options
  if type(given) == "table" then
    name, own = given[1], {}
    if type(name) ~= "string" then
      check.fail("%s: expected a plugin's name, or { NAME, OPTION = VALUE }; "
        .. "the table has no name first", what)
    end
    local stray = next(plugin_options)
    if stray ~= nil then
      check.fail("%s: option '%s' stands beside a table; move it inside: "
        .. "{ \"%s\", %s = ... }", what, tostring(stray), name, tostring(stray))
    end
    for key, value in pairs(given) do
      if key ~= 1 then own[key] = value end
    end
  elseif next(plugin_options) ~= nil then
    -- A stray key may be meant for the host as well as for the plugin.
    local options = core.mechanism(name, {}).options
    for key in pairs(plugin_options) do
      if options[key] == nil then
        local names = {}
        for _, rule in ipairs(host_rules) do names[#names + 1] = rule.name end
        for known in pairs(options) do names[#names + 1] = known end
        check.unknown(what, key, names)
      end
    end
  end
  return core.mechanism(name, own)
end

local function check_shape(what, option, m, allowed)
  if allowed[m.shape] then return end
  check.fail("%s: attention: %s is '%s', which is a %s; expected a %s%s", what, option,
    m.name, m.shape, option == "gate" and "gate" or "row or mixer",
    m.shape == "gate" and (" (try gate = \"%s\")"):format(m.name)
    or (" (try mechanism = \"%s\")"):format(m.name))
end

--- "k", "v" or "kv", and whether all heads share it.
local function kv_bias(what, given)
  local kind, shared = given, false
  if type(given) == "table" then
    local o = check.options(what .. ": attention: kv_bias", { kind = given[1],
      shared = given.shared }, { kind = { "string", required = "\"k\", \"v\" or \"kv\"" },
      shared = { "boolean", default = false } })
    for key in pairs(given) do
      if key ~= 1 and key ~= "shared" then
        check.unknown(what .. ": attention: kv_bias", key, { "shared" })
      end
    end
    kind, shared = o.kind, o.shared
  end
  if kind ~= "k" and kind ~= "v" and kind ~= "kv" then
    check.fail("%s: attention: kv_bias is '%s'; it must be \"k\", \"v\" or \"kv\"", what,
      tostring(kind))
  end
  return { key = kind ~= "v", value = kind ~= "k", shared = shared }
end

--- Refuse what needs the host's queries, keys or values, which a mixer does not have.
local function check_mixer(what, o, a)
  local name = a.mechanism.name
  if a.kv_heads ~= a.heads then
    check.fail("%s: '%s' is a mixer, which has no shared key/value heads: "
      .. "kv_heads must be heads", what, name)
  elseif o.kv_bias then
    check.fail("%s: attention: kv_bias needs a row plugin as mechanism; "
      .. "'%s' is a mixer", what, name)
  elseif a.positions:match "^rotary" or a.positions == "alibi" then
    check.fail("%s: positions '%s' need a row plugin as mechanism; '%s' is a mixer "
      .. "(try \"learned\")", what, a.positions, name)
  elseif a.qk_norm or a.clip then
    check.fail("%s: %s needs a row plugin as mechanism; '%s' is a mixer", what,
      a.qk_norm and "qk_norm" or "clip_qkv", name)
  end
end

--- Windows of the layers, as a list that is repeated over them, and the largest.
local function windows_of(what, given)
  local list, most = type(given) == "table" and given or { given }, 0
  if #list == 0 then
    check.fail("%s: attention: window must be a number or a list of numbers", what)
  end
  for i, window in ipairs(list) do
    if math.type(window) ~= "integer" or window < 0 then
      check.fail("%s: attention: window[%d] must be a whole number from 0, got %s", what,
        i, tostring(window))
    end
    most = math.max(most, window)
  end
  return list, most
end

--- Read a model's `attention` option.
-- @param shape  { scale =, heads =, kv_heads =, d_model =, d_head =, positions =,
--               tokens =, qk_norm =, clip = }
function attention.options(what, given, shape)
  if type(given) == "string" then given = { mechanism = given } end
  if given[1] ~= nil then
    check.fail("%s: attention: a table needs its mechanism by name: "
      .. "attention = { mechanism = { \"%s\", ... } }", what, tostring(given[1]))
  end
  local host, plugin_options = {}, {}
  for key, value in pairs(given) do
    if host_rules[key] then host[key] = value else plugin_options[key] = value end
  end
  local o = check.options(what .. ": attention", host, host_rules)
  local a = {}
  for key, value in pairs(shape) do a[key] = value end
  if a.heads % a.kv_heads ~= 0 then
    check.fail("%s: %d heads cannot share %d key/value heads: it must divide them",
      what, a.heads, a.kv_heads)
  end
  if a.positions:match "^rotary" and a.d_head % 2 ~= 0 then
    check.fail("%s: rotary positions need an even d_head, got %d", what, a.d_head)
  end
  a.scale, a.causal = o.scale or a.scale, o.causal
  local most
  a.windows, most = windows_of(what, o.window)
  a.mechanism = attention.plugin(what .. ": attention: mechanism", o.mechanism,
    plugin_options)
  check_shape(what, "mechanism", a.mechanism, { row = true, mixer = true })
  if o.gate then
    a.gate = attention.plugin(what .. ": attention: gate", o.gate, {})
    check_shape(what, "gate", a.gate, { gate = true })
  end
  if a.mechanism.shape == "mixer" then check_mixer(what, o, a) end
  if a.mechanism.properties.causal_only and (not a.causal or most > 0) then
    check.fail("%s: attention: '%s' does causal attention without a window only", what,
      a.mechanism.name)
  end
  if o.kv_bias then
    a.kv_bias = kv_bias(what, o.kv_bias)
    if a.kv_bias.key and most > 0 then
      check.fail("%s: attention: a key bias does not go with a window", what)
    end
  end
  a.d_out = a.mechanism:output_width(a.d_head, a.tokens)
  a.virtual_keys = a.kv_bias and a.kv_bias.key and 1 or 0
  a.name = a.mechanism.name .. (a.gate and " + " .. a.gate.name or "")
  return a
end

--- The composition in a line: what print (model) shows.
function attention.text(a)
  local parts = { "mechanism " .. tostring(a.mechanism) }
  if a.gate then parts[#parts + 1] = "gate " .. tostring(a.gate) end
  if a.kv_bias then
    local b = a.kv_bias
    parts[#parts + 1] = ("kv_bias %s%s%s"):format(b.key and "k" or "",
      b.value and "v" or "", b.shared and " (shared)" or "")
  end
  parts[#parts + 1] = ("scale %.6g"):format(a.scale)
  parts[#parts + 1] = a.causal and "causal" or "full"
  local windows = table.concat(a.windows, " ")
  if windows ~= "0" then parts[#parts + 1] = "window " .. windows end
  return table.concat(parts, ", ")
end

return attention
