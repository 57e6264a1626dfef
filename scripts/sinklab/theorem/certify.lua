--- certify.lua - lab.certify: the worst loss of a model on a task, not a sample's.
--
-- The loss of the theorems is a supremum: over all that a task may ask, the largest error
-- of any row, which a sample never reaches. Here it is sought by projected gradient
-- ascent over the content of sequences and by single changes of coordinates and tokens.
-- The result is a lower bound of the supremum, and the supremum itself where the error
-- is as simple as that of the witnesses.
local core = require "sinklab.core"
local check = require "sinklab.base.check"
local schema = require "sinklab.base.schema"
local join = require "sinklab.base.tensors".join
local progress = require "sinklab.base.progress"

local Certificate = { __name = "sinklab.certificate" }

-- A start whose step is below this share of the range has arrived.
local SMALLEST = 1e-7
-- Sequences of the sample that are drawn at once. The sample does not depend on the
-- search, so it is not the number of starts.
local CHUNK = 64
-- Ascents from content that was changed at random.
local SHAKES = 20
-- Steps after one that gained, and after one that did not.
local LONGER, SHORTER = 1.5, 0.5

--- Errors (B, L, d) -> of every row (B, L).
local norms = {
  max = function(error) return core.max(core.abs(error), 3) end,
  l2 = function(error) return core.sqrt(core.sum(core.square(error), 3)) end,
}

--- Buffers in which B sequences at a time are tried. `state`: draws of the domain.
-- The objective is the largest error of each, or its errors times `coefficients`
-- (B, L, d).
local function bench(model, task, norm, state)
  local self = { inputs = {} }
  for key, t in pairs(state) do self.inputs[key] = t:clone() end
  local B = state.content.shape[1]
  self.coefficients = core.zeros({ B, task.seq_len, task.d_output }, "f64")
  self.largest = core.ones({ B }, "f64") -- 0 while one error is maximised alone
  local program, most, objective, total = core.record(function()
    local batch = task.domain.build(self.inputs)
    local error = model:forward(batch.x, batch.length) - batch.y
    local most = core.max(norms[norm](error), 2)
    local objective = most * self.largest + core.sum(error * self.coefficients, { 2, 3 })
    return most, objective, core.sum(objective)
  end)
  for _, t in pairs(self.inputs) do program:input(t) end
  program:input(self.coefficients)
  program:input(self.largest)
  program:want(self.inputs.content)
  program:loss(total)
  self.most, self.objective, self.replica = most, objective, program:replica()
  return self
end

--- The largest error of each sequence (B).
local function measure(self, content)
  self.replica:set(self.inputs.content, content)
  return self.replica:forward():value(self.most)
end

--- The objective (B), and its gradient with respect to content.
local function try(self, content)
  local r = self.replica
  r:set(self.inputs.content, content)
  r:forward():zero():backward()
  return r:value(self.objective), r:gradient(self.inputs.content)
end

--- The place, from 1, of the largest element of a tensor of one axis.
local function largest(t) return math.tointeger(t:argmax():item()) + 1 end

local function load(self, state)
  for key, t in pairs(self.inputs) do self.replica:set(t, state[key]) end
end

local function sign(t) return core.gt(t, 0) - core.lt(t, 0) end

--- Climb from every sequence of a state. Each has a step of its own, which grows while it
-- gains and is halved when it does not; the best content is never left.
local function ascend(self, best, low, high, steps)
  local B = best.shape[1]
  local objective, slope = try(self, best)
  local step = core.zeros({ B }, "f64") + (high - low) / 4
  for _ = 1, steps do
    local candidate = best + step:reshape { B, 1, 1 } * sign(slope)
    candidate = core.minimum(core.maximum(candidate, low), high)
    local now, there = try(self, candidate)
    local gained = core.gt(now, objective)
    local wide = gained:reshape { B, 1, 1 }
    best, slope = core.where(wide, candidate, best), core.where(wide, there, slope)
    objective = core.maximum(objective, now)
    step = core.where(gained, core.minimum(step * LONGER, high - low), step * SHORTER)
    if step:max():item() < SMALLEST * (high - low) then break end
  end
  return best
end

--- The first objective of a group's starts (B, L, d): the largest error leads to the
-- nearest maximum, so every start but two maximises the error of one coordinate of one
-- row, with either sign. `turn` is the number of the first coordinate. The row is the
-- trigger's, else a random one.
local function objective_of(self, state, turn, g)
  local B, L, d = table.unpack(self.coefficients.shape)
  local rows = g:randint(0, L - 1, { B }):totable()
  local triggers = core.is_tensor(state.trigger) and state.trigger:totable() or rows
  local places, sides, alone = {}, {}, {}
  for b = 1, B do
    local k = (turn + b) % (2 * d)
    local row = triggers[b] >= 0 and triggers[b] or rows[b]
    places[b], sides[b] = row * d + k // 2, (k % 2 * 2 - 1) * (b > 2 and 1 or 0)
    alone[b] = b > 2 and 1 or 0
  end
  local one = core.one_hot(core.tensor(places, "f64"), L * d):reshape { B, L, d }
  return one * core.tensor(sides, "f64"):reshape { B, 1, 1 },
    1 - core.tensor(alone, "f64")
