--- activations.lua - the functions of an MLP by the names that models use.
local core = require "sinklab.core"

return {
  relu = core.relu,
  silu = core.silu,
  gelu = function(x) return core.gelu(x, { approximate = false }) end,
  gelu_tanh = function(x) return core.gelu(x, { approximate = true }) end,
}
