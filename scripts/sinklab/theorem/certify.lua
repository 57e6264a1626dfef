--- certify.lua - lab.certify: the worst loss of a model on a task, not a sample's.
--
-- The loss of the theorems is a supremum: over all that a task may ask, the largest error
-- of any row, which a sample never reaches. Here it is sought by projected gradient
-- ascent over the content of sequences. What is found is a lower bound of the supremum,
-- and the supremum itself where the error is as simple as that of the witnesses.
local core = require "sinklab.core"
local check = require "sinklab.base.check"
local schema = require "sinklab.base.schema"
local join = require "sinklab.base.tensors".join
local progress = require "sinklab.base.progress"

local Certificate = { __name = "sinklab.certificate" }

-- A start whose step is below this share of the range has arrived.
local SMALLEST = 1e-7
-- Steps after one that gained, and after one that did not.
local LONGER, SHORTER = 1.5, 0.5

--- Errors (B, L, d) -> of every row (B, L).
local norms = {
  max = function(error) return core.max(core.abs(error), 3) end,
  l2 = function(error) return core.sqrt(core.sum(core.square(error), 3)) end,
}

--- Buffers in which B sequences at a time are tried. `state`: what the domain draws.
-- What is climbed is the largest error of each, or what `aim` (B, L, d) picks of it.
local function bench(model, task, norm, state)
  local self = { inputs = {} }
  for key, t in pairs(state) do self.inputs[key] = t:clone() end
  local B = state.content.shape[1]
  self.aim = core.zeros({ B, task.seq_len, task.d_output }, "f64")
  self.largest = core.ones({ B }, "f64") -- 0 while an aim is climbed
  local program, most, height, total = core.record(function()
    local batch = task.domain.build(self.inputs)
    local error = model:forward(batch.x, batch.length) - batch.y
    local most = core.max(norms[norm](error), 2)
    local height = most * self.largest + core.sum(error * self.aim, { 2, 3 })
    return most, height, core.sum(height)
  end)
  for _, t in pairs(self.inputs) do program:input(t) end
  program:input(self.aim)
  program:input(self.largest)
  program:want(self.inputs.content)
  program:loss(total)
  self.most, self.height, self.replica = most, height, program:replica()
  return self
end

--- The largest error of each sequence (B).
local function measure(self, content)
  self.replica:set(self.inputs.content, content)
  return self.replica:forward():value(self.most)
end

--- What is climbed (B), and its gradient with respect to content.
local function try(self, content)
  local r = self.replica
  r:set(self.inputs.content, content)
  r:forward():zero():backward()
  return r:value(self.height), r:gradient(self.inputs.content)
end

--- The place, from 1, of the largest element of a tensor of one axis.
local function largest(t) return math.tointeger(t:argmax():item()) + 1 end

local function load(self, state)
  for key, t in pairs(self.inputs) do self.replica:set(t, state[key]) end
end

local function sign(t) return core.gt(t, 0) - core.lt(t, 0) end

--- Climb from every sequence of a state. Each has a step of its own, which grows while it
-- gains and is halved when it does not; the best content is never left.
local function climb(self, best, low, high, steps)
  local B = best.shape[1]
  local height, slope = try(self, best)
  local step = core.zeros({ B }, "f64") + (high - low) / 4
  for _ = 1, steps do
    local candidate = best + step:reshape { B, 1, 1 } * sign(slope)
    candidate = core.minimum(core.maximum(candidate, low), high)
    local now, there = try(self, candidate)
    local gained = core.gt(now, height)
    local wide = gained:reshape { B, 1, 1 }
    best, slope = core.where(wide, candidate, best), core.where(wide, there, slope)
    height = core.maximum(height, now)
    step = core.where(gained, core.minimum(step * LONGER, high - low), step * SHORTER)
    if step:max():item() < SMALLEST * (high - low) then break end
  end
  return best
end

--- The worst content found from a state. The largest error alone leads to the nearest
-- peak: every second start but the first two first climbs the error of one coordinate of
-- one row.
local function search(self, state, o, domain, g)
  load(self, state)
  local low, high, aimed = domain.low, domain.high, {}
  local shape = self.aim.shape
  local B, L, d = shape[1], shape[2], shape[3]
  for b = 1, B do aimed[b] = b > 2 and b % 2 == 0 and 1 or 0 end
  aimed = core.tensor(aimed, "f64")
  local one = core.one_hot(g:randint(0, L * d - 1, { B }), L * d):reshape { B, L, d }
  local side = (g:bernoulli(0.5, { B }) * 2 - 1) * aimed
  self.replica:set(self.aim, one * side:reshape { B, 1, 1 })
  self.replica:set(self.largest, 1 - aimed)
  local content = climb(self, state.content, low, high, o.steps)
  self.replica:set(self.aim, 0 * one)
  self.replica:set(self.largest, core.ones({ B }, "f64"))
  content = climb(self, content, low, high, o.steps)
  return measure(self, content), content
end

--- Content to start from: sequence 1 all low, 2 all high, then corners and points within
-- by turns.
local function starts_of(content, low, high)
  local at_corner, all_low, all_high = {}, {}, {}
  for b = 1, content.shape[1] do
    at_corner[b], all_low[b], all_high[b] = { { b % 2 } }, { { b == 1 and 1 or 0 } },
      { { b == 2 and 1 or 0 } }
  end
  local function choose(which, there)
    content = core.where(core.tensor(which, "f64"), there, content)
  end
  choose(at_corner, core.where(core.gt(content, (low + high) / 2), high, low))
  choose(all_low, low)
  choose(all_high, high)
  return content
