--- report_runs.lua - run directories that tests of the report look at.
local process = require "process"

local runs = {}

--- What a report must show as text and never obey.
runs.hostile = [[</script><script>window.hacked = 1</script>]]
    .. [[<img src=x onerror="hacked2=1">"'&]] .. "\u{2028}é\u{1F600}"

local script = [=[
local lab = require "sinklab"
local opt = lab.options { seed = 3, note = "", layers = 2 }
local run = lab.run()
local task = lab.task.trigger_mean { d_model = 8, seq_len = 8, residual = true }
for _, name in ipairs { "softmax", "relu" } do
  local model = lab.model.attention_only { task = task, layers = opt.layers, heads = 2,
    residual = true, attention = { mechanism = name }, seed = opt.seed }
  local log = lab.train(model, task, { steps = 20, log_every = 5, batch = 32, eval = 64,
    quiet = true })
  local sinks = lab.sinks(model, task:batch { n = 16, trigger = 4 },
    { measures = "norms" })
  run:add(name, { train = log, sinks = sinks, note = opt.note })
  run:figure(name .. "-heads", lab.plot.heads(sinks, { title = name, size = 0.8,
    dpi = 72 }))
end
run:claim(opt.note .. " 100 % of it", 0.5, "<", 1)
run:claim("what does not hold", 2, "<", 1)
print(run:report())
]=]

--- Make a run in folder/NAME with the script above; what it printed.
function runs.make(folder, name, ...)
  process.write(folder .. "/s.lua", script)
  return process.run({ "run", "s.lua", "--out=" .. name, "--quiet", ... },
    { folder = folder })
end

return runs
