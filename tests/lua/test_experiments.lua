-- test_experiments.lua - every command that docs/experiments.md shows in full, with
-- --quick: its claims hold, its record is complete, its figures are there.
local check = require "check"
local process = require "process"
local lab = require "sinklab"

local source = arg[0]:match "^(.*)/tests/lua/[^/]*$"
local folder = process.folder "experiments"

local seen = {}
local manual = process.read(source .. "/docs/experiments.md")
for block in manual:gmatch "\n```experiment\n(.-)```" do
  for line in block:gmatch "[^\n]+" do
    local name, options = line:match "^build/sinklab run experiments/([%w_]+)%.lua ?(.*)$"
    assert(name, "not a command of an experiment: " .. line)
    seen[name] = (seen[name] or 0) + 1
    check.test(line, function()
      local out = ("%s/%s-%d"):format(folder, name, seen[name])
      local arguments = { "run", "experiments/" .. name .. ".lua", "--quick", "--quiet",
        "--out=" .. out }
      for option in options:gmatch "%S+" do arguments[#arguments + 1] = option end
      local result = process.run(arguments)
      if result.code ~= 0 then
        error(("ended with %d and printed\n%s%s"):format(result.code, result.out,
          result.err), 0)
      end
      local record = lab.json.decode(process.read(out .. "/run.json"))
      check.equal(record.status, "complete")
      local figures = 0
      for _, file in ipairs(record.files) do
        check.above(#process.read(out .. "/" .. file), 0, file)
        if file:match "%.png$" then figures = figures + 1 end
      end
      check.above(figures, 0, "a figure")
    end)
  end
end

check.test("every experiment is in the manual", function()
  for _, name in ipairs(require "sinklab.cli.experiments".names()) do
    check.equal(seen[name] ~= nil, true, name)
  end
end)

check.done()
