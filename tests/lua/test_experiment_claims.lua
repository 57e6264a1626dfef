-- test_experiment_claims.lua - one experiment through the real binary: each of its
-- claims holds. test_experiments.lua, which is long, runs all of them.
local check = require "check"
local process = require "process"
local lab = require "sinklab"

local folder = process.folder "experiment_claims"

check.test("the claims of theorem3 --quick hold", function()
  local out = folder .. "/theorem3"
  local result = process.run { "run", "experiments/theorem3.lua", "--quick", "--quiet",
    "--out=" .. out }
  check.equal({ result.code, result.err }, { 0, "" }, result.out)
  local record = lab.json.decode(process.read(out .. "/run.json"))
  check.equal({ record.status, #record.claims }, { "complete", 6 })
  for _, claim in ipairs(record.claims) do
    check.equal(claim.holds, true, claim.text)
    check.contains(result.out, "holds  " .. claim.text)
  end
end)

check.test("a claim that fails is the exit status 2", function()
  local out = folder .. "/unlearnt"
  local result = process.run { "run", "experiments/theorem3.lua", "--quick", "--quiet",
    "--max_steps=1", "--out=" .. out }
  check.equal(result.code, 2, result.out .. result.err)
  local failed = 0
  for _, claim in ipairs(lab.json.decode(process.read(out .. "/run.json")).claims) do
    if not claim.holds then failed = failed + 1 end
  end
  check.equal(failed > 0, true)
end)

check.done()
