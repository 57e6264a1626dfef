-- test_memory.lua - the Nth allocation fails (tests/failer): the script ends with status
-- 0, or 1 and a sentence, and its record is concluded.
--
-- SINKLAB_ALLOCATIONS=N tries N places of each script and mode instead of a few.
local check = require "check"
local json = require "sinklab.base.json"
local process = require "process"

local samples = math.tointeger(tonumber(os.getenv "SINKLAB_ALLOCATIONS" or 6))
local failer = assert(os.getenv "SINKLAB_FAILER", "SINKLAB_FAILER is not set")
local folder = process.folder "memory"

local train = [=[
local lab = require "sinklab"
lab.threads(1)
local run = lab.run()
os.getenv "SINKLAB_FAIL_BEGIN"
local task = lab.task.trigger_mean { d_model = 8, seq_len = 8, residual = true }
local model = lab.model.attention_only { task = task, heads = 2, residual = true }
local log = lab.train(model, task, { steps = 3, log_every = 1, batch = 8, eval = 16,
  quiet = true })
local sinks = lab.sinks(model, task:batch { n = 8, trigger = 4 }, { measures = "norms" })
]=]

local scripts = {
  ["train and measure"] = train .. "run:add('a', { train = log, sinks = sinks })\n",
  ["files and figures"] = [=[
    local lab = require "sinklab"
    lab.threads(1)
    local run = lab.run()
    local function draw() return lab.plot.heat { { 0, 1 }, { 1, 0 } } end
    draw():save "first.png" -- the fonts are found
    os.getenv "SINKLAB_FAIL_BEGIN"
    local x = lab.arange(100):reshape { 10, 10 }
    lab.save_npy("x.npy", x)
    lab.save_npz("x.npz", { x = lab.load_npy "x.npy" })
    lab.save_safetensors("x.safetensors", lab.load_npz "x.npz")
    assert(lab.csv.save("x.csv", { "a", "b" }, { { 1, "x" }, { 2, "y" } }))
    assert(lab.csv.load "x.csv")
    lab.json.decode(lab.json.encode { a = { 1, 2, 3 } })
    run:figure("f", draw())
    draw():text()
    ]=],
  ["report"] = train .. "run:add('a', { train = log, sinks = sinks })\nrun:report()\n",
}
scripts.report = scripts.report:gsub('os.getenv "SINKLAB_FAIL_BEGIN"\n', "")
  :gsub("run:report", 'os.getenv "SINKLAB_FAIL_BEGIN"\nrun:report')

local function run(name, fail)
  os.execute(("rm -rf '%s/out'"):format(folder))
  return process.run({ "run", name .. ".lua", "--out=out", "--quiet" }, {
    folder = folder, env = { LD_PRELOAD = failer, SINKLAB_FAIL = fail } })
end

--- What is wrong after this run; nil for nothing.
local function fault(r)
  if r.code ~= 0 and r.code ~= 1 then return "status " .. r.code end
  if r.code == 1 and not r.err:find "sinklab: %S" then return "no sentence" end
  local ok, text = pcall(process.read, folder .. "/out/run.json")
  local record = ok and json.decode(text)
  if not record then return "no record" end
  if record.status == "running" then return "the record says 'running'" end
  if r.code == 1 and record.status == "complete" then return "'complete', status 1" end
end

for name, script in pairs(scripts) do
  check.test(name, function()
    local file = name:gsub(" ", "_")
    process.write(folder .. "/" .. file .. ".lua",
      script .. '\nprint("allocations " .. os.getenv "SINKLAB_FAIL_COUNT")\n')
    local whole = run(file, "-1")
    local total = math.tointeger(tonumber(whole.out:match "allocations (%d+)"))
    if not total then error("the script failed: " .. whole.err, 0) end
    local faults, tried = {}, 0
    for _, mode in ipairs { "once", "until" } do
      local stride = math.max(total / samples, 1)
      for i = 0, math.min(samples, total) - 1 do
        local n = 1 + math.floor(i * stride)
        local r = run(file, n .. " " .. mode)
        local what = fault(r)
        tried = tried + 1
        if what then
          faults[#faults + 1] = ("%d %s: %s\n    %s"):format(n, mode, what,
            r.err:sub(1, 300))
        end
      end
    end
    print(("%s: %d of %d allocations"):format(name, tried, 2 * total))
    if #faults > 0 then
      error(("%d faults\n  %s"):format(#faults, table.concat(faults, "\n  ", 1,
        math.min(#faults, 12))), 0)
    end
  end)
end

check.done()
