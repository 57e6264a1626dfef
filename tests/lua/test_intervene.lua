-- test_intervene.lua - lab.intervene against attention written out in Lua.
local check = require "check"
local lab = require "sinklab"
local core = require "sinklab.core"

local T, S, D, H, W = 7, 5, 6, 4, 3

local function model_of(map, more)
  local task = lab.task.trigger_mean { seq_len = T, d_model = D }
  local o = { task = task, layers = 2, heads = H, kv_heads = 2, d_head = W, seed = 3,
    residual = true, dtype = "f64", attention = { mechanism = map },
    init = lab.init.normal(0.5) }
  for key, value in pairs(more or {}) do o[key] = value end
  return lab.model.attention_only(o), task
end

local function batch_of(task)
  local b = task:batch { n = S, dtype = "f64", seed = 6 }
  b.length = core.tensor({ 7, 7, 4, 7, 6 }, "f64")
  return b
end

-- Maps by hand: scores of the keys that are seen, how many of them are before the query
-- -> weights.
local maps = {}
function maps.softmax(s)
  local sum, w = 0, {}
  for i, x in ipairs(s) do w[i] = math.exp(x) sum = sum + w[i] end
  for i = 1, #s do w[i] = w[i] / sum end
  return w
end
function maps.softmax1(s)
  local sum, w = 1, {}
  for i, x in ipairs(s) do w[i] = math.exp(x) sum = sum + w[i] end
  for i = 1, #s do w[i] = w[i] / sum end
  return w
end

function maps.relu(s, earlier)
  local w = {}
  for i, x in ipairs(s) do w[i] = math.max(x, 0) / math.max(earlier, 1) end
  return w
end
function maps.stickbreaking(s, earlier)
  local left, w = 1, {}
  for i = #s, 1, -1 do
    local b = i > earlier and 0 or 1 / (1 + math.exp(-s[i])) -- none on its own key
    w[i], left = b * left, left * (1 - b)
  end
  return w
end

