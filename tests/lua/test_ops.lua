-- test_ops.lua - operations as functions, methods and operators; generators.
local check = require "check"
local core = require "sinklab.core"

local function list(t) return t:totable() end
local function tensor(x, dtype) return core.tensor(x, dtype or "f64") end
local x = tensor { { 1, 2, 3 }, { 4, 5, 6 } }

check.test("operators take tensors and numbers on either side", function()
  check.equal(list(x + x), { { 2., 4., 6. }, { 8., 10., 12. } })
  check.equal(list(1 - x), { { 0., -1., -2. }, { -3., -4., -5. } })
  check.equal(list(x - 1), { { 0., 1., 2. }, { 3., 4., 5. } })
  check.equal(list(2 * x), { { 2., 4., 6. }, { 8., 10., 12. } })
  check.equal(list(12 / x), { { 12., 6., 4. }, { 3., 2.4, 2. } })
  check.equal(list(x ^ 2), { { 1., 4., 9. }, { 16., 25., 36. } })
  check.equal(list(-x), { { -1., -2., -3. }, { -4., -5., -6. } })
  check.equal(list(x * tensor { 1, 0, -1 }), { { 1., 0., -3. }, { 4., 0., -6. } })
end)

check.test("a number takes the precision of the tensor", function()
  for _, dtype in ipairs { "f32", "f64" } do
    local y = core.tensor({ 1, 2 }, dtype)
    check.equal((y + 0.1).dtype, dtype)
    check.equal(core.where(core.gt(y, 1), 0, y).dtype, dtype)
  end
  check.raises("f32", function() return core.tensor { 1 } + tensor { 1 } end)
end)

check.test("every method of a tensor that is an operation is lab's as well", function()
  local lab, n = require "sinklab", 0
  for name in pairs(getmetatable(x).methods) do
    if core[name] then
      check.equal(lab[name], core[name], name)
      n = n + 1
    end
  end
  check.above(n, 30)
  check.equal(list(lab.where(tensor { 1, 0 }, tensor { 2, 2 }, 9)), { 2., 9. })
end)

check.test("functions of one element, as functions and methods", function()
  local v = { 0.5, 1.25 }
  local functions = {
    neg = function(a) return -a end, exp = math.exp, log = math.log,
    tanh = function(a) return 1 - 2 / (math.exp(2 * a) + 1) end,
    sigmoid = function(a) return 1 / (1 + math.exp(-a)) end,
    relu = function(a) return math.max(a, 0) end, abs = math.abs, sqrt = math.sqrt,
    silu = function(a) return a / (1 + math.exp(-a)) end,
    square = function(a) return a * a end, sin = math.sin, cos = math.cos,
  }
  for name, f in pairs(functions) do
    local t, want = tensor(v), { f(v[1]), f(v[2]) }
    check.close(list(core[name](t)), want, 1e-15, 1e-14, name)
    check.close(list(t[name](t)), want, 1e-15, 1e-14, "method " .. name)
  end
end)

check.test("two inputs", function()
  local a, b = tensor { 1, 2, 3 }, tensor { 3, 2, 1 }
  local want = {
    add = { 4., 4., 4. }, sub = { -2., 0., 2. }, mul = { 3., 4., 3. },
    div = { 1 / 3, 1., 3. }, pow = { 1., 4., 3. }, maximum = { 3., 2., 3. },
    minimum = { 1., 2., 1. }, eq = { 0., 1., 0. }, ne = { 1., 0., 1. },
    lt = { 1., 0., 0. }, le = { 1., 1., 0. }, gt = { 0., 0., 1. }, ge = { 0., 1., 1. },
  }
  for name, numbers in pairs(want) do
    check.close(list(core[name](a, b)), numbers, 1e-15, 0, name)
    check.close(list(a[name](a, b)), numbers, 1e-15, 0, "method " .. name)
  end
  check.equal(list(core.where(tensor { 1, 0, 1 }, a, 9)), { 1., 9., 3. })
end)

check.test("reductions: axes from 1, from the end, lists, keep", function()
  check.equal(x:sum():item(), 21.)
  check.equal(list(x:sum(1)), { 5., 7., 9. })
  check.equal(list(x:sum(-1)), { 6., 15. })
  check.equal(list(x:sum(2, { keep = true })), { { 6. }, { 15. } })
  check.equal(list(x:sum { keep = true }), { { 21. } })
  check.equal(list(x:sum(nil, { keep = true })), { { 21. } })
  check.equal(x:mean({ 1, 2 }):item(), 3.5)
  check.equal(list(core.max(x, 1)), { 4., 5., 6. })
  check.close(list(x:var(2)), { 2 / 3, 2 / 3 }, 1e-15)
  check.close(list(x:var(2, { correction = 1 })), { 1, 1 }, 1e-15)
  check.equal(list(x:argmax(1)), { 1., 1., 1. })
  check.equal(list(x:argmax()), { 2., 2. })
  check.equal(list(x:cumsum(2)), { { 1., 3., 6. }, { 4., 9., 15. } })
  check.close(x:softmax(2):sum(2):totable(), { 1, 1 }, 1e-15)
  check.close(x:log_softmax(1):exp():sum(1):totable(), { 1, 1, 1 }, 1e-15)
end)

