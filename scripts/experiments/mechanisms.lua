--- Every mechanism on the trigger-conditional mean: who learns it, who sinks.
--
-- One layer, one head, the paper's settings (arXiv 2603.11487), several seeds each.
-- Weight on position 1 alone does not tell a sink: where weights need not sum to 1 its
-- value may be zero and the weight free, and a share of a row that is nearly empty says
-- nothing. So four numbers stand together: the weight, its share of the row
-- (first_over_rowsum), the row's sum (mass), and the norm of what position 1 adds to the
-- output.
--
-- Mechanisms that learn do so within about a thousand steps; the default max_steps is
-- four times that, and the others are reported with the error they reached.
-- --write_docs=docs/mechanisms.md, in the source tree, writes the tables of the manual.
local lab = require "sinklab"
local docs = require "sinklab.help.mechanisms"

-- The variants: a label and a model's `attention` table without its scale.
local entries = {
  { label = "softmax", attention = { mechanism = "softmax" } },
  { label = "relu", attention = { mechanism = "relu" } },
  { label = "relu-visible", attention = { mechanism = "relu", normaliser = "visible" } },
  { label = "relu2", attention = { mechanism = "relu2" } },
  { label = "sigmoid", attention = { mechanism = "sigmoid", n = "visible" } },
  { label = "sigmoid-unbiased", attention = { mechanism = "sigmoid", bias = "fixed" } },
  { label = "sigmoid-learned",
    attention = { mechanism = "sigmoid", bias = "learned", value = -2 } },
  { label = "sigmoid-normalised",
    attention = { mechanism = "sigmoid", bias = "fixed", normalise = true } },
  { label = "softmax1", attention = { mechanism = "softmax1" } },
  { label = "sinklogit", attention = { mechanism = "sinklogit" } },
  { label = "softpick", attention = { mechanism = "softpick" } },
  { label = "sparsemax", attention = { mechanism = "sparsemax" } },
  { label = "entmax15", attention = { mechanism = "entmax15" } },
  { label = "entmax-1.25", attention = { mechanism = "entmax", alpha = 1.25 } },
  { label = "clipped_softmax", attention = { mechanism = "clipped_softmax" } },
  { label = "elu1", attention = { mechanism = "elu1" } },
  { label = "elu1-alone", attention = { mechanism = "elu1", normalise = false } },
  { label = "stickbreaking", attention = { mechanism = "stickbreaking" } },
  { label = "stickbreaking-current",
    attention = { mechanism = "stickbreaking", attend_current = true } },
  { label = "topk_softmax", attention = { mechanism = "topk_softmax" } },
  { label = "logn_softmax", attention = { mechanism = "logn_softmax" } },
  { label = "softcap_softmax", attention = { mechanism = "softcap_softmax" } },
  { label = "softmax+gate", attention = { mechanism = "softmax",
    gate = "sigmoid_gate" } },
  { label = "softmax+headwise",
    attention = { mechanism = "softmax",
      gate = { "sigmoid_gate", granularity = "headwise" } } },
  { label = "softmax+head_gate", attention = { mechanism = "softmax",
    gate = "head_gate" } },
  { label = "softmax1+gate", attention = { mechanism = "softmax1",
    gate = "sigmoid_gate" } },
  { label = "softmax+k_bias", attention = { mechanism = "softmax", kv_bias = "k" } },
  { label = "linear", attention = { mechanism = "linear" } },
  { label = "linear-alone", attention = { mechanism = "linear", normalise = false } },
  { label = "linear-identity", attention = { mechanism = "linear",
    feature = "identity" } },
  { label = "linear-identity-alone",
    attention = { mechanism = "linear", feature = "identity", normalise = false } },
  { label = "retention", attention = { mechanism = "retention" } },
  { label = "forgetting", attention = { mechanism = "forgetting" } },
  { label = "differential", attention = { mechanism = "differential" } },
  { label = "differential-plain", attention = { mechanism = "differential",
    norm = false } },
  { label = "ssm", attention = { mechanism = "ssm" } },
}

local labels = {}
for i, entry in ipairs(entries) do labels[i] = entry.label end

