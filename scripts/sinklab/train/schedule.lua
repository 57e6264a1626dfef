--- schedule.lua - lab.schedule: the learning rate at each step.
--
-- A schedule is a list of points { step, value, curve }; the curve leads to the next
-- point (core/train/train.h has the formulas). Steps count from 0.
local core = require "sinklab.core"
local check = require "sinklab.base.check"
local schema = require "sinklab.base.schema"

local schedule = {}

local MOST_DROPS = 100000

local rows = {
  { "lr", "number", required = true, min = 0, doc = "the highest learning rate" },
  { "min", "number", default = 0, min = 0, doc = "the last learning rate" },
  { "warmup", "integer", default = 0, min = 0, unit = "steps",
    doc = "from lr / warmup to lr" },
  { "steps", "integer", required = true, min = 1, unit = "steps", doc = "in all" },
  { "from", "number", required = true, min = 0, doc = "learning rate at step 0" },
  { "to", "number", required = true, min = 0, doc = "at step `steps`, and after it" },
  { "factor", "number", required = true, min = 0, doc = "of each drop" },
  { "every", "integer", required = true, min = 1, unit = "steps", doc = "between drops" },
  { "decay_start", "integer", required = true, min = 0,
    doc = "step from which the learning rate falls" },
  { "shape", "string", default = "linear", choices = { "linear", "sqrt" },
    doc = "how it falls: 1 - w or 1 - sqrt (w), w the share of the way" },
}

local function declare(name, doc, takes, example, source, f)
  local what = "lab.schedule." .. name
  schedule[name] = schema.func(what, { doc = doc, example = example, source = source,
    options = schema.pick(rows, table.unpack(takes)),
    returns = "points: a schedule for lab.train",
    errors = "a number below 0, steps out of order",
  }, function(o)
    return f(o, function(key, least, said)
      if o[key] < least then
        check.fail("%s: option '%s' is %d; it must be at least %s, %d", what, key, o[key],
          said, least)
      end
    end)
  end)
end

--- The points of a warm-up: lr (t + 1) / warmup for t < warmup, and on at lr.
local function warm(o)
  local points = {}
  if o.warmup > 1 then points[1] = { 0, o.lr / o.warmup, "linear" } end
  if o.warmup > 0 then points[#points + 1] = { o.warmup - 1, o.lr, "hold" } end
  return points
end

declare("constant", "One learning rate for all steps.", { "lr" },
  "print(lab.schedule.at(lab.schedule.constant { lr = 1e-3 }, 50))", nil,
  function(o) return { { 0, o.lr, "hold" } } end)

declare("warmup_cosine",
  [[Warm-up, then half a cosine: lr (t + 1) / warmup for t < warmup, min at the last step,
    steps - 1.]],
  { "lr", "min", "warmup", "steps" }, [[
    local s = lab.schedule.warmup_cosine { lr = 1e-3, warmup = 10, steps = 100 }
    print(lab.schedule.at(s, 50))]], "Loshchilov and Hutter 2017, arXiv 1608.03983",
  function(o, at_least)
    at_least("steps", o.warmup + 2, "warmup + 2")
    local points = warm(o)
    points[#points + 1] = { o.warmup, o.lr, "cosine" }
    points[#points + 1] = { o.steps - 1, o.min, "hold" }
    return points
  end)

declare("linear", "A straight line over steps.", { "from", "to", "steps" },
  "print(lab.schedule.at(lab.schedule.linear { from = 1e-3, to = 0, steps = 100 }, 50))",
  nil, function(o) return { { 0, o.from, "linear" }, { o.steps, o.to, "hold" } } end)

declare("step", "Drops at regular steps up to `steps`: lr factor ^ floor (t / every).",
  { "lr", "factor", "every", "steps" }, [[
    local s = lab.schedule.step { lr = 1e-3, factor = 0.5, every = 30, steps = 100 }
    print(lab.schedule.at(s, 50))]], nil,
  function(o, at_least)
    at_least("every", math.ceil(o.steps / MOST_DROPS), "steps / " .. MOST_DROPS)
    local points = {}
    for k = 0, (o.steps - 1) // o.every do
      points[k + 1] = { k * o.every, o.lr * o.factor ^ k, "hold" }
    end
    return points
  end)

declare("wsd", [[Warm-up, stable, decay: as warmup_cosine up to lr, lr until decay_start,
    then down to min at the last step, steps - 1.]],
  { "lr", "min", "warmup", "decay_start", "steps", "shape" }, [[
    local s = lab.schedule.wsd { lr = 1e-3, decay_start = 80, steps = 100 }
    print(lab.schedule.at(s, 50))]], "Hu et al. 2024, arXiv 2404.06395",
  function(o, at_least)
    at_least("decay_start", o.warmup, "warmup")
    at_least("steps", o.decay_start + 2, "decay_start + 2")
    local points = warm(o)
    points[#points + 1] = { o.decay_start, o.lr, o.shape }
    points[#points + 1] = { o.steps - 1, o.min, "hold" }
    return points
  end)

schedule.points = schema.func("lab.schedule.points", {
  doc = "A learning rate from points of one's own.",
  args = { { "points", "table", doc = [[list of { step, value, curve }, sorted by step;
    the curve ("hold", "linear", "cosine" or "sqrt") leads to the next point. Steps count
    from 0]] } },
  returns = "points, checked: a schedule for lab.train",
  errors = "points out of order, an unknown curve",
  example = [[
    local s = lab.schedule.points { { 0, 1e-3, "hold" }, { 100, 1e-3, "cosine" },
      { 200, 0 } }
    print(lab.schedule.at(s, 150))]],
}, function(points)
  core.schedule_at(points, 0)
  return points
end)

schedule.at = schema.func("lab.schedule.at", {
  doc = "The learning rate of a schedule at a step.",
  args = { { "points", "table", doc = "from a function of lab.schedule" },
    { "step", "number", doc = "from 0" } },
  returns = "number",
  example = [[
    print(lab.schedule.at(lab.schedule.linear { from = 1e-3, to = 0, steps = 10 }, 5))]],
}, core.schedule_at)

return schedule
