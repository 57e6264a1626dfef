-- test_tasks.lua - the target of every task, worked out again by hand in plain loops.
local check = require "check"
local lab = require "sinklab"

local function lists(batch)
  local out = {}
  for key, value in pairs(batch) do
    if lab.is_tensor(value) then out[key] = value:totable() end
  end
  return out
end

--- Every row of the trigger family: what a token must look like, and its target.
local answers = {
  mean = function(x, seen, k)
    local sum = 0
    for _, m in ipairs(seen) do sum = sum + x[m][k] end
    return sum / #seen
  end,
  sum = function(x, seen, k)
    local sum = 0
    for _, m in ipairs(seen) do sum = sum + x[m][k] end
    return sum / #x
  end,
  max = function(x, seen, k)
    local most = -math.huge
    for _, m in ipairs(seen) do most = math.max(most, x[m][k]) end
    return most
  end,
  copy = function(x, seen, k, j) return x[j - 1] and x[j - 1][k] or 0 end,
}

--- `o`: { task =, kinds = { answers }, anchors =, bos =, default =, residual = }.
local function check_family(what, o)
  local batch = lists(o.task:batch { n = 60, seed = 3, dtype = "f64" })
  local K, A = #o.kinds, o.anchors or 1
  local d, L = o.task.d_model, o.task.seq_len
  local none, bos_at, kinds = 0, {}, {}
  for s, x in ipairs(batch.x) do
    local y, j = batch.y[s], batch.trigger[s] // 1 + 1
    local kind = K > 1 and batch.kind[s] // 1 + 1 or 1
    kinds[kind] = true
    if j == 0 then none = none + 1 end
    local seen, default = {}, o.default or 0
    for i = 1, L do
      local bos
      for a = 1, A do if x[i][a] == 1 then bos = a end end
      if bos then
        bos_at[i] = true
        for k = 1, d do check.equal(x[i][k] == (k == bos and 1 or 0), true, what) end
      else
        for k = 1, K do
          check.equal(x[i][A + k], i == j and k == kind and 1. or 0., what)
        end
        check.equal(x[i][d], i == j and 0. or 1., what)
        for k = A + K + 1, d - 1 do
          check.equal(x[i][k] ~= 0 and math.abs(x[i][k]) < 1, true, what)
        end
        if i <= j then seen[#seen + 1] = i end
      end
    end
    for i = 1, L do
      for k = 1, d do
        local content = k > A + K and k < d
        local want = i == j and answers[o.kinds[kind]](x, seen, k, j)
            or content and default or 0
        if o.residual then want = want + x[i][k] end
        check.close(y[i][k], want, 1e-15, 1e-14,
          ("%s: row %d, coordinate %d"):format(what, i, k))
      end
    end
  end
  return none, bos_at, kinds
end

check.test("trigger tasks: mean, max, sum, copy", function()
  for _, answer in ipairs { "mean", "max", "sum", "copy" } do
    for _, residual in ipairs { false, true } do
      local none, bos = check_family(answer, { kinds = { answer }, residual = residual,
        task = lab.task["trigger_" .. answer] { seq_len = 6, d_model = 7,
          residual = residual } })
      check.equal(none, 0)
      check.equal(bos, { true })
    end
  end
end)

check.test("trigger tasks: several kinds, a default, no trigger", function()
  local _, _, kinds = check_family("kinds", { kinds = { "mean", "max" },
    task = lab.task.trigger_kinds { seq_len = 6, d_model = 7 } })
  check.equal(kinds, { true, true })
  check_family("kinds", { kinds = { "copy", "sum", "mean" },
    task = lab.task.trigger_kinds { answers = { "copy", "sum", "mean" }, seq_len = 6 } })
  check_family("default", { kinds = { "mean" }, default = 0.25,
    task = lab.task.trigger_mean { default = 0.25, seq_len = 6, d_model = 7 } })
  local none = check_family("present", { kinds = { "mean" },
    task = lab.task.trigger_mean { present = 0.5, seq_len = 6, d_model = 7 } })
  check.close(none, 30, 4 * math.sqrt(15), 0, "binomial (60, 1/2)")
  check.equal(check_family("idle", { kinds = { "mean" },
    task = lab.task.idle { seq_len = 6, d_model = 7 } }), 60)
  check.raises("lab.task.idle: no such option 'present'", lab.task.idle, { present = 1 })
  check.raises("option 'answer' is 'meen'; it must be mean, sum, max or copy "
    .. "(did you mean 'mean'?)", lab.task.trigger_kinds, { answers = { "meen", "max" } })
  check.raises("option 'answers' has 1 items; it must have 2 to 4",
    lab.task.trigger_kinds, { answers = { "max" } })
end)

check.test("trigger tasks: anchors absent, random, moved, two", function()
  local function of(given)
    given.seq_len, given.d_model = 6, 8
    return lab.task.trigger_mean(given)
  end
  local _, bos = check_family("absent", { kinds = { "mean" }, anchors = 0,
    task = of { bos = "absent" } })
  check.equal(bos, {})
  local task = of { bos = "random" }
  check_family("random", { kinds = { "mean" }, task = task })
  local first = lab.sum(task:batch { n = 200 }.x:select(2, 1):select(2, 1)):item()
  check.close(first, 100, 4 * math.sqrt(50), 0, "binomial (200, 1/2)")
  _, bos = check_family("moved", { kinds = { "mean" }, task = of { bos = "moved" } })
  check.equal(bos, { true, true, true, true, true, true })
  _, bos = check_family("two",
    { kinds = { "mean" }, anchors = 2, task = of { anchors = 2 } })
  check.equal(bos, { true, true })
  -- The shortest sequence leaves its trigger one place.
  task = lab.task.trigger_mean { anchors = 2, seq_len = 3 }
  check.equal(task:batch { n = 4 }.trigger:totable(), { 2.0, 2.0, 2.0, 2.0 })
  check.raises("two anchors are at positions 1 and 2: bos must be \"first\"",
    lab.task.trigger_mean, { anchors = 2, bos = "moved" })
  check.raises("option 'trigger' is 2, where the anchor is", function()
    of { anchors = 2 }:batch { trigger = 2 }
  end)
end)

check.test("retrieval: the value of the asked key", function()
  local task = lab.task.retrieval { seq_len = 6, d_value = 3 }
  local L, d = 6, task.d_model
  local batch = lists(task:batch { n = 100, seed = 1, dtype = "f64" })
  local asked = {}
  for s, x in ipairs(batch.x) do
    local j, a, keys = batch.trigger[s] // 1 + 1, batch.asked[s] // 1 + 1, {}
    check.at_least(a, 2)
    check.below(a, j)
    asked[a] = true
    check.equal(x[1], { 1., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0. })
    for i = 2, L do
      local key
      for k = 3, 2 + L - 1 do
        if x[i][k] == 1 then
          check.equal(key, nil, "one key")
          key = k
        end
      end
      check.equal(x[i][2], i == j and 1. or 0.)
      check.equal(x[i][d], i == j and 0. or 1.)
      if i == j then
        check.equal(x[i][key], x[a][key], "the asked key")
        check.equal({ table.unpack(x[i], d - 3, d - 1) }, { 0., 0., 0. })
      else
        check.equal(keys[key], nil, "keys differ")
        keys[key] = true
      end
    end
    for i = 1, L do
      for k = 1, d do
        check.equal(batch.y[s][i][k],
          i == j and k >= d - 3 and k < d and x[a][k] or 0., "target")
      end
    end
  end
  check.equal(asked, { nil, true, true, true, true })
end)

check.test("induction: what followed before follows again", function()
  local batch = lists(lab.task.induction { symbols = 7, length = 5 }:batch { n = 40 })
  for s, x in ipairs(batch.x) do
    check.equal(#x, 10)
    check.equal(x[1], 0.)
    for i = 1, #x do
      local before
      for m = 2, i - 1 do if x[m] == x[i] then before = m end end
      -- Position 1 + length repeats nothing yet; neither does the string's last token.
      check.equal(batch.y[s][i], before and x[before + 1] or -100., "position " .. i)
      check.equal(i == 1 or x[i] >= 1 and x[i] <= 7, true)
    end
  end
end)

--- Solve a small linear system by elimination.
local function solve(a, b)
  local n = #b
  for i = 1, n do
    local p = i
    for r = i + 1, n do if math.abs(a[r][i]) > math.abs(a[p][i]) then p = r end end
    a[i], a[p], b[i], b[p] = a[p], a[i], b[p], b[i]
    for r = i + 1, n do
      local f = a[r][i] / a[i][i]
      for c = i, n do a[r][c] = a[r][c] - f * a[i][c] end
      b[r] = b[r] - f * b[i]
    end
  end
  local x = {}
  for i = n, 1, -1 do
    local sum = b[i]
    for c = i + 1, n do sum = sum - a[i][c] * x[c] end
    x[i] = sum / a[i][i]
  end
  return x
end

check.test("regression: the target is what the examples determine", function()
  local k, L = 3, 7
  local task = lab.task.regression { inputs = k, seq_len = L }
  local batch = lists(task:batch { n = 20, dtype = "f64" })
  for s, x in ipairs(batch.x) do
    check.equal(x[1], { 1., 0., 0., 0., 0., 0., 0. })
    check.equal(batch.trigger[s], L - 1.)
    -- Normal equations of the five examples.
    local a, b = {}, {}
    for r = 1, k do
      a[r], b[r] = { 0, 0, 0 }, 0
      for i = 2, L - 1 do
        b[r] = b[r] + x[i][2 + r] * x[i][3 + k]
        for c = 1, k do a[r][c] = a[r][c] + x[i][2 + r] * x[i][2 + c] end
      end
    end
    local w, want = solve(a, b), 0
    for r = 1, k do want = want + w[r] * x[L][2 + r] end
    check.equal({ x[L][2], x[L][3 + k], x[L][4 + k] }, { 1., 0., 0. })
    for i = 1, L do
      for c = 1, k + 4 do
        check.close(batch.y[s][i][c], i == L and c == 3 + k and want or 0, 1e-9, 1e-9)
      end
    end
  end
end)

--- Counts of the corpus, by another way than the library's.
local function corpus()
  local source = arg[0]:match "^(.*)/tests/"
  local file <close> = assert(io.open(source .. "/scripts/data/shakespeare.txt"))
  local text = file:read "a"
  local single, pairs_of = {}, {}
  for i = 1, #text do
    local a, ab = text:sub(i, i), text:sub(i, i + 1)
    single[a] = (single[a] or 0) + 1
    if #ab == 2 then pairs_of[ab] = (pairs_of[ab] or 0) + 1 end
  end
  return single, pairs_of, #text
end

check.test("backcopy: after a trigger the token before it, else a bigram of the text",
  function()
  local single, pairs_of = corpus()
  local task = lab.task.backcopy { seq_len = 64 }
  local letters, order = task.letters, {}
  check.equal(#letters, 65)
  check.equal(task.vocab, 66)
  for letter in pairs(single) do order[#order + 1] = letter end
  table.sort(order, function(a, b) return single[a] > single[b] end)
  local triggers = {}
  for i = 1, 3 do triggers[order[i]] = true end
  check.equal({ triggers[" "], triggers.e, triggers.t }, { true, true, true })
  local found = task:batch { n = 40, seed = 2 }
  local batch = lists(found)
  local oracle, rows, least = task.oracle(found):totable(), 0, 0
  for s, x in ipairs(batch.x) do
    check.equal(x[1], 65., "BOS")
    check.equal({ table.unpack(x, 2) }, { table.unpack(batch.y[s], 1, 63) },
      "y is x moved")
    for i = 1, #x do
      local at = function(id) return letters[id // 1 + 1] end
      local token, following, before = at(x[i]), at(batch.y[s][i]), at(x[i - 1] or 65)
      check.equal(batch.is_trigger[s][i], triggers[token] and 1. or 0.)
      if i == 1 then
        check.equal(triggers[following], nil, "the first letter is no trigger")
      elseif triggers[token] then
        check.equal(following, before)
        check.equal(oracle[s][i], -0., "oracle")
      else
        local n = 0
        for ab, c in pairs(pairs_of) do if ab:sub(1, 1) == token then n = n + c end end
        check.close(oracle[s][i], -math.log(pairs_of[token .. following] / n), 1e-12)
        rows, least = rows + 1, least + oracle[s][i]
      end
    end
  end
  -- Mean surprise against the chain's own entropy, row by row, would repeat the sampler;
  -- that rare pairs are as rare as they should be shows in the mean.
  check.above(rows, 1000)
  check.above(least / rows, 1.8)
  check.below(least / rows, 2.6)
end)

check.test("backcopy: frequencies of what a letter is followed by", function()
  local single, pairs_of = corpus()
  local task = lab.task.backcopy { seq_len = 64, variant = "markov" }
  local batch, count, n = lists(task:batch { n = 400, seed = 4 }), {}, 0
  for s, x in ipairs(batch.x) do
    for i = 2, #x do
      if task.letters[x[i] // 1 + 1] == "h" then
        local following = task.letters[batch.y[s][i] // 1 + 1]
        count[following] = (count[following] or 0) + 1
        n = n + 1
      end
    end
    check.equal(lab.sum(lab.tensor(batch.is_trigger[s])):item(), 0., "no triggers")
  end
  for _, following in ipairs { "e", "a", "i", " " } do
    local p = pairs_of["h" .. following] / single.h
    check.close(count[following] / n, p, 4 * math.sqrt(p * (1 - p) / n), 0,
      "h" .. following)
  end
end)

check.test("backcopy: variants, BOS tokens and the delimiter", function()
  local function rows(given)
    given.seq_len = 48
    local task = lab.task.backcopy(given)
    local batch = lists(task:batch { n = 30, seed = 5 })
    return task, batch
  end
  for bos = 0, 2 do
    local task, batch = rows { bos = bos }
    check.equal(task.vocab, 65 + bos)
    for _, x in ipairs(batch.x) do
      for i = 1, 3 do check.equal(x[i] >= 65, i <= bos) end
      if bos > 0 then check.equal(x[bos], 64. + bos) end
    end
  end
  local task, batch = rows { variant = "icl" }
  for s, x in ipairs(batch.x) do
    for i = 2, #x do
      for m = 1, i - 1 do
        if x[m] == x[i] then check.equal(batch.y[s][i], x[i], "icl repeats") end
      end
    end
  end
  local copies, at = 0, 0
  task, batch = rows { variant = "interpolate", mix = 0.25 }
  for s, x in ipairs(batch.x) do
    for i = 3, #x do
      if batch.is_trigger[s][i] == 1 and x[i - 1] ~= x[i] then
        at = at + 1
        if batch.y[s][i] == x[i - 1] then copies = copies + 1 end
      end
    end
  end
  check.above(copies / at, 0.2, copies .. " of " .. at)
  check.below(copies / at, 0.5, copies .. " of " .. at)
  local single, pairs_of = corpus()
  task, batch = rows { variant = "dormant_markov" }
  for s, x in ipairs(batch.x) do
    for i = 3, #x do
      local before = batch.is_trigger[s][i] == 1 and x[i - 1] or x[i]
      local from = task.letters[before // 1 + 1]
      local pair = from .. task.letters[batch.y[s][i] // 1 + 1]
      check.equal(pairs_of[pair] ~= nil, true, "not a pair of the text: " .. pair)
    end
  end
  local delimiters, tokens = 0, 0
  task, batch = rows { delimiter = 0.2, triggers = 0 }
  check.equal(task.vocab, 67)
  for _, x in ipairs(batch.x) do
    for i = 3, #x do
      if x[i - 1] ~= 66 then
        tokens = tokens + 1
        if x[i] == 66 then delimiters = delimiters + 1 end
      else
        check.below(x[i], 65, "a letter follows the delimiter")
      end
    end
  end
  check.close(delimiters / tokens, 0.2, 4 * math.sqrt(0.16 / tokens), 0, "delimiters")
  check.above(single.e, 0)
  check.raises("option 'variant' is 'bmm'; it must be bbm, markov, dormant_markov, "
    .. "interpolate or icl (did you mean 'bbm'?)", lab.task.backcopy, { variant = "bmm" })
  check.raises("lab.task.backcopy: nowhere.txt: No such file or directory",
    lab.task.backcopy, { path = "nowhere.txt" })
end)

check.test("unigram: Zipf's law, nothing to attend to", function()
  local task = lab.task.unigram { symbols = 4, seq_len = 50 }
  local found = task:batch { n = 100, seed = 1 }
  local batch, count = lists(found), { 0, 0, 0, 0 }
  for s, x in ipairs(batch.x) do
    check.equal(x[1], 0.)
    check.equal({ table.unpack(x, 2) }, { table.unpack(batch.y[s], 1, 49) })
    for _, id in ipairs(batch.y[s]) do count[id // 1] = count[id // 1] + 1 end
  end
  local entropy = 0
  for i = 1, 4 do
    local p = 1 / i / (1 + 1 / 2 + 1 / 3 + 1 / 4)
    entropy = entropy - p * math.log(p)
    check.close(count[i] / 5000, p, 4 * math.sqrt(p * (1 - p) / 5000), 0, "symbol " .. i)
  end
  check.close(task.entropy, entropy, 1e-12)
  check.close(lab.mean(task.oracle(found)):item(), entropy, 0.03)
end)

check.test("every task of the list is there, and learns a step", function()
  for _, entry in ipairs(lab.task.list) do
    local task = lab.task[entry[1]](entry[1] == "backcopy" and { seq_len = 12 } or {})
    local model = lab.model.transformer { task = task, d_model = task.d_model or 8 }
    local log = lab.train(model, task, { steps = 2, batch = 8, eval = 8, quiet = true })
    check.equal(log.steps, 2, entry[1])
    check.below(log.loss, math.huge, entry[1])
  end
end)

check.done()