local opt = lab.options {
  only = { default = labels, quick = { "softmax", "relu", "softpick" },
    doc = "mechanisms to train", choices = labels },
  d_model = { default = 16, doc = "width", min = 4 },
  seq_len = { default = 16, doc = "tokens of a sequence", min = 3 },
  trigger_pos = { default = 8,
    doc = "position of the trigger in what is measured, from 1", min = 2 },
  batch_size = { default = 128, doc = "sequences a step", min = 1 },
  max_steps = { default = 4000, doc = "at most so many steps", min = 0 },
  lr = { default = 1e-3, doc = "learning rate", min = 0 },
  betas = { default = { 0.9, 0.95 }, doc = "decay of Adam's running means" },
  stop_max_abs_error = { default = 5e-3,
    doc = "stop when a batch's largest error is below this", min = 0 },
  seed = { default = 0, doc = "of the first run", min = 0 },
  seeds = { default = 3, quick = 1, doc = "runs of each, with seeds from --seed on",
    min = 1 },
  samples = { default = 1000, doc = "sequences measured", min = 2 },
  write_docs = { default = "", doc = "write the tables of the manual to this file" },
  sources = { default = "plugins",
    doc = "folder of the plugins' sources, for write_docs" },
  quick = { default = false, doc = "softmax, relu and softpick, one seed" },
}

if opt.quick and opt.write_docs ~= "" then
  error("--write_docs is of all mechanisms and seeds: it does not go with --quick", 0)
end
local only, seeds = opt.only, opt.seeds

local task = lab.task.trigger_mean { d_model = opt.d_model, seq_len = opt.seq_len }
task:batch { n = 1, trigger = opt.trigger_pos } -- refused before anything is trained
local run = lab.run()

--- Train and measure one mechanism from one seed.
local function try(entry, seed)
  local label = ("%s-seed%d"):format(entry.label, seed)
  local attention = { scale = 1 }
  for key, value in pairs(entry.attention) do attention[key] = value end
  local model = lab.model.attention_only { task = task, attention = attention,
    init = lab.init.normal(0.02), seed = seed }
  local log = lab.train(model, task, {
    optimizer = lab.optim.adam { lr = opt.lr, betas = opt.betas },
    batch = opt.batch_size, steps = opt.max_steps, seed = seed, eval = 4096,
    stop = { max_abs_error = opt.stop_max_abs_error }, label = label })
  local sinks = lab.sinks(model, task:batch { n = opt.samples,
    trigger = opt.trigger_pos })
  run:add(label, { train = log, sinks = sinks })
  return { log = log, sinks = sinks, head = sinks.heads[1] }
end

--- The smallest and largest of one number over an entry's runs; NaN if it has none.
local function range(entry, number)
  local low, high = 0 / 0, 0 / 0
  for _, r in ipairs(entry.runs) do
    local value = number(r)
    if not (low <= value) then low = value end
    if not (high >= value) then high = value end
  end
  return low, high
end

local function of_head(key) return function(r) return r.head[key] end end

--- "0.9998", or "0.0000 to 0.0022" where seeds differ in the digits shown.
local function spread(entry, format, number)
  local low, high = range(entry, number)
  if low ~= low then return "-" end
  -- "-0.00" is 0
  local a = format:format(low):gsub("^%-(0%.0*)$", "%1")
  local b = format:format(high):gsub("^%-(0%.0*)$", "%1")
  return a == b and a or a .. " to " .. b
end

--- "882 842 879"; "-" for a run that did not reach the stop.
local function steps(entry)
  local words = {}
  for i, r in ipairs(entry.runs) do
    words[i] = r.log.stopped_by == "max_abs_error" and tostring(r.log.steps) or "-"
  end
  return table.concat(words, " ")
end

--- Mass on no token: what a mechanism that claims so leaves on nothing, and what a
-- key bias takes. NaN where neither can be.
local function elsewhere(r)
  local null, virtual = r.head.null_mass, r.head.virtual_mass
  if not null and not virtual then return 0 / 0 end
  return (null or 0) + (virtual or 0)
end

