--- mlp.lua - the MLP of a block: plain or gated.
local core = require "sinklab.core"
local linear = require "sinklab.layers.product".linear

local mlp = {}

-- Functions of one number, by the names that models use.
mlp.activations = {
  relu = core.relu,
  silu = core.silu,
  gelu = function(x) return core.gelu(x, { approximate = false }) end,
  gelu_tanh = function(x) return core.gelu(x, { approximate = true }) end,
}

--- How gate x and up x are joined where it is not activation (gate x) * (up x), by
-- c.gating.
mlp.gatings = {
  --- (up + 1) gate sigmoid (1.702 gate), gate at most 7, up within 7 of 0 (gpt-oss).
  clamped_swiglu = function(gate, up)
    gate, up = gate:minimum(7), up:maximum(-7):minimum(7)
    return (up + 1) * (gate * (gate * 1.702):sigmoid())
  end,
}

-- The kinds of a trained model's option mlp. Gated ones: Shazeer 2020, arXiv 2002.05202.
mlp.kinds = {
  relu = { activation = "relu" }, gelu = { activation = "gelu" },
  gelu_tanh = { activation = "gelu_tanh" }, silu = { activation = "silu" },
  swiglu = { activation = "silu", gated = true },
  geglu = { activation = "gelu", gated = true },
  geglu_tanh = { activation = "gelu_tanh", gated = true },
  reglu = { activation = "relu", gated = true },
  clamped_swiglu = { gating = "clamped_swiglu", gated = true },
}

--- gate x and up x, (..., F) each, joined.
function mlp.join(c, gate, up)
  if c.gating then return mlp.gatings[c.gating](gate, up) end
  return mlp.activations[c.activation](gate) * up
end

--- down (activation (up x)), or with a gate down (join (gate x, up x)): (..., D).
-- @param parts  { up =, down =, gate = or nil: (F, D), (D, F), (F, D) }, or gate_up =
--               (2 F, D), the gate's rows first, in place of gate and up
function mlp.forward(c, parts, x)
  local inner
  if parts.gate_up then
    local both <close> = linear(parts.gate_up, x)
    inner = mlp.join(c, both:narrow(3, 1, c.d_ffn), both:narrow(3, c.d_ffn + 1, c.d_ffn))
  elseif parts.gate then
    local gate <close> = linear(parts.gate, x)
    local up <close> = linear(parts.up, x)
    inner = mlp.join(c, gate, up)
  else
    local up <close> = linear(parts.up, x)
    inner = mlp.activations[c.activation](up)
  end
  local wide <close> = inner
  return linear(parts.down, wide)
end

return mlp
