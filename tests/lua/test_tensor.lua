--- test_tensor.lua - tensors in Lua: made, looked at, changed, saved; axes and indices
-- count from 1.
local check = require "check"
local process = require "process"
local core = require "sinklab.core"

local function counting(...)
  local n = 1
  for _, size in ipairs { ... } do n = n * size end
  return core.arange(n, "f64"):reshape { ... }
end

check.test("constructors: values, shapes, precisions", function()
  check.equal(core.tensor { { 1, 2 }, { 3, 4 } }:totable(),
    { { 1.0, 2.0 }, { 3.0, 4.0 } })
  check.equal(core.tensor(0.1, "f64"):item(), 0.1)
  check.close(core.tensor(0.1):item(), 0.1, 1e-8)
  check.equal(core.tensor(0.1):item() == 0.1, false, "f32 by default")
  check.equal(core.tensor({}).shape, { 0 })
  check.equal(core.zeros { 2, 1 }:totable(), { { 0.0 }, { 0.0 } })
  check.equal(core.ones(2):totable(), { 1.0, 1.0 })
  check.equal(core.full({ 2 }, -3, "f64"):totable(), { -3.0, -3.0 })
  check.equal(core.arange(3):totable(), { 0.0, 1.0, 2.0 })
  check.raises("arange: 16777218 numbers are not exact in f32", core.arange, 2^24 + 2)
  check.equal(core.zeros({}, "f64"):totable(), 0.0)
  check.equal(core.zeros { 2, 0 }.count, 0)
end)

