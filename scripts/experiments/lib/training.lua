--- training.lua - one small training from plain data to plain data, which the experiments
-- atlas and conditions repeat in other processes.
local core = require "sinklab.core"
local init_values = require "sinklab.model.init_values"
local model = require "sinklab.model"
local optim = require "sinklab.train.optim"
local sinks = require "sinklab.measure.sinks"
local sweep = require "sinklab.sweep"
local task = require "sinklab.task"
local train = require "sinklab.train"

local training = {}

--- Targets of token ids: the least mean loss that a batch allows.
local function least(asked, batch)
  return asked.oracle and core.mean(asked.oracle(batch)):item() or 0
end

-- Tasks by name: how each is made, from more options (seq_len, d_model, default) or
-- none; `sinks`: the task whose sequences sinks are measured on, where BOS has no fixed
-- place in the task itself; `model`: what differs from the paper's one-layer model;
-- `share` of the steps that is enough, where a step costs more.
local function mean(more)
  return function(o)
    local options = { residual = true, d_model = o.d_model, seq_len = o.seq_len,
      default = o.default }
    for key, value in pairs(more or {}) do options[key] = value end
    return task.trigger_mean(options)
  end
end

local learned = { positions = "learned" }
training.tasks = {
  { "mean", make = mean() },
  { "default-0.5", make = mean { default = 0.5 } },
  { "max", make = function() return task.trigger_max { residual = true } end },
  { "sum", make = function() return task.trigger_sum { residual = true } end },
  { "kinds", make = function()
    return task.trigger_kinds { residual = true, answers = { "mean", "sum" } }
  end },
  { "copy", model = learned,
    make = function() return task.trigger_copy { residual = true } end },
  { "idle", make = function() return task.idle { residual = true } end },
  { "two-anchors", make = mean { anchors = 2 } },
  { "bos-absent", make = mean { bos = "absent" } },
  { "bos-half", make = mean { bos = "random" }, sinks = mean() },
  { "bos-moved", make = mean { bos = "moved" }, sinks = mean() },
  { "retrieval", make = function()
    return task.retrieval { residual = true, seq_len = 8, d_value = 6 }
  end },
  { "regression", make = function()
    return task.regression { residual = true, inputs = 2 }
  end },
  { "induction", make = function() return task.induction {} end,
    share = 0.5, model = { positions = "learned", layers = 2, d_model = 32 } },
  { "unigram", make = function()
    return task.unigram { symbols = 20, seq_len = 16 }
  end, share = 0.5, model = { d_model = 16 } },
  { "backcopy", make = function() return task.backcopy { seq_len = 32 } end, share = 0.2,
    model = { positions = "learned", d_model = 32, norm = "layer", mlp = "relu" } },
}

for _, entry in ipairs(training.tasks) do training.tasks[entry[1]] = entry end

--- The names of the tasks, in order.
function training.names()
  local out = {}
  for i, entry in ipairs(training.tasks) do out[i] = entry[1] end
  return out
end

-- Options of a point, with the values of the paper's setting.
local defaults = { task = "mean", mechanism = "softmax", seed = 0, steps = 3000,
  batch = 64, lr = 1e-3, stop = 5e-3, optimizer = "adam", betas = { 0.9, 0.95 },
  momentum = 0.9, weight_decay = 0, init = 0.02, layers = 1, heads = 1,
  positions = "none", norm = "none", norm_place = "pre", mlp = "none", samples = 256 }

local function optimizer_of(p)
  local o = { lr = p.lr, weight_decay = p.weight_decay }
  if p.optimizer == "sgd" then o.momentum = p.momentum else o.betas = p.betas end
  return optim[p.optimizer](o)
end

--- "softmax", or "softmax+sigmoid_gate": a mechanism and a gate.
local function attention_of(p)
  local name, gate = p.mechanism:match "^(.-)%+(.+)$"
  return { mechanism = name or p.mechanism, gate = gate,
    scale = not p.vocab and 1 or nil }
