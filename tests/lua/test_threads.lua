-- test_threads.lua - operations that run at once: the same bits for every number of
-- threads, of what comes out and of what an observer measured.
local check = require "check"
local process = require "process"
local folder = process.folder "threads"

-- Prints every number of the outputs and of the measurement, in full. Large enough that
-- attention is cut up; five threads do not divide six heads.
process.write(folder .. "/all.lua", [[
local lab = require "sinklab"
local draw = lab.generator(7)
local B, T, H, G, D = 2, 72, 6, 3, 16
local softmax, sigmoid = lab.mechanism "softmax", lab.mechanism "sigmoid"
local linear = lab.mechanism "linear"
local function show(name, x)
  if type(x) == "table" then
    local keys = {}
    for key in pairs(x) do keys[#keys + 1] = key end
    table.sort(keys, function(a, b) return tostring(a) < tostring(b) end)
    for _, key in ipairs(keys) do show(name .. "." .. tostring(key), x[key]) end
  elseif type(x) == "number" then
    print(name, ("%a"):format(x))
  elseif type(x) == "userdata" then
    show(name, x:totable())
  end
end
local q, k, v = draw:normal(0, 2, { B, T, H * D }), draw:normal(0, 1, { B, T, G * D }),
  draw:normal(0, 1, { B, T, G * D })
local output = draw:normal(0, 1, { 40, H * D })
local c = lab.sinks.collect { layers = 4, heads = H, tokens = T, samples = 2 * B,
  batch = B, measures = { "columns", "share", "norms", "logits" },
  keep = { { 1, 1 }, { 3, 6 } }, thresholds = { 0.1, 0.2 },
  length = lab.tensor { T, 50, 31, T },
  output = function(layer) return layer ~= 2 and output or nil end }
for sample = 1, 2 * B, B do
  c:watch(sample, function()
    local x = q + sample
    for layer = 1, 4 do
      local o = { q = x, k = k, v = v, heads = H, kv_heads = G, mechanism = softmax }
      if layer == 2 then o.window = 20 end
      if layer == 3 then o.mechanism, o.alibi = sigmoid, true end
      x = lab.attention(o)
      if sample == 1 then show("attention" .. layer, x) end
    end
  end, { n = B })
end
show("measured", c:finish())
local y = lab.mixer { inputs = { q, q, q }, mechanism = linear, heads = H, d_head = D }
show("mixer", y)
]])

check.test("1, 2 and 5 threads", function()
  local want
  for _, threads in ipairs { 1, 2, 5 } do
    local r = process.run({ "run", folder .. "/all.lua", "--quiet",
      "--threads=" .. threads, "--out=" .. threads }, { folder = folder })
    check.equal(r.code, 0, r.err)
    check.contains(r.out, "measured.heads.24.")
    check.contains(r.out, "mixer.")
    want = want or r.out
    local other = r.out:gmatch "[^\n]+"
    for line in want:gmatch "[^\n]+" do
      local got = other()
      if got ~= line then check.equal(got, line, threads .. " threads") end
    end
    check.equal(#r.out, #want)
  end
end)

check.done()
