--- experts.lua - a mixture of experts, from the weights of a file.
local core = require "sinklab.core"
local mlp = require "sinklab.layers.mlp"
local linear = require "sinklab.layers.product".linear

local experts = {}

--- Matrix and bias of expert e of a part (E, rows, columns).
local function of_expert(part, e)
  return { weight = part.weight:select(e), bias = part.bias and part.bias:select(1, e) }
end

--- The same of a matrix that the file has as (inputs, outputs).
local function transposed(part, e)
  local own = of_expert(part, e)
  return { weight = own.weight:tensor("f32"):transpose(1, 2), bias = own.bias }
end

--- One expert on x (n, D).
local function run_expert(c, parts, e, x)
  if parts.expert_gate_up then -- columns: gate and up in turn
    local both = linear(transposed(parts.expert_gate_up, e), x)
    local pairs_of = both:reshape { both.shape[1], both.shape[2] // 2, 2 }
    local inner = mlp.join(c, pairs_of:select(3, 1), pairs_of:select(3, 2))
    return linear(transposed(parts.expert_down, e), inner)
  end
  local gate = linear(of_expert(parts.expert_gate, e), x)
  local up = linear(of_expert(parts.expert_up, e), x)
  return linear(of_expert(parts.expert_down, e), mlp.join(c, gate, up))
end

--- For every expert: the rows (from 0) that it is among the best for, and its shares,
-- a softmax over the scores of a row's c.experts_used best.
-- @param scores  list of rows, each a list of c.experts numbers
local function assign(c, scores)
  local rows, shares = {}, {}
  for e = 1, c.experts do rows[e], shares[e] = {}, {} end
  for i, score in ipairs(scores) do
    local order = {}
    for e = 1, c.experts do order[e] = e end
    table.sort(order, function(a, b)
      return score[a] > score[b] or score[a] == score[b] and a < b
    end)
    local largest, sum = score[order[1]], 0
    for k = 1, c.experts_used do sum = sum + math.exp(score[order[k]] - largest) end
    for k = 1, c.experts_used do
      local e = order[k]
      rows[e][#rows[e] + 1] = i - 1
      shares[e][#shares[e] + 1] = { math.exp(score[e] - largest) / sum }
    end
  end
  return rows, shares
end

--- Each token of x (B, T, D) through its best experts: the sum of their outputs times
-- their shares.
-- @param parts  { router = part (E, D), expert_gate, expert_up = (E, F, D), expert_down
--               = (E, D, F) }, or expert_gate_up = (E, D, 2 F), expert_down = (E, F, D)
function experts.forward(c, parts, x)
  local flat = x:reshape { -1, c.d_model }
  local rows, shares = assign(c, linear(parts.router, flat):totable())
  local out = core.zeros(flat.shape)
  for e = 1, c.experts do
    if #rows[e] > 0 then
      local ids = core.tensor(rows[e])
      local y = run_expert(c, parts, e, core.embedding(flat, ids))
      y = y * core.tensor(shares[e])
      out = out:scatter_add(1, ids:reshape { #rows[e], 1 }, y)
    end
  end
  return out:reshape(x.shape)
end

return experts
