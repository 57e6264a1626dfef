-- test_compose.lua - attention composed of plugins and host features, in models.
local check = require "check"
local core = require "sinklab.core"
local lab = require "sinklab"

local task = lab.task.trigger_mean { d_model = 6, seq_len = 7 }

local function model(attention, more)
  local o = { task = task, layers = 2, heads = 2, d_head = 4, attention = attention,
    dtype = "f64", seed = 3, init = lab.init.normal(0.5) }
  for key, value in pairs(more or {}) do o[key] = value end
  return lab.model.attention_only(o)
end

local function refuse(part, attention, more)
  check.raises(part, model, attention, more)
end

local function flat(t)
  local n = 1
  for _, size in ipairs(t.shape) do n = n * size end
  return t:clone():reshape { n }:totable()
end

--- Every parameter's gradient against differences.
local function check_gradients(attention, more)
  local m = model(attention, more)
  local batch = task:batch { n = 3, dtype = "f64" }
  local length = core.tensor({ 7, 4, 1 }, "f64")
  local program, loss = core.record(function()
    return core.sum(core.square(m:forward(batch.x, length)))
  end)
  program:want(m.params.flat):loss(loss)
  check.close(program:check(), 0, 1e-8)
  return m
end

check.test("gradients of every parameter", function()
  for _, case in ipairs {
    { { mechanism = "softmax", gate = "sigmoid_gate" } },
    { { mechanism = "softmax", gate = { "sigmoid_gate", granularity = "headwise",
      shared = true } } },
    { { mechanism = "softmax", gate = "head_gate" }, { kv_heads = 1 } },
    { { mechanism = "linear", gate = { "head_gate", conditional = false } } },
    { { mechanism = "linear" }, { registers = 2 } },
    { { mechanism = "softmax", kv_bias = "k" } },
    { { mechanism = "softmax", kv_bias = "kv", causal = false }, { kv_heads = 1 } },
    { { mechanism = "softmax", kv_bias = { "kv", shared = true } }, { registers = 1 } },
    { { mechanism = "softmax", kv_bias = "v", window = 3 } },
    { { mechanism = "softmax", kv_bias = { "v", shared = true } } },
  } do check_gradients(case[1], case[2]) end
end)

check.test("a model says what it is made of", function()
  local m = model { mechanism = { "relu", normaliser = "visible" },
    gate = { "head_gate", probability = 0.5 }, kv_bias = "k" }
  check.contains(tostring(m), "model attention_only: relu + head_gate, 2 layers")
  check.contains(tostring(m),
    "attention: mechanism relu (normaliser = visible), gate head_gate "
    .. "(conditional = true, probability = 0.5), kv_bias k, scale 1, causal")
  check.contains(tostring(m), "layer2.head_gate.bias  (2, 1)")
  check.contains(tostring(m), "layer1.head_gate.gate  (2, 6)")
  check.contains(tostring(m), "layer1.k_bias          (2, 4)")
  local linear = model("linear", { registers = 3 })
  check.contains(tostring(linear), "layer1.linear.q  (8, 6)")
  check.contains(tostring(linear), "registers        (3, 6)")
  check.equal(linear:parameters()["layer1.w_q"], nil)
end)

check.test("plugins say how their parameters start", function()
  local m = model { mechanism = "softmax", gate = { "head_gate", probability = 0.25 } }
  check.close(flat(m:parameter "layer1.head_gate.bias"),
    { math.log(1 / 3), math.log(1 / 3) }, 1e-15)
  local none = model { mechanism = "softmax",
    gate = { "head_gate", conditional = false } }
  check.equal(none:parameters()["layer1.head_gate.gate"], nil)
end)

