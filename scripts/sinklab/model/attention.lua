--- attention.lua - the attention of a layer: plugins composed with host features.
--
-- What a model's `attention` option may be:
--
--   "softmax"                                 the mechanism alone
--   { mechanism =, gate =, scale =, causal =, window =, kv_bias = }
--
-- mechanism  what makes a head's output from the layer input: a row plugin (weights from
--          scores) or a mixer plugin (the whole mechanism). Default "softmax".
-- gate     a gate plugin, applied to the output of every head. Default none.
--          mechanism and gate are each a NAME, or { NAME, OPTION = VALUE, ... } with the
--          plugin's own options. Where mechanism is a name, its options may also stand
--          beside it: { mechanism = "relu", normaliser = "length" }.
-- scale    of q.k; the default is the model's. A mixer applies it itself.
-- causal   default true
-- window   how many keys a query sees, default 0: no window
-- kv_bias  a learned key that every query sees before the first token, not rotated:
--          "k" (its value is 0), "kv" (the value is learned too), or "v": no key, a
--          learned value is added to the output (Gu et al. 2025, arXiv 2410.10781;
--          Sun et al. 2024, arXiv 2402.17762). One for each key/value head, or one for
--          all with { "kv", shared = true }. Starts at N(0, 0.02^2).
--
-- Parameters of a plugin are (heads, width), the matrices of its inputs (outputs,
-- d_model); both are called layerN.PLUGIN.NAME.
local core = require "sinklab.core"
local check = require "sinklab.base.check"
local init_values = require "sinklab.model.init_values"

local attention = {}

local zeros = init_values.constant(0)

local host_rules = {
  mechanism = { "string table", default = "softmax" },
  gate = { "string table" },
  scale = { "number" },
  causal = { "boolean", default = true },
  window = { "integer", default = 0, min = 0 },
  kv_bias = { "string table" },
}