check.test("concat, one_hot, embedding, gather, scatter_add", function()
  check.equal(list(core.concat({ x, x:narrow(2, 1, 1) }, 2)),
    { { 1., 2., 3., 1. }, { 4., 5., 6., 4. } })
  check.equal(list(core.concat({ tensor { 1 }, tensor { 2, 3 }, 4 + tensor { 0 } }, 1)),
    { 1., 2., 3., 4. })
  check.equal(list(core.one_hot(tensor { 1, 0 }, 3)), { { 0., 1., 0. }, { 1., 0., 0. } })
  check.equal(list(core.embedding(x, tensor { 1, 0, 1 })),
    { { 4., 5., 6. }, { 1., 2., 3. }, { 4., 5., 6. } })
  check.equal(list(x:gather(2, tensor { { 2 }, { 0 } })), { { 3. }, { 4. } })
  check.equal(list(core.gather(x, 1, tensor { { 1, 0, 1 } })), { { 4., 2., 6. } })
  check.equal(list(x:scatter_add(2, tensor { { 0, 0 }, { 2, 1 } },
    tensor { { 1, 1 }, { 1, 1 } })), { { 3., 2., 3. }, { 4., 6., 7. } })
end)

check.test("layers and losses", function()
  local w = tensor { { 1, 0, 0 }, { 0, 1, 1 } }
  check.equal(list(core.linear(x, w)), { { 1., 5. }, { 4., 11. } })
  check.equal(list(core.linear(x, w, nil)), { { 1., 5. }, { 4., 11. } })
  check.equal(list(core.linear(x, w, tensor { 1, -1 })), { { 2., 4. }, { 5., 10. } })
  check.equal(list(x:matmul(w:transpose(1, 2))), { { 1., 5. }, { 4., 11. } })
  local gamma, beta = tensor { 1, 1, 1 }, tensor { 1, 1, 1 }
  local scale = 1 / math.sqrt(2 / 3 + 1e-5)
  check.close(list(core.layer_norm(x))[1], { -scale, 0, scale }, 1e-14)
  check.close(list(core.layer_norm(x, gamma, beta))[1], { 1 - scale, 1, 1 + scale },
    1e-14)
  check.close(list(core.layer_norm(x, gamma, nil, { eps = 1 / 3 }))[2], { -1, 0, 1 },
    1e-14)
  local rms = 1 / math.sqrt(14 / 3 + 1e-6)
  check.close(list(core.rms_norm(x, gamma))[1], { rms, 2 * rms, 3 * rms }, 1e-14)
  check.close(list(core.rms_norm(x, { eps = 1 / 3 }))[1],
    { 1 / 5 ^ .5, 2 / 5 ^ .5, 3 / 5 ^ .5 }, 1e-14)
  local g, tanh = tensor { 1 }:gelu(), tensor { 1 }:gelu { approximate = true }
  check.close(list(g), { 0.841344746068543 }, 1e-14)
  check.close(list(tanh), { 0.841191990608276 }, 1e-12)
  local loss, each, count = core.cross_entropy(x, tensor { 2, -100 })
  local want = math.log(math.exp(-2) + math.exp(-1) + 1)
  check.close(loss:item(), want, 1e-14)
  check.close(list(each), { want, 0 }, 1e-14)
  check.equal(count:item(), 1.)
  check.equal((select(3, core.cross_entropy(x, tensor { 2, 1 }, { ignore = 1 }))):item(),
    1.)
  check.equal(core.mse(x, x + 2):item(), 4.)
  check.equal(core.max_abs_error(x, x * 2):item(), 6.)
end)

check.test("wrong arguments are told where and what", function()
  local message = check.raises("add: input 2 must be a tensor or a number, got string",
    function() return core.add(x, "a") end)
  check.contains(message, "test_ops.lua:")
  check.raises("add: at least one input must be a tensor", core.add, 1, 2)
  check.raises("add: got 1 inputs, needs 2", core.add, x)
  check.raises("add: argument 3 is one too many", core.add, x, x, x)
  check.raises("exp: got 0 inputs, needs 1", core.exp)
  check.raises("linear: input 2 must be a tensor or a number, got nil", core.linear, x,
    nil, x)
  check.raises("got table", function() return x + {} end)
  check.raises("(2, 3)", core.add, x, tensor { 1, 2 })
  check.raises("sum: axis 3 of shape (2, 3)", x.sum, x, 3)
  check.raises("axis 0", x.sum, x, 0)
  check.raises("sum: an axis must be a whole number, got string", x.sum, x, { 1, "2" })
  check.raises("softmax: an axis must be a whole number, got 1.5", x.softmax, x, 1.5)
  check.raises("sum: axis 2 is there twice", x.sum, x, { 2, 2 })
  check.raises("sum: no option 'kep' (did you mean 'keep'?)", x.sum, x, 1, { kep = true })
  check.raises("sum: no option 'correction'", x.sum, x, 1, { correction = 1 })
  check.raises("expected an axis or a list of axes, got string", x.sum, x, "all")
  check.raises("correction 3", x.var, x, 2, { correction = 3 })
  check.raises("var.correction: -1", x.var, x, 2, { correction = -1 })
  check.raises("has no axis", core.softmax, tensor(1))
  check.raises("concat: expected a list of tensors, got", core.concat, x, 1)
  check.raises("concat: 0 tensors, allowed are 1 to 8", core.concat, {}, 1)
  check.raises("concat: input 2 must be a tensor or a number, got boolean",
    core.concat, { x, true }, 1)
  check.raises("one_hot: argument 2 must be a whole number, got 1.5",
    core.one_hot, x, 1.5)
  check.raises("gelu.approximate: expected boolean, got number", core.gelu, x,
    { approximate = 1 })
  check.raises("layer_norm: no option 'esp' (did you mean 'eps'?)", core.layer_norm, x,
    { esp = 1 })
end)

