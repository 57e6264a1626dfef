-- test_collect.lua - lab.sinks.collect: attention that runs at once, measured.
local check = require "check"
local lab = require "sinklab"
local core = require "sinklab.core"

-- A model of 2 layers and 2 heads, measured as a program and call by call.
local task = lab.task.trigger_mean { seq_len = 9 }
local model = lab.model.attention_only { task = task, layers = 2, heads = 2,
  residual = true, dtype = "f64", init = lab.init.normal(0.3), seed = 2 }
local batch = task:batch { n = 6, dtype = "f64" }
local lengths = core.tensor({ 9, 4, 9, 1, 9, 7 }, "f64")
local watched = { "columns", "share", "norms", "logits" }
local all = { measures = watched, maps = true, thresholds = { 0.1, 0.2 } }

--- Every number and tensor of a is that of b, NaN where it is NaN.
local function same(a, b, path)
  for key, v in pairs(a) do
    local w, at = b[key], path .. "." .. tostring(key)
    if type(v) == "table" then
      check.equal(type(w), "table", at)
      same(v, w, at)
    elseif core.is_tensor(v) then
      local nan = core.ne(v, v)
      check.equal(core.ne(w, w):totable(), nan:totable(), at .. ": NaN")
      local gap = core.where(nan, core.zeros(v.shape, v.dtype), v - w)
      check.close(gap:abs():max():item(), 0, 1e-13, 0, at)
    elseif v ~= v then
      check.equal(w ~= w, true, at .. ": NaN")
    else
      check.close(w, v, 1e-13, 0, at)
    end
  end
end

local function collector(more)
  local o = { layers = 2, heads = 2, tokens = 9, samples = 6, dtype = "f64",
    trigger = batch.trigger, length = lengths,
    output = function(layer) return model.outputs[layer] end }
  for key, value in pairs(all) do o[key] = value end
  for key, value in pairs(more or {}) do o[key] = value end
  return lab.sinks.collect(o)
end

local function measured()
  local b = { x = batch.x, trigger = batch.trigger, length = lengths }
  return lab.sinks(model, b, all)
end

local function part(t, i, n) return t:narrow(1, i, n) end

check.test("call by call is as a program", function()
  local c = collector { batch = 2 }
  for i = 1, 6, 2 do
    local y = c:watch(i, function()
      return model:forward(part(batch.x, i, 2), part(lengths, i, 2))
    end, { n = 2 })
    check.equal(y.shape, { 2, 9, 16 })
  end
  local got = c:finish()
  same(measured(), got, "")
  same(got, measured(), "")
end)

check.test("with the residual stream", function()
  local c, want = collector { measures = "all" }, nil
  for i = 1, 6 do
    c:watch(i, function()
      model:forward(part(batch.x, i, 1), part(lengths, i, 1), nil, {
        layer = function(layer, h) c:hidden(layer, h, i) end })
    end)
  end
  want = lab.sinks(model, { x = batch.x, trigger = batch.trigger, length = lengths },
    { measures = "all", thresholds = { 0.1, 0.2 } })
  same(want, c:finish(), "")
  c = collector { measures = "hidden" }
  for i = 1, 6 do c:watch(i, function() model:forward(part(batch.x, i, 1)) end) end
  check.raises("hidden: layer 0 of sample 1 has not been given", c.finish, c)
  check.raises("the residual stream is not measured", function()
    collector():hidden(0, batch.x)
  end)
end)