--- The model by hand, one sequence; change (layer, head, i, seen, w, v) may change the
-- list of keys seen, their weights, or the head's values.
local function by_hand(model, map, x, length, change)
  local h = {}
  for t = 1, T do h[t] = x[t] end
  for layer = 1, 2 do
    local p = {}
    for _, name in ipairs { "w_q", "w_k", "w_v", "w_o" } do
      p[name] = model:parameter(("layer%d.%s"):format(layer, name)):totable()
    end
    local function project(m, head, t)
      local out = {}
      for r = 1, W do
        local sum = 0
        for c = 1, D do sum = sum + m[(head - 1) * W + r][c] * h[t][c] end
        out[r] = sum
      end
      return out
    end
    local after = {}
    for t = 1, T do after[t] = { table.unpack(h[t]) } end
    for head = 1, H do
      local kv = (head - 1) // 2 + 1
      local k, v = {}, {}
      for t = 1, T do k[t], v[t] = project(p.w_k, kv, t), project(p.w_v, kv, t) end
      v = change.values and change.values(layer, head, v, length) or v
      for i = 1, length do
        local q, seen, scores, earlier = project(p.w_q, head, i), {}, {}, 0
        for j = 1, change.full and length or i do
          if not (change.hidden and change.hidden(layer, head, j)) then
            seen[#seen + 1] = j
            if j < i then earlier = earlier + 1 end
            local s = 0
            for r = 1, W do s = s + q[r] * k[j][r] end
            scores[#scores + 1] = s
          end
        end
        local w, given = {}, #seen > 0 and maps[map](scores, earlier) or {}
        for j = 1, T do w[j] = 0 end
        for n, j in ipairs(seen) do w[j] = given[n] end
        w = change.weights and change.weights(layer, head, i, w) or w
        for c = 1, D do
          local sum = 0
          for j = 1, T do
            for r = 1, W do
              sum = sum + p.w_o[c][(head - 1) * W + r] * w[j] * v[j][r]
            end
          end
          after[i][c] = after[i][c] + sum
        end
      end
    end
    h = after
  end
  return h
end

--- Mean losses by class of rows.
local function losses(model, map, b, change)
  local sums, counts = {}, {}
  local x, y, trigger = b.x:totable(), b.y:totable(), b.trigger:totable()
  local length = b.length:totable()
  for s = 1, S do
    local got = by_hand(model, map, x[s], length[s], change)
    for t = 1, length[s] do
      local class = trigger[s] == t - 1 and "trigger" or t == 1 and "first" or "plain"
      local sum = 0
      for c = 1, D do sum = sum + (got[t][c] - y[s][t][c]) ^ 2 / D end
      sums[class] = (sums[class] or 0) + sum
      counts[class] = (counts[class] or 0) + 1
    end
  end
  for class, n in pairs(counts) do sums[class] = sums[class] / n end
  return sums
end

--- Means over samples of what `value` gives, for "mean": only of layer 1, where values
-- are those of the unchanged model.
local function only(layer, head, f)
  return function(l, h, ...) if l == layer and h == head then return f(...) end end
end

local cases = {
  { { zero = true }, function(l, h)
    return { weights = only(l, h, function() return { 0, 0, 0, 0, 0, 0, 0 } end) }
  end },
  { { onto = 2 }, function(l, h)
    return { weights = only(l, h, function(i, w)
      if i < 2 then return w end
      local sum, out = 0, {}
      for j = 1, T do sum, out[j] = sum + w[j], 0 end
      out[2] = sum
      return out
    end) }
  end },
  { { off = 1 }, function(l, h)
    return { weights = only(l, h, function(_, w)
      local sum, out = 0, {}
      for j = 1, T do sum = sum + w[j] end
      for j = 1, T do out[j] = j > 1 and sum > w[1] and w[j] * sum / (sum - w[1]) or 0 end
      return out
    end) }
  end },
  { { remove = 3 }, function(l, h)
    return { weights = only(l, h, function(_, w)
      local out = { table.unpack(w) }
      out[3] = 0
      return out
    end) }
  end },
  { { mask = 1 }, function(l, h)
    return { hidden = only(l, h, function(j) return j == 1 end) }
  end },
  { { mask = { 5, 2, 3 } }, function(l, h)
    return { hidden = only(l, h, function(j) return j == 2 or j == 3 or j == 5 end) }
  end },
  { { value = { position = 3, to = { 1, -2, 3 } } }, function(l, h)
    return { values = only(l, h, function(v)
      local out = { table.unpack(v) }
      out[3] = { 1, -2, 3 }
      return out
    end) }
  end },
  { { value = {} }, function(l, h)
    return { values = only(l, h, function(v)
      local out = { table.unpack(v) }
      out[1] = { 0, 0, 0 }
      return out
    end) }
  end },
  { { value = { to = "others" } }, function(l, h)
    return { values = only(l, h, function(v, length)
      local out, mean = { table.unpack(v) }, { 0, 0, 0 }
      for t = 2, length do
        for r = 1, W do mean[r] = mean[r] + v[t][r] / (length - 1) end
      end
      out[1] = mean
      return out
    end) }
  end },
}

for _, map in ipairs { "softmax", "softmax1", "relu", "stickbreaking" } do
  check.test("every change, head by head: " .. map, function()
    local model, task = model_of(map)
    local b = batch_of(task)
    local changes = {}
    for i, case in ipairs(cases) do changes[i] = case[1] end
    local effects = lab.intervene(model, b, changes)
    check.equal(#effects, #cases * 2 * H)
    local before = losses(model, map, b, {})
    for class, v in pairs(before) do
      check.close(effects.before[class], v, 1e-12, 1e-12, "before, " .. class)
    end
    for i, case in ipairs(cases) do
      for at, where in pairs { [1] = { 1, 1 }, [2 * H] = { 2, H }, [3] = { 1, 3 } } do
        local e = effects[(i - 1) * 2 * H + at]
        check.equal({ e.layer, e.head }, where)
        local want = losses(model, map, b, case[2](e.layer, e.head))
        for class, v in pairs(want) do
          local what = ("%s, layer %d head %d, %s"):format(e.name, e.layer, e.head, class)
          check.close(e.loss[class], v, 1e-12, 1e-12, what)
          check.close(e.change[class], v - before[class], 1e-12, 1e-12, what)
        end
      end
    end
  end)
end

check.test("hidden keys of attention that is not causal", function()
  local model, task = model_of("relu", { attention = { mechanism = "relu",
    causal = false } })
  local b = batch_of(task)
  local effects = lab.intervene(model, b, { { mask = { 6, 3 }, heads = { { 1, 2 } } } })
  for change, got in pairs { [{ full = true }] = effects.before,
      [{ full = true, hidden = function(l, h, j)
        return l == 1 and h == 2 and (j == 3 or j == 6)
      end }] = effects[1].loss } do
    for class, v in pairs(losses(model, "relu", b, change)) do
      check.close(got[class], v, 1e-12, 1e-12, class)
    end
  end
end)

-- T = 6, all scores 1: relu's weights are 1 over the number of earlier keys.
check.test("the row of a hidden key counts its earlier keys", function()
  local dense = require "sinklab.theorem.dense_attention"
  local ones = core.ones({ 1, 6, 1 }, "f64")
  local c = { q = ones, k = ones, v = ones, heads = 1, kv_heads = 1, scale = 1,
    mechanism = lab.mechanism "relu", causal = true, window = 0, d_head = 1, layer = 1 }
  local function sums(change)
    return dense.attend(change, function() return true end, 0)(c):reshape { 6 }:totable()
  end
  check.close(sums(nil), { 1, 2, 1.5, 4 / 3, 1.25, 1.2 }, 1e-15)
  check.close(sums { mask = 5 }, { 1, 2, 1.5, 4 / 3, 1, 1.25 }, 1e-15)
  check.close(sums { mask = { 2, 5 } }, { 1, 1, 2, 1.5, 1, 4 / 3 }, 1e-15)
end)

check.test("several heads, all heads, the first token gone", function()
  local model, task = model_of "softmax"
  local b = batch_of(task)
  local effects = lab.intervene(model, b, {
    { zero = true, heads = { { 1, 2 }, { 2, 4 } } }, { mask = 1, heads = "all" },
    { drop_first = true }, { zero = true, heads = "all", name = "nothing" } })
  local function zeroed(l, h)
    if l == 1 and h == 2 or l == 2 and h == 4 then return { 0, 0, 0, 0, 0, 0, 0 } end
  end
  check.close(effects[1].loss.plain,
    losses(model, "softmax", b, { weights = zeroed }).plain, 1e-12)
  check.equal({ effects[1].heads, effects[2].heads, effects[4].name },
    { "1:2 2:4", "all", "nothing" })
  -- a residual stream that nothing is added to
  local x, y, t = b.x:totable(), b.y:totable(), b.trigger:totable()
  local sum, n = 0, 0
  for s = 1, S do
    if t[s] < b.length:totable()[s] then
      n = n + 1
      for c = 1, D do sum = sum + (x[s][t[s] + 1][c] - y[s][t[s] + 1][c]) ^ 2 / D end
    end
  end
  check.close(effects[4].loss.trigger, sum / n, 1e-12)
  check.close(effects[3].loss.plain, effects[2].loss.plain, 0)
  check.equal(effects[3].loss.first, nil)
  -- as if it had never been there
  local function rest(u) return u:narrow(2, 2, T - 1) end
  local gone = { x = rest(b.x), y = rest(b.y), trigger = b.trigger - 1,
    length = b.length - 1 }
  local want = lab.intervene(model, gone, {}).before
  check.close(effects[3].loss.trigger, want.trigger, 1e-12)
end)

check.test("packed documents and left padding change nothing", function()
  local model, task = model_of "softmax"
  local b = task:batch { n = S, dtype = "f64", seed = 6 }
  local rows, targets, triggers = b.x:totable(), b.y:totable(), b.trigger:totable()
  local changes = { { zero = true }, { onto = 2 }, { off = 1 }, { remove = 3 },
    { mask = 1 }, { value = { position = 2, to = { 1, 2, 3 } } }, { drop_first = true } }
  local want = lab.intervene(model, b, changes)
  -- two pads, then all sequences as documents of one
  local x, y, trigger, documents = { {} }, { {} }, { {} }, { {} }
  local function add(value, target, is_trigger, document)
    table.insert(x[1], value)
    table.insert(y[1], target)
    table.insert(trigger[1], is_trigger)
    table.insert(documents[1], document)
  end
  for _ = 1, 2 do add(rows[1][3], targets[1][3], 0, 0) end
  for s = 1, S do
    for t = 1, T do add(rows[s][t], targets[s][t], triggers[s] == t - 1 and 1 or 0, s) end
  end
  local got = lab.intervene(model, { x = core.tensor(x, "f64"), y = core.tensor(y, "f64"),
    trigger = core.tensor(trigger, "f64"), documents = core.tensor(documents, "f64"),
    start = core.tensor({ 2 }, "f64") }, changes)
  check.equal(#got, #want)
  for i, e in ipairs(want) do
    for _, class in ipairs { "plain", "trigger" } do
      check.close(got[i].loss[class], e.loss[class], 1e-13, 1e-12,
        ("%s %s %s, %s"):format(e.name, e.layer, e.head, class))
    end
  end
  local all = want.before.first
  check.close((got.before.first + (S - 1) * got.before.boundary) / S, all, 1e-13)
  -- the mean of other positions leaves padding out
  local function padded(left)
    local px, py = {}, {}
    for s = 1, S do
      px[s], py[s] = {}, {}
      for _ = 1, left do
        table.insert(px[s], rows[s][5])
        table.insert(py[s], targets[s][5])
      end
      table.move(rows[s], 1, T, left + 1, px[s])
      table.move(targets[s], 1, T, left + 1, py[s])
    end
    return lab.intervene(model, { x = core.tensor(px, "f64"), y = core.tensor(py, "f64"),
      start = core.full({ S }, left, "f64") }, { { value = { to = "others" } } })
  end
  check.close(padded(3)[1].loss.plain, padded(0)[1].loss.plain, 1e-13)
end)

check.test("mean values and frozen patterns", function()
  local model, task = model_of "softmax"
  local b = task:batch { n = S, dtype = "f64" }
  local mean = lab.sinks(model, b).mean
  local same = { x = core.concat({ b.x:narrow(1, 1, 1), b.x:narrow(1, 1, 1) }, 1),
    y = core.concat({ b.y:narrow(1, 1, 1), b.y:narrow(1, 1, 1) }, 1) }
  -- of one sequence twice, means are what they are of
  for _, e in ipairs(lab.intervene(model, same, { { freeze = true },
    { value = { position = 4, to = "mean" } } })) do
    check.close(e.change.plain, 0, 1e-14)
  end
  local a = lab.intervene(model, b, { { freeze = true } })
  local c = lab.intervene(model, b, { { freeze = mean } })
  check.equal(tostring(a), tostring(c))
  check.above(math.abs(a[1].change.plain), 1e-6)
end)

check.test("other models: registers, ALiBi, rotary, gates, classes, a mixer", function()
  local task = lab.task { name = "copy", seq_len = T, vocab = 5, sample = function(t, B)
    local x = t:randint(0, 4, { B, T })
    return { x = x, y = x }
  end }
  for _, positions in ipairs { "alibi", "rotary", "learned" } do
    for _, map in ipairs { "softmax", "sinklogit" } do
      local model = lab.model.transformer { task = task, layers = 2, heads = 2,
        d_model = 8, positions = positions, registers = 1, dtype = "f64",
        attention = { mechanism = map, gate = "sigmoid_gate" },
        init = lab.init.normal(0.4) }
      local b = task:batch { n = 3, dtype = "f64" }
      local e = lab.intervene(model, b, { { remove = 3 }, { value = { position = T } } })
      local loss = task.loss(model:forward(b.x), b):item()
      local total = (e.before.plain * (T - 1) + e.before.first) / T
      check.close(total, loss, 1e-13, 1e-13, positions .. " " .. map)
      check.close(e.before.all, loss, 1e-13, 1e-13)
      check.above(math.abs(e[1].change.plain), 1e-12)
      check.equal(e[1].change.first, 0.0) -- row 1 does not see position 3
    end
  end
  local linear, trigger = model_of("retention", { kv_heads = H })
  local b = trigger:batch { n = 3, dtype = "f64" }
  local e = lab.intervene(linear, b, { { zero = true } })
  check.above(math.abs(e[1].change.plain), 1e-9)
  check.raises("'retention' is a mixer, whose heads can be zeroed only", lab.intervene,
    linear, b, { { off = 1 } })
end)

check.test("its table and its heat map", function()
  local model, task = model_of "softmax"
  local b = batch_of(task)
  local e = lab.intervene(model, b, { { zero = true }, { off = 1, heads = "all" } })
  local names, rows = e:rows()
  check.equal(names, { "change", "layer", "head", "plain", "first", "trigger" })
  check.equal(#rows, 1 + 2 * H + 1)
  check.contains(tostring(e), "(loss before)")
  check.above(#e:figure { title = "Zeroed" }:text(), 100)
  check.raises("no change was tried head by head",
    function() lab.intervene(model, b, { { zero = true, heads = "all" } }):figure() end)
end)

check.test("mistakes are named, and leave the model as it was", function()
  local model, task = model_of "softmax"
  local b = batch_of(task)
  local function refuse(part, change)
    check.raises(part, lab.intervene, model, b, { change })
  end
  refuse("lab.intervene: change 1: no such option 'zer' (did you mean 'zero'?)",
    { zer = true })
  refuse("change 1 changes nothing (try one of drop_first", {})
  check.raises("the changes must be a list of changes such as { zero = true }",
    lab.intervene, model, b, { zero = true })
  refuse("change 1: off and zero; give one change at a time", { zero = true, off = 1 })
  refuse("change 1: zero = false changes nothing", { zero = false })
  refuse("mask is position 8; there are 1 to 7", { mask = { 1, 8 } })
  refuse("mask has position 2 twice", { mask = { 2, 2 } })
  refuse("option 'heads' is 'every'", { zero = true, heads = "every" })
  refuse("heads[1] must be { layer, head } within 2 layers of 4 heads",
    { zero = true, heads = { { 3, 1 } } })
  refuse("heads must be a list of { layer, head }",
    { zero = true, heads = { layer = 1 } })
  refuse("value.to has shape (2); a value has 3 numbers", { value = { to = { 1, 2 } } })
  refuse("freeze must be true or a tensor (2, 4, 7, 7)", { freeze = b.x })
  b.start = core.zeros({ S }, "f64")
  refuse("freeze does not go with packed documents or left padding", { freeze = true })
  refuse("mask does not go with packed documents or left padding", { mask = 2 })
  refuse("value does not go with packed", { value = { to = "mean" } })
  b.start, b.y = nil, nil
  refuse("a batch with x and y", { zero = true })
end)

check.done()