end

--- Sequence b (from 1) of a state, alone.
local function one_of(state, b)
  local out = {}
  for key, t in pairs(state) do out[key] = t:narrow(1, b, 1):clone() end
  return out
end

local function joined(states)
  local out = {}
  for key in pairs(states[1]) do
    local list = {}
    for i, state in ipairs(states) do list[i] = state[key] end
    out[key] = join(list, 1)
  end
  return out
end

--- Keep the worst of what a chunk of sequences gave.
local function keep(best, error, state, content)
  local most = error:max():item()
  if best.error and most <= best.error then return end
  local b = largest(error)
  best.error, best.state = most, one_of(state, b)
  if content then best.state.content = content:narrow(1, b, 1):clone() end
end

--- The sample: its largest error, and a state of the worst sequences, one of each chunk,
-- the worst first.
local function sampled(self, task, o)
  local found, most = {}, -math.huge
  for chunk = 1, o.samples // o.starts do
    local g = core.generator(o.seed + chunk, { dtype = "f64" })
    local state = task.domain.draw(g, o.starts, {})
    load(self, state)
    local best = {}
    keep(best, measure(self, state.content), state)
    found[#found + 1], most = best, math.max(most, best.error)
  end
  table.sort(found, function(a, b) return a.error > b.error end)
  local states = {}
  for i = 1, o.starts do states[i] = found[(i - 1) % #found + 1].state end
  return most, joined(states)
end

local certify = schema.func("lab.certify", {
  doc = [[The worst loss of a model on a task.

    The loss of a sequence is the largest error of its rows. In f64 (a model of f32 is
    copied) it is climbed by projected gradient ascent over the content of the
    sequences, from many starts for every position of the trigger: all content at its
    bounds, corners, points within, and the worst of a sample. The result is never below
    the sample's.]],
  args = {
    { "model", "model" },
    { "task", "task", doc = [[one with content that may vary: the trigger tasks,
      retrieval, regression, or one's own with a domain]] },
  },
  options = {
    { "starts", "integer", default = 32, min = 2, max = 4096,
      doc = "for every position of the trigger" },
    { "steps", "integer", default = 100, min = 0, doc = "of each ascent at most" },
    { "samples", "integer", default = 4096, min = 1,
      doc = "sequences of the sample, in whole multiples of starts" },
    { "norm", "string", default = "max", choices = { "max", "l2" },
      doc = [[of a row's error; "max" is its largest coordinate]] },
    { "seed", "integer", default = 0, min = 0 },
  },
  returns = [[{ worst, sampled = the sample's largest error, samples, starts = all of
    them, norm, trigger and position (from 1; of the worst sequence and of its worst
    row; trigger is nil where the task has none), x = that sequence (1, L, d_model) }]],
  errors = "a task that has no content that may vary",
  source = "the loss of Ran-Milo 2026, arXiv 2603.11487",
  example = [[
    local task = lab.task.trigger_mean {}
    print(lab.certify(lab.witness.softmax(task, 5), task, {
      starts = 4, samples = 64 }))]],
}, function(model, task, o)
  local what = "lab.certify"
  local domain = task.domain
  if not domain then
    check.fail("%s: task '%s' has no content that may vary "
      .. "(a task's domain says what may)", what, task.name)
  end
  if model.dtype ~= "f64" then model = model:to "f64" end
  o.samples = math.max(1, math.ceil(o.samples / o.starts)) * o.starts
  local g = core.generator(o.seed, { dtype = "f64" })
  local groups, first, last = {}, 1, 1
  if task.triggers then first, last = task.triggers[1], task.triggers[2] end
  for j = first, last do
    local state = domain.draw(g, o.starts, { trigger = task.triggers and j or nil })
    local content = type(state) == "table" and state.content
    if not core.is_tensor(content) or #content.shape ~= 3 then
      check.fail("%s: the domain of task '%s' draws no tensor 'content' of three axes",
        what, task.name)
    end
    state.content = starts_of(state.content, domain.low, domain.high)
    groups[#groups + 1] = state
  end

  local at = bench(model, task, o.norm, groups[1])
  local most, worst_sampled = sampled(at, task, o)
  groups[#groups + 1] = worst_sampled
  local best = {}
  local work <close> = progress.work("certify", #groups)
  for i, state in ipairs(groups) do
    local error, content = search(at, state, o, domain, g)
    keep(best, error, state, content)
    work:at(i)
  end
  local worst = math.max(best.error, most)
  if not (worst >= most) then
    check.fail("%s: the error of model %s on task '%s' is NaN", what, model.kind,
      task.name)
  end
  local batch = domain.build(best.state)
  local rows = norms[o.norm](model:forward(batch.x, batch.length) - batch.y)
  local trigger = batch.trigger and math.tointeger(batch.trigger:item()) + 1
  if trigger == 0 then trigger = nil end
  return setmetatable({ worst = worst, sampled = most, samples = o.samples,
    starts = #groups * o.starts, norm = o.norm, trigger = trigger,
    position = largest(rows:select(1, 1)), x = batch.x }, Certificate)
end)

function Certificate:__tostring()
  return ("worst error %.6g (%s) at position %d%s, from %d starts; "
    .. "the largest of %d samples is %.6g")
      :format(self.worst, self.norm, self.position,
        self.trigger and (", trigger at %d"):format(self.trigger) or "", self.starts,
        self.samples, self.sampled)
end

return certify