check.test("options of the map: beside it, or in its table", function()
  check.equal(model { mechanism = "relu", normaliser = "length" }.mechanism,
    model { mechanism = { "relu", normaliser = "length" } }.mechanism)
  check.equal(model({ mechanism = { "relu" } }).mechanism, model("relu").mechanism)
  refuse("attention: mechanism: option 'normaliser' stands beside a table; "
    .. "move it inside: "
    .. "{ \"relu\", normaliser = ... }",
    { mechanism = { "relu" }, normaliser = "length" })
  refuse("a table needs its mechanism by name: "
    .. "attention = { mechanism = { \"relu\", ... } }",
    { "relu", normaliser = "length" })
  refuse("attention: mechanism: no such option 'windwo' (did you mean 'window'?)",
    { mechanism = "softmax", windwo = 3 })
  refuse("relu has no option 'normalizer' (did you mean 'normaliser'?)",
    { mechanism = { "relu", normalizer = "length" } })
  refuse("the table has no name first", { mechanism = { normaliser = "length" } })
  refuse("head_gate: option probability is 0; expected a number from 1e-06 to 0.999999",
    { gate = { "head_gate", probability = 0 } })
end)

check.test("what does not go together is refused", function()
  refuse("mechanism is 'sigmoid_gate', which is a gate; expected a row or mixer "
    .. "(try gate = \"sigmoid_gate\")", "sigmoid_gate")
  refuse("gate is 'softmax', which is a row; expected a gate "
    .. "(try mechanism = \"softmax\")",
    { gate = "softmax" })
  refuse("no plugin 'sigmod_gate' (did you mean 'sigmoid_gate'?)",
    { gate = "sigmod_gate" })
  refuse("'linear' does causal attention without a window only",
    { mechanism = "linear", causal = false })
  refuse("'linear' does causal attention without a window only",
    { mechanism = "linear", window = 2 })
  refuse("kv_heads must be heads", "linear", { kv_heads = 1 })
  refuse("kv_bias needs a row plugin as mechanism; 'linear' is a mixer",
    { mechanism = "linear", kv_bias = "k" })
  refuse("kv_bias is 'q'; it must be \"k\", \"v\" or \"kv\"", { kv_bias = "q" })
  refuse("kv_bias: no such option 'sharing'; it takes shared",
    { kv_bias = { "k", sharing = true } })
  refuse("a key bias does not go with a window", { kv_bias = "k", window = 2 })
  check.raises("positions 'rotary' need a row plugin as mechanism; 'linear' is a mixer",
    function()
    lab.model.transformer { task = task, heads = 1, positions = "rotary",
      attention = "linear" }
  end)
end)

check.test("operations refuse in a sentence", function()
  local linear, gate = core.mechanism "linear", core.mechanism "sigmoid_gate"
  local x = core.zeros({ 2, 3, 4 }, "f64")
  local function mixer(part, o)
    o.mechanism = o.mechanism or linear
    check.raises(part, core.mixer, o)
  end
  mixer("mixer: 2 inputs; plugin 'linear' has 3", { inputs = { x, x }, d_head = 4 })
  mixer("input 'v' of plugin 'linear' is (2, 3, 5); expected (2, 3, 4)",
    { inputs = { x, x, core.zeros({ 2, 3, 5 }, "f64") }, d_head = 4 })
  mixer("plugin 'linear' does causal attention without a window only; "
    .. "causal = false was asked for",
    { inputs = { x, x, x }, d_head = 4, causal = false })
  mixer("mixer: plugin 'sigmoid_gate' is a gate; expected a mixer",
    { inputs = { x }, d_head = 4, mechanism = gate })
  mixer("mixer.inputs: expected a list of at most 6 tensors, got nil", {})
  check.raises("input 'gate' of plugin 'sigmoid_gate' is (2, 3, 4); expected (2, 3, 6)",
    core.gate, { o = core.zeros({ 2, 3, 6 }, "f64"), z = x, mechanism = gate, heads = 2 })
  check.raises("gate: 1 inputs; expected 2", core.gate, { o = x, mechanism = gate })
  check.raises("gate: o is (2, 3, 4); its width must be a multiple of 3", core.gate,
    { o = x, z = x, mechanism = gate, heads = 3 })
end)

