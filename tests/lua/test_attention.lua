-- test_attention.lua - mechanisms as scripts see them.
local check = require "check"
local core = require "sinklab.core"

check.test("a mechanism says what it is", function()
  local m = core.mechanism "relu"
  check.equal(m.name, "relu")
  check.equal(m.shape, "row")
  check.equal(#m.hash, 64)
  check.equal(m.claims.kinked, true)
  check.equal(m.claims.sums_to_one, false)
  check.equal(m.options, { normaliser = "earlier" })
  check.equal(m.params, {})
  check.equal(m:params_count(16), 0)
  check.equal(tostring(m), "relu (normaliser = earlier)")
  check.equal(tostring(core.mechanism "softmax"), "softmax")
end)

check.test("equal options are one mechanism", function()
  local m = core.mechanism("relu", { normaliser = "length" })
  check.equal(m.options.normaliser, "length")
  check.equal(rawequal(m, core.mechanism("relu", { normaliser = "length" })), true)
  check.equal(rawequal(m, core.mechanism "relu"), false)
end)

check.test("a mistake is named with what is right", function()
  check.raises("no plugin 'rleu' (did you mean 'relu'?)",
    function() core.mechanism "rleu" end)
  check.raises("option normaliser is 'all'; expected one of earlier, visible, length",
    function() core.mechanism("relu", { normaliser = "all" }) end)
  check.raises("relu has no option 'normalizer' (did you mean 'normaliser'?)",
    function() core.mechanism("relu", { normalizer = "length" }) end)
  check.raises("relu: option normaliser is a boolean",
    function() core.mechanism("relu", { normaliser = true }) end)
  check.raises("expected named options", function() core.mechanism("relu", { 1 }) end)
end)

check.done()
