-- test_hidden.lua - lab.sinks.hidden against its definitions, in Lua.
local check = require "check"
local lab = require "sinklab"
local core = require "sinklab.core"

local L, B, T, D = 4, 3, 6, 5
local draw = core.generator(7, { dtype = "f64" })
local states = {}
for layer = 0, L do states[layer + 1] = draw:normal(0, 2, { B, T, D }) end

--- Entries of one sample and layer, documents as { first, last }.
local function of(layer, s) return states[layer + 1]:totable()[s] end
local function norm(x)
  local sum = 0
  for _, v in ipairs(x) do sum = sum + v * v end
  return math.sqrt(sum)
end

local function brute(layer, ranges, massive, ratio)
  local r = { first = 0, other = 0, peak = 0, max = 0, kurtosis = 0, channel = 0,
    median = 0, massive = 0 }
  local segments, pairs_, sequences, all, top = 0, 0, 0, 0, {}
  for s = 1, B do
    local x, flat, channel = of(layer, s), {}, {}
    for c = 1, D do channel[c] = 0 end
    for _, range in ipairs(ranges[s]) do
      local first, last = range[1], range[2]
      segments = segments + 1
      r.first = r.first + norm(x[first])
      local sum, peak = 0, 0
      for t = first, last do
        for c = 1, D do
          flat[#flat + 1] = x[t][c]
          channel[c] = channel[c] + x[t][c] ^ 2
          top[#top + 1] = { x[t][c], s, t - first + 1, c }
        end
        if t > first then
          sum, peak = sum + norm(x[t]), math.max(peak, norm(x[t]))
        end
      end
      if last > first then
        pairs_ = pairs_ + 1
        r.other, r.peak = r.other + sum / (last - first), r.peak + peak
      end
    end
    if #flat > 0 then
      sequences = sequences + 1
      local mu, m2, m4, size = 0, 0, 0, {}
      for i, v in ipairs(flat) do mu, size[i] = mu + v / #flat, math.abs(v) end
      table.sort(size)
      for _, v in ipairs(flat) do m2, m4 = m2 + (v - mu) ^ 2, m4 + (v - mu) ^ 4 end
      local median = size[(#size + 1) // 2]
      r.kurtosis = r.kurtosis + m4 / #flat / ((m2 / (#flat - 1)) ^ 2 + 1e-6)
      r.median, r.max = r.median + median, r.max + size[#size]
      all = math.max(all, size[#size])
      local c2, c4 = 0, 0
      for c = 1, D do c2, c4 = c2 + channel[c] / D, c4 + channel[c] ^ 2 / D end
      r.channel = r.channel + c4 / c2 ^ 2
      for _, v in ipairs(size) do
        if v > massive and v >= ratio * median then r.massive = r.massive + 1 end
      end
    end
  end
  table.sort(top, function(a, b) return math.abs(a[1]) > math.abs(b[1]) end)
  return { first_norm = r.first / segments, other_norm = r.other / pairs_,
    peak = r.peak / pairs_, max_norm = r.max / sequences, largest_max_norm = all,
    kurtosis = r.kurtosis / sequences, channel_kurtosis = r.channel / sequences,
    massive = r.massive / sequences }, r.median / sequences, top
end

local function compare(found, ranges, massive, ratio)
  for layer = 0, L do
    local want, median, top = brute(layer, ranges, massive, ratio)
    local got = found.states[layer + 1]
    check.equal(got.layer, layer)
    for key, v in pairs(want) do
      check.close(got[key], v, 1e-12, 1e-12, ("%s of layer %d"):format(key, layer))
    end
    check.close(got.median, median, 0, 1e-15, "median of layer " .. layer)
    for i = 1, 3 do
      local e = got.top[i]
      check.close({ e.value, e.sample, e.position, e.channel }, top[i], 0, 0, "top " .. i)
    end
  end
end

check.test("whole sequences", function()
  local whole = {}
  for s = 1, B do whole[s] = { { 1, T } } end
  local found = lab.sinks.hidden(states, { massive = 2, ratio = 1.5 })
  compare(found, whole, 2, 1.5)
  check.close(found.norms:totable()[3][4],
    (norm(of(2, 1)[4]) + norm(of(2, 2)[4]) + norm(of(2, 3)[4])) / 3, 1e-12)
  local f32 = {}
  for i, t in ipairs(states) do f32[i] = t:to "f32" end
  check.close(lab.sinks.hidden(f32).states[2].kurtosis, found.states[2].kurtosis, 1e-4)
end)

check.test("documents and padding, which may hold anything", function()
  local ranges = { { { 1, 2 }, { 3, 6 } }, { { 2, 4 } }, {} }
  local o = { massive = 1, ratio = 1.2, start = core.tensor({ 0, 1, 3 }, "f64"),
    length = core.tensor({ 6, 4, 3 }, "f64"),
    documents = core.tensor({ { 1, 1, 2, 2, 2, 2 }, { 1, 1, 1, 1, 1, 1 },
      { 5, 5, 5, 5, 5, 5 } }, "f64") }
  compare(lab.sinks.hidden(states, o), ranges, 1, 1.2)
  local dirty = {}
  for i, t in ipairs(states) do
    dirty[i] = t:clone()
    dirty[i]:select(1, 3):copy(t:select(1, 3) * (0 / 0))
    dirty[i]:select(1, 2):select(1, 1):copy(t:select(1, 2):select(1, 1) * 1e9)
  end
  compare(lab.sinks.hidden(dirty, o), ranges, 1, 1.2)
end)

check.test("a massive activation as Sun et al. define it", function()
  local x = core.ones({ 1, 4, 100 }, "f64") * 0.15
  local rows = x:totable()
  rows[1][1][7], rows[1][3][9], rows[1][2][2] = 151, -160, 99
  local found = lab.sinks.hidden { core.tensor(rows, "f64"), x }
  local s = found.states[1]
  check.equal({ s.massive, found.states[2].massive }, { 2.0, 0.0 })
  check.close({ s.top[1].value, s.top[1].position, s.top[1].channel }, { -160, 3, 9 }, 0)
  check.close({ s.top[2].value, s.top[3].value }, { 151, 99 }, 0)
  -- above 100, but not a thousand medians
  rows[1][1][7] = 149
  check.equal(lab.sinks.hidden { core.tensor(rows, "f64"), x }.states[1].massive, 1.0)
end)

-- Eight layers; position 1 is large after layers 3 to 6; token 4 points its way after
-- layers 3 to 6, token 5 after 5 and 6 only, token 6 after 4 alone.
local function planted(scale)
  local out = {}
  for layer = 0, 8 do
    local big = layer >= 3 and layer <= 6
    local row = {}
    for t = 1, 6 do
      row[t] = { 0.1 * t, 1, 0, 0.2 * ((t * 3) % 5) }
      row[t][3] = t % 2 == 0 and 1 or -1
    end
    row[1] = big and { 50, 0, 0, 1 } or { 0, 1, 1, 0 }
    if big then row[4] = { -3, 0.1, 0, 0 } end
    if layer == 5 or layer == 6 then row[5] = { 4, 0, 0.1, 0 } end
    if layer == 4 then row[6] = { 2, 0, 0, 0.1 } end
    out[layer + 1] = core.tensor({ row }, "f64") * scale
  end
  return out
end

check.test("secondary sinks, with lifetimes relative to the depth", function()
  local s = lab.sinks.hidden(planted(1)).secondary
  check.equal({ s.anchor, s.first_layer, s.last_layer }, { 1, 3, 6 })
  local function list(found)
    local out = {}
    for i, x in ipairs(found) do
      out[i] = ("%d: %d from %d %s"):format(x.position, x.lifetime, x.layer, x.kind)
    end
    return table.concat(out, ", ")
  end
  -- 4/8 is under 17/32, 2/8 above 1/8, 1/8 is noise: the rule L - 15 of the released
  -- code would call all three like position 1
  check.equal(list(s), "4: 4 from 3 secondary, 5: 2 from 5 secondary, 6: 1 from 4 noise")
  check.equal({ s.noise, s.secondary, s.bos }, { 1, 2, 0 })
  s = lab.sinks.hidden(planted(3), { bos = 0.5, noise = 0.25 }).secondary
  check.equal(list(s), "4: 4 from 3 bos, 5: 2 from 5 noise, 6: 1 from 4 noise")
  -- without a rise there is no window
  s = lab.sinks.hidden { states[1], states[1], states[1] * 0.5 }.secondary
  check.equal({ s.first_layer, s.last_layer, #s }, { 0, 0, 0 })
end)

check.test("the residual stream of a model", function()
  local task = lab.task.trigger_mean { seq_len = T }
  local model = lab.model.attention_only { task = task, layers = 2, residual = true,
    dtype = "f64", registers = 1 }
  local b = task:batch { n = 4, dtype = "f64" }
  local seen = {}
  model:forward(b.x, nil, nil, {
    layer = function(layer, h) seen[layer + 1] = h:narrow(2, 2, T):clone() end })
  local want = lab.sinks.hidden(seen, { massive = 1 })
  local got = lab.sinks(model, b, { measures = "hidden",
    hidden = { massive = 1 } }).hidden
  check.close((got.norms - want.norms):abs():max():item(), 0, 1e-14)
  check.equal(tostring(got), tostring(want))
  check.close(got.norms:totable()[1][1], 1, 0)
end)

check.test("mistakes are named", function()
  check.raises("list of tensors", lab.sinks.hidden, { states[1] })
  check.raises("state 2 must be a tensor", lab.sinks.hidden, { states[1], 3 })
  check.raises("the states of layer 1 are (1, 2)", lab.sinks.hidden,
    { states[1], core.zeros { 1, 2 } })
  check.raises("no such option 'masive' (did you mean 'massive'?)", lab.sinks.hidden,
    states, { masive = 1 })
  check.raises("bos 0.1; allowed are numbers from 0, and bos from noise",
    lab.sinks.hidden, states, { bos = 0.1 })
  check.raises("the start of sample 1 is 4", lab.sinks.hidden, states,
    { start = core.tensor({ 4, 0, 0 }, "f64"), length = core.tensor({ 3, 3, 3 }, "f64") })
end)

check.test("a peak of one layer is a window of one layer", function()
  local states = {}
  for layer, size in ipairs { 1, 1, 50, 1, 1 } do
    states[layer] = lab.tensor { { { size, 0 }, { size, 0 } } }
  end
  local found = lab.sinks.hidden(states).secondary
  check.equal({ found.first_layer, found.last_layer }, { 2, 2 })
  check.equal({ found[1].lifetime, found[1].layer, #found }, { 1, 2, 1 })
end)

check.test("massive: above the bound, and at least so many medians", function()
  local state = lab.tensor { { { 2, -2, 2, 2, 2000, 100 } } }
  local function massive(options)
    return lab.sinks.hidden({ state, state }, options).states[1].massive
  end
  check.equal(massive {}, 1.0) -- 1000 medians, not one less
  check.equal(massive { ratio = 50 }, 1.0) -- 100 is not above 100
  check.equal(massive { ratio = 50, massive = 99 }, 2.0)
  check.equal(massive { ratio = 1001 }, 0.0)
end)

check.done()