check.test("a gate is o times a sigmoid of W x", function()
  local m = model({ mechanism = "softmax", gate = "sigmoid_gate" }, { layers = 1 })
  local plain = model("softmax", { layers = 1 })
  for _, name in ipairs { "w_q", "w_k", "w_v", "w_o" } do
    plain:set("layer1." .. name, m:parameter("layer1." .. name))
  end
  local x = task:batch { n = 2, dtype = "f64" }.x
  local q, k, v = core.linear(x, plain:parameter "layer1.w_q"),
      core.linear(x, plain:parameter "layer1.w_k"),
      core.linear(x, plain:parameter "layer1.w_v")
  local o = core.attention { q = q, k = k, v = v, heads = 2, scale = 1,
    mechanism = core.mechanism "softmax" }
  local g = core.sigmoid(core.linear(x, m:parameter "layer1.sigmoid_gate.gate"))
  check.close(flat(m:forward(x)), flat(core.linear(o * g, m:parameter "layer1.w_o")),
    1e-13)
end)

check.test("a key bias is one more key; a value bias is added", function()
  local x = task:batch { n = 2, dtype = "f64" }.x
  for _, kind in ipairs { "k", "kv", "v" } do
    local m = model({ mechanism = "softmax", kv_bias = kind }, { layers = 1, heads = 1 })
    local p = m:parameters()
    local q, k, v = core.linear(x, p["layer1.w_q"]), core.linear(x, p["layer1.w_k"]),
        core.linear(x, p["layer1.w_v"])
    local out = core.zeros({ 2, 7, 4 }, "f64")
    for s = 1, 2 do
      for i = 1, 7 do
        -- exp of scores against [k*, k_1 .. k_i], by hand
        local function score(key)
          local sum = 0
          for c = 1, 4 do sum = sum + q:get(s, i, c) * key(c) end
          return math.exp(sum)
        end
        local keys, total = {}, 0
        if kind ~= "v" then
          keys[0] = score(function(c) return p["layer1.k_bias"]:get(1, c) end)
          total = keys[0]
        end
        for j = 1, i do
          keys[j] = score(function(c) return k:get(s, j, c) end)
          total = total + keys[j]
        end
        for c = 1, 4 do
          local star = kind ~= "k" and p["layer1.v_bias"]:get(1, c) or 0
          local y = kind == "v" and star or (keys[0] / total) * star
          for j = 1, i do y = y + keys[j] / total * v:get(s, j, c) end
          out:set(s, i, c, y)
        end
      end
    end
    check.close(flat(m:forward(x)), flat(core.linear(out, p["layer1.w_o"])), 1e-13, 0,
      kind)
  end
end)

check.test("registers are tokens before the first", function()
  local m = model("softmax", { registers = 2, layers = 1 })
  local plain = model("softmax", { layers = 1 })
  for name, t in pairs(plain:parameters()) do t:copy(m:parameter(name)) end
  local x = task:batch { n = 2, dtype = "f64" }.x
  local first = m:parameter "registers":reshape { 1, 2, 6 }:broadcast { 2, 2, 6 }
  local long = plain:forward(core.concat({ first, x }, 2))
  check.close(flat(m:forward(x)), flat(long:narrow(2, 3, 7)), 1e-14)
  local length = core.tensor({ 7, 3 }, "f64")
  check.close(flat(m:forward(x, length):narrow(1, 2, 1):narrow(2, 1, 3)),
    flat(m:forward(x):narrow(1, 2, 1):narrow(2, 1, 3)), 1e-14)
end)

check.test("models are saved and loaded by the names of plugins' parameters", function()
  local path = os.getenv "SINKLAB_TEST_SCRATCH" .. "/compose.safetensors"
  local a = { mechanism = "linear", gate = "head_gate", kv_bias = nil }
  local m = model(a, { registers = 1 })
  assert(m:save(path))
  local other = model(a, { registers = 1, seed = 9 })
  assert(other:load(path))
  for name, t in pairs(m:parameters()) do
    check.close(flat(other:parameter(name)), flat(t), 0, 0, name)
  end
end)