local columns = {
  { "mechanism", function(e) return e.label end },
  { "steps to the stop", steps },
  { "largest error", function(e)
    return spread(e, "%.3f", function(r) return r.log.eval.max_abs_error end)
  end },
  { "BOS weight", function(e) return spread(e, "%.4f", of_head "first_mean") end },
  { "first_over_rowsum", function(e) return spread(e, "%.4f",
    of_head "first_over_rowsum") end },
  { "row mass", function(e) return spread(e, "%.3f", of_head "row_mass") end },
  { "mass on no token", function(e) return spread(e, "%.3f", elsewhere) end },
  { "contribution", function(e) return spread(e, "%.4f", of_head "contribution") end },
}

-- Values of an independent implementation: the label, a text, a number of a
-- run, and a bound on it in every run.
local error_of = function(r) return r.log.max_abs_error end
local learnt = { "is learnt", error_of, "<", opt.stop_max_abs_error }
local known = {
  softmax = { learnt, { "BOS weight", of_head "first_mean", ">=", 0.99 } },
  relu = { learnt, { "BOS weight", of_head "first_mean", "<=", 0.01 } },
  relu2 = { learnt, { "BOS weight", of_head "first_mean", "<=", 0.01 } },
  softmax1 = { learnt,
    { "still sinks: BOS weight", of_head "first_mean", ">=", 0.99 } },
  softpick = { learnt, { "raw BOS weight", of_head "first_mean", "<=", 0.05 } },
  sigmoid = { { "BOS weight", of_head "first_mean", ">=", 0.99 },
    { "that weight is free: contribution", of_head "contribution", "<=", 0.05 } },
}

local chosen, rows, panels = {}, {}, {}
for _, entry in ipairs(entries) do
  for _, label in ipairs(only) do
    if label == entry.label then chosen[#chosen + 1] = entry end
  end
end
for i, entry in ipairs(chosen) do
  entry.runs = {}
  for s = 1, seeds do entry.runs[s] = try(entry, opt.seed + s - 1) end
  rows[i] = {}
  for j, column in ipairs(columns) do rows[i][j] = column[2](entry) end
  panels[i] = { title = entry.label, vmin = 0, vmax = 1,
    data = entry.runs[1].sinks.mean:select(1, 1):select(1, 1) }
end

local names = {}
for j, column in ipairs(columns) do names[j] = column[1] end
print(("\none layer, one head, %d seed%s; means over plain rows"):format(seeds,
  seeds == 1 and "" or "s"))
run:table(names, rows)
run:figure("mechanisms", lab.plot.panels(panels, { columns = math.min(6, #panels),
  title = "What each mechanism learns on the trigger-conditional mean",
  caption = ("mean attention weight, %d samples, trigger at %d; above 1 as 1")
    :format(opt.samples, opt.trigger_pos) }))

for _, entry in ipairs(chosen) do
  for _, claim in ipairs(known[entry.label] or {}) do
    local text, number, op, bound = table.unpack(claim)
    local low, high = range(entry, number)
    run:claim(("%s: %s"):format(entry.label, text),
      op:sub(1, 1) == ">" and low or high, op, bound)
  end
end

-- A trained softpick's plain rows are all zero, or have a little weight on BOS and
-- nothing else, as the signs at the start decide. The second, rarer kind by hand: no
-- error, next to no weight on BOS, and a first_over_rowsum of 1.
for _, entry in ipairs(chosen) do
  if entry.label == "softpick" then
    local max_abs_error, sinks = lab.witness.measure(lab.witness.softpick(task), task,
      opt.samples)
    local h = sinks.heads[1]
    run:add("softpick-witness", { sinks = sinks,
      eval = { samples = opt.samples, max_abs_error = max_abs_error } })
    run:claim("softpick witness: largest error", max_abs_error, "<=", 1e-6)
    run:claim("softpick witness: raw BOS weight", h.first_mean, "<=", 0.05)
    run:claim("softpick witness: first_over_rowsum is 1", h.first_over_rowsum, ">=", 0.99)
    run:claim("softpick witness: contribution", h.contribution, "==", 0)
  end
end

if opt.write_docs ~= "" then
  docs.write(opt.write_docs, { sources = opt.sources, entries = chosen,
    names = names, rows = rows, settings = opt })
end
