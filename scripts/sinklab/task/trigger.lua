--- trigger.lua - tasks with an answer at a trigger and a default everywhere else.
--
-- A token has, in this order, a coordinate for every anchor (BOS), one for every kind of
-- trigger, content, and one that is 1 at content. The paper's task (Ran-Milo, arXiv
-- 2603.11487, and its released code) is trigger_mean with its defaults; the other answers
-- and the options default, present, bos and anchors are our own extensions.
local core = require "sinklab.core"
local check = require "sinklab.base.check"
local schema = require "sinklab.base.schema"
local base = require "sinklab.task.base"

local trigger = {}

-- The target of the trigger's row. `seen` (B, 1, L) marks the tokens from the first
-- after the anchors to the trigger, which counts; `count` (B, 1, 1) is their number.
-- Each gives (B, 1, d).
local answers = {}

function answers.mean(s) return core.matmul(s.seen, s.x) / s.count end

--- Over seq_len, a constant, so that errors compare with those of the mean.
function answers.sum(s) return core.matmul(s.seen, s.x) / s.x.shape[2] end

function answers.max(s)
  -- -2 is below every coordinate: tokens after the trigger are never the largest.
  return core.max(core.where(s.seen:transpose(2, 3), s.x, -2), 2, { keep = true })
end

function answers.copy(s)
  local L = s.x.shape[2]
  local before = core.eq(s.position:reshape { 1, 1, L },
    s.trigger:reshape { -1, 1, 1 } - 1)
  return core.matmul(before, s.x)
end

local answer_names = { "mean", "sum", "max", "copy" }

--- Where the anchors are: a list of tensors (B or 1, L, 1) with 1 at the anchor, or none.
local places = {}

function places.first(s, o)
  local out, L = {}, o.seq_len
  for i = 1, o.anchors do
    out[i] = core.eq(s.position, i - 1):reshape { 1, L, 1 }
  end
  return out
end

function places.absent() return {} end

function places.random(s, o)
  local first = core.eq(s.position, 0):reshape { 1, o.seq_len, 1 }
  return { first * s.has_bos:reshape { -1, 1, 1 } }
end

function places.moved(s, o)
  -- One of the positions that are not the trigger's.
  local at = s.bos + core.ge(s.bos, s.trigger)
  return { core.eq(s.position:reshape { 1, o.seq_len }, at:reshape { -1, 1 })
    :reshape { -1, o.seq_len, 1 } }
end

-- Where anchors do not depend on draws.
local fixed = { first = true, absent = true }

--- Positions, anchors, and masks of them: `word` (B or 1, L, 1) is 1 where no
-- anchor is, `wide` the same for every content coordinate, and `order` (B or 1, L) the
-- position, but L at an anchor.
local function layout(state, o, width, dtype)
  local L = o.seq_len
  local s = setmetatable({ position = core.arange(L, dtype) }, { __index = state })
  s.anchors, s.word = places[o.bos](s, o), core.ones({ 1, L, 1 }, dtype)
  for _, anchor in ipairs(s.anchors) do s.word = s.word - anchor end
  s.wide = s.word
  if fixed[o.bos] then s.wide = s.word:broadcast { 1, L, width }:clone() end
  s.order = core.where(s.word:reshape { -1, L }, s.position, L)
  return s
end

