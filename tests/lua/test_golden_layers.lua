-- test_golden_layers.lua - whole layers of composed plugins against the golden values
-- of layer/: output, gradient of every parameter and of the input, weights.
local check = require "check"
local core = require "sinklab.core"
local lab = require "sinklab"

local folder = debug.getinfo(1, "S").source:match "^@(.*)/lua/[^/]*$" .. "/golden/"

--- file -> { f32 = { atol, rtol }, f64 = { atol, rtol } }
local tolerance = {}
for line in io.lines(folder .. "manifest.tsv") do
  local file, a32, r32, a64, r64 =
      line:match "^(layer/%S+)\t%S+\t%S+\t%S+\t(%S+)\t(%S+)\t(%S+)\t(%S+)"
  if file then
    tolerance[file] = { f32 = { tonumber(a32), tonumber(r32) },
      f64 = { tonumber(a64), tonumber(r64) } }
  end
end

local function load(file, dtype)
  local t, message = core.load_npy(folder .. file)
  return assert(t, message):to(dtype)
end

local function flat(t)
  local n = 1
  for _, size in ipairs(t.shape) do n = n * size end
  return t:clone():reshape { n }:totable()
end

local function close(got, file, dtype)
  local want = load(file, "f64")
  check.equal(got.shape, want.shape, file)
  local bounds = tolerance[file][dtype]
  check.close(flat(got), flat(want), bounds[1], bounds[2], file .. " in " .. dtype)
end

local task = lab.task.trigger_mean { d_model = 8, seq_len = 5 }

--- golden name -> attention, and its matrices by the names of the model.
local layers = {
  gated_elementwise = { { mechanism = "softmax", gate = "sigmoid_gate", scale = 0.5 },
    W_Q = "w_q", W_K = "w_k", W_V = "w_v", W_O = "w_o", W_G = "sigmoid_gate.gate" },
  gated_headwise = { { mechanism = "softmax", scale = 0.5,
      gate = { "sigmoid_gate", granularity = "headwise" } },
    W_Q = "w_q", W_K = "w_k", W_V = "w_v", W_O = "w_o", W_G = "sigmoid_gate.gate" },
  linear_elu1 = { { mechanism = "linear", scale = 1 },
    W_Q = "linear.q", W_K = "linear.k", W_V = "linear.v", W_O = "w_o" },
}

local lambdas = { "differential", learned = false, lambda = 0.375, wide = false }
local differential = { W_Q = "differential.q1", W_K = "differential.k1",
  W_Q2 = "differential.q2", W_K2 = "differential.k2", W_V = "differential.v",
  W_O = "w_o" }
for name, more in pairs { diff_plain = { norm = false },
  diff_norm = { lambda_init = 0.25 } } do
  local map, given = {}, {}
  for key, value in pairs(lambdas) do map[key] = value end
  for key, value in pairs(more) do map[key] = value end
  for golden, own in pairs(differential) do given[golden] = own end
  given[1] = { mechanism = map, scale = 0.5 }
  layers[name] = given
end

local function layer(name, dtype)
  local given = layers[name]
  local path = "layer/" .. name .. "/"
  local model = lab.model.attention_only { task = task, heads = 2, d_head = 4,
    attention = given[1], dtype = dtype }
  local parameters = {}
  for golden, own in pairs(given) do
    if type(golden) == "string" then
      model:set("layer1." .. own, load(path .. golden .. ".npy", dtype))
      parameters[golden] = model:parameter("layer1." .. own)
    end
  end
  local x, up = load(path .. "x.npy", dtype), load(path .. "up_out.npy", dtype)
  local program, loss, out = core.record(function()
    local out = model:forward(x)
    return core.sum(out * up), out
  end)
  program:want(model.params.flat):want(x):loss(loss)
  local r = program:replica()
  r:forward():zero():backward()
  close(r:value(out), path .. "out.npy", dtype)
  close(r:gradient(x), path .. "grad_x.npy", dtype)
  for golden, parameter in pairs(parameters) do
    close(r:gradient(parameter), path .. "grad_" .. golden .. ".npy", dtype)
  end
  local attn = load(path .. "attn.npy", "f64")
  local bounds = tolerance[path .. "attn.npy"][dtype]
  for s = 1, x.shape[1] do
    local found = lab.sinks(model, { x = x:narrow(1, s, 1) })
    check.close(flat(found.mean), flat(attn:narrow(1, s, 1)), bounds[1], bounds[2],
      path .. "attn.npy in " .. dtype)
  end
end

for name in pairs(layers) do
  for _, dtype in ipairs { "f32", "f64" } do
    check.test(name .. " " .. dtype, function() layer(name, dtype) end)
  end
end

check.done()
