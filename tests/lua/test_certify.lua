-- test_certify.lua - lab.certify against closed forms, a grid, and its own sample.
local check = require "check"
local lab = require "sinklab"

check.test("the softmax witness: its exact supremum, to 1e-10", function()
  for _, L in ipairs { 5, 16 } do
    local task = lab.task.trigger_mean { seq_len = L, d_model = 6 }
    for _, c in ipairs { 2, 10, 20 } do
      local model = lab.witness.softmax(task, c)
      local found = lab.certify(model, task, { starts = 4, samples = 40, steps = 20 })
      -- The last row, all of whose L - 1 tokens hold 1, with weight 1 / (e^c + L - 1).
      local want = (L - 1) / (math.exp(c) + L - 1)
      check.close(found.worst, want, 1e-14, 1e-10, ("L = %d, c = %g"):format(L, c))
      check.at_least(found.worst, found.sampled)
      check.equal(found.position, L)
      check.equal(found.samples, 40)
      check.equal(found.starts, (L - 2 + 1) * 4)
      -- d - 3 coordinates so, the content flag at L - 2 tokens, the trigger's at one.
      local l2 = lab.certify(model, task, { starts = 4, samples = 40, steps = 20,
        norm = "l2" })
      check.close(l2.worst, math.sqrt(3 * (L - 1) ^ 2 + (L - 2) ^ 2 + 1)
        / (math.exp(c) + L - 1), 1e-14, 1e-10, "l2")
    end
  end
end)

check.test("the ReLU witness: nothing but rounding, with triggers at position 2 too",
  function()
  for _, given in ipairs { {}, { trigger = { 2, 16 } } } do
    local task = lab.task.trigger_mean(given)
    local found = lab.certify(lab.witness.relu(task), task, { starts = 8, samples = 64 })
    check.close(found.worst, 0, 1e-15)
  end
end)

check.test("the sample does not depend on the search", function()
  local task = lab.task.trigger_mean { seq_len = 5, d_model = 6 }
  local model = lab.model.attention_only { task = task, init = lab.init.normal(0.5) }
  local want
  for _, starts in ipairs { 2, 7, 32 } do
    for _, steps in ipairs { 0, 5 } do
      local found = lab.certify(model, task, { starts = starts, steps = steps,
        samples = 100, tries = 10 })
      want = want or found.sampled
      check.equal({ found.sampled, found.samples }, { want, 100 }, "starts " .. starts)
      check.at_least(found.worst, want)
    end
  end
  -- the first of a longer sample
  local more = lab.certify(model, task, { starts = 2, steps = 0, samples = 500,
    tries = 0 })
  check.at_least(more.sampled, want)
end)

check.test("a largest error within the range is found", function()
  -- No weights: the output is 0, the error y, a parabola in each coordinate.
  local task = lab.task { name = "parabola", seq_len = 2, d_model = 3,
    domain = { low = -2, high = 3,
      draw = function(t, B) return { content = t:uniform(-2, 3, { B, 2, 3 }) } end,
      build = function(s)
        local x = s.content
        local low = lab.square(x - 0.3):sum(3, { keep = true })
        return { x = x, y = (low * -0.1 + 2):broadcast { x.shape[1], 2, 3 } * 1 }
      end } }
  local model = lab.model.attention_only { task = task, init = lab.init.constant(0) }
  local found = lab.certify(model, task, { starts = 4, samples = 16 })
  check.close(found.worst, 2, 1e-10)
  check.equal(found.trigger, nil)
  local row = found.x:totable()[1][found.position]
  check.close(row, { 0.3, 0.3, 0.3 }, 1e-5)
end)

