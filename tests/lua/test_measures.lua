-- test_measures.lua - every measure of lab.sinks against its definition, word by word,
-- on the weights themselves; and what must not change it.
local check = require "check"
local lab = require "sinklab"
local core = require "sinklab.core"

local T, S = 10, 6
local GROUPS = { "columns", "share", "norms", "logits" }

-- A model whose weights are not regular, and a batch with everything there is.
local function model_of(map, more)
  local task = lab.task.trigger_mean { seq_len = T, d_model = 8 }
  local o = { task = task, layers = 2, heads = 2, d_head = 3, residual = true, seed = 4,
    dtype = "f64", attention = { mechanism = map }, init = lab.init.normal(0.6) }
  for key, value in pairs(more or {}) do o[key] = value end
  return lab.model.attention_only(o), task
end

local function labelled(task)
  local b = task:batch { n = S, dtype = "f64", seed = 2 }
  local trigger, group, documents = {}, {}, {}
  for s = 1, S do
    trigger[s], group[s], documents[s] = {}, {}, {}
    for t = 1, T do
      trigger[s][t] = (s * 7 + t * 3) % 5 == 0 and 1 or 0
      group[s][t] = (s + t) % 4 - 1
      documents[s][t] = s % 2 == 0 and (t > 4 and (t > 8 and 7 or 2) or 1) or 3
    end
  end
  return { x = b.x, trigger = core.tensor(trigger, "f64"),
    groups = core.tensor(group, "f64"), documents = core.tensor(documents, "f64"),
    length = core.tensor({ 10, 10, 8, 10, 1, 9 }, "f64"),
    start = core.tensor({ 0, 0, 2, 3, 0, 1 }, "f64") }
end

-- The reference: dense, in Lua.

local function mean(list)
  local sum = 0
  for _, x in ipairs(list) do sum = sum + x end
  return sum / #list
end

local function sum_of(w, first, last, f)
  local sum = 0
  for j = first, last do sum = sum + (f and f(w[j]) or w[j]) end
  return sum
end

local function entropy(p, first, last)
  local size, h = sum_of(p, first, last, math.abs), 0
  if size == 0 then return 0 end
  for j = first, last do
    local q = math.abs(p[j]) / size
    if q > 0 then h = h - q * math.log(q) end
  end
  return h
end