end

--- The worst content found from a state.
local function search(self, state, o, domain, coefficients, largest_too)
  load(self, state)
  local low, high = domain.low, domain.high
  self.replica:set(self.coefficients, coefficients)
  self.replica:set(self.largest, largest_too)
  local content = ascend(self, state.content, low, high, o.steps)
  self.replica:set(self.coefficients, 0 * coefficients)
  self.replica:set(self.largest, core.ones(largest_too.shape, "f64"))
  content = ascend(self, content, low, high, o.steps)
  return measure(self, content), content
end

--- The numbers 1 .. n in random order.
local function shuffled(n, g)
  local order, draw = {}, g:uniform(0, 1, { n }):totable()
  for i = 1, n do order[i] = i end
  table.sort(order, function(i, j) return draw[i] < draw[j] end)
  return order
end

--- How many changes of content of L tokens there are.
local function changes_of(L, m) return 3 * L * m + L * (L + 1) + 4 * m end

--- Content (B, L, m) after change k, from 0: a coordinate of one token at a bound or half
-- between; the content of one token on another or on all; a coordinate of all tokens at
-- a bound, half between or mirrored.
local function changed(content, k, domain)
  local low, high = domain.low, domain.high
  local L, m = content.shape[2], content.shape[3]
  local function one(i, n) return core.one_hot(core.tensor({ i }, "f64"), n) end
  if k < 3 * L * m then
    return core.where(one(k // 3, L * m):reshape { 1, L, m },
      low + (high - low) / 2 * (k % 3), content)
  end
  k = k - 3 * L * m
  if k < L * (L + 1) then
    local from, to = content:narrow(2, k % L + 1, 1), k // L
    if to == L then return content * 0 + from end
    return core.where(one(to, L):reshape { 1, L, 1 }, from, content)
  end
  k = k - L * (L + 1)
  return core.where(one(k // 4, m):reshape { 1, 1, m },
    k % 4 == 3 and low + high - content or low + (high - low) / 2 * (k % 4), content)
end

--- Of two contents of each sequence that with the larger error.
local function better(objective, content, other_objective, other)
  local gained = core.gt(other_objective, objective)
  return core.maximum(objective, other_objective),
    core.where(gained:reshape { -1, 1, 1 }, other, content), gained
end

--- The content of a state's sequences after changes that made the largest error larger:
-- sweeps over all changes until one gains nothing, at most `tries` in all.
local function polish(self, state, domain, tries, g)
  load(self, state)
  local best, objective = state.content, measure(self, state.content)
  local _, L, m = table.unpack(best.shape)
  local since, n = 0, changes_of(L, m)
  while true do
    for _, k in ipairs(shuffled(n, g)) do
      if tries == 0 or since == n then return best end
      local candidate, gained = changed(best, k - 1, domain), nil
      objective, best, gained =
        better(objective, best, measure(self, candidate), candidate)
      tries, since = tries - 1, gained:max():item() > 0 and 0 or since + 1
    end
  end
end

--- The same after `SHAKES` ascents, each from content whose single coordinates are some
-- or whole tokens were drawn anew: a bound or half between.
local function shake(self, state, domain, steps, g)
  load(self, state)
  local low, high, best = domain.low, domain.high, state.content
  local shape, objective = best.shape, measure(self, best)
  local B, L = shape[1], shape[2]
  for round = 1, SHAKES do
    local drawn = low + (high - low) / 2 * g:randint(0, 2, shape)
    local anew = round % 2 == 0 and g:bernoulli(0.05, shape)
      or g:bernoulli(math.min(2 / L, 1), { B, L, 1 })
    local content = ascend(self, core.where(anew, drawn, best), low, high, steps)
    objective, best = better(objective, best, measure(self, content), content)
  end
  return best
end

--- Content to start from: sequence 1 all low, 2 all high, then by turns corners, corners
-- with one content on all tokens but one (the answer to many alike is often the worst),
-- and points within.
local function starts_of(content, low, high, g)
  local B, L = content.shape[1], content.shape[2]
  local corner = core.where(core.gt(content, (low + high) / 2), high, low)
  local own = core.one_hot(g:randint(0, L - 1, { B }), L):reshape { B, L, 1 }
  local alike = core.where(own, corner, corner:narrow(2, 1, 1))
  local out = { content * 0 + low, content * 0 + high }
  for b = 3, B do
    out[b] = b % 3 == 0 and corner or b % 3 == 1 and alike or content
  end
  for b = 1, B do out[b] = out[b]:narrow(1, b, 1) end
  return join(out, 1)
end

--- The sequences of a state as { error, state, b, rank }, the worst first.
local function listed(what, error, state)
  local out = {}
  for b, e in ipairs(error:totable()) do
    if e ~= e then check.fail("lab.certify: the error of %s is NaN", what) end
    out[b] = { error = e, state = state, b = b }
  end
  table.sort(out, function(a, b) return a.error > b.error end)
  for rank, one in ipairs(out) do one.rank = rank end
  return out
end

--- A state of `count` of these sequences, those of the best rank and of these the worst
-- first; all again where there are fewer.
local function first_of(found, count)
  table.sort(found, function(a, b)
    if a.rank ~= b.rank then return a.rank < b.rank end
    return a.error > b.error
  end)
  local out = {}
  for key in pairs(found[1].state) do
    local parts = {}
    for i = 1, count do
      local one = found[(i - 1) % #found + 1]
      parts[i] = one.state[key]:narrow(1, one.b, 1)
    end
    out[key] = join(parts, 1)
  end
  return out
end

--- The sample, drawn CHUNK sequences at a time: its largest error, and its sequences,
-- ranked within their chunks.
local function sampled(what, model, task, o)
  local found, most = {}, -math.huge
  for first = 1, o.samples, CHUNK do
    local g = core.generator(o.seed + first // CHUNK + 1, { dtype = "f64" })
    local state = task.domain.draw(g, CHUNK, {})
    local batch = task.domain.build(state)
    local error = norms[o.norm](model:forward(batch.x, batch.length) - batch.y):max(2)
    local chunk = listed(what, error:narrow(1, 1, math.min(CHUNK, o.samples - first + 1)),
      state)
    table.move(chunk, 1, #chunk, #found + 1, found)
    most = math.max(most, chunk[1].error)
  end
  return most, found
end

local certify = schema.func("lab.certify", {
  doc = [[The worst loss of a model on a task.

    The loss of a sequence is the largest error of its rows. In f64 (a model of f32 is
    copied) it is maximised by projected gradient ascent over the content of the
    sequences, from many starts for every position of the trigger: all content at its
    bounds, corners, points within, and the worst of a sample. Each start but these first
    maximises the error of one coordinate of the trigger's row, in one direction, then the
    largest error. The worst of each trigger then try single changes: a coordinate at a
    bound or half between, in one token or in all, or one token's content on another or
    on all. They do so again after ascents from partly redrawn content. The result is
    never below the sample's.]],
  args = {
    { "model", "model" },
    { "task", "task", doc = [[one with content that may vary: the trigger tasks,
      retrieval, regression, or one's own with a domain]] },
  },
  options = {
    { "starts", "integer", default = 32, min = 2, max = 4096,
      doc = "for every position of the trigger" },
    { "steps", "integer", default = 10, min = 0,
      doc = "of each ascent at most, ten times as many of the last one" },
    { "tries", "integer", default = 4000, min = 0,
      doc = "of single changes to the worst sequences, and again after new ascents" },
    { "samples", "integer", default = 4096, min = 1, doc = "sequences of the sample" },
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
    state.content = starts_of(state.content, domain.low, domain.high, g)
    groups[#groups + 1] = state
  end

  local at = bench(model, task, o.norm, groups[1])
  local named = ("model %s on task '%s'"):format(model.kind, task.name)
  local most, of_sample = sampled(named, model, task, o)
  local found = {}
  local work <close> = progress.work("certify", #groups + 3)
  local function add(state, error)
    local own = listed(named, error, state)
    table.move(own, 1, #own, #found + 1, found)
    work:at(#found // o.starts)
  end
  local function try(state, ...)
    local error
    error, state.content = search(at, state, o, domain, ...)
    add(state, error)
  end
  for i, state in ipairs(groups) do
    try(state, objective_of(at, state, i * (o.starts - 2), g))
  end
  try(first_of(of_sample, o.starts), core.zeros(at.coefficients.shape, "f64"),
    core.ones({ o.starts }, "f64"))
  local top = first_of(found, o.starts)
  top.content = polish(at, top, domain, o.tries, g)
  work:at(#groups + 2)
  top.content = shake(at, top, domain, o.steps, g)
  top.content = polish(at, top, domain, o.tries, g)
  top.content = ascend(at, top.content, domain.low, domain.high, 10 * o.steps)
  add(top, measure(at, top.content))
  local best = of_sample[1]
  for _, one in ipairs(found) do
    if one.error > best.error then best = one end
  end
  local batch = domain.build(first_of({ best }, 1))
  local rows = norms[o.norm](model:forward(batch.x, batch.length) - batch.y)
  local trigger = batch.trigger and math.tointeger(batch.trigger:item()) + 1
  if trigger == 0 then trigger = nil end
  return setmetatable({ worst = best.error, sampled = most, samples = o.samples,
    starts = (#groups + 1) * o.starts, norm = o.norm, trigger = trigger,
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
