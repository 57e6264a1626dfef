--- Theorem 2: with layers and residuals, some softmax layer sinks; ReLU need not.
--
-- Trains the paper's model (arXiv 2603.11487, section 3 and figures 4 to 8) with each
-- mechanism until one batch's largest error is below stop_max_abs_error, then measures
-- the weight on position 1, the worst error (lab.certify), and what becomes of the errors
-- when a head is taken away. Figures 4 and 5: the defaults. Figures 6 to 8:
-- --num_layers=4 --num_heads=4. --seeds=20 repeats it over seeds, in processes of their
-- own: how large the smallest weight of the best head is in every model, and where heads
-- sink.
local lab = require "sinklab"

local opt = lab.options {
  num_layers = { default = 2, quick = 1, doc = "layers", min = 1 },
  num_heads = { default = 2,
    doc = "heads of every layer, each as wide as the model", min = 1 },
  d_model = { default = 16, doc = "width", min = 4 },
  seq_len = { default = 16, doc = "tokens of a sequence", min = 3 },
  trigger_pos = { default = 8,
    doc = "position of the trigger in the figures, from 1", min = 2 },
  batch_size = { default = 128, doc = "sequences a step", min = 1 },
  max_steps = { default = 50000, doc = "at most so many steps", min = 0 },
  lr = { default = 1e-4, quick = 1e-3, doc = "learning rate", min = 0 },
  betas = { default = { 0.9, 0.95 }, doc = "decay of Adam's running means" },
  stop_max_abs_error = { default = 5e-3,
    doc = "stop when a batch's largest error is below this", min = 0 },
  seed = { default = 0, doc = "of the first model and its data", min = 0 },
  seeds = { default = 1,
    doc = "models of each mechanism, with seeds from --seed on", min = 1 },
  samples = { default = 1000, doc = "sequences measured", min = 2 },
  sink_at = { default = 0.9,
    doc = "a head sinks if its smallest weight is at least this" },
  starts = { default = 8,
    doc = "of the search for the worst error, at each trigger", min = 2 },
  attention = { default = { "softmax", "relu" }, doc = "mechanisms to train" },
  dtype = { default = "f32", doc = "precision", choices = { "f32", "f64" } },
  quick = { default = false, doc = "one layer and a higher rate" },
}
local layers, heads, lr = opt.num_layers, opt.num_heads, opt.lr

for _, mechanism in ipairs(opt.attention) do
  if not lab.mechanism(mechanism).has_weights then
    error(("--attention=%s: it has no weights to measure"):format(mechanism), 0)
  end
end

local function new_task()
  return lab.task.trigger_mean { d_model = opt.d_model, seq_len = opt.seq_len,
    residual = true }
end
new_task():batch { n = 1, trigger = opt.trigger_pos } -- refused before any training
local run = lab.run()

--- One trained model, its log and its sinks.
local function trained(task, mechanism, seed)
  local model = lab.model.attention_only { task = task, layers = layers, heads = heads,
    residual = true, attention = { mechanism = mechanism, scale = 1 },
    init = lab.init.normal(0.02), seed = seed, dtype = opt.dtype }
  local log = lab.train(model, task, {
    optimizer = lab.optim.adam { lr = lr, betas = opt.betas },
    batch = opt.batch_size, steps = opt.max_steps, seed = seed,
    stop = { max_abs_error = opt.stop_max_abs_error }, eval = 4096, label = mechanism })
  return model, log, lab.sinks(model, task:batch { n = opt.samples,
    trigger = opt.trigger_pos, dtype = opt.dtype }, { measures = "norms" })
end

--- Largest errors on the trigger's row and on the others.
local function errors(model, batch)
  local L = batch.x.shape[2]
  local error = lab.abs(model:forward(batch.x) - batch.y):max(3)
  local at = lab.eq(lab.arange(L, opt.dtype):reshape { 1, L },
    batch.trigger:reshape { -1, 1 })
  return (error * at):max():item(), (error * (1 - at)):max():item()
end

--- Measures of a model's heads: plain data, for records and for other processes.
local function study(task, model, log, sinks)
  local batch = task:batch { n = 2000, seed = 1, dtype = opt.dtype }
  local certificate = lab.certify(model, task, { starts = opt.starts, samples = 1000 })
  local r = { steps = log.steps, max_abs_error = log.max_abs_error,
    eval_max_abs_error = log.eval and log.eval.max_abs_error,
    worst = certificate.worst, most = sinks.first.max, heads = {}, best = -1 }
  r.trigger_error, r.plain_error = errors(model, batch)
  for i, h in ipairs(sinks.heads) do
    -- Without the head: its columns of w_o are 0.
    local w_o = model:parameter(("layer%d.w_o"):format(h.layer))
    local width = w_o.shape[2] // heads
    local columns = w_o:narrow(2, (h.head - 1) * width + 1, width)
    local kept = columns:clone()
    columns:fill(0)
    local at_trigger, plain = errors(model, batch)
    columns:copy(kept)
    r.heads[i] = { layer = h.layer, head = h.head, min = h.first_min, mean = h.first_mean,
      contribution = h.contribution, trigger_error = at_trigger, plain_error = plain }
    if h.first_min > r.best then
      r.best, r.best_layer, r.best_head = h.first_min, h.layer, h.head
    end
  end
  return r
end

--- In a process of its own: everything again from the seed.
local function one(point)
  local task = new_task()
  local model, log, sinks = trained(task, point.mechanism, point.seed)
  return study(task, model, log, sinks)
end

