--- context.lua - tasks whose answer stands in the context: retrieval, induction and
-- linear regression. No text is known that ties them to a theorem on sinks: they are our
-- own extensions.
local core = require "sinklab.core"
local check = require "sinklab.base.check"
local schema = require "sinklab.base.schema"
local base = require "sinklab.task.base"

local context = {}

local seq_len = { "seq_len", "integer", default = 16, min = 3, max = 1 << 24,
  unit = "tokens",
  doc = "of a sequence" }
local residual = { "residual", "boolean", default = false,
  doc = "the target is added to the token itself" }

--- A random order of each row: how many numbers of the row are smaller, or equal and
-- earlier. (B, n) -> (B, n), a permutation of 0..n-1.
local function rank(u)
  local B, n = u.shape[1], u.shape[2]
  local mine, other = u:reshape { B, n, 1 }, u:reshape { B, 1, n }
  local index = core.arange(n, u.dtype)
  local earlier = core.lt(index:reshape { 1, 1, n }, index:reshape { 1, n, 1 })
  return core.sum(core.lt(other, mine) + core.eq(other, mine) * earlier, 3)
end

context.retrieval = schema.func("lab.task.retrieval", {
  doc = [[Key-query retrieval on a trigger.

    Position 1 is BOS. Every later token has a key, one of seq_len - 1 that are all
    different, and a value of uniform (-1, 1) numbers. The trigger j holds, in place of
    these, the key of one of the tokens 2..j-1; the target there is that token's value,
    and 0 everywhere else. Coordinates: BOS, trigger, keys (one of them 1), values, and
    one that is 1 at content.]],
  options = {
    seq_len,
    { "d_value", "integer", default = 8, min = 1, max = 1 << 20,
      doc = "numbers of a value; d_model is seq_len + 2 + d_value" },
    residual,
    { "trigger", "table", default_doc = "{ 3, seq_len }",
      doc = "{ first, last } of its positions; task:batch { trigger = } fixes it" },
  },
  returns = [[task; its batches have trigger and asked (B): the position, from 0, of the
    token whose value is the target]],
  example = [[
    local batch = lab.task.retrieval { seq_len = 6 }:batch { n = 1 }
    print(batch.trigger, batch.asked)]],
}, function(o)
  local what = "lab.task.retrieval"
  local L, v, keys = o.seq_len, o.d_value, o.seq_len - 1
  local first, last = base.range(what, "trigger", o.trigger or { 3, L }, 3, L)

  local function draw(t, B, options)
    local j = options.trigger
    if j and (j < first or j > last) then
      check.fail("task 'retrieval':batch: option 'trigger' is %d; "
        .. "it must be within %d..%d", j, first, last)
    end
    local s = {}
    s.trigger = j and t:full({ B }, j - 1) or t:randint(first - 1, last - 1, { B })
    s.content = t:uniform(-1, 1, { B, L, v })
    s.order, s.ask = t:uniform(0, 1, { B, keys }), t:uniform(0, 1, { B })
    return s
  end

  local function build(s)
    local B, dtype = s.content.shape[1], s.content.dtype
    local position = core.arange(L, dtype)
    -- 1 + the whole part of ask * (trigger - 1): one of 1..trigger-1.
    local scaled = s.ask * (s.trigger - 1)
    local asked = 1 + core.sum(core.ge(scaled:reshape { B, 1 },
      position:narrow(1, 2, L - 1):reshape { 1, L - 1 }), 2)
    asked = core.minimum(asked, s.trigger - 1) -- where rounding made ask 1
    local at = core.eq(position:reshape { 1, L }, s.trigger:reshape { B, 1 })
        :reshape { B, L, 1 }
    local word = core.gt(position, 0):reshape { 1, L, 1 }:broadcast { B, L, 1 } - at
    local key = core.concat({ core.zeros({ B, 1, keys }, dtype),
      core.one_hot(rank(s.order), keys) }, 2)
    local values = s.content * word
    local which = core.eq(position:reshape { 1, 1, L }, asked:reshape { B, 1, 1 })
    local bos = core.eq(position, 0):reshape { 1, L, 1 }:broadcast { B, L, 1 }
    local x = core.concat({ bos, at, key * word + at * core.matmul(which, key), values,
      word }, 3)
    local answer = core.concat({ core.zeros({ B, 1, 2 + keys }, dtype),
      core.matmul(which, values), core.zeros({ B, 1, 1 }, dtype) }, 3)
    local y = at * answer
    if o.residual then y = y + x end
    return { x = x, y = y, trigger = s.trigger, asked = asked }
  end

  return base.new { name = "retrieval", domain = { draw = draw, build = build },
    seq_len = L, d_model = 3 + keys + v, triggers = { first, last },
    options = { trigger = { "integer", min = 1 } } }
end)