--- The plugin that an option names, with its options; `beside`: those that stand
-- beside mechanism.
local function plugin(what, given, beside)
  local name, own = given, beside
  if type(given) == "table" then
    name, own = given[1], {}
    if type(name) ~= "string" then
      check.fail("%s: expected a plugin's name, or { NAME, OPTION = VALUE }; "
        .. "the table has no name first", what)
    end
    local stray = next(beside)
    if stray ~= nil then
      check.fail("%s: option '%s' stands beside a table; move it inside: "
        .. "{ \"%s\", %s = ... }", what, tostring(stray), name, tostring(stray))
    end
    for key, value in pairs(given) do
      if key ~= 1 then own[key] = value end
    end
  elseif next(beside) ~= nil then
    -- A stray key may be meant for the host as well as for the plugin.
    local options = core.mechanism(name, {}).options
    for key in pairs(beside) do
      if options[key] == nil then
        local names = {}
        for known in pairs(host_rules) do names[#names + 1] = known end
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

--- What a mixer plugin leaves to nobody: it has no keys of the host's.
local function check_mix(what, o, a)
  local name = a.mechanism.name
  if a.kv_heads ~= a.heads then
    check.fail("%s: '%s' is a mixer, which has no shared key/value heads: "
      .. "kv_heads must be heads", what, name)
  elseif o.kv_bias then
    check.fail("%s: attention: kv_bias needs a row plugin as mechanism; '%s' is a mixer", what,
      name)
  elseif a.positions:match "^rotary" or a.positions == "alibi" then
    check.fail("%s: positions '%s' need a row plugin as mechanism; '%s' is a mixer "
      .. "(try \"learned\")", what, a.positions, name)
  end
end

--- Read what a model's `attention` option says.
-- @param shape  { scale =, heads =, kv_heads =, d_model =, d_head =, positions =,
--               tokens = }
function attention.options(what, given, shape)
  if type(given) == "string" then given = { mechanism = given } end
  if given[1] ~= nil then
    check.fail("%s: attention: a table needs its mechanism by name: "
      .. "attention = { mechanism = { \"%s\", ... } }", what, tostring(given[1]))
  end
  local host, beside = {}, {}
  for key, value in pairs(given) do
    if host_rules[key] then host[key] = value else beside[key] = value end
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
  a.scale, a.causal, a.window = o.scale or a.scale, o.causal, o.window
  a.mechanism = plugin(what .. ": attention: mechanism", o.mechanism, beside)
  check_shape(what, "mechanism", a.mechanism, { row = true, mixer = true })
  if o.gate then
    a.gate = plugin(what .. ": attention: gate", o.gate, {})
    check_shape(what, "gate", a.gate, { gate = true })
  end
  if a.mechanism.shape == "mixer" then check_mix(what, o, a) end
  if a.mechanism.claims.causal_only and (not a.causal or a.window > 0) then
    check.fail("%s: attention: '%s' does causal attention without a window only", what,
      a.mechanism.name)
  end
  if o.kv_bias then
    a.kv_bias = kv_bias(what, o.kv_bias)
    if a.kv_bias.key and a.window > 0 then
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
  if a.window > 0 then parts[#parts + 1] = "window " .. a.window end
  return table.concat(parts, ", ")
end

--- The initialiser that a plugin declares; `default` where it leaves it open.
local function start(p, default)
  if p.init == "normal" then return init_values.normal(p.scale) end
  if p.init == "uniform" then return init_values.uniform(p.scale) end
  if p.init == "const" then return init_values.constant(p.scale) end
  return default
end

local function width(p, d) return p.width_per_dhead * d + p.width_fixed end

--- Plan a plugin's parameters; returns a function that gives them as one (heads, n)
-- tensor, or nil. `d` is what the plugin's widths count in.
local function plan_params(plan, name, m, heads, d)
  local names = {}
  for i, p in ipairs(m.params) do
    names[i] = name(m.name .. "." .. p.name)
    plan:add(names[i], { heads, width(p, d) }, start(p, zeros))
  end
  if #names == 0 then return function() end end
  return function(p)
    local parts = {}
    for i, n in ipairs(names) do parts[i] = p:get(n) end
    return #parts == 1 and parts[1] or core.concat(parts, 2)
  end
end

--- Plan the matrices of a plugin's inputs, appended to `maps`.
local function plan_inputs(plan, name, m, heads, d, d_model, init, maps)
  for _, p in ipairs(m.inputs) do
    local rows = (p.shared and 1 or heads) * width(p, d)
    local at = name(m.name .. "." .. p.name)
    plan:add(at, { rows, d_model }, start(p, init))
    maps[#maps + 1] = { name = at, rows = rows }
  end
end

--- x -> one tensor for each linear map of x. Maps that lie side by side are one
-- product; `biased`: the first so many have a bias, b_q to b_v, and are another.
local function projection(p, maps, d_model, biased, name)
  local groups = {}
  local function group(first, last, bias)
    if first > last then return end
    local rows = 0
    for i = first, last do rows = rows + maps[i].rows end
    groups[#groups + 1] = { first = first, last = last,
      w = p:span(maps[first].name, maps[last].name, { rows, d_model }),
      b = bias and p:span(name "b_q", name "b_v", { rows }) or nil }
  end
  group(1, biased, true)
  group(biased + 1, #maps, false)
  return function(x)
    local out = {}
    for _, g in ipairs(groups) do
      local y, at = core.linear(x, g.w, g.b), 1
      for i = g.first, g.last do
        out[i] = g.first == g.last and y or y:narrow(3, at, maps[i].rows)
        at = at + maps[i].rows
      end
    end
    return out
  end
end

--- Plan the learned key and value; returns a function (p) -> a function that puts them
-- before k and v, and one that adds the value to the output.
local function plan_bias(plan, name, a)
  local b, g, d = a.kv_bias, a.kv_heads, a.d_head
  local rows, init = b.shared and 1 or g, init_values.normal(0.02)
  if b.key then plan:add(name "k_bias", { rows, d }, init) end
  if b.value then plan:add(name "v_bias", { rows, d }, init) end
  return function(p)
    --- A copy of the parameter for every sequence and for `heads` heads, of which
    -- heads / g adjacent ones share a row.
    local function repeated(part, batch, heads)
      local t = p:get(name(part)):reshape { 1, rows, 1, d }
      t = t:broadcast { batch, rows, heads // rows, d }
      return core.concat({ t }, 1):reshape { batch, 1, heads * d }
    end
    local function prepend(k, v)
      if not b.key then return k, v end
      local batch = k.shape[1]
      local value = b.value and repeated("v_bias", batch, g)
          or core.zeros({ batch, 1, g * d }, v.dtype)
      return core.concat({ repeated("k_bias", batch, g), k }, 2),
          core.concat({ value, v }, 2)
    end
    local function finish(o)
      if b.key then return o end
      return o + repeated("v_bias", 1, a.heads)
    end
    return prepend, finish
  end
end

--- The mechanism over a row plugin: queries, keys and values are the host's.
local function plan_row(plan, name, a, init, maps)
  local h, g, d = a.heads, a.kv_heads, a.d_head
  for _, part in ipairs { { "w_q", h * d }, { "w_k", g * d }, { "w_v", g * d } } do
    plan:add(name(part[1]), { part[2], a.d_model }, init)
    maps[#maps + 1] = { name = name(part[1]), rows = part[2] }
  end
  return function(z, p, common, attend)
    local q, k, v = z[1], z[2], z[3]
    local turned = a.positions == "rotary" and "interleaved"
        or a.positions == "rotary_half" and "half"
    if turned then
      local o = { d_head = d, pairs = turned, base = a.rope_base }
      q, k = core.rope(q, o), core.rope(k, o)
    end
    if p.prepend then k, v = p.prepend(k, v) end
    common.q, common.k, common.v, common.kv_heads = q, k, v, g
    common.alibi, common.virtual_keys = a.positions == "alibi", a.virtual_keys
    local out = (attend or core.attention)(common)
    return p.finish and p.finish(out) or out
  end
end

--- The mechanism over a mixer plugin, whose inputs are all there is.
local function plan_mix(plan, name, a, init, maps)
  plan_inputs(plan, name, a.mechanism, a.heads, a.d_head, a.d_model, init, maps)
  local n = #maps
  return function(z, _, common, attend)
    common.inputs = table.move(z, 1, n, 1, {})
    return (attend or core.mixer)(common)
  end
end

--- Multi-head attention: linear maps of the layer input (one product), the mechanism, the
-- gate, w_o. Matrices are (outputs, inputs); head h of w_q has rows
-- (h-1) d_head + 1 .. h d_head.
-- @param a      from attention.options
-- @param layer  its number, from 1
-- @return function (p) -> { forward = function (x, length, first_key, attend), w_o = }
function attention.plan(plan, prefix, a, init, bias, layer)
  local function name(part) return prefix .. "." .. part end
  local h, g, d, maps = a.heads, a.kv_heads, a.d_head, {}
  local is_row = a.mechanism.shape == "row"
  local apply = (is_row and plan_row or plan_mix)(plan, name, a, init, maps)
  local of_map = #maps
  if a.gate then plan_inputs(plan, name, a.gate, h, a.d_out, a.d_model, init, maps) end
  plan:add(name "w_o", { a.d_model, h * a.d_out }, init)
  if bias and is_row then
    plan:add(name "b_q", { h * d }, zeros)
    plan:add(name "b_k", { g * d }, zeros)
    plan:add(name "b_v", { g * d }, zeros)
  end
  if bias then plan:add(name "b_o", { a.d_model }, zeros) end
  local map_params = plan_params(plan, name, a.mechanism, h, d)
  local gate_params = a.gate and plan_params(plan, name, a.gate, h, a.d_out)
  local bound_bias = a.kv_bias and plan_bias(plan, name, a)

  return function(p)
    local project = projection(p, maps, a.d_model, bias and is_row and of_map or 0, name)
    local w_o = p:get(name "w_o")
    local b_o = bias and p:get(name "b_o") or nil
    local virtual = {}
    if bound_bias then virtual.prepend, virtual.finish = bound_bias(p) end
    local function forward(x, length, first_key, attend)
      local z = project(x)
      local out = apply(z, virtual, { heads = h, d_head = d, mechanism = a.mechanism,
        scale = a.scale, causal = a.causal, window = a.window, layer = layer,
        param = map_params(p), length = length, first_key = first_key }, attend)
      if a.gate then
        out = core.gate { o = out, z = z[of_map + 1], mechanism = a.gate, heads = h,
          layer = layer, param = gate_params(p), length = length }
      end
      return core.linear(out, w_o, b_o)
    end
    return { forward = forward, w_o = w_o }
  end
end

return attention