--- Every measure of one head against the weights themselves.
local function check_measures(m, found, batch, columns)
  local n, virtual = 7, columns - 7
  local plain, mass, size, outside, first = 0, 0, 0, 0, 0
  for s = 1, batch.x.shape[1] do
    local w, trigger = m(s), batch.trigger:get(s) + 1
    for i = 2, n do
      if i ~= trigger then
        plain = plain + 1
        for j = 1, columns do
          local x = w[i][j]
          if j <= virtual then outside = outside + x else
            mass, size = mass + x, size + math.abs(x)
          end
        end
        first = first + w[i][virtual + 1]
      end
    end
  end
  local head = found.heads[1]
  check.equal(head.plain_rows, plain)
  check.close(head.first_mean, first / plain, 1e-14)
  check.close(head.row_mass, mass / plain, 1e-14)
  check.close(head.abs_mass, size / plain, 1e-14)
  if virtual > 0 then check.close(head.virtual_mass, outside / plain, 1e-14) end
  return mass / plain, outside / plain
end

check.test("mass on nothing, and a key bias as a column of its own", function()
  local batch = task:batch { n = 4, dtype = "f64" }
  local one = { layers = 1, heads = 1 }
  -- softmax1 is softmax with one more score of 0, whose weight goes nowhere
  for _, map in ipairs { "softmax1", "softmax" } do
    local m = model(map == "softmax" and { mechanism = map, kv_bias = "k" } or map, one)
    if map == "softmax" then m:parameter "layer1.k_bias":fill(0) end
    local found = lab.sinks(m, batch)
    local q = core.linear(batch.x, m:parameter "layer1.w_q")
    local k = core.linear(batch.x, m:parameter "layer1.w_k")
    local function weights(s)
      local w = {}
      for i = 1, 7 do
        local total, row = 1, { 1 }
        for j = 1, 7 do
          local sum = 0
          for c = 1, 4 do sum = sum + q:get(s, i, c) * k:get(s, j, c) end
          row[j + 1] = j <= i and math.exp(sum) or 0
          total = total + row[j + 1]
        end
        for j = 1, 8 do row[j] = row[j] / total end
        w[i] = map == "softmax" and row or table.move(row, 2, 8, 1, {})
      end
      return w
    end
    local mass, outside = check_measures(weights, found, batch,
      map == "softmax" and 8 or 7)
    local head = found.heads[1]
    if map == "softmax" then
      check.equal({ head.null_mass, found.null }, {})
      check.close(mass + outside, 1, 1e-14)
      check.equal(found.virtual.shape, { 1, 1, 7, 1 })
      local mean = 0
      for s = 1, 4 do mean = mean + weights(s)[5][1] / 4 end
      check.close(found.virtual:get(1, 1, 5, 1), mean, 1e-14)
      check.contains(tostring(found), "virtual_mass")
    else
      check.equal({ head.virtual_mass, found.virtual }, {})
      check.close(head.null_mass, 1 - mass, 1e-14)
      check.close(found.null_mass.max, head.null_mass, 0)
      check.equal(found.null.shape, { 1, 1, 7 })
      local mean = 0
      for s = 1, 4 do
        local w = weights(s)[5]
        for j = 1, 7 do mean = mean + w[j] / 4 end
      end
      check.close(found.null:get(1, 1, 5), 1 - mean, 1e-14)
      check.contains(tostring(found), "null_mass")
    end
  end
end)

