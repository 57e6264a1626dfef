--- hidden.lua - lab.sinks.hidden: measures of the residual stream.
local core = require "sinklab.core"
local check = require "sinklab.base.check"
local schema = require "sinklab.base.schema"
local text = require "sinklab.base.text"

local Hidden = { __name = "sinklab.hidden_states" }

--- Options that lab.sinks takes too, as those of `hidden`.
local limits = {
  { "massive", "number", default = 100, min = 0, doc = "least entry that is massive" },
  { "ratio", "number", default = 1000, min = 0,
    doc = "least ratio of a massive entry to the median" },
  { "similar", "number", default = 0.9, min = 0,
    doc = "|cosine| with position 1 above which a token is like it" },
  { "noise", "number", default = 1 / 8, min = 0,
    doc = "lifetimes over layers up to this are noise" },
  { "bos", "number", default = 17 / 32, min = 0,
    doc = "lifetime over layers from which a token is like position 1" },
}
local rows = schema.join({
  { "length", "tensor", doc = "(B): valid tokens end here" },
  { "start", "tensor", doc = "(B): and begin here, from 0" },
  { "documents", "tensor", doc = "(B, T): numbers that change where a document begins" },
}, limits)
local rules = schema.rules(rows)

local columns = { { "layer", "%d" }, { "first_norm", "%.3g" }, { "other_norm", "%.3g" },
  { "peak", "%.3g" }, { "max_norm", "%.3g" }, { "median", "%.3g" },
  { "massive", "%.2f" }, { "kurtosis", "%.1f" }, { "channel_kurtosis", "%.1f" } }

function Hidden:__tostring()
  local names, rows = {}, {}
  for i, c in ipairs(columns) do names[i] = c[1] end
  for i, s in ipairs(self.states) do
    rows[i] = {}
    for j, c in ipairs(columns) do
      rows[i][j] = s[c[1]] ~= s[c[1]] and "-" or c[2]:format(s[c[1]])
    end
  end
  local s = self.secondary
  return text.table(names, rows)
      .. ("\nsecondary sinks: %d, noise %d, like position %d: %d "):format(s.secondary,
        s.noise, s.anchor, s.bos)
      .. ("(layers %d to %d)"):format(s.first_layer, s.last_layer)
end

--- The core's accumulator.
-- @param what   the function, for messages
-- @param given  the user's options: of lab.sinks.hidden
-- @param sizes  layers, tokens, samples
local function new(what, given, sizes)
  local o = check.options(what, given, rules)
  for key, value in pairs(sizes) do o[key] = value end
  o.heads = 1
  return core.hidden_measures(o)
end

local function finish(accumulator)
  return setmetatable(accumulator:finish(), Hidden)
end

local hidden = schema.func("lab.sinks.hidden", {
  doc = [[The residual stream in numbers: norms, peaks, massive
    activations, outliers and secondary sinks.

    Means are over sequences; first_norm, other_norm and peak over documents. A massive
    activation is an entry above `massive` and at least `ratio` times the median (Sun et
    al. 2024). A secondary sink is a token whose state points where that of position 1
    does for a part of the layers in which position 1 is large (arXiv 2512.22213), the
    lifetimes taken relative to the depth.]],
  args = { { "states", "table",
    doc = "list: states (B, T, D) before layer 1, then after each layer" } },
  options = rows,
  returns = [[{ states = { { layer = 0, first_norm, other_norm, peak, max_norm, kurtosis,
    channel_kurtosis, median, massive = entries a sequence, top = { { value, sample,
    position, channel }, ... } }, ... }, norms = tensor (1 + layers, T), secondary = { {
    sample, position, lifetime, layer, kind = "noise", "secondary" or "bos" }, ...,
    noise, secondary, bos = how many, anchor, first_layer, last_layer } }]],
  errors = "states of different shapes",
  source = [[Sun et al. 2024, arXiv 2402.17762; Guo et al. 2024, arXiv 2410.13835; arXiv
    2512.22213]],
  example = [[
    local draw = lab.generator(1)
    local states = {}
    for layer = 0, 4 do states[layer + 1] = draw:normal(0, 1, { 2, 6, 8 }) end
    local h = lab.sinks.hidden(states, { massive = 3, ratio = 2 })
    print(h, h.states[2].top[1].channel)]],
}, function(states, o)
  local what = "lab.sinks.hidden"
  if type(states) ~= "table" or not core.is_tensor(states[1]) or not states[2]
      or #states[1].shape ~= 3 then
    check.fail("%s: the first argument must be a list of tensors (samples, tokens, "
      .. "width): before layer 1, then after each layer", what)
  end
  local shape = states[1].shape
  local accumulator = new(what, o, { layers = #states - 1, tokens = shape[2],
    samples = shape[1] })
  for layer, state in ipairs(states) do
    if not core.is_tensor(state) then
      check.fail("%s: state %d must be a tensor, got a %s", what, layer, type(state))
    end
    accumulator:add(layer - 1, state)
  end
  return finish(accumulator)
end)

return { hidden = hidden, new = new, finish = finish, limits = limits }