check.test("layer by layer, last sequence first", function()
  local h = {}
  for i = 1, 6 do h[i] = part(batch.x, i, 1) end
  local c = collector()
  for layer = 1, 2 do
    for i = 6, 1, -1 do
      h[i] = c:watch(i, function()
        return model.run_layer(model.config, model.blocks[layer], h[i],
          { length = part(lengths, i, 1) })
      end, { layer = layer, last = layer })
    end
  end
  local got, want = c:finish(), measured()
  for _, head in ipairs { got.heads, want.heads } do
    check.equal(#head, 4)
  end
  same(want.heads, got.heads, "heads")
end)

check.test("heads in groups, shorter sequences", function()
  local q, k, v = {}, {}, {}
  local draw = core.generator(5, { dtype = "f64" })
  for i = 1, 3 do
    local shape = { 1, 4 + i, 8 }
    q[i], k[i] = draw:normal(0, 1, shape), draw:normal(0, 1, shape)
    v[i] = draw:normal(0, 1, shape)
  end
  local function run(groups)
    local c = lab.sinks.collect { layers = 1, heads = 4, tokens = 9, samples = 3,
      measures = watched, dtype = "f64" }
    local size = 4 // groups
    for i = 1, 3 do
      for g = 1, groups do
        local function piece(t) return t:narrow(3, (g - 1) * size * 2 + 1, size * 2) end
        c:watch(i, function()
          core.attention { q = piece(q[i]), k = piece(k[i]), v = piece(v[i]),
            heads = size, mechanism = core.mechanism "softmax" }
        end, { head = (g - 1) * size + 1 })
      end
    end
    return c:finish()
  end
  local one, two = run(1), run(2)
  same(one, two, "")
  check.equal(one.heads[1].padded_rows, 4 + 3 + 2)
  check.equal(one.heads[1].segments, 3)
end)

check.test("mistakes are named", function()
  local c = collector()
  check.raises("sample 7 of 1 at once; there are 1 to 6", c.watch, c, 7, print)
  check.raises("the f must be a function", c.watch, c, 1)
  check.raises("option 'layer' is 3; it must be at least 1 and at most 2", c.watch, c, 1,
    print, { layer = 3 })
  c:watch(1, function() model:forward(part(batch.x, 1, 1)) end)
  check.raises("layer 1, head 1 has been watched for 1 samples, of 6", c.finish, c)
  check.raises("it has been finished", c.finish, c)
  c = collector()
  check.raises("oh dear", c.watch, c, 2, function() error "oh dear" end)
  for i = 1, 6 do c:watch(i, function() model:forward(part(batch.x, i, 1)) end) end
  check.raises("watching sample 2 ended with an error", c.finish, c)
  check.raises("thresholds[2] is a; it must be a number", collector,
    { thresholds = { 0.1, "a" } })
  check.raises("the largest of the groups is", collector,
    { groups = core.full({ 6 }, 0 / 0, "f64") })
  c = collector { tokens = 5, length = false or core.tensor({ 5, 5, 5, 5, 5, 5 }, "f64"),
    trigger = core.tensor({ 1, 1, 1, 1, 1, 1 }, "f64") }
  c:watch(1, function() model:forward(part(batch.x, 1, 1)) end)
  check.raises("the program has 9 tokens, the measurement has 5", c.finish, c)
  check.raises("no such measure 'clumns' (did you mean 'columns'?)", collector,
    { measures = { "clumns" } })
  check.raises("layer 3, head 1 is to be kept; there are 2 layers of 2 heads", collector,
    { maps = false, keep = { { 3, 1 } } })
  check.raises("layer 1, head 2 is to be kept twice", collector,
    { maps = false, keep = { { 1, 2 }, { 1, 2 } } })
  check.raises("keep[1]: expected { layer, head }", collector,
    { maps = false, keep = { 3 } })
  check.raises("7 samples, 8 at once", lab.sinks.collect,
    { layers = 1, heads = 1, tokens = 1, samples = 7, batch = 8 })
end)

check.test("watching ends with its function", function()
  local c = collector()
  local other = collector()
  c:watch(1, function()
    check.raises("another one is watching already", other.watch, other, 1, print)
    model:forward(part(batch.x, 1, 1))
  end)
  model:forward(part(batch.x, 1, 1)) -- unwatched
  for i = 2, 6 do
    c:watch(i, function() model:forward(part(batch.x, i, 1), part(lengths, i, 1)) end)
  end
  check.equal(c:finish().samples, 6)
end)

check.done()
