--- Bigram-Backcopy: one head that is dormant on most letters and active on a few.
--
-- Guo et al. (2024, arXiv 2410.13835): after a trigger (space, e, t) the token before it
-- follows, after any other letter one by the text's bigram, for which no attention is
-- needed. One layer, one head. With softmax the head parks on BOS wherever it has nothing
-- to do; with ReLU it need not. As in the paper a letter counts as dormant if, at the end
-- of a prompt of BOS and every letter that is no trigger, it puts 0.89 or more on BOS.
local lab = require "sinklab"

local opt = lab.options {
  triggers = { default = 3,
    doc = "how many letters, the most frequent, are triggers", min = 1,
    max = 40 },
  variant = { default = "bbm",
    doc = "of the task", choices = { "bbm", "markov", "dormant_markov",
    "interpolate", "icl" } },
  seq_len = { default = 64, quick = 32, doc = "tokens of a sequence", min = 4 },
  d_model = { default = 32, doc = "width", min = 8 },
  num_layers = { default = 1, doc = "layers, of one head", min = 1 },
  batch_size = { default = 32, quick = 16, doc = "sequences a step", min = 1 },
  max_steps = { default = 3000, quick = 100, doc = "steps", min = 0 },
  lr = { default = 2e-2, doc = "learning rate, which falls to a tenth", min = 0 },
  betas = { default = { 0.9, 0.99 }, doc = "decay of Adam's running means" },
  weight_decay = { default = 1e-4, doc = "of AdamW", min = 0 },
  seed = { default = 0, doc = "of parameters and data", min = 0 },
  dormant = { default = 0.89,
    doc = "least weight on BOS of a dormant letter", above = 0, max = 1 },
  samples = { default = 64, doc = "sequences measured", min = 2 },
  attention = { default = { "softmax", "relu" }, doc = "mechanisms to train" },
  quick = { default = false, doc = "few and short sequences, few steps, no claims" },
}
local seq_len, steps, batch_size = opt.seq_len, opt.max_steps, opt.batch_size

for _, mechanism in ipairs(opt.attention) do
  if not lab.mechanism(mechanism).has_weights then
    error(("--attention=%s: it has no weights to measure"):format(mechanism), 0)
  end
end
local run = lab.run()
local task = lab.task.backcopy { triggers = opt.triggers, variant = opt.variant,
  seq_len = seq_len }

-- Divisors differ: this paper's ReLU divides by the number of visible keys.
local maps = { relu = { "relu", normaliser = "visible" } }

-- Letters that are at least this share of the text have been seen enough to be judged.
local FREQUENT = 0.01

local function set_of(ids)
  local out = {}
  for _, id in ipairs(ids) do out[id] = true end
  return out
end
local is_trigger = set_of(task.trigger_ids)

