-- test_mechanisms.lua - experiments/mechanisms.lua: its table, figure and manual.
local check = require "check"
local process = require "process"
local lab = require "sinklab"

local folder = process.folder "mechanisms"
local sources = debug.getinfo(1, "S").source:match "^@?(.*)/tests/lua/" or "."
sources = sources .. "/plugins"

local function run(...)
  return process.run({ "run", "experiments/mechanisms.lua", "--max_steps=2", "--quiet",
    "--samples=4", "--seeds=2", "--out=" .. folder .. "/run", ... },
    { folder = folder })
end

check.test("a row for each mechanism asked for, in the script's order", function()
  local r = run("--only=sinklogit,relu")
  check.equal(r.code, 2, r.err) -- two steps teach nothing
  local relu = r.out:find("\nrelu  ", 1, true)
  local sinklogit = r.out:find("\nsinklogit  ", 1, true)
  check.equal(relu ~= nil and sinklogit ~= nil and relu < sinklogit, true, r.out)
  check.contains(r.out, "FAILS  relu: is learnt")
  local record = lab.json.decode(process.read(folder .. "/run/run.json"))
  for _, label in ipairs { "relu-seed0", "relu-seed1", "sinklogit-seed0",
    "sinklogit-seed1" } do
    check.equal(record.results[label].train.steps, 2, label)
  end
  for _, extension in ipairs { "png", "svg", "pdf" } do
    check.above(#process.read(folder .. "/run/mechanisms." .. extension), 1000)
  end
end)

check.test("the page has the descriptions of plugins and the measured rows", function()
  local path = folder .. "/mechanisms.md"
  local r = run("--only=entmax-1.25,sinklogit", "--write_docs=" .. path,
    "--sources=" .. sources)
  check.equal(r.code, 0, r.err)
  local text = process.read(path)
  for _, part in ipairs {
    "| [sinklogit](#sinklogit) | row | softmax with one learned logit",
    "[1905.05702](https://arxiv.org/abs/1905.05702)",
    '| entmax-1.25 | `{ mechanism = "entmax", alpha = 1.25 }` |',
    "| `alpha` | 1.5 | 1 to 2 | 1 is softmax",
    "w_i = exp (s_i) / (exp (b) + sum_j exp (s_j))",
    "at most 2 steps", "Parameter `logit` of each head: score of",
    "- sinks in the literature: the mass moves from tokens to the logit",
    "- declared properties: weights are never negative; rows sum to at most 1",
  } do check.contains(text, part) end
  check.equal(text:find("FAIL", 1, true), nil)
  -- The measured row of the terminal is the manual's.
  local steps, max_abs_error = r.out:match "\nsinklogit +(%- %-) +(%d%.%d+ to %d%.%d+)"
  check.contains(text, ("| sinklogit | %s | %s |"):format(steps, max_abs_error))
end)

check.test("softpick by hand: no error, no weight on BOS, and first_over_rowsum 1",
  function()
  local r = run("--only=softpick")
  check.equal(r.code, 2, r.err)
  local _, holds = r.out:gsub("\nholds  softpick witness: ", "")
  check.equal(holds, 4, r.out)
end)

check.test("refusals", function()
  local r = run("--only=softmx")
  check.equal(r.code, 1)
  check.contains(r.err, "--only=softmx: must be ")
  check.contains(r.err, "did you mean softmax?")
  check.contains(run("--quick", "--write_docs=" .. folder .. "/no.md").err,
    "--write_docs is of all mechanisms and seeds: it does not go with --quick")
  r = run("--only=relu", "--write_docs=" .. folder .. "/no.md", "--sources=nowhere")
  check.equal(r.code, 1)
  check.contains(r.err, "cannot read nowhere/relu.c")
end)

check.done()
