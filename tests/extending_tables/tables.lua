--- tables.lua - the measures and the optimizer of docs/extending.md, as scripts use them.
local core = require "sinklab.core"
local lab = require "sinklab"

local source = debug.getinfo(1, "S").source:match "^@(.*)/tests/extending_tables/[^/]*$"

local function read(path)
  local file <close> = assert(io.open(path, "rb"))
  return file:read "a"
end

local function close(got, want, what)
  assert(math.abs(got - want) <= 1e-12 * math.max(1, math.abs(want)),
    ("%s: %.17g, want %.17g"):format(what, got, want))
end

-- Measures: of the weights that the maps keep, one sample at a time.
local task = lab.task.trigger_mean { seq_len = 6 }
local model = lab.model.attention_only { task = task, dtype = "f64", seed = 3,
  init = lab.init.normal(0.5),
  attention = { mechanism = "linear", feature = "identity" } }
local total, rows, sinks, norms = 0, 0, 0, 0
local all = task:batch { n = 8, dtype = "f64" }
local threshold = 1e-2
local found = lab.sinks(model, all, { measures = { "negative_mass" },
  threshold = threshold })
for i = 1, all.n do
  local batch = { x = all.x:narrow(1, i, 1), trigger = all.trigger:narrow(1, i, 1) }
  local one = lab.sinks(model, batch, { maps = true, threshold = threshold })
  local h, a1 = one.heads[1], 0
  local w = one.mean:totable()[1][1]
  local trigger = math.tointeger(batch.trigger:totable()[1]) + 1
  for q = 1, 6 do
    a1 = a1 + w[q][1] / 6
    if q > 1 and q ~= trigger then
      rows = rows + 1
      for k = 1, q do total = total + math.max(0, -w[q][k]) end
    end
  end
  if a1 > threshold then
    sinks, norms = sinks + 1, norms + h.value_norm
    close(h.sink_norm, h.value_norm, "sink_norm of a sample")
  else
    assert(h.sink_norm ~= h.sink_norm, "a sample without a sink has no sink_norm")
  end
end
local h = found.heads[1]
close(h.negative_mass, total / rows, "negative_mass")
assert(h.negative_mass > 0, "no weight is negative")
assert(sinks > 0 and sinks < all.n, "every sample sinks, or none")
close(h.sink_norm, norms / sinks, "sink_norm")

-- The optimizer, declared by the block of the page.
local page = read(source .. "/docs/extending.md")
local block = assert(page:match "```lua\n(%-%- lion%.lua.-)```", "no block lion.lua")
local text = read(source .. "/scripts/sinklab/train/optim.lua")
local optim = assert(load((text:gsub("\nreturn optim\n$", function(last)
  return "\n" .. block .. last
end)), "=optim.lua"))()
local lion = optim.lion { lr = 0.5, weight_decay = 0.1, betas = { 0.5, 0.75 } }
assert(lion.kind == "lion" and optim.lion {}.beta2 == 0.99)
assert(not pcall(optim.lion, { betas = { 1, 0.5 } }))

-- loss = 2 (w1 + 1) + 3 (w2 - 1): the gradient is (2, -3), whatever w is.
local w = core.zeros({ 2 }, "f64")
local program, loss = core.record(function()
  return core.sum((w + core.tensor({ 1, -1 }, "f64")) * core.tensor({ 2, -3 }, "f64"))
end)
program:want(w)
program:loss(loss)
lion.lr = nil
local trainer = core.trainer { program = program, parameters = w, loss = loss, batch = 1,
  shard = 1, groups = 1, optimizer = lion, stop = {}, seed = 0,
  schedule = { { 0, 0.5 } } }
trainer:run(2)
-- p = (1 - 0.05) p -+ 0.5, twice.
close(w:get(1), -0.5 * 0.95 - 0.5, "lion, first parameter")
close(w:get(2), 0.5 * 0.95 + 0.5, "lion, second parameter")
close(trainer:state():get(1), 2 * (0.25 + 0.75 * 0.25), "its running mean")