check.test("fields", function()
  local t = counting(2, 3)
  check.equal({ t.shape, t.dtype, t.ndim, t.count, #t }, { { 2, 3 }, "f64", 2, 6, 2 })
  check.equal(core.is_tensor(t), true)
  check.equal(core.is_tensor(io.stdout), false)
  check.equal(core.is_tensor(nil), false)
end)

check.test("constructors refuse", function()
  check.raises("tensor: a list of 1 on level 2, expected 2", core.tensor,
    { { 1, 2 }, { 3 } })
  check.raises("tensor: number on level 2, expected a list of 2", core.tensor,
    { { 1, 2 }, 3 })
  check.raises("tensor: element 2: expected a number, got table", core.tensor,
    { 1, { 2 } })
  check.raises("tensor: element 3: expected a number, got string", core.tensor,
    { { 1, 2 }, { "3", 4 } })
  check.raises("tensor: lists nested deeper than 6", core.tensor,
    { { { { { { { 1 } } } } } } })
  local loop = {}
  loop[1] = loop
  check.raises("nested deeper", core.tensor, loop)
  check.raises("tensor: expected a number or a nested list, got string", core.tensor, "3")
  check.raises("unknown dtype 'f16': must be 'f32' or 'f64'", core.tensor, 1, "f16")
  check.raises("unknown dtype 'f16': must be 'f32' or 'f64'",
    function() return core.zeros({ 1 }, "f16"), nil end)
  check.raises("zeros: a size must be a whole number from 0, got -1", core.zeros,
    { 2, -1 })
  check.raises("zeros: a size must be a whole number from 0, got 1.5", core.zeros, 1.5)
  check.raises("zeros: a size must be a whole number from 0, got string", core.zeros,
    { "2" })
  check.raises("zeros: 7 axes are too many: at most 6", core.zeros,
    { 1, 1, 1, 1, 1, 1, 1 })
  check.raises("zeros: expected a shape such as { 2, 3 }, got no value", core.zeros)
  check.raises("is too large", core.zeros, { 1 << 40, 1 << 40 })
  check.raises("argument 2: expected a number, got no value", core.full, { 2 })
end)

check.test("get and set", function()
  local t = counting(2, 3)
  check.equal({ t:get(1, 1), t:get(2, 3), t:get(-1, -3) }, { 0.0, 5.0, 3.0 })
  check.equal(t:set(2, -1, 9) == t, true)
  check.equal(t:get(2, 3), 9.0)
  check.equal(core.tensor(4):get(), 4.0)
  check.raises("get: index 3 on axis 1 is outside shape (2, 3)", t.get, t, 3, 1)
  check.raises("get: index 0 on axis 2 is outside shape (2, 3)", t.get, t, 1, 0)
  check.raises("set: index -4 on axis 2 is outside shape (2, 3)", t.set, t, 1, -4, 0)
  check.raises("get: got 1 indices for shape (2, 3)", t.get, t, 1)
  check.raises("set: got 1 indices for shape (2, 3)", t.set, t, 1, 2)
  check.raises("tensor:set: argument 3: expected a number, got", t.set, t, 1, 2, "x")
  check.raises("item: shape (2, 3) is not one number", t.item, t)
end)

check.test("views share their numbers", function()
  local t = counting(2, 3, 4)
  local row = t:select(1, 2):select(1, -1)
  check.equal(row:totable(), { 20.0, 21.0, 22.0, 23.0 })
  row:fill(-1)
  check.equal(t:get(2, 3, 4), -1.0)
  check.equal(t:narrow(-1, 2, 2):select(1, 1):totable(),
    { { 1.0, 2.0 }, { 5.0, 6.0 }, { 9.0, 10.0 } })
  check.equal(t:narrow(2, -1, 1).shape, { 2, 1, 4 })
  check.equal(t:narrow(2, 4, 0).count, 0)
  check.equal(t:transpose(1, -1).shape, { 4, 3, 2 })
  check.equal(t:transpose(1, -1):get(2, 3, 1), t:get(1, 3, 2))
  check.equal(core.arange(3):broadcast { 2, 3 }:totable(),
    { { 0.0, 1.0, 2.0 }, { 0.0, 1.0, 2.0 } })
  local flat = t:reshape { -1 }
  flat:set(1, 7)
  check.equal(t:get(1, 1, 1), 7.0, "a view where it can be one")
  local copy = t:transpose(1, 2):reshape { 4, -1 }
  check.equal(copy.shape, { 4, 6 })
  copy:set(1, 1, 8)
  check.equal(t:get(1, 1, 1), 7.0, "a copy where it cannot")
  check.equal(copy:get(1, 5), t:get(2, 1, 1))
end)

check.test("views refuse", function()
  local t = counting(2, 3)
  check.raises("narrow: axis 3 of shape (2, 3): must be 1 to 2 or -2 to -1", t.narrow, t,
    3, 1, 1)
  check.raises("narrow: axis 0 of shape (2, 3)", t.narrow, t, 0, 1, 1)
  check.raises("narrow: start 2 with length 3 does not fit axis 2, which has size 3",
    t.narrow, t, 2, 2, 3)
  check.raises("narrow: start 0 with", t.narrow, t, 2, 0, 1)
  check.raises("narrow: start 1 with length -1", t.narrow, t, 2, 1, -1)
  check.raises("narrow: start", t.narrow, t, 2, math.mininteger, 1)
  check.raises("narrow: start", t.narrow, t, 2, 1, math.maxinteger)
  check.raises("select: index 3 is outside axis 1, which has size 2", t.select, t, 1, 3)
  check.raises("select: a tensor of shape () has no axis", t.select, core.tensor(1), 1, 1)
  check.raises("transpose: axis -3", t.transpose, t, -3, 1)
  check.raises("reshape: shape (2, 3) of 6 elements cannot become (4, -1)", t.reshape, t,
    { 4, -1 })
  check.raises("reshape: shape (3, 2) of 6 elements cannot become (7)", t.reshape,
    t:transpose(1, 2), { 7 })
  check.raises("broadcast: shape (2, 3) does not broadcast to (2, 4)", t.broadcast, t,
    { 2, 4 })
  check.raises("a size must be", t.broadcast, t, { -1, 3 })
end)

check.test("copy, clone, to", function()
  local t = counting(2, 2)
  local u = core.zeros({ 2, 2 }, "f32")
  check.equal(u:copy(t:transpose(1, 2)) == u, true)
  check.equal(u:totable(), { { 0.0, 2.0 }, { 1.0, 3.0 } })
  check.raises("cannot copy shape (2, 2) into shape (2)", core.zeros(2).copy,
    core.zeros(2), t)
  local c = t:transpose(1, 2):clone()
  c:fill(5)
  check.equal(t:get(1, 1), 0.0)
  check.equal(c.dtype, "f64")
  check.equal(t:to "f64" == t, true)
  check.equal(t:to("f32").dtype, "f32")
  check.equal(t:to("f32"):totable(), t:totable())
  check.raises("unknown dtype 'int'", t.to, t, "int")
end)

check.test("equality is identity", function()
  local t = counting(2)
  check.equal(t == t, true)
  check.equal(t == counting(2), false)
  check.equal(t:to "f64" == t, true)
  check.equal(t == 1, false)
end)

check.test("names that do not exist", function()
  local t = counting(2)
  check.raises("a tensor has no field or method 'shap' (did you mean 'shape'?)",
    function() return t.shap end)
  check.raises("a tensor has no field or method 'reshap' (did you mean 'reshape'?)",
    function() return t:reshap { 2 } end)
  check.raises("a tensor is not indexed by a number", function() return t[1] end)
end)

check.test("text", function()
  check.equal(tostring(core.tensor { { 1, -2.5 }, { 3, 4 } }),
    "tensor (2, 2) f32  min -2.5  mean 1.375  max 4\n     1  -2.5\n     3     4")
  check.equal(tostring(core.zeros { 11, 10 }),
    "tensor (11, 10) f32  min 0  mean 0  max 0")
  check.equal(tostring(core.tensor(0.5)), "tensor () f32  0.5")
end)

check.test("use after close", function()
  local t
  do
    local closed <close> = counting(2)
    t = closed
  end
  check.equal(tostring(t), "tensor (closed)")
  check.raises("this tensor has been closed", function() return t.shape end)
  check.raises("this tensor has been closed", t.fill, t, 1)
  check.raises("this tensor has been closed", core.save_npy, "x.npy", t)
end)

check.test("files: npy", function()
  local folder = process.folder "tensor_npy"
  local t = counting(2, 3):transpose(1, 2)
  check.equal(t:save_npy(folder .. "/a.npy"), true)
  local r = core.load_npy(folder .. "/a.npy")
  check.equal(r:totable(), t:totable())
  check.equal(r.dtype, "f64")
  check.equal(core.save_npy(folder .. "/b.npy", t:to "f32"), true)
  check.equal(core.load_npy(folder .. "/b.npy").dtype, "f32")
  local nothing, message = core.load_npy(folder .. "/none.npy")
  check.equal(nothing, nil)
  check.contains(message, "none.npy")
  nothing, message = core.save_npy(folder .. "/no/such/folder.npy", t)
  check.equal(nothing, nil)
  check.contains(message, "folder.npy")
  process.write(folder .. "/c.npy", "nonsense nonsense")
  nothing, message = core.load_npy(folder .. "/c.npy")
  check.contains(message, "c.npy: is not a .npy file")
end)

check.test("files: safetensors", function()
  local folder = process.folder "tensor_safe"
  local path = folder .. "/a.safetensors"
  check.equal(core.save_safetensors(path,
    { w = counting(2, 3), b = core.tensor { 1, 2 } }, { step = "7", kind = "x" }), true)
  local first = process.read(path)
  local read, meta = core.load_safetensors(path)
  check.equal(meta, { step = "7", kind = "x" })
  check.equal(read.w:totable(), counting(2, 3):totable())
  check.equal({ read.b.dtype, read.w.dtype }, { "f32", "f64" })
  check.equal(core.save_safetensors(path, read, meta), true)
  check.equal(process.read(path) == first, true, "equal tables give equal files")
  check.equal(core.save_safetensors(path, {}), true)
  check.equal(select("#", core.load_safetensors(path)), 2)
  check.raises("'w' must be a tensor, got number", core.save_safetensors, path, { w = 1 })
  check.raises("names must be strings, got number", core.save_safetensors, path,
    { core.zeros(1) })
  check.raises("'step' must be a string, got number", core.save_safetensors, path, {},
    { step = 7 })
  check.raises("'a' goes on after a NUL", core.save_safetensors, path,
    { ["a\0b"] = core.zeros(1) })
  check.raises("'7' goes on after a NUL", core.save_safetensors, path, {},
    { step = "7\0" })
  local closed = core.zeros(1)
  getmetatable(closed).__close(closed)
  check.raises("save_npz: 'w' must be a tensor, got a closed one", core.save_npz, path,
    { w = closed })
  local nothing, message = core.save_safetensors(path, { __metadata__ = core.zeros(1) })
  check.contains(message, "the name '__metadata__' is reserved")
  process.write(path, "short")
  nothing, message = core.load_safetensors(path)
  check.equal(nothing, nil)
  check.contains(message, "a.safetensors: is not a safetensors file")
end)

check.test("dropped tensors do not pile up", function()
  -- 400 times 8 MB: without word from C the collector would see 400 small boxes.
  local before = process.memory()
  for _ = 1, 400 do core.zeros({ 1 << 20 }, "f64"):fill(1) end
  local grown = process.memory() - before
  check.below(grown, 400 << 10, grown .. " kB held")
end)

check.done()