check.test("a generator repeats itself, and each draw is another", function()
  for _, dtype in ipairs { "f32", "f64" } do
    local function draws()
      local g = core.generator(3, { dtype = dtype })
      return { g:uniform(-1, 1, { 4, 2 }), g:uniform(-1, 1, { 4, 2 }),
        g:normal(0, 2, { 5 }),
        g:randint(1, 6, { 8 }), g:bernoulli(0.5, { 9 }), g:categorical({ 1, 2 }, { 7 }) }
    end
    local a, b = draws(), draws()
    for i = 1, #a do
      check.equal(list(a[i]), list(b[i]), "draw " .. i)
      check.equal(a[i].dtype, dtype)
    end
    if a[1]:sub(a[2]):abs():max():item() == 0 then error "two draws are equal" end
    check.equal(a[1].shape, { 4, 2 })
  end
  local one, two = core.generator(1):uniform(0, 1, 5), core.generator(2):uniform(0, 1, 5)
  if one:sub(two):abs():max():item() == 0 then error "two seeds are equal" end
end)

check.test("what is not drawn takes no stream", function()
  local g, h = core.generator(5), core.generator(5)
  check.equal(list(g:arange(3)), { 0., 1., 2. })
  check.raises("arange: 16777218 numbers are not exact in f32", g.arange, g, 2^24 + 2)
  check.equal(list(g:full({ 2 }, 7)), { 7., 7. })
  check.equal(list(g:one_hot(g:arange(2), 3)), { { 1., 0., 0. }, { 0., 1., 0. } })
  check.equal(list(g:normal(0, 1, 4)), list(h:normal(0, 1, 4)))
  check.equal(tostring(g), "generator: seed 5, f32, 1 draws made")
  check.equal(g:uniform(0, 1, {}, { dtype = "f64" }).dtype, "f64")
  check.equal(g:full({}, 1, { dtype = "f64" }).dtype, "f64")
  check.equal(g:categorical(tensor { 0, 1 }, { 2 }):totable(), { 1., 1. })
end)

check.test("wrong draws", function()
  local g = core.generator(1)
  check.raises("uniform: the upper bound must be a number, got table", g.uniform, g, 0,
    { 2 })
  check.raises("uniform: the range is 1 to 0", g.uniform, g, 1, 0, { 2 })
  check.raises("size must be a whole number from 0", g.uniform, g, 0, 1, { -2 })
  check.raises("normal: expected a shape", g.normal, g, 0, 1)
  check.raises("randint: the bounds are 0.5 and 2", g.randint, g, 0.5, 2, { 2 })
  check.raises("bernoulli: the probability is 2", g.bernoulli, g, 2, { 2 })
  for _, case in ipairs { { "probability 1 is -1.0", { -1, 2 } },
      { "probability 2 is", { 1, 0 / 0 } }, { "probability 3 is inf", { 1, 0, 1 / 0 } },
      { "all probabilities are 0", { 0, 0 } } } do
    for _, p in ipairs { case[2], tensor(case[2]) } do
      check.raises("categorical: " .. case[1], g.categorical, g, p, { 2 })
    end
  end
  check.raises("uniform: no option 'dtipe' (did you mean 'dtype'?)", g.uniform, g, 0, 1,
    { 2 }, { dtipe = "f32" })
  check.raises("uniform.dtype", g.uniform, g, 0, 1, { 2 }, { dtype = "f16" })
  check.raises("uniform: argument 6 is one too many", g.uniform, g, 0, 1, { 2 }, {}, 1)
  check.raises("generator: the seed must be a whole number from 0, got -1",
    core.generator, -1)
  check.raises("generator: the seed must be a whole number from 0, got 1.5",
    core.generator, 1.5)
  check.raises("generator: the seed must be a whole number from 0, got x", core.generator,
    "x")
  check.raises("generator: no option 'type'", core.generator, 1, { type = "f32" })
end)

check.done()