--- Documents of a sample as { first, last }, from 1.
local function segments(b, s)
  local at, last = b.start:totable()[s] + 1, b.length:totable()[s]
  local d, out = b.documents:totable()[s], {}
  for t = at, last do
    if t == last or d[t + 1] ~= d[t] then
      out[#out + 1] = { at, t }
      at = t + 1
    end
  end
  return out
end

--- Everything of one head; weights[s][i][j], outputs[s][t] = || W_O v_t ||.
local function brute(b, weights, scores, outputs, threshold)
  local r = { classes = {}, padded_rows = S * T, segments = 0, groups = {}, column = {},
    sink = {}, column_over_rowsum = {} }
  local values, names = {}, { "plain", "first", "trigger", "boundary" }
  for _, c in ipairs(names) do values[c] = {} end
  local a1, over_rowsums, norms, norm_ratios, h_columns, cw = {}, {}, {}, {}, {}, {}
  local null, above, shares, even, largest = {}, {}, {}, {}, {}
  for _, k in ipairs { 1, 4, 8 } do shares[k], even[k], largest[k] = {}, {}, {} end
  for k = 1, T do r.column[k], r.sink[k], r.column_over_rowsum[k] = {}, {}, {} end
  for g = 1, 3 do r.groups[g] = { first = {}, dormant = {} } end
  local triggers, groups = b.trigger:totable(), b.groups:totable()
  for s = 1, S do
    for index, segment in ipairs(segments(b, s)) do
      local first, last = segment[1], segment[2]
      local rows, n = {}, last - first + 1
      for i = first, last do
        local w, q = weights[s][i], scores[s][i]
        local size = sum_of(w, first, i, math.abs)
        local class = triggers[s][i] ~= 0 and "trigger"
            or i > first and "plain" or index == 1 and "first" or "boundary"
        local zeros, top = 0, 0
        for j = first, i do
          if math.abs(w[j]) <= 1e-5 then zeros = zeros + 1 end
          top = math.max(top, math.abs(w[j]))
        end
        local x = { first = w[first], row_mass = sum_of(w, first, i), abs_mass = size,
          first_over_rowsum = w[first] / (size + 1e-8), entropy = entropy(w, first, i),
          contribution = math.abs(w[first]) * outputs[s][first],
          largest_first = w[first] ~= 0 and math.abs(w[first]) >= top and 1 or 0,
          sparsity = zeros / (i - first + 1),
          sink_logit = i > first + 1
              and q[first] - sum_of(q, first + 1, i - 1) / (i - first - 1) or nil }
        x.entropy_share = i > first and x.entropy / math.log(i - first + 1) or 0
        for name, v in pairs(x) do
          values[class][name] = values[class][name] or {}
          table.insert(values[class][name], v)
        end
        rows[i] = { w = w, size = size }
        r.padded_rows = r.padded_rows - 1
        if class == "plain" then
          local g = r.groups[groups[s][i] + 1]
          if g then
            table.insert(g.first, w[first])
            table.insert(g.dormant, w[first] >= 0.4 and 1 or 0)
          end
          if i > last - 3 then
            for _, k in ipairs { 1, 4, 8 } do
              local to = math.min(i, first + k - 1)
              local peak = 0
              for j = first, to do peak = math.max(peak, math.abs(w[j])) end
              local sum = sum_of(w, first, to, math.abs)
              table.insert(shares[k], size > 0 and sum / size or 0)
              table.insert(even[k], (to - first + 1) / (i - first + 1))
              table.insert(largest[k], peak > 0 and peak >= top and 1 or 0)
            end
          end
        end
      end
      -- columns
      local a, p = {}, {}
      local hmax, nonzero = 0, 0
      for k = first, last do
        local sum, over_rowsum, column = 0, 0, {}
        for i = k, last do
          sum = sum + rows[i].w[k]
          over_rowsum = over_rowsum + math.abs(rows[i].w[k]) / (rows[i].size + 1e-8)
          column[i] = rows[i].size > 0 and rows[i].w[k] / rows[i].size or 0
          if k == first and rows[i].w[k] ~= 0 then nonzero = nonzero + 1 end
        end
        a[k], p[k] = sum / (last - k + 1), over_rowsum / (last - k + 1)
        if last > k then
          hmax = math.max(hmax, entropy(column, k, last) / math.log(last - k + 1))
        end
        table.insert(r.column[k - first + 1], a[k])
        table.insert(r.column_over_rowsum[k - first + 1], p[k])
        table.insert(r.sink[k - first + 1], a[k] > threshold and 1 or 0)
      end
      r.segments = r.segments + 1
      table.insert(a1, a[first] > threshold and 1 or 0)
      table.insert(over_rowsums, p[first] > threshold and 1 or 0)
      table.insert(norms, outputs[s][first])
      table.insert(h_columns, hmax)
      table.insert(cw, nonzero > 0 and a[first] * n / nonzero or 0)
      if n > 1 then
        table.insert(norm_ratios, outputs[s][first]
          / (sum_of(outputs[s], first + 1, last) / (n - 1)))
      end
      local over, more, tried = 0, 0, 0
      for k = first + 1, last do
        if 2 * (last - k + 1) >= n then
          tried = tried + 1
          if a[k] > threshold then over = over + 1 end
          if a[k] >= a[first] then more = more + 1 end
        end
      end
      if tried > 0 then
        table.insert(null, over / tried)
        table.insert(above, more / tried)
      end
    end
  end
  for _, c in ipairs(names) do
    r.classes[c] = { rows = #(values[c].first or {}) }
    for name, list in pairs(values[c]) do r.classes[c][name] = mean(list) end
  end
  r.rate, r.first_over_rowsum_rate, r.value_norm = mean(a1), mean(over_rowsums),
    mean(norms)
  r.first_norm_ratio, r.column_entropy, r.column_weight = mean(norm_ratios),
    mean(h_columns), mean(cw)
  r.null_rate, r.null_above = mean(null), mean(above)
  for _, k in ipairs { 1, 4, 8 } do
    r["share_" .. k] = mean(shares[k])
    r["boost_" .. k] = mean(shares[k]) / mean(even[k])
    r["largest_" .. k] = mean(largest[k])
  end
  for g = 1, 3 do
    r.groups[g] = { rows = #r.groups[g].first, first = mean(r.groups[g].first),
      dormant = mean(r.groups[g].dormant) }
  end
  for k = 1, T do
    r.column[k], r.sink[k] = mean(r.column[k]), mean(r.sink[k])
    r.column_over_rowsum[k] = mean(r.column_over_rowsum[k])
  end
  return r
end

local function compare(got, want, what)
  for key, v in pairs(want) do
    local g, at = got[key], what .. "." .. tostring(key)
    if type(v) == "table" then
      compare(g, v, at)
    elseif v == v then
      check.close(g, v, 1e-12, 1e-12, at)
    else
      check.equal(g == nil or g ~= g, true, at .. " is NaN")
    end
  end
end

--- Queries, keys and || W_O v || of layer 1, from the parameters.
local function by_hand(model, x, h)
  local d = 3
  local function of(name)
    local w = model:parameter("layer1." .. name)
    return core.linear(x, w:narrow(1, (h - 1) * d + 1, d))
  end
  local out = core.linear(of "w_v", model.outputs[1]:narrow(2, (h - 1) * d + 1, d))
  return core.matmul(of "w_q", of "w_k":transpose(2, 3)):totable(),
      core.sqrt(core.sum(out * out, 3)):totable(),
      core.sqrt(core.sum(of "w_k" * of "w_k", 3)):totable()
end

for _, map in ipairs { "softmax", "relu", "softpick" } do
  check.test("definitions, with documents, padding, triggers, groups: " .. map, function()
    local model, task = model_of(map)
    local b = labelled(task)
    local got = lab.sinks(model, b, { measures = GROUPS, threshold = 0.25, share_rows = 3,
      dormant = 0.4, thresholds = { 0.25, 0.5 } })
    for h = 1, 2 do
      local weights = {}
      for s = 1, S do
        local one = {}
        for key, t in pairs(b) do one[key] = t:narrow(1, s, 1) end
        weights[s] = lab.sinks(model, one).mean:select(1, 1):select(1, h):totable()
      end
      local scores, outputs = by_hand(model, b.x, h)
      local want = brute(b, weights, scores, outputs, 0.25)
      local head = got.heads[h]
      for _, key in ipairs { "column", "sink", "column_over_rowsum" } do
        compare(got[key]:select(1, 1):select(1, h):totable(), want[key], key)
        want[key] = nil
      end
      compare(head, want, ("%s head %d"):format(map, h))
      check.close({ head.curve[1].rate, head.curve[1].null_rate },
        { want.rate, want.null_rate }, 1e-12)
      check.equal(head.masked_rows, 0)
    end
  end)
end

-- What must not change a measurement.

--- Numbers of a and b agree; `leave`: keys that may differ.
local function same(a, b, what, leave, atol)
  for key, v in pairs(a) do
    local w, at = b[key], what .. "." .. tostring(key)
    if leave[key] then
    elseif type(v) == "table" then
      same(v, w, at, leave, atol)
    elseif type(v) == "number" and v == v then
      check.close(w, v, atol, atol, at)
    end
  end
end

local model, task = model_of "softmax"
local plain = task:batch { n = S, dtype = "f64", seed = 3 }
local lengths = { 10, 7, 10, 4, 10, 9 }
local options = { measures = GROUPS, maps = false }

local function padded(left, right, value)
  local total = T + left + right
  local x, start, length, trigger = {}, {}, {}, {}
  local rows, triggers = plain.x:totable(), plain.trigger:totable()
  local pad = {}
  for c = 1, 8 do pad[c] = value end
  for s = 1, S do
    x[s] = {}
    for t = 1, total do
      local from = t - left
      x[s][t] = from >= 1 and from <= lengths[s] and rows[s][from] or pad
    end
    start[s], length[s], trigger[s] = left, left + lengths[s], triggers[s] + left
    if triggers[s] >= lengths[s] then trigger[s] = -1 end
  end
  local b = { x = core.tensor(x, "f64"), length = core.tensor(length, "f64"),
    trigger = core.tensor(trigger, "f64") }
  if left > 0 then b.start = core.tensor(start, "f64") end
  return b
end

check.test("padding on either side, and what it holds", function()
  local want = lab.sinks(model, padded(0, 0, 0), options)
  local leave = { padded_rows = true, empty_rows = true, tokens = true }
  for _, case in ipairs { { 0, 3, 0 }, { 3, 0, 0 }, { 2, 5, 1e3 }, { 4, 1, 0 / 0 } } do
    local got = lab.sinks(model, padded(table.unpack(case)), options)
    local what = ("%d left, %d right, %g in it"):format(table.unpack(case))
    same(want.heads, got.heads, what, leave, 1e-13)
    check.equal(got.heads[1].padded_rows,
      want.heads[1].padded_rows + S * (case[1] + case[2]), what)
  end
  -- padding that looks like the first token hides nothing
  local bos = padded(3, 0, 0)
  for s = 1, S do
    local first = plain.x:select(1, s):select(1, 1)
    for t = 1, 3 do bos.x:select(1, s):select(1, t):copy(first) end
  end
  same(want.heads, lab.sinks(model, bos, options).heads, "BOS as padding", leave, 1e-13)
end)

check.test("how many sequences there are at once, and how often", function()
  local want = lab.sinks(model, plain, options)
  local function repeated(t, n)
    local list = {}
    for i = 1, n do list[i] = t end
    return core.concat(list, 1)
  end
  for _, n in ipairs { 2, 3, 7 } do
    local got = lab.sinks(model, { x = repeated(plain.x, n),
      trigger = repeated(plain.trigger, n) }, options)
    for h = 1, 4 do
      for _, key in ipairs { "first_mean", "first_min", "rate", "first_over_rowsum",
        "entropy",
        "contribution", "value_norm", "null_rate", "column_entropy", "first_norm_ratio",
        "sink_logit", "trigger_first" } do
        check.close(got.heads[h][key], want.heads[h][key], 1e-13, 1e-13, n .. " " .. key)
      end
      check.equal(got.heads[h].plain_rows, n * want.heads[h].plain_rows)
    end
  end
end)

check.test("packed documents measure as they do alone", function()
  local rows, triggers = plain.x:totable(), plain.trigger:totable()
  local packed, documents, trigger = { {} }, { {} }, { {} }
  for s = 1, S do
    for t = 1, T do
      packed[1][#packed[1] + 1] = rows[s][t]
      documents[1][#documents[1] + 1] = s * s
      trigger[1][#trigger[1] + 1] = triggers[s] == t - 1 and 1 or 0
    end
  end
  local want = lab.sinks(model, plain, options)
  local got = lab.sinks(model, { x = core.tensor(packed, "f64"),
    documents = core.tensor(documents, "f64"), trigger = core.tensor(trigger, "f64") },
    options)
  for h = 1, 4 do
    local a, b = want.heads[h], got.heads[h]
    check.equal({ b.segments, b.plain_rows, b.first_rows, b.boundary_rows },
      { S, a.plain_rows, 1, S - 1 })
    for _, key in ipairs { "first_mean", "first_min", "first_std", "first_all", "rate",
      "first_over_rowsum_rate", "first_over_rowsum", "row_mass", "entropy",
      "contribution", "value_norm",
      "null_rate", "null_above", "column_entropy", "column_weight", "first_norm_ratio",
      "first_key_norm_ratio",
      "sink_logit", "trigger_first" } do
      check.close(b[key], a[key], 1e-13, 1e-13, key)
    end
    check.close(got.sink:select(1, (h - 1) // 2 + 1):select(1, (h - 1) % 2 + 1)
      :narrow(1, 1, T):totable(),
      want.sink:select(1, (h - 1) // 2 + 1):select(1, (h - 1) % 2 + 1):totable(), 1e-13)
  end
end)

check.test("full attention is not packed", function()
  local full = model_of("softmax", {
    attention = { mechanism = "softmax", causal = false } })
  local b = labelled(task)
  check.raises("packed documents need causal attention", lab.sinks, full, b)
  b.documents = nil
  check.equal(lab.sinks(full, b).samples, S)
end)

check.test("training keeps documents apart too", function()
  local documents = core.tensor({ { 1, 1, 1, 2, 2, 3 }, { 4, 4, 4, 4, 5, 5 } }, "f64")
  local start = core.tensor({ 0, 2 }, "f64")
  local x = core.generator(3, { dtype = "f64" }):normal(0, 1, { 2, 6, 4 })
  local packed = lab.task { name = "packed", seq_len = 6, d_model = 4,
    sample = function(t, B)
      return { x = x * 1, y = t:full({ B, 6, 4 }, 0), documents = documents * 1,
        start = start * 1 }
    end }
  local net = lab.model.attention_only { task = packed, dtype = "f64",
    init = lab.init.normal(1) }
  local first_key = core.tensor({ { 0, 0, 0, 3, 3, 5 }, { 6, 6, 2, 2, 4, 4 } }, "f64")
  local y = net:forward(x, nil, first_key)
  check.equal(y:select(1, 2):narrow(1, 1, 2):abs():max():item(), 0.0)
  local want = core.mean(y * y):item()
  local log = lab.train(net, packed, { steps = 1, batch = 2, shard = 2, groups = 1,
    eval = 0, quiet = true })
  check.close(log.loss, want, 1e-15, 1e-13)
end)

check.test("a second beginning token is a position of its own", function()
  local rows = plain.x:totable()
  for s = 1, S do table.insert(rows[s], 1, rows[s][1]) end
  local twice = lab.sinks(model, { x = core.tensor(rows, "f64"),
    trigger = plain.trigger + 1 }, options)
  for h, head in ipairs(twice.heads) do
    local layer, k = (h - 1) // 2 + 1, (h - 1) % 2 + 1
    local column = twice.column:select(1, layer):select(1, k):totable()
    -- two equal keys without positions share alike; row 1 sees only the first
    check.close(column[1] * 11 - 1, column[2] * 10, 1e-12, 0, "head " .. h)
  end
end)

check.test("a row that sees nothing is counted and left out", function()
  local first_key = {}
  for s = 1, S do
    first_key[s] = {}
    for t = 1, T do first_key[s][t] = t == 6 and T or 0 end
  end
  local c = lab.sinks.collect { layers = 1, heads = 1, tokens = T, samples = S,
    batch = S, dtype = "f64", measures = GROUPS }
  local x = plain.x
  local q, k = x:narrow(3, 1, 4), x:narrow(3, 3, 4)
  local out = c:watch(1, function()
    return core.attention { q = q, k = k, v = x, mechanism = core.mechanism "softmax",
      first_key = core.tensor(first_key, "f64") }
  end, { n = S })
  check.equal(out:select(2, 6):abs():max():item(), 0.0)
  local found = c:finish()
  local head = found.heads[1]
  check.equal({ head.masked_rows, head.plain_rows, head.first_rows, head.empty_rows },
    { S, S * 8, S, S })
  for key, value in pairs(head) do
    check.equal(value == value or key == "trigger_first" or key == "contribution"
      or key == "value_norm" or key == "first_norm_ratio", true, key)
  end
  -- a_1 counts the nine rows that are left
  check.close(found.column:select(1, 1):select(1, 1):totable()[1] * 9,
    head.first_mean * 8 + 1, 1e-12)
end)

check.test("a record holds all but tensors", function()
  local b = labelled(task)
  local found = lab.sinks(model, b, { measures = "all", thresholds = { 0.1, 0.2 },
    keep = { { 1, 2 } } })
  local json = require "sinklab.base.json"
  local back = json.decode(json.encode(found:record()))
  check.close(back.heads[3].classes.plain.entropy,
    found.heads[3].classes.plain.entropy, 0)
  check.equal({ back.heads[1].curve[2].threshold, back.kept[1].head, back.column },
    { 0.2, 2 })
  check.close(back.hidden.states[2].kurtosis, found.hidden.states[2].kurtosis, 0)
  check.equal(#back.hidden.secondary.tokens, #found.hidden.secondary)
end)

check.test("docs/measures.md says what every measure is", function()
  local path = arg[0]:match "^(.*)/tests/lua/[^/]*$" .. "/docs/measures.md"
  local file <close> = assert(io.open(path))
  local text = file:read "a"
  local missing = {}
  for _, names in pairs(require "sinklab.measure.measures".groups) do
    for _, name in ipairs(names) do
      if not text:find("`" .. name .. "`", 1, true)
          and not text:find("`" .. name .. "[", 1, true) then
        missing[#missing + 1] = name
      end
    end
  end
  check.equal(table.concat(missing, " "), "")
end)

check.done()