check.test("registers have no position in measurements", function()
  local m = model({ mechanism = "softmax", kv_bias = "kv" }, { registers = 2, layers = 1,
    heads = 1 })
  local batch = task:batch { n = 4, dtype = "f64" }
  local found = lab.sinks(m, batch)
  local first = m:parameter "registers":reshape { 1, 2, 6 }:broadcast { 4, 2, 6 }
  local x = core.concat({ first, batch.x }, 2)
  local q, k, v = core.linear(x, m:parameter "layer1.w_q"),
      core.linear(x, m:parameter "layer1.w_k"), core.linear(x, m:parameter "layer1.w_v")
  local star = m:parameter "layer1.k_bias"
  local function weights(s)
    local w = {}
    for i = 1, 7 do
      local row, total = {}, 0
      for j = 0, 9 do
        local sum = 0
        for c = 1, 4 do
          sum = sum + q:get(s, i + 2, c) * (j == 0 and star:get(1, c) or k:get(s, j, c))
        end
        row[j + 1] = j <= i + 2 and math.exp(sum) or 0
        total = total + row[j + 1]
      end
      for j = 1, 10 do row[j] = row[j] / total end
      w[i] = row
    end
    return w
  end
  local mass, outside = check_measures(weights, found, batch, 10)
  check.close(mass + outside, 1, 1e-14)
  check.equal(found.virtual.shape, { 1, 1, 7, 3 })
  check.equal(found.mean.shape, { 1, 1, 7, 7 })
  -- || W_O v_1 ||, v_1 that of the first token of the batch
  local norm = 0
  for s = 1, 4 do
    local y = core.linear(v:narrow(1, s, 1):narrow(2, 3, 1), m:parameter "layer1.w_o")
    norm = norm + math.sqrt(core.sum(core.square(y)):item()) / 4
  end
  check.close(found.heads[1].value_norm, norm, 1e-14)
  -- lengths and triggers count tokens of the batch
  batch.length = core.tensor({ 7, 4, 1, 0 }, "f64")
  local short = lab.sinks(m, batch).heads[1]
  check.equal(short.empty_rows, 3 + 6 + 7)
end)

check.test("a mixer shows its weights", function()
  local m = model({ mechanism = { "linear", feature = "identity", normalise = false } },
    { layers = 1, heads = 1 })
  local batch = task:batch { n = 3, dtype = "f64" }
  local found = lab.sinks(m, batch)
  local q = core.linear(batch.x, m:parameter "layer1.linear.q")
  local k = core.linear(batch.x, m:parameter "layer1.linear.k")
  check_measures(function(s)
    local w = {}
    for i = 1, 7 do
      w[i] = {}
      for j = 1, 7 do
        local sum = 0
        for c = 1, 4 do sum = sum + q:get(s, i, c) * k:get(s, j, c) end
        w[i][j] = j <= i and sum or 0
      end
    end
    return w
  end, found, batch, 7)
  check.above(found.heads[1].abs_mass, math.abs(found.heads[1].row_mass))
  check.equal(found.null_mass, nil)
  -- one without weights has nothing to show
  local path = os.getenv "SINKLAB_BINARY":match "^(.*)/" .. "/tests/good/mixer_shape.so"
  local blind = model(path, { layers = 1 })
  check.raises("lab.sinks: 'mixer_shape' is a mixer without weights: "
    .. "there is nothing to measure", lab.sinks, blind, batch)
end)

check.test("figures show what is not on tokens as a first column", function()
  local batch = task:batch { n = 4, dtype = "f64" }
  local function figure(attention, more)
    local m = model(attention, more)
    return lab.plot.heads(lab.sinks(m, batch), { null = true })
  end
  check.contains(figure("softmax1"):text(), "null  3")
  check.contains(figure({ mechanism = "softmax", kv_bias = "k" }):text(), "virtual")
  check.contains(figure("softmax1", { registers = 1 }):text(), "other")
  check.raises("the mechanism does not declare that it leaves mass on nothing",
    figure, "softmax")
  local found = lab.sinks(model "softmax1", batch)
  check.raises("null = true needs the result of lab.sinks, not a tensor",
    lab.plot.heads, found.mean, { null = true })
  check.equal(lab.plot.heads(found):text(),
    lab.plot.heads(found.mean, { samples = found.samples }):text())
  -- the column holds the mass: rows of 1 - sum, positions one column on
  local text = lab.plot.heat({ { 1, 0, 0 }, { 0, 1, 0 } }, { lead = "rest" }):text()
  check.contains(text, "1 @@")
  check.contains(text, "rest")
  check.raises("a first column called 'a name that is lo", lab.plot.heat, { { 1, 0 } },
    { lead = "a name that is longer" })
  check.raises("before 0 others", lab.plot.heat, { { 1 } }, { lead = "rest" })
end)

check.done()
