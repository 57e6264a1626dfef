--- test_program.lua - programs in Lua: recorded, replayed, differentiated, checked.
local check = require "check"
local process = require "process"
local core = require "sinklab.core"

local function values(n, dtype)
  local t = core.arange(n, dtype or "f64")
  for i = 1, n do t:set(i, 0.3 * i - 0.7) end
  return t
end

--- loss = sum (tanh (x w^T)^2), w (2, 3) a view of 8 parameters.
local function model(dtype)
  local flat = values(8, dtype)
  local x = values(12, dtype):reshape { 4, 3 }
  local program, loss, y = core.record(function(scale)
    local w = flat:narrow(1, 2, 6):reshape { 2, 3 }
    local y = core.tanh(core.linear(x, w)) * scale
    return core.sum(core.square(y)), y
  end, core.tensor(1, dtype or "f64"))
  return program, loss, y, flat, x
end

check.test("record runs at once and returns what the function returns", function()
  local program, a, b = core.record(function(...) return ... end, 1, nil)
  check.equal({ a, b, #program }, { 1, nil, 0 })
  check.equal(tostring(program), "program: 0 operations")
  local p, loss, y = model()
  check.equal(#p, 5)
  check.equal(y.shape, { 4, 2 })
  local sum = 0
  for _, row in ipairs(y:totable()) do
    for _, v in ipairs(row) do sum = sum + v * v end
  end
  check.close(loss:item(), sum, 1e-14)
  check.contains(p:text(), "   1  linear (4, 3) (2, 3) -> (4, 2)\n"
    .. "   2  tanh (4, 2) -> (4, 2)\n")
end)

check.test("errors end the recording", function()
  local t = core.zeros(2)
  local message = check.raises("in the middle", core.record,
    function() error "in the middle" end)
  check.contains(message, "test_program.lua")
  check.raises("another program is being recorded", core.record, function()
    core.record(function() end)
  end)
  check.raises("expected a function", core.record, 3)
  check.raises("linear", core.record, function() core.linear(t, core.zeros { 3, 4 }) end)
  check.equal(#core.record(function() t:clone() end), 1, "and the next one works")
end)

check.test("what would not be repeated is refused", function()
  local t, other = core.zeros(2), core.zeros(2)
  core.record(function()
    t:fill(1) -- not used yet: allowed
    local c = t:clone()
    for _, x in ipairs { t, c } do
      check.raises("fill: the program that is being recorded uses this tensor", x.fill, x,
        1)
      check.raises("set: the program that is being recorded", x.set, x, 1, 1)
      check.raises("copy: the program that is being recorded", x.copy, x, other)
      check.raises("to: the program that is being recorded", x.to, x, "f64")
    end
    other:copy(c)
    check.equal(c:to "f32" == c, true)
  end)
  t:fill(2)
end)

check.test("replicas: forward, backward, inputs", function()
  local p, loss, y, flat, x = model()
  p:want(flat):loss(loss):input(x)
  local r = p:replica()
  r:forward()
  check.equal(r:value(loss):item(), loss:item())
  check.equal(r:value(y):totable(), y:totable())
  r:zero():backward()
  local g, h = r:gradient(flat):totable(), 1e-5
  check.equal({ g[1], g[8] }, { 0.0, 0.0 }, "outside the view")
  for i = 2, 7 do
    local keep = flat:get(i)
    flat:set(i, keep + h)
    local up = r:forward():value(loss):item()
    flat:set(i, keep - h)
    local down = r:forward():value(loss):item()
    flat:set(i, keep)
    check.close(g[i], (up - down) / (2 * h), 1e-8, 0, "gradient of parameter " .. i)
  end
  r:forward():backward(-1)
  check.close(r:gradient(flat):totable(), { 0, 0, 0, 0, 0, 0, 0, 0 }, 1e-12)
  r:set(x, core.zeros({ 4, 3 }, "f64")):forward()
  check.equal(r:value(loss):item(), 0.0)
  r:set(x, { { 1, 0, 0 }, { 0, 0, 0 }, { 0, 0, 0 }, { 0, 0, 0 } }):forward()
  check.equal(r:value(y):get(2, 1), 0.0)
  check.equal(r:value(y):get(1, 1) ~= 0, true)
  check.equal(x:get(2, 1) ~= 0, true, "the tensor itself is as before")
  check.raises("cannot copy shape (3) into shape (4, 3)", r.set, r, x, core.zeros(3))
  check.raises("set: this tensor is not an input", r.set, r, y, y)
  check.raises("set: this tensor is not an input", r.set, r, flat, flat)
  check.raises("gradient: not computed for this tensor; call program:want", r.gradient, r,
    x)
  check.raises("value: the program neither made nor uses", r.value, r, core.zeros(2))
  check.raises("gradient: the program neither made nor uses", r.gradient, r,
    core.zeros(2))
  check.raises("replica:forward: no option 'sed' (did you mean 'seed'?)", r.forward, r,
    { sed = 1 })
  check.raises("replica:forward.step: must be 0 to 4294967295, got -1", r.forward, r,
    { step = -1 })
end)

check.test("want, loss and input refuse", function()
  local p, loss, y, flat, x = model()
  check.raises("want: no operation of the program uses this tensor", p.want, p,
    core.zeros(1))
  check.raises("loss: must be one number, got shape (4, 2)", p.loss, p, y)
  check.raises("loss: no operation of the program made this tensor", p.loss, p,
    core.tensor(1))
  check.raises("input: an operation of the program made this tensor", p.input, p, y)
  check.raises("expected a tensor", p.want, p, 3)
end)

check.test("random operations follow the draw", function()
  local p, u = core.record(function()
    return core.generator(5):uniform(0, 1, { 3, 4 })
  end)
  local r = p:replica()
  local a = r:forward { seed = 1, step = 2 }:value(u):totable()
  local b = r:forward { seed = 1, step = 3 }:value(u):totable()
  check.equal(r:forward { seed = 1, step = 2 }:value(u):totable(), a)
  check.equal(a[1][1] ~= b[1][1], true)
  local c = r:forward { seed = 1, step = 2, first_sample = 1 }:value(u):totable()
  check.equal({ c[1], c[2] }, { a[2], a[3] }, "samples do not depend on the cut")
end)

check.test("check", function()
  local p, loss, _, flat = model()
  check.raises("check: the program has no loss", p.check, p)
  p:want(flat):loss(loss)
  check.close(p:check(), 0, 1e-9)
  check.close(p:check { samples = 3, seed = 2 }, 0, 1e-9)
  check.raises("program:check.samples: must be 0 (all) or more, got -1", p.check, p,
    { samples = -1 })
  check.raises("no option 'sample' (did you mean 'samples'?)", p.check, p, { sample = 1 })
  local single, loss32, _, flat32 = model "f32"
  single:want(flat32):loss(loss32)
  check.raises("is f32; differences need a program in f64", single.check, single)
end)

check.test("close", function()
  local p, loss = model()
  local r = p:replica()
  check.contains(tostring(r), "replica of 5 operations, ")
  do local closed <close> = p end
  check.equal(tostring(p), "program (closed)")
  check.raises("this program has been closed", p.text, p)
  check.equal(r:forward():value(loss):item(), loss:item(), "a replica keeps its program")
  do local closed <close> = r end
  check.equal(tostring(r), "replica (closed)")
  check.raises("this replica has been closed", r.forward, r)
end)

--- Gradients of every value of a program of sums, with core.add and with an operation of
-- the same numbers that shares nothing.
local function sums(add)
  local w, made = values(6), {}
  local function keep(name, t)
    made[name] = t
    return t
  end
  local program, loss = core.record(function()
    local a = keep("a", w * 2)                            -- read once
    local b = keep("b", core.tanh(w))                     -- read by two
    local c = keep("c", core.square(w:narrow(1, 2, 1)))   -- repeated
    local s = keep("s", add(a, b))
    local t = keep("t", add(add(s, c), b))
    local u = keep("u", core.exp(w))
    local v = keep("v", add(u, u))                        -- read twice by one
    local m = keep("m", core.sin(w):reshape { 2, 3 })
    local x = keep("x", add(m, keep("r", core.cos(w)):reshape { 2, 3 }))
    local y = keep("y", add(x:transpose(1, 2), (w * 3):reshape { 3, 2 }))
    local n = keep("n", w * 5)
    local z = keep("z", add(n:narrow(1, 1, 3), w:narrow(1, 4, 3))) -- a part of n
    local k = keep("k", t:clone())
    local l1 = keep("l1", core.sum(core.square(k) * v))
    local l2 = keep("l2", core.sum(core.square(y)) + core.sum(core.square(z)))
    return add(l1, l2)
  end)
  program:want(w):loss(loss)
  local r, found = program:replica(), {}
  for pass = 1, 2 do
    r:forward():zero():backward(1.5)
    for name, t in pairs(made) do found[pass .. name] = r:gradient(t):totable() end
    found[pass .. "w"] = r:gradient(w):totable()
  end
  return found, program:check()
end

check.test("gradients of sums, where one is another's", function()
  local found, worst = sums(core.add)
  local want = sums(function(a, b) return a - (-b) end)
  for name, gradient in pairs(want) do check.equal(found[name], gradient, name) end
  check.close(worst, 0, 1e-8)
end)

check.test("100 dropped programs do not pile up", function()
  -- Each holds 10 MB; a sanitizer keeps what is freed for a while.
  local before = process.memory()
  for _ = 1, 100 do
    local t = core.zeros({ 1 << 18 }, "f64")
    local p = core.record(function() return t:clone():clone() end)
    p:replica():forward()
  end
  local grown = process.memory() - before
  check.below(grown, 600 << 10, grown .. " kB held")
end)

check.done()