check.test("any model: at least the sample, and at least a fine grid", function()
  local task = lab.task.trigger_mean { seq_len = 3, d_model = 4 }
  for seed = 1, 5 do
    local model = lab.model.attention_only { task = task, init = lab.init.normal(1),
      seed = seed, dtype = "f64" }
    local found = lab.certify(model, task, { samples = 512, seed = seed })
    check.at_least(found.worst, found.sampled)
    -- One number for each of two tokens; the trigger is the third.
    local n, cells = 81, {}
    for a = 0, n - 1 do
      for b = 0, n - 1 do
        cells[#cells + 1] = { { 0 }, { a / 40 - 1 }, { b / 40 - 1 } }
      end
    end
    local batch = task.domain.build { content = lab.tensor(cells, "f64"),
      trigger = lab.zeros({ n * n }, "f64") + 2 }
    local grid = lab.max_abs_error(model:forward(batch.x), batch.y):item()
    check.at_least(found.worst, grid - 1e-12,
      ("seed %d: %.17g against the grid's %.17g"):format(seed, found.worst, grid))
    check.close(found.worst, grid, 0.02 * grid, 0, "seed " .. seed)
  end
end)

check.test("other tasks, layers, and a model of f32", function()
  local tasks = { lab.task.retrieval { seq_len = 5, d_value = 2 },
    lab.task.regression { seq_len = 4, inputs = 2 }, lab.task.idle { seq_len = 4 },
    lab.task.trigger_kinds { seq_len = 5 },
    lab.task.trigger_max { seq_len = 4, bos = "moved" } }
  for _, task in ipairs(tasks) do
    local model = lab.model.attention_only { task = task, layers = 2, heads = 2,
      init = lab.init.normal(0.3) }
    local found = lab.certify(model, task, { starts = 4, samples = 20, steps = 10 })
    check.above(found.worst, found.sampled,
      ("%s: %.6g above %.6g"):format(task.name, found.worst, found.sampled))
    check.equal(lab.certify(model:to "f64", task,
      { starts = 4, samples = 20, steps = 10 }).worst, found.worst, "f64")
  end
  check.contains(tostring(lab.certify(lab.model.attention_only { task = tasks[1] },
    tasks[1], { starts = 2, samples = 2, steps = 1 })), "the largest of 2 samples is ")
end)

check.test("what cannot be certified is said", function()
  local task = lab.task.unigram { seq_len = 4 }
  check.raises("task 'unigram' has no content that may vary", lab.certify,
    lab.model.transformer { task = task, d_model = 4 }, task)
  task = lab.task.trigger_mean {}
  local model = lab.model.attention_only { task = task }
  check.raises("option 'norm' is 'l1'; it must be max or l2", lab.certify, model, task,
    { norm = "l1" })
  model.params.flat:fill(0 / 0)
  check.raises("the error of model attention_only on task 'trigger_mean' is NaN",
    lab.certify, model, task, { starts = 2, samples = 2 })
  check.raises("lab.witness.relu: the task must be lab.task.trigger_mean with BOS at "
    .. "position 1 alone, got task 'idle'", lab.witness.relu, lab.task.idle {})
  check.raises("got task 'trigger_mean' with BOS moved", lab.witness.softmax,
    lab.task.trigger_mean { bos = "moved" }, 5)
  check.raises("got task 'trigger_mean' with two anchors", lab.witness.softpick,
    lab.task.trigger_mean { anchors = 2 })
  for _, c in ipairs { 0, -1, 1 / 0, 0 / 0 } do
    check.raises("the temperature is", lab.witness.softmax, lab.task.trigger_mean {}, c)
  end
  check.raises("the domain of task 'odd' draws no tensor 'content' of three axes",
    lab.certify, model, lab.task { name = "odd", seq_len = 2, d_model = 2, domain = {
      draw = function() return {} end, build = function() return {} end } })
  check.raises("option 'triggers' is { 2, 5 }; it must be { first, last } within 1..4",
    lab.task, { name = "odd", seq_len = 4, d_model = 2, triggers = { 2, 5 },
      sample = function() end })
  check.raises("lab.task: give either sample or domain", lab.task,
    { name = "mine", seq_len = 2, d_model = 2 })
end)

check.test("model:to keeps what the model is", function()
  local task = lab.task.trigger_mean {}
  local model = lab.model.attention_only { task = task, layers = 2, heads = 2,
    residual = true, attention = { mechanism = "softmax", gate = "sigmoid_gate",
    scale = 0.5 },
    init = lab.init.normal(0.3), registers = 1, seed = 4 }
  local copy = model:to "f64"
  check.equal(copy.dtype, "f64")
  check.equal((tostring(copy):gsub("f64", "f32")), tostring(model))
  local batch = task:batch { n = 4 }
  local a, b = model:forward(batch.x), copy:forward(batch.x:to "f64"):to "f32"
  check.close(lab.max_abs_error(a, b):item(), 0, 1e-5)
end)

check.done()
