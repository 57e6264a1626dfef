--- dense_attention.lua - attention with its weights at hand, to be changed before they
-- are used: the changes of lab.intervene.
--
-- Letters: B sequences, H heads, T tokens (registers first). Everything is dense, (B, H,
-- T, T): it is for evaluation of small models.
local core = require "sinklab.core"
local check = require "sinklab.base.check"

local dense = {}

--- (B, T, heads * d) -> (B, heads, T, d), a head's rows repeated for the heads that share
-- it.
local function by_head(x, heads, shared)
  local b, t, width = table.unpack(x.shape)
  local d = width // shared
  x = x:reshape { b, t, shared, d }:transpose(2, 3)
  if shared == heads then return x end
  x = x:reshape { b, shared, 1, t, d }:broadcast { b, shared, heads // shared, t, d }
  return core.concat({ x }, 1):reshape { b, heads, t, d }
end

local function scores_of(c)
  local q, k = by_head(c.q, c.heads, c.heads), by_head(c.k, c.heads, c.kv_heads)
  local scores = core.matmul(q, k:transpose(3, 4)) * c.scale
  if not c.alibi then return scores end
  local dtype, t = c.q.dtype, c.q.shape[2]
  local position = {}
  for i = 1, t do position[i] = i end
  position = core.tensor(position, dtype)
  local distance = (position:reshape { t, 1 } - position:reshape { 1, t }):abs()
  return scores - core.alibi_slopes(c.heads, dtype):reshape { 1, c.heads, 1, 1 }
      * distance:reshape { 1, 1, t, t }
end

local function weigh(c, scores, first_key, offset)
  return core.row_weights(c.mechanism, scores, { param = c.param, length = c.length,
    causal = c.causal, window = c.window, d_head = c.d_head, offset = offset,
    first_key = first_key or c.first_key })
end

--- Numbers as a tensor that broadcasts along an axis of (B, H, T, T).
local function along(axis, list, dtype)
  local shape = { 1, 1, 1, 1 }
  shape[axis] = #list
  return core.tensor(list, dtype):reshape(shape)
end

--- 1 where f (i) holds, else 0, along an axis.
local function mask(axis, n, dtype, f)
  local list = {}
  for i = 1, n do list[i] = f(i) and 1 or 0 end
  return along(axis, list, dtype)
end

local function counted(axis, n, dtype)
  local list = {}
  for i = 1, n do list[i] = i - 1 end
  return along(axis, list, dtype)
end

--- Where position p of each query's document is, from 0: a number, or (B, 1, T, 1).
local function place_of(c, p)
  local at = p - 1 + c.shift
  if not c.first_key then return at end
  local b, t = table.unpack(c.first_key.shape)
  return c.first_key:reshape { b, 1, t, 1 } + at
end

--- Columns or rows in another order: `order` is a list of them, from 1.
local function reordered(x, order)
  local list = {}
  for i, j in ipairs(order) do list[i] = j - 1 end
  local index = along(4, list, x.dtype):broadcast(x.shape)
  return core.gather(x, 4, index)
end

--- Weights when some keys are hidden from every query, before the mechanism sees the
-- rest. The hidden keys move to the front, behind `first_key`. A hidden key after a query
-- is none of its earlier keys: it is not subtracted from the query's position.
local function hide_all(c, scores, weights, keys)
  local b, _, t = table.unpack(scores.shape)
  local dtype = scores.dtype
  local hidden, before, passes = {}, 0, {}
  for _, key in ipairs(keys) do hidden[key] = true end
  -- Rows for which as many keys move, with as many of these before the query.
  for i = 1, t do
    local own = hidden[i] and 1 or 0
    local moved = c.causal and before + own or #keys
    local pass = passes[#passes]
    if not pass or pass.moved ~= moved or pass.before ~= before then
      passes[#passes + 1] = { moved = moved, before = before, first = i }
    end
    passes[#passes].last = i
    before = before + own
  end
  for _, pass in ipairs(passes) do
    local order, back, front = {}, {}, {}
    for n = 1, pass.moved do order[n], front[keys[n]] = keys[n], true end
    for i = 1, t do
      if not front[i] then order[#order + 1] = i end
    end
    for at, i in ipairs(order) do back[i] = at end
    local seen = pass.moved == 0 and weights
      or reordered(weigh(c, reordered(scores, order),
        core.full({ b, t }, pass.moved, dtype), pass.moved - pass.before), back)
    weights = core.where(mask(3, t, dtype, function(i)
      return i >= pass.first and i <= pass.last
    end), seen, weights)
  end
  return weights
end

--- The same in sequences with padding: a hidden key there is none to move.
local function hide(c, scores, weights, keys)
  local b, _, t = table.unpack(scores.shape)
  if #keys == 1 and keys[1] == 1 then
    return weigh(c, scores, (c.first_key or core.zeros({ b, t }, scores.dtype)) + 1)
  end
  if c.window > 0 then
    check.fail("lab.intervene: mask of other than position 1 does not go with a window, "
      .. "which counts keys")
  end
  table.sort(keys)
  if c.causal or not c.length then return hide_all(c, scores, weights, keys) end
  local out = weights
  for n, key in ipairs(keys) do
    local has = core.ge(c.length, key):reshape { b, 1, 1, 1 }
    local these = table.move(keys, 1, n, 1, {})
    out = core.where(has, hide_all(c, scores, weights, these), out)
  end
  return out
end

--- The effect of each change: function (c, state, argument), with state = { scores,
-- weights (B, H, T, T), values (B, H, T, d) }; c.shift positions are registers.
local changes = {}

function changes.zero(_, state) state.weights = state.weights * 0 end

--- All of a row's mass goes to one position, of rows that see it.
function changes.onto(c, state, position)
  local t, dtype = state.weights.shape[3], state.weights.dtype
  local at = place_of(c, position)
  local mass = core.sum(state.weights, 4, { keep = true })
  local column = core.eq(counted(4, t, dtype), at)
  local rows = c.causal and core.ge(counted(3, t, dtype), at) or mask(3, t, dtype,
    function() return true end)
  state.weights = core.where(rows, mass * column, state.weights)
end

--- The mass leaves a position: the rest grows by as much ("off"), or it is lost.
local function off(c, state, position, keep)
  local t, dtype = state.weights.shape[3], state.weights.dtype
  local column = core.eq(counted(4, t, dtype), place_of(c, position))
  local rest = state.weights * (1 - column)
  if keep then
    local mass = core.sum(state.weights, 4, { keep = true })
    local left = core.sum(rest, 4, { keep = true })
    local none = core.eq(left, 0)
    rest = rest * core.where(none, left * 0, mass / (left + none))
  end
  state.weights = rest
end

function changes.off(c, state, position) off(c, state, position, true) end

function changes.remove(c, state, position) off(c, state, position, false) end

function changes.mask(c, state, positions)
  local keys = {}
  for i, p in ipairs(type(positions) == "table" and positions or { positions }) do
    keys[i] = p + c.shift
  end
  state.weights = hide(c, state.scores, state.weights, keys)
end

--- 1 for every token that is no padding: (B or 1, 1, T, 1).
local function valid_tokens(c, v)
  local b, _, t = table.unpack(v.shape)
  local position = counted(3, t, v.dtype)
  local valid = position * 0 + 1
  if c.length then valid = core.lt(position, c.length:reshape { b, 1, 1, 1 }) end
  if c.first_key then
    valid = valid * core.le(c.first_key:reshape { b, 1, t, 1 }, position)
  end
  return valid
end

function changes.value(c, state, change)
  local v = state.values
  local t, d = v.shape[3], v.shape[4]
  local at = place_of(c, change.position)
  local column = core.eq(counted(3, t, v.dtype), at)
  local new
  if change.to == "mean" then
    new = core.mean(v:narrow(3, at + 1, 1), 1, { keep = true })
  elseif change.to == "others" then
    local others = valid_tokens(c, v) * (1 - column)
    local n = core.sum(others, 3, { keep = true })
    new = core.sum(core.where(others, v, v * 0), 3, { keep = true }) / n:maximum(1)
  elseif type(change.to) == "number" then
    new = core.full({ 1, 1, 1, 1 }, change.to, v.dtype)
  else
    local to = core.is_tensor(change.to) and change.to or core.tensor(change.to, v.dtype)
    if #to.shape ~= 1 or to.shape[1] ~= d then
      check.fail("lab.intervene: value.to has shape (%s); a value has %d numbers",
        table.concat(to.shape, ", "), d)
    end
    new = to:to(v.dtype):reshape { 1, 1, 1, d }
  end
  state.values = core.where(column, new, v)
end

function changes.freeze(_, state, pattern, layer)
  local p = pattern:select(1, layer)
  local h, t = p.shape[1], p.shape[2]
  state.weights = state.weights * 0 + p:to(state.weights.dtype):reshape { 1, h, t, t }
end

dense.changes = changes

--- A function for model:forward's hook `attend`: attention with a change in some heads.
-- @param change  { name of a change = its argument } with one key, or nil: none
-- @param chosen  function (layer, head): whether it is changed
-- @param shift   registers
function dense.attend(change, chosen, shift)
  local name, argument = nil, nil
  if change then name, argument = next(change) end
  return function(c)
    local selected, any = {}, false
    for h = 1, c.heads do
      selected[h] = name ~= nil and chosen(c.layer, h) and 1 or 0
      any = any or selected[h] == 1
    end
    if c.inputs then -- a mixer
      local out = core.mixer(c)
      if not any then return out end
      local shape = out.shape
      local keep = 1 - along(3, selected, out.dtype)
      out = out:reshape { shape[1], shape[2], c.heads, shape[3] // c.heads }
      return (out * keep:reshape { 1, 1, c.heads, 1 }):reshape(shape)
    end
    c.shift = shift
    local scores = scores_of(c)
    local state = { scores = scores, weights = weigh(c, scores),
      values = by_head(c.v, c.heads, c.kv_heads) }
    local weights, values = state.weights, state.values
    if any then
      changes[name](c, state, argument, c.layer)
      local which = along(2, selected, scores.dtype)
      weights = core.where(which, state.weights, weights)
      values = core.where(which, state.values, values)
    end
    local out = core.matmul(weights, values):transpose(2, 3)
    local b, t, h, d = table.unpack(out.shape)
    return core.concat({ out }, 1):reshape { b, t, h * d }
  end
end

return dense