local rows = {
  { "d_model", "integer", default = 16, max = 1 << 20,
    doc = "width of a token, at least 4" },
  { "seq_len", "integer", default = 16, min = 3, max = 1 << 24,
    unit = "tokens", doc = "of a sequence" },
  { "residual", "boolean", default = false,
    doc = "the target is added to the token itself" },
  { "trigger", "table", default_doc = "{ 3, seq_len }", doc = [[{ first, last } position
    of the trigger, from 1, drawn uniformly; { 3, seq_len } is the released code's, { 2,
    seq_len } the theory's; task:batch { trigger = } fixes it]] },
  { "default", "number", default = 0,
    doc = "target of content coordinates except at the trigger; 0 is the theorem's" },
  { "present", "number", default = 1, min = 0, max = 1,
    doc = "probability that a sequence has its trigger" },
  { "bos", "string", default = "first",
    choices = { "first", "absent", "random", "moved" },
    doc = [["absent": position 1 is content as any other, and BOS has no coordinate;
      "random": absent in half of the sequences; "moved": at any position but the
      trigger's]] },
  { "anchors", "integer", default = 1, min = 1, max = 2,
    doc = "2: positions 1 and 2 are both BOS, each with its own coordinate" },
}

--- The draws: the position of the trigger, content, and those of some options.
local function drawer(o)
  local L = o.seq_len
  return function(t, B, options)
    local s, asked = {}, options.trigger
    if asked and asked > L then
      check.fail("task '%s':batch: option 'trigger' is %d; the sequence has %d tokens",
        o.name, asked, L)
    elseif asked and asked <= o.places then
      check.fail("task '%s':batch: option 'trigger' is %d, where the anchor is", o.name,
        asked)
    end
    s.trigger = asked and t:full({ B }, asked - 1)
        or t:randint(o.first - 1, o.last - 1, { B })
    s.content = t:uniform(-1, 1, { B, L, o.width })
    if #o.kinds > 1 then s.kind = t:randint(0, #o.kinds - 1, { B }) end
    if o.present < 1 then s.present = t:bernoulli(o.present, { B }) end
    if o.bos == "random" then s.has_bos = t:bernoulli(0.5, { B }) end
    if o.bos == "moved" then s.bos = t:randint(0, L - 2, { B }) end
    return s
  end
end

--- The tokens (B, L, d) of a state whose anchors are `where`; 1 at the trigger (B, L, 1),
-- and the same for each kind.
local function tokens_of(s, where, o)
  local B, L, K = s.content.shape[1], o.seq_len, #o.kinds
  local word = where.word:broadcast { B, L, 1 }
  local parts, of_kind = {}, {}
  for i, anchor in ipairs(where.anchors) do parts[i] = anchor:broadcast { B, L, 1 } end
  local at = core.eq(where.position:reshape { 1, L, 1 }, s.trigger:reshape { B, 1, 1 })
  if s.present then at = at * s.present:reshape { B, 1, 1 } end
  for k = 1, K do
    of_kind[k] = K == 1 and at or at * core.eq(s.kind, k - 1):reshape { B, 1, 1 }
    parts[#parts + 1] = of_kind[k]
  end
  parts[#parts + 1] = s.content * where.wide
  parts[#parts + 1] = word - at
  return core.concat(parts, 3), at, of_kind
end

--- The target (B, L, d), before `residual` adds the token.
local function target_of(s, at, of_kind, o)
  local y
  for k, answer in ipairs(o.kinds) do
    local part = of_kind[k] * answers[answer](s)
    y = y and y + part or part
  end
  if o.default == 0 then return y end
  local dtype = y.dtype
  local unit = core.concat({ core.zeros({ 1, 1, o.places + #o.kinds }, dtype),
    core.ones({ 1, 1, o.width }, dtype), core.zeros({ 1, 1, 1 }, dtype) }, 3)
  return y + (1 - at) * (unit * o.default)
end

--- From draws to a batch.
local function builder(o)
  -- Tensors that are equal in every batch are computed once: a recorded sampler repeats
  -- only operations on its draws.
  local known = {}
  if fixed[o.bos] then
    for _, dtype in ipairs { "f32", "f64" } do
      known[dtype] = layout({}, o, o.width, dtype)
    end
  end
  return function(state)
    local dtype = state.content.dtype
    local where = known[dtype] or layout(state, o, o.width, dtype)
    local x, at, of_kind = tokens_of(state, where, o)
    local s = setmetatable({ x = x, position = where.position }, { __index = state })
    s.seen = core.le(where.order:reshape { -1, 1, o.seq_len },
      s.trigger:reshape { -1, 1, 1 })
    s.count = core.sum(s.seen, 3, { keep = true })
    local y = target_of(s, at, of_kind, o)
    if o.residual then y = y + x end
    local shown = s.trigger
    if s.present then shown = core.where(s.present, shown, -1) end
    return { x = x, y = y, trigger = shown, kind = s.kind }
  end
end

--- A task of this name. `kinds`: the answer of each kind of trigger.
local function make(name, kinds, o)
  local what = "lab.task." .. name
  if o.anchors > 1 and o.bos ~= "first" then
    check.fail("%s: two anchors are at positions 1 and 2: bos must be \"first\"", what)
  end
  o.name, o.kinds = name, kinds
  o.places = o.bos == "absent" and 0 or o.anchors -- coordinates of anchors
  o.width = o.d_model - o.places - #o.kinds - 1 -- of content
  if o.width < 1 then
    check.fail("%s: option 'd_model' is %d; it must be at least %d", what, o.d_model,
      o.places + #o.kinds + 2)
  end
  local L = o.seq_len
  o.first, o.last = base.range(what, "trigger",
    o.trigger or { math.min(o.places + 2, L), L }, o.places + 1, L)
  local task = base.new { name = name, seq_len = L, d_model = o.d_model,
    domain = { draw = drawer(o), build = builder(o) }, triggers = { o.first, o.last },
    options = { trigger = { "integer", min = 1 } } }
  task.bos, task.anchors = o.bos, o.anchors -- lab.witness reads them
  return task
end

--- Declare a task of one kind of trigger.
local function declare(name, answer, doc, example, source)
  trigger[name] = schema.func("lab.task." .. name, { doc = doc, options = rows,
    returns = "task; its batches have trigger (B), -1 where a sequence has none",
    source = source, example = example,
  }, function(o) return make(name, { answer }, o) end)
end

declare("trigger_mean", "mean", [[The trigger-conditional mean.

    Position 1 is BOS: coordinate 1 is 1, the rest 0. Later tokens hold uniform (-1, 1)
    noise in coordinates 3..d-1; coordinate d is 1 except at the trigger, whose coordinate
    2 is 1 instead. The target is 0 everywhere except at the trigger j, where it is the
    mean of tokens 2..j (with the trigger, without BOS). The options from `default` on are
    our own extensions.]], [[
    local batch = lab.task.trigger_mean {}:batch { n = 2, trigger = 8 }
    print(batch.y)]], "Ran-Milo 2026, arXiv 2603.11487, and its released code")

declare("trigger_max", "max", [[The largest of tokens 2..j at the trigger j, coordinate by
  coordinate (our own extension). The rest is as in lab.task.trigger_mean.]],
  "print(lab.task.trigger_max { default = 0.5 }:batch { n = 1, trigger = 4 }.y)")

declare("trigger_sum", "sum", [[The sum of tokens 2..j over seq_len at the trigger j (our
  own extension). Weights that sum to 1 do not count tokens. The rest is as in
  lab.task.trigger_mean.]],
  "print(lab.task.trigger_sum { seq_len = 8 }:batch { n = 1, trigger = 8 }.y)")

declare("trigger_copy", "copy", [[The token before the trigger, at the trigger (our own
  extension). Only a model with positions can tell it from the others. The rest is as in
  lab.task.trigger_mean.]],
  "print(lab.task.trigger_copy { seq_len = 8 }:batch { n = 1, trigger = 3 }.y)")

trigger.trigger_kinds = schema.func("lab.task.trigger_kinds", {
  doc = [[Several kinds of trigger, each with its own answer (our own extension).

    A sequence has one trigger, of a kind drawn uniformly; each kind has its coordinate.
    The rest is as in lab.task.trigger_mean.]],
  options = schema.join({ { "answers", "table", default = { "mean", "max" },
    doc = "of each kind, 2 to 4 of mean, sum, max and copy" } }, rows),
  returns = "task; its batches have trigger (B) and kind (B), from 0",
  example = [[
    local task = lab.task.trigger_kinds { answers = { "mean", "sum" } }
    print(task:batch { n = 4 }.kind)]],
}, function(o)
  local what = "lab.task.trigger_kinds"
  if #o.answers < 2 or #o.answers > 4 then
    check.fail("%s: option 'answers' has %d items; it must have 2 to 4", what, #o.answers)
  end
  for _, answer in ipairs(o.answers) do
    check.options(what .. ": answers", { answer = answer },
      { answer = { "string", choices = answer_names } })
  end
  return make("trigger_kinds", o.answers, o)
end)

local idle_rows = {}
for _, row in ipairs(rows) do
  if row[1] ~= "present" then idle_rows[#idle_rows + 1] = row end
end

trigger.idle = schema.func("lab.task.idle", {
  doc = [[No trigger, ever: the model must idle (our own extension). The rest is as in
    lab.task.trigger_mean.]],
  options = idle_rows,
  returns = "task",
  example = "print(lab.task.idle { seq_len = 4 }:batch { n = 1 }.y)",
}, function(o)
  o.present = 0
  return make("idle", { "mean" }, o)
end)

return trigger