context.induction = schema.func("lab.task.induction", {
  doc = [[Induction: a string of different tokens, twice.

    BOS (id 0), then `length` different ids of 1..symbols in random order, then the same
    again. The target is the next token from the second copy on; before it, -100, which
    the loss leaves out.]],
  options = {
    { "symbols", "integer", default = 16, min = 2, max = 1 << 16 },
    { "length", "integer", default = 8, min = 2, max = 1 << 24,
      doc = "of the string, at most symbols; seq_len is 2 length", unit = "tokens" },
  },
  returns = "task; its vocab is symbols + 1",
  example = [[
    local batch = lab.task.induction { symbols = 6, length = 4 }:batch { n = 1 }
    print(batch.x, batch.y)]],
}, function(o)
  local n = o.length
  if n > o.symbols then
    check.fail("lab.task.induction: option 'length' is %d; there are only %d symbols", n,
      o.symbols)
  end
  local function sample(t, B)
    local string = rank(t:uniform(0, 1, { B, o.symbols })):narrow(2, 1, n) + 1
    local bos = core.zeros({ B, 1 }, string.dtype)
    local x = core.concat({ bos, string, string:narrow(2, 1, n - 1) }, 2)
    local y = core.concat({ core.zeros({ B, n + 1 }, string.dtype) - 100,
      string:narrow(2, 2, n - 1) }, 2)
    return { x = x, y = y }
  end
  return base.new { name = "induction", sample = sample, seq_len = 2 * n,
    vocab = o.symbols + 1 }
end)

context.regression = schema.func("lab.task.regression", {
  doc = [[Linear regression in context.

    BOS, then seq_len - 2 examples of inputs and their label, then a question without a
    label. Inputs and the weights of the map, drawn for every sequence, are uniform in
    (-1, 1); a label is the weighted sum over sqrt (inputs). The target is the label at
    the question, the last token, and 0 everywhere else. Coordinates: BOS, question,
    inputs, label, and one that is 1 at examples.]],
  options = {
    { "inputs", "integer", default = 4, min = 1, max = 1 << 20,
      doc = "of an example; d_model is inputs + 4" },
    seq_len,
    residual,
  },
  returns = "task; its batches have trigger, the position of the question",
  example = "print(lab.task.regression { inputs = 2, seq_len = 6 }:batch { n = 1 }.x)",
}, function(o)
  local L, k = o.seq_len, o.inputs
  -- Row 1 of content, BOS's, holds the weights.
  local function draw(t, B) return { content = t:uniform(-1, 1, { B, L, k }) } end
  local function build(s)
    local B, dtype = s.content.shape[1], s.content.dtype
    local position = core.arange(L, dtype)
    local function mark(i)
      return core.eq(position, i):reshape { 1, L, 1 }:broadcast { B, L, 1 }
    end
    local bos, at = mark(0), mark(L - 1)
    local word = 1 - bos
    local inputs = s.content * word
    local label = core.sum(inputs * s.content:narrow(2, 1, 1), 3, { keep = true })
        / math.sqrt(k)
    local x = core.concat({ bos, at, inputs, label * (1 - at), word - at }, 3)
    local y = core.concat({ core.zeros({ B, L, 2 + k }, dtype), label * at,
      core.zeros({ B, L, 1 }, dtype) }, 3)
    if o.residual then y = y + x end
    return { x = x, y = y, trigger = core.zeros({ B }, dtype) + (L - 1) }
  end
  return base.new { name = "regression", domain = { draw = draw, build = build },
    seq_len = L, d_model = k + 4 }
end)

return context
