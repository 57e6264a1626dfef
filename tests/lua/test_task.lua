-- test_task.lua - lab.task: what samplers give, and the paper's task.
local check = require "check"
local lab = require "sinklab"

--- x, y and trigger of a batch as nested lists.
local function lists(batch)
  return batch.x:totable(), batch.y:totable(), batch.trigger:totable()
end

check.test("trigger_mean is the paper's distribution", function()
  local L, d, n = 7, 6, 200
  for _, residual in ipairs { false, true } do
    local task = lab.task.trigger_mean { seq_len = L, d_model = d, residual = residual }
    local x, y, trigger = lists(task:batch { n = n, seed = 5, dtype = "f64" })
    local seen, sum, least, most = {}, 0, 1, -1
    for s = 1, n do
      local j = trigger[s] // 1 + 1 -- from 1
      seen[j] = (seen[j] or 0) + 1
      check.equal(x[s][1], { 1., 0., 0., 0., 0., 0. })
      for i = 2, L do
        check.equal({ x[s][i][1], x[s][i][2], x[s][i][d] },
          { 0., i == j and 1. or 0., i == j and 0. or 1. })
        for k = 3, d - 1 do
          sum = sum + x[s][i][k]
          least, most = math.min(least, x[s][i][k]), math.max(most, x[s][i][k])
        end
      end
      for i = 1, L do
        for k = 1, d do
          local want = residual and x[s][i][k] or 0
          if i == j then
            for m = 2, j do want = want + x[s][m][k] / (j - 1) end
          end
          check.close(y[s][i][k], want, 1e-15, 1e-14)
        end
      end
    end
    check.equal(seen[1] or seen[2], nil, "positions 1 and 2 are no trigger")
    for j = 3, L do
      -- binomial (200, 1/5): four standard deviations
      check.close(seen[j], n / 5, 4 * math.sqrt(n * 0.2 * 0.8), 0, "trigger " .. j)
    end
    check.at_least(least, -1)
    check.below(least, -0.98)
    check.below(most, 1)
    check.above(most, 0.98)
    check.close(sum / (n * (L - 1) * (d - 3)), 0, 4 / math.sqrt(3 * n * 18))
  end
end)

check.test("trigger positions can be given, for the task and for a batch", function()
  local task = lab.task.trigger_mean { seq_len = 5, trigger = { 2, 2 } }
  check.equal(task:batch { n = 3 }.trigger:totable(), { 1., 1., 1. })
  check.equal(task:batch { n = 2, trigger = 5 }.trigger:totable(), { 4., 4. })
  check.equal(tostring(task), "task trigger_mean: 5 tokens, width 16 -> 16")
  check.raises("option 'trigger' is { 1, 9 }; it must be { first, last } within 2..5",
    lab.task.trigger_mean, { seq_len = 5, trigger = { 1, 9 } })
  check.raises("option 'trigger' is 6; the sequence has 5 tokens", task.batch, task,
    { trigger = 6 })
  check.raises("no such option 'triger' (did you mean 'trigger'?)", task.batch, task,
    { triger = 3 })
  check.raises("option 'd_model' is 3; it must be at least 4", lab.task.trigger_mean,
    { d_model = 3 })
end)

check.test("batches repeat by their seed", function()
  local task = lab.task.trigger_mean {}
  local function numbers(given) return task:batch(given).x:totable() end
  check.equal(numbers { n = 4, seed = 2 }, numbers { n = 4, seed = 2 })
  local longer = numbers { n = 6, seed = 2 }
  check.equal({ table.unpack(longer, 1, 4) }, numbers { n = 4, seed = 2 })
  check.equal(numbers({ n = 1, seed = 3 })[1][2][3] == longer[1][2][3], false)
  check.equal(task:batch { n = 1, dtype = "f64" }.x.dtype, "f64")
  check.equal(task:batch {}.n, 1000)
end)

check.test("tasks of one's own: token ids, losses, mistakes", function()
  local function sample(t, B)
    return { x = t:randint(0, 9, { B, 3 }), y = t:randint(0, 9, { B, 3 }) }
  end
  local given = { name = "mine", sample = sample, seq_len = 3, vocab = 10 }
  check.equal(tostring(lab.task(given)), "task mine: 3 tokens, 10 token ids -> 10")
  given.d_model = 4
  check.raises("give either d_model (x holds numbers) or vocab (x holds token ids)",
    lab.task, given)
  given.vocab = nil
  local task = lab.task(given)
  check.raises("task 'mine': x has shape (2, 3), expected (2, 3, 4)", task.batch, task,
    { n = 2 })
  given.sample = function() return { y = 1 } end
  task = lab.task(given)
  check.raises("task 'mine': the sampler must return { x = tensor, y = tensor, ... }",
    task.batch, task)
  given.loss = "mes"
  check.raises("option 'loss' is 'mes'; it must be mse or cross_entropy "
    .. "(did you mean 'mse'?)", lab.task, given)
  check.raises("lab.task: option 'name' is missing (a string)", lab.task,
    { sample = sample })
  check.raises("lab.task: option 'seq_len' is missing (a whole number)", lab.task,
    { name = "mine", sample = sample })
end)

check.done()