-- The paper's claims about a mechanism's heads; others are measured without a claim.
local claims = {
  softmax = { "softmax: some head sinks", "max", ">=", 0.98 },
  relu = { "relu: no head sinks", "max", "<=", 0.02 },
}

local models = {} -- by mechanism, one study a seed
for _, mechanism in ipairs(opt.attention) do
  local task = new_task()
  local model, log, sinks = trained(task, mechanism, opt.seed)
  local r = study(task, model, log, sinks)
  models[mechanism] = { r }
  run:add(mechanism, { train = log, sinks = sinks, study = r })
  run:weights(mechanism, model)
  run:array(mechanism .. "-mean", sinks.mean)
  run:array(mechanism .. "-std", sinks.std)
  run:figure(mechanism .. "-heads", lab.plot.heads(sinks.mean, { title = mechanism,
    quantity = "attention weight", samples = opt.samples }))

  print(("\n%s: %d steps (stopped by %s) in %.1f s, largest error %.4f on the last "
    .. "batch, %.4f on %d fresh sequences, %.4f the worst found")
    :format(mechanism, log.steps, log.stopped_by, log.wall_s, log.max_abs_error,
    log.eval.max_abs_error,
      log.eval.samples, r.worst))
  print(sinks)
  print(("\nlargest errors, of 2000 sequences, without one head (with all: "
    .. "%.4f at triggers, %.4f elsewhere)")
    :format(r.trigger_error, r.plain_error))
  local rows = {}
  for i, h in ipairs(r.heads) do
    rows[i] = { tostring(h.layer), tostring(h.head), ("%.4f"):format(h.min),
      ("%.4f"):format(h.trigger_error), ("%.4f"):format(h.plain_error) }
  end
  run:table({ "layer", "head", "smallest weight", "at triggers", "elsewhere" }, rows)
  run:claim(mechanism .. ": the task is learnt", log.max_abs_error, "<",
    opt.stop_max_abs_error)
  if claims[mechanism] then
    local text, which, op, bound = table.unpack(claims[mechanism])
    run:claim(text, sinks.first[which], op, bound)
  end
end

if opt.seeds == 1 then return end

-- The other seeds.
local points = {}
for _, mechanism in ipairs(opt.attention) do
  for i = 1, opt.seeds - 1 do
    points[#points + 1] = { mechanism = mechanism, seed = opt.seed + i }
  end
end
local results = lab.sweep { points = points, run = one, label = "seeds",
  out = run.folder .. "/seeds" }
if results.interrupted then return end
for _, entry in ipairs(results) do
  if entry.failed then
    error(("%s, seed %d: %s"):format(entry.point.mechanism, entry.point.seed,
      entry.failed), 0)
  end
  local list = models[entry.point.mechanism]
  list[#list + 1] = entry.result
  run:add(("%s-seed%d"):format(entry.point.mechanism, entry.point.seed),
    { study = entry.result })
end

--- The mean over seeds of a number of every head: rows of layers.
local function map_of(list, number)
  local rows = {}
  for l = 1, layers do
    rows[l] = {}
    for h = 1, heads do
      local sum = 0
      for _, r in ipairs(list) do sum = sum + number(r.heads[(l - 1) * heads + h]) end
      rows[l][h] = sum / #list
    end
  end
  return lab.tensor(rows)
end

local panels, rows = {}, {}
for _, mechanism in ipairs(opt.attention) do
  local list = models[mechanism]
  local least, most, largest = math.huge, 0, 0
  for i, r in ipairs(list) do
    least, most = math.min(least, r.best), math.max(most, r.most)
    largest = math.max(largest, r.max_abs_error)
    rows[#rows + 1] = { mechanism, tostring(opt.seed + i - 1), tostring(r.steps),
      ("%.4f"):format(r.eval_max_abs_error), ("%.4f"):format(r.worst),
      ("%.5f"):format(r.best),
      ("%d.%d"):format(r.best_layer, r.best_head), ("%.4f"):format(r.most) }
  end
  local function panel(title, quantity, number, fixed)
    panels[#panels + 1] = { data = map_of(list, number),
      title = mechanism .. ": " .. title, quantity = quantity, xlabel = "head",
      ylabel = "layer", vmin = 0, vmax = fixed and 1 or "data" }
  end
  panel("how often it sinks", "share of models", function(h)
    return h.min >= opt.sink_at and 1 or 0
  end, true)
  panel("smallest weight", "mean over models", function(h) return h.min end, true)
  panel("triggers without it", "largest error", function(h) return h.trigger_error end)
  panel("elsewhere without it", "largest error", function(h) return h.plain_error end)
  run:claim(("%s: all of %d models learn the task"):format(mechanism, #list), largest,
    "<", opt.stop_max_abs_error)
  if mechanism == "softmax" then
    run:claim(("softmax: the least, of %d models, of the best head's smallest weight")
      :format(#list), least, ">=", opt.sink_at)
  elseif mechanism == "relu" then
    run:claim(("relu: the most, of %d models, of any head's mean weight"):format(#list),
      most, "<=", 0.02)
  end
end
print(("\n%d x %d (layers x heads), %d seeds"):format(layers, heads, opt.seeds))
run:table({ "mechanism", "seed", "steps", "error, 4096 fresh", "worst error",
  "best smallest weight", "layer.head", "largest mean weight" }, rows)
run:figure("where", lab.plot.panels(panels, { columns = 4,
  title = ("Where heads sink: %d models of each mechanism"):format(opt.seeds),
  caption = ("weights of %d sequences a model with the trigger at %d, errors of 2000")
    :format(opt.samples, opt.trigger_pos) }))
