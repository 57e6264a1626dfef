--- softplus.lua - the operation of docs/extending.md, called from Lua.
local lab = require "sinklab"

local x = lab.tensor({ -800, -1, 0, 2 }, "f64")
for i, v in ipairs(x:softplus({ beta = 2 }):totable()) do
  local z = 2 * x:get(i)
  local want = (math.max(z, 0) + math.log(1 + math.exp(-math.abs(z)))) / 2
  assert(math.abs(v - want) < 1e-12,
    ("softplus %d: %.17g, want %.17g"):format(i, v, want))
end
local default = lab.tensor({ 1 }, "f64"):softplus():item()
assert(math.abs(default - math.log(1 + math.exp(1))) < 1e-12, "beta is 1 by default")

local function message(...)
  return select(2, pcall(...))
end
local wrong = message(x.softplus, x, { beat = 2 })
assert(wrong:find("softplus: no option 'beat' (did you mean 'beta'?)", 1, true), wrong)
wrong = message(x.softplus, x, { beta = -1 })
assert(wrong:find("softplus: beta is -1; it must be above 0", 1, true), wrong)

local program, loss = lab.record(function()
  return x:narrow(1, 2, 3):softplus { beta = 2 }:sum()
end)
program:want(x)
program:loss(loss)
assert(program:check() < 1e-8, "the gradient differs from differences")