end

--- A point in words.
local function text_of(point)
  local names, out = {}, {}
  for name in pairs(point) do names[#names + 1] = name end
  table.sort(names)
  for i, name in ipairs(names) do
    local value = point[name]
    out[i] = name .. "=" .. (type(value) == "table" and table.concat(value, ",")
      or tostring(value))
  end
  return table.concat(out, " ")
end

--- Train one model and measure it.
-- @param point  { task = name, mechanism = mechanism, or "mechanism+gate", seed =, ... }:
--               fields of `defaults`, and d_model, seq_len, default
-- @return { steps, stopped_by, error (largest of fresh sequences, or for token ids the
--         mean loss above the least one), loss, first (mean weight on position 1, of the
--         head where it is largest), layer, head, contribution, first_over_rowsum,
--         row_mass, value_norm (of that head; nil without weights) }
function training.run(point)
  local entry, p = training.tasks[point.task or defaults.task], {}
  for _, from in ipairs { defaults, entry.model or {}, point } do
    for key, value in pairs(from) do p[key] = value end
  end
  local asked = entry.make(p)
  p.vocab = asked.vocab
  local d = asked.d_model or p.d_model
  local m = model.transformer { task = asked, layers = p.layers, heads = p.heads,
    d_model = d, d_head = d, attention = attention_of(p), positions = p.positions,
    norm = p.norm, norm_place = p.norm_place, mlp = p.mlp,
    init = init_values.normal(p.init), seed = p.seed }
  local log = train(m, asked, { optimizer = optimizer_of(p), batch = p.batch,
    steps = math.ceil(p.steps * (entry.share or 1)), seed = p.seed, eval = 0,
    log_every = math.max(1, p.steps),
    stop = asked.vocab and {} or { max_abs_error = p.stop }, quiet = true })
  local batch = asked:batch { n = p.samples, seed = 1 }
  local loss, max_abs_error = asked.loss(m:forward(batch.x), batch)
  local out = { steps = log.steps, stopped_by = log.stopped_by, loss = loss:item() }
  out.error = max_abs_error and max_abs_error:item() or out.loss - least(asked, batch)
  if m.mechanism.has_weights then
    local shown = entry.sinks and entry.sinks(p) or asked
    local found = sinks(m, shown:batch { n = p.samples, seed = 2 }, { maps = false })
    local best
    for _, h in ipairs(found.heads) do
      if not best or h.first_mean > best.first_mean then best = h end
    end
    out.first, out.layer, out.head = best.first_mean, best.layer, best.head
    for _, key in ipairs { "contribution", "first_over_rowsum", "row_mass",
      "value_norm" } do
      out[key] = best[key]
    end
  end
  return out
end

--- Run points in processes; the results are kept in the folder `trainings` of a run's
-- directory, from which a script with the same --out goes on.
-- @param points  for training.run
-- @param label   for the progress line
-- @return results in the order of the points, false where one failed, and the failures as
--         a list of messages; nil after Ctrl-C, which says how to go on
function training.all(run, points, label)
  local done = sweep { points = points, run = "experiments.lib.run_training",
    label = label, out = run.folder .. "/trainings" }
  if done.interrupted then
    print("interrupted; continue with --out=" .. run.folder)
    return nil
  end
  local results, failures = {}, {}
  for i, entry in ipairs(done) do
    results[i] = entry.result or false
    if entry.failed then
      failures[#failures + 1] = ("%s: %s"):format(text_of(entry.point), entry.failed)
    end
  end
  return results, failures
end

--- End the script with an error if trainings failed; what succeeded is in the store.
-- @param failures  from training.all
-- @param n         how many trainings there are
function training.report(failures, n)
  if #failures == 0 then return end
  error(("%d of %d trainings failed and are left out; one of them: %s"):format(
    #failures, n, failures[1]), 0)
end

return training
