-- test_formulas.lua - linear and differential against their published formulas, written
-- out here: the weights that measurements see, and the output that they give.
local check = require "check"
local core = require "sinklab.core"
local lab = require "sinklab"

local T, D, H = 7, 3, 2
local task = lab.task.trigger_mean { d_model = 6, seq_len = T }

local function flat(t)
  local n = 1
  for _, size in ipairs(t.shape) do n = n * size end
  return t:clone():reshape { n }:totable()
end

local function dot(a, i, b, j, from, n)
  local sum = 0
  for c = from + 1, from + n do sum = sum + a:get(1, i, c) * b:get(1, j, c) end
  return sum
end

local function zeros()
  local w = {}
  for i = 1, T do
    w[i] = {}
    for j = 1, T do w[i][j] = 0 end
  end
  return w
end

local function softmax(scores)
  local w = zeros()
  for i = 1, T do
    local total = 0
    for j = 1, i do total = total + math.exp(scores(i, j)) end
    for j = 1, i do w[i][j] = math.exp(scores(i, j)) / total end
  end
  return w
end

--- Build a one-layer model with `mechanism`, and compare it with `formula`
-- (z, p, head, scale) -> weights; z: the plugin's inputs, p: its parameters by name.
-- `finish` (row, head) changes the output of a head in place.
local function against(name, options, formula, finish, width)
  local mechanism = { name }
  for key, value in pairs(options) do mechanism[key] = value end
  local m = lab.model.attention_only { task = task, layers = 1, heads = H, d_head = D,
    attention = { mechanism = mechanism, scale = 0.8 }, dtype = "f64", seed = 5,
    init = lab.init.normal(0.7) }
  -- no parameter where its start happens to be right
  local g = core.generator(11, { dtype = "f64" })
  local names = {}
  for key in pairs(m:parameters()) do names[#names + 1] = key end
  table.sort(names)
  for _, key in ipairs(names) do
    local t = m:parameters()[key]
    if not key:match "w_o$" and t.shape[1] == H then
      t:copy(t + g:normal(0, 0.3, t.shape))
    end
  end
  local x = task:batch { n = 1, dtype = "f64" }.x
  local z, p = {}, {}
  for key, t in pairs(m:parameters()) do
    local own = key:match("^layer1%." .. name .. "%.(.*)$")
    if own and t.shape[2] == 6 then z[own] = core.linear(x, t) end
    if own then p[own] = t end
  end
  local found = lab.sinks(m, { x = x })
  width = width or D
  local out = core.zeros({ 1, T, H * width }, "f64")
  for h = 1, H do
    local w = formula(z, p, h, 0.8)
    for i = 1, T do
      check.close(found.mean:select(1, 1):select(1, h):select(1, i):totable(), w[i],
        1e-12, 1e-12, ("%s: weights of head %d, row %d"):format(name, h, i))
      local row = {}
      for c = 1, width do
        row[c] = 0
        for j = 1, T do row[c] = row[c] + w[i][j] * z.v:get(1, j, (h - 1) * width + c) end
      end
      if finish then finish(row, h) end
      for c = 1, width do out:set(1, i, (h - 1) * width + c, row[c]) end
    end
  end
  check.close(flat(m:forward(x)), flat(core.linear(out, m:parameter "layer1.w_o")), 1e-12,
    1e-12, name .. ": output")
end

local function rms_norm(row)
  local sum = 0
  for _, v in ipairs(row) do sum = sum + v * v end
  for c in ipairs(row) do row[c] = row[c] / math.sqrt(sum / #row + 1e-5) end
end

check.test("linear", function()
  local function feature(x) return x > 0 and x + 1 or math.exp(x) end
  against("linear", {}, function(z, _, h, scale)
    local w = zeros()
    for i = 1, T do
      local total = 0
      for j = 1, i do
        for c = (h - 1) * D + 1, h * D do
          w[i][j] = w[i][j]
              + scale * feature(z.q:get(1, i, c)) * feature(z.k:get(1, j, c))
        end
        total = total + w[i][j]
      end
      for j = 1, i do w[i][j] = w[i][j] / (total + 1e-6) end
    end
    return w
  end)
  against("linear", { feature = "identity" }, function(z, _, h, scale)
    local w = zeros()
    for i = 1, T do
      local total = 0
      for j = 1, i do
        w[i][j] = scale * dot(z.q, i, z.k, j, (h - 1) * D, D)
        total = total + w[i][j]
      end
      for j = 1, i do w[i][j] = w[i][j] / math.max(math.abs(total), 1) end
    end
    return w
  end)
end)

check.test("differential, as published", function()
  local init = 0.8 - 0.6 * math.exp(0)
  against("differential", {}, function(z, p, h, scale)
    local function inner(a, b)
      local sum = 0
      for c = 1, D do sum = sum + p[a]:get(h, c) * p[b]:get(h, c) end
      return sum
    end
    local lambda = math.exp(inner("lq1", "lk1")) - math.exp(inner("lq2", "lk2")) + init
    local function weights(q, k)
      return softmax(function(i, j) return scale * dot(q, i, k, j, (h - 1) * D, D) end)
    end
    local w, b = weights(z.q1, z.k1), weights(z.q2, z.k2)
    for i = 1, T do
      for j = 1, T do w[i][j] = w[i][j] - lambda * b[i][j] end
    end
    return w
  end, function(row)
    rms_norm(row)
    for c in ipairs(row) do row[c] = row[c] * (1 - init) end
  end, 2 * D)
end)

check.done()