--- The paper's prompts: BOS, the letters that are no triggers as far as there are places,
-- then each letter in turn; only the last row counts.
local function prompts()
  local x, other_rows = {}, {}
  for id = 0, #task.letters - 1 do
    local prompt, masked = { task.bos_id }, {}
    for other = 0, #task.letters - 1 do
      if #prompt < seq_len - 1 and other ~= id and not is_trigger[other] then
        prompt[#prompt + 1] = other
      end
    end
    prompt[#prompt + 1] = id
    local last = #prompt
    for i = 1, seq_len do
      prompt[i] = prompt[i] or 0 -- unseen: attention is causal
      masked[i] = i == last and 0 or 1
    end
    x[id + 1], other_rows[id + 1] = prompt, masked
  end
  return { x = lab.tensor(x), trigger = lab.tensor(other_rows) }
end

--- Mean weight on BOS of the rows of each letter, in the head of layer 1.
local function by_letter(model, batch)
  batch.groups = batch.x
  return lab.sinks(model, batch, { maps = false, dormant = opt.dormant }).heads[1].groups
end

--- For each letter: how frequent it is, weight on BOS in the prompt and in the data.
local function probe(model, batch)
  local prompt, data = by_letter(model, prompts()), by_letter(model, { x = batch.x })
  local out, rows = {}, 0
  for id = 0, #task.letters - 1 do rows = rows + data[id + 1].rows end
  for id = 0, #task.letters - 1 do
    out[id + 1] = { letter = task.letters[id + 1], trigger = is_trigger[id] or false,
      share = data[id + 1].rows / rows, prompt = prompt[id + 1].first,
      data = data[id + 1].first }
  end
  return out
end

--- Mean loss over trigger rows and over the others after BOS, and the least there can be.
local function losses(model)
  local batch = task:batch { n = opt.samples, seed = 1 }
  local _, each = lab.cross_entropy(model:forward(batch.x), batch.y)
  local later = lab.gt(lab.arange(seq_len), 0):reshape { 1, seq_len }
  local at, least = batch.is_trigger, task.oracle(batch):to "f32"
  local calm = later * (1 - at)
  local function mean(t, mask)
    t = t:reshape { opt.samples, seq_len }
    return lab.sum(t * mask):item() / lab.sum(mask):item()
  end
  return { trigger = mean(each, at), trigger_least = mean(least, at),
    other = mean(each, calm), other_least = mean(least, calm) }
end

--- Of the frequent letters that are triggers, or none: least and most BOS weight in the
-- data, how many there are, and are dormant in the data and in prompts; `all`: the same
-- in prompts of frequent and rare ones.
local function range(list, want)
  local r = { least = math.huge, most = -math.huge, letters = 0, dormant = 0,
    dormant_prompt = 0, all = 0, dormant_all = 0 }
  for _, p in ipairs(list) do
    if p.trigger == want then
      r.all = r.all + 1
      r.dormant_all = r.dormant_all + (p.prompt >= opt.dormant and 1 or 0)
    end
    if p.trigger == want and p.share >= FREQUENT then
      r.least, r.most = math.min(r.least, p.data), math.max(r.most, p.data)
      r.letters = r.letters + 1
      r.dormant = r.dormant + (p.data >= opt.dormant and 1 or 0)
      r.dormant_prompt = r.dormant_prompt + (p.prompt >= opt.dormant and 1 or 0)
    end
  end
  return r
end

--- Share of a letter against its weight on BOS, for a plot.
local function points(list, want, label)
  local out = { label = label, x = {}, y = {} }
  for _, p in ipairs(list) do
    if p.trigger == want and p.share > 0 then
      out.x[#out.x + 1], out.y[#out.y + 1] = p.share, p.data
    end
  end
  return out
end

local series, panels, rows = {}, {}, {}
for _, mechanism in ipairs(opt.attention) do
  local model = lab.model.transformer { task = task, d_model = opt.d_model,
    layers = opt.num_layers, heads = 1, mlp = "relu", positions = "learned",
    attention = { mechanism = maps[mechanism] or mechanism }, seed = opt.seed }
  local log = lab.train(model, task, {
    optimizer = lab.optim.adamw { lr = opt.lr, betas = opt.betas,
      weight_decay = opt.weight_decay },
    schedule = lab.schedule.warmup_cosine { lr = opt.lr, min = opt.lr / 10,
      warmup = steps // 20, steps = math.max(2, steps) },
    batch = batch_size, steps = steps, seed = opt.seed, eval = 256, label = mechanism })
  local batch = task:batch { n = opt.samples, seed = 2 }
  local loss, letters = losses(model), probe(model, batch)
  local sinks = lab.sinks(model, { x = batch.x, trigger = batch.is_trigger },
    { measures = { "norms" } })
  local calm, active, h = range(letters, false), range(letters, true), sinks.heads[1]
  run:add(mechanism, { train = log, sinks = sinks, losses = loss, letters = letters,
    other_letters = calm, trigger_letters = active })
  run:weights(mechanism, model)
  rows[#rows + 1] = { mechanism, ("%.3f"):format(loss.trigger),
    ("%.3f"):format(loss.other), ("%.3f"):format(loss.other_least),
    ("%.3f"):format(h.first_mean), ("%.3f"):format(calm.least),
    ("%d of %d"):format(calm.dormant, calm.letters),
    ("%d of %d"):format(calm.dormant_all, calm.all),
    ("%.3f"):format(h.trigger_first), ("%.3f"):format(active.most),
    ("%.3f"):format(h.contribution) }
  series[#series + 1] = points(letters, false, mechanism .. ", other letters")
  series[#series + 1] = points(letters, true, mechanism .. ", triggers")
  panels[#panels + 1] = { title = mechanism .. ", one sequence", vmin = 0, vmax = 1,
    data = lab.sinks(model, task:batch { n = 1, seed = 3 }).mean
      :select(1, 1):select(1, 1) }
  if opt.variant == "bbm" and not opt.quick then
    run:claim(mechanism .. ": loss on triggers", loss.trigger, "<=", 0.05)
    if mechanism == "softmax" then
      run:claim("softmax: mean BOS weight of rows that are no trigger's", h.first_mean,
        ">=", opt.dormant)
      run:claim("softmax: BOS weight of the trigger with most", active.most, "<",
        opt.dormant)
    elseif mechanism == "relu" then
      run:claim("relu: mean BOS weight of rows that are no trigger's", h.first_mean,
        "<=", 0.1)
    end
  end
end
print(("\nBigram-Backcopy, %d layer(s), %d steps: loss and BOS weight; dormant: "
  .. "of letters with at least %g %% of the data, and of all in prompts")
  :format(opt.num_layers, steps, FREQUENT * 100))
run:table({ "mechanism", "loss, triggers", "others", "least possible", "BOS, others",
  "least letter", "dormant", "in prompts",
  "BOS, triggers", "most", "contribution" }, rows)
run:figure("letters", lab.plot.scatter(series, { title = "Who parks on BOS", xlog = true,
  xlabel = "share of the letter in the data", ylabel = "mean weight on BOS",
  ymin = -0.05, ymax = 1.05,
  caption = ("rows of %d sequences by their letter"):format(opt.samples) }))
run:figure("sequence", lab.plot.panels(panels, { columns = #panels,
  title = "Bigram-Backcopy, layer 1", samples = 1 }))
