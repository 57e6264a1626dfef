--- test_lm_sinks.lua - sinks of language models, losses, and what changes do to them.
local lab = require "sinklab"
local check = require "check"
local process = require "process"
local models = arg[0]:match "^(.*)/lua/[^/]*$" .. "/models/"

local sinker = assert(lab.lm.open(models .. "llm/bb_sink_1L1H-f32.gguf"))
local stories = assert(lab.lm.open(models .. "llm/stories260K-q8_0.gguf"))
local tiny = assert(lab.lm.open(models .. "arch/llama_gqa/model.gguf"))

--- n lists of token ids from a counter: any of a vocabulary from `low` on.
local function some(n, tokens, low, vocab, first)
  local list, x = {}, 12345
  for i = 1, n do
    list[i] = { first }
    while #list[i] < tokens do
      x = (x * 1103515245 + 12345) % 2147483648
      list[i][#list[i] + 1] = low + x // 65536 % (vocab - low)
    end
  end
  return list
end

check.test("the one-layer model sinks with its first token and not without", function()
  local ids = lab.load_npy(models .. "reference/bb_sink_1L1H_A.ids.npy"):totable()
  check.equal(lab.lm.sinks(sinker, ids):sink_k(1), 100.0, "its own text")
  local with = lab.lm.sinks(sinker, some(20, 64, 3, 68, 1), { batch = 4 })
  local without = lab.lm.sinks(sinker, some(20, 64, 3, 68), { batch = 4 })
  check.at_least(with:sink_k(1), 97, "with: " .. with:sink_k(1))
  check.equal(without:sink_k(1), 0.0, "without")
end)

check.test("stories260K does not sink on its own stories", function()
  -- The likeliest token, always, from two beginnings.
  local list = {
    {
      1, 403, 407, 261, 378, 432, 383, 286, 261, 376, 298, 315, 421, 395, 317, 426,
      338, 401, 396, 267, 337, 410, 408, 419, 292, 411, 322, 265, 282, 295, 433, 426,
      385, 328, 432, 358, 394, 261, 370, 432, 352, 266, 268, 388, 426, 338, 391, 266,
      267, 337, 335, 312, 432, 398, 312, 286, 267, 414, 270, 333, 415, 426, 13, 438 },
    {
      1, 385, 328, 432, 261, 376, 298, 315, 421, 395, 317, 263, 377, 267, 265, 282,
      295, 433, 335, 311, 357, 426, 338, 394, 261, 370, 268, 414, 444, 335, 261, 370,
      268, 414, 444, 426, 338, 391, 266, 267, 337, 335, 312, 432, 398, 312, 286, 267,
      414, 270, 333, 415, 426, 338, 261, 419, 355, 311, 357, 432, 313, 457, 303, 359 },
  }
  check.equal(lab.lm.sinks(stories, list, { batch = 2 }):sink_k(1), 0.0)
end)

--- Every number of two lists of heads.
local function same_heads(a, b, tolerance)
  for i, head in ipairs(a) do
    for key, value in pairs(head) do
      if type(value) == "number" and value == value then
        check.close(b[i][key], value, tolerance, tolerance, "head " .. i .. " " .. key)
      end
    end
  end
end

local lengths = { { 1, 9, 30, 7, 61, 4 }, { 1, 5 }, { 2, 44, 3, 3, 70, 12, 13, 8 },
  { 17 } }

check.test("batch size and padding change nothing", function()
  local o = { measures = "all" }
  local alone = lab.lm.sinks(tiny, lengths, o)
  for _, batch in ipairs { 2, 3, 4 } do
    for _, padding in ipairs { "right", "left" } do
      local other = lab.lm.sinks(tiny, lengths, { measures = "all", batch = batch,
        padding = padding })
      same_heads(alone.heads, other.heads, 2e-6)
      check.close(other.loss, alone.loss, 1e-6, 0, "loss")
      check.equal(other.predicted, alone.predicted)
    end
  end
end)

check.test("packed documents are as each by itself", function()
  for _, name in ipairs { "arch/llama_gqa/model.gguf", "arch/gpt2/hf",
    "arch/gpt_oss/model.gguf", "arch/bloom/hf" } do
    local model = assert(lab.lm.open(models .. name))
    local ids, begins = {}, {}
    for _, one in ipairs(lengths) do
      begins[#begins + 1] = #ids + 1
      table.move(one, 1, #one, #ids + 1, ids)
    end
    local packed = lab.lm.sinks(model, { { ids = ids, documents = begins } })
    local apart = lab.lm.sinks(model, lengths)
    for i, head in ipairs(apart.heads) do
      local other = packed.heads[i]
      for _, key in ipairs { "first_mean", "rate", "entropy", "contribution" } do
        check.close(other[key], head[key], 3e-6, 3e-6, name .. " " .. key)
      end
      check.equal(other.segments, #lengths)
    end
    check.close(packed.loss, apart.loss, 2e-6, 0, name .. " loss")
    check.equal(packed.predicted, apart.predicted)
  end
end)

check.test("packed documents need no more learned positions than the longest", function()
  local model = assert(lab.lm.open(models .. "arch/gpt2/hf")) -- 128 positions
  local ids, begins = {}, {}
  for d = 1, 3 do
    begins[d] = #ids + 1
    table.move(some(1, 60, 3, 80, d)[1], 1, 60, #ids + 1, ids)
  end
  check.equal(lab.lm.sinks(model, { { ids = ids, documents = begins } }).predicted, 177)
  check.raises("180 tokens are too many", lab.lm.sinks, model, { ids })
end)

check.test("loss is what logits say", function()
  local ids = lengths[3]
  local logs = tiny:logits(ids):log_softmax(3):totable()[1]
  local sum = 0
  for i = 1, #ids - 1 do sum = sum - logs[i][ids[i + 1] + 1] end
  local found = lab.lm.sinks(tiny, { ids })
  check.close(found.loss, sum / (#ids - 1), 1e-6, 1e-6)
  check.equal(found.predicted, #ids - 1)
  check.close(found.losses[1][2], -logs[1][ids[2] + 1], 1e-6, 1e-6)
end)

check.test("norms of what values add to the residual stream", function()
  local attention = require "sinklab.layers.attention"
  local ids, c = some(1, 40, 3, 80, 1)[1], tiny.config -- more than twice a head's width
  local found = lab.lm.sinks(tiny, { ids }, { measures = "norms" })
  local input
  tiny:forward(ids, { layer = function(layer, h) input = layer == 0 and h or input end })
  local part = tiny.layers[1]
  local x = input:rms_norm(part.attn_norm.gamma, { eps = c.norm_eps })
  local v = attention.inputs(c, tiny.blocks[1], x, {}).v
  local w = part.o.weight:tensor "f64"
  for head = 1, c.heads do
    local group = (head - 1) // (c.heads // c.kv_heads)
    local value = v:narrow(3, group * c.d_head + 1, c.d_head):select(1, 1):to "f64"
    local added = value:linear(w:narrow(2, (head - 1) * c.d_head + 1, c.d_head))
    local want = added:square():sum(2):sqrt():totable()
    check.close(found.output_norms:select(1, 1):select(1, head):totable(), want, 1e-6,
      1e-6, "head " .. head)
  end
end)

check.test("chosen heads in full", function()
  local ids = lengths[3]
  local all = lab.lm.sinks(tiny, { ids }, { maps = true }).mean
  local kept = lab.lm.sinks(tiny, { ids }, { keep = { { 2, 3 }, { 1, 1 } } }).kept
  check.equal((kept[1].mean - all:select(1, 2):select(1, 3)):abs():max():item(), 0.0)
  local one = tiny:attention { ids = ids, layer = 1, head = 1 }
  check.equal((one - all:select(1, 1):select(1, 1)):abs():max():item(), 0.0)
end)

check.test("classes of rows", function()
  local ids = lengths[3]
  local found = lab.lm.sinks(tiny, { ids }, { groups = { { -1, 0, 1, 0, 1, 0, 1, 1 } } })
  local map = tiny:attention { ids = ids, layer = 2, head = 4 }:totable()
  local group = found.heads[8].groups
  check.close(group[1].first, (map[2][1] + map[4][1] + map[6][1]) / 3, 1e-6, 0, "0")
  check.close(group[2].first, (map[3][1] + map[5][1] + map[7][1] + map[8][1]) / 4, 1e-6,
    0, "1")
end)

-- In a process of its own: VmHWM is the highest memory of a process in its life, so
-- an earlier test could hide the growth.
check.test("memory does not grow with the square of the length", function()
  if not io.open "/proc/self/status" then
    print "skipped: memory of a process: there is no /proc here"
    return
  end
  local script = process.write(process.folder "lm_memory" .. "/memory.lua", [[
    local lab = require "sinklab"
    local function peak()
      local file <close> = assert(io.open "/proc/self/status")
      return tonumber(file:read "a":match "VmHWM:%s*(%d+)") / 1024
    end
    local model = lab.lm.random { layers = 1, d_model = 8, heads = 2, vocab = 32 }
    local ids = {}
    for i = 1, 8192 do ids[i] = i * i % 31 end
    local before = peak()
    local found = lab.lm.sinks(model, { ids }, { loss = false })
    print(found.tokens, peak() - before)]])
  local r = process.run { "run", script }
  check.equal(r.code, 0, r.err)
  local tokens, grown = r.out:match "(%d+)%s+(%S+)"
  check.equal(tokens, "8192")
  -- In MB; 268 in f32 if one head's weights were held.
  check.below(tonumber(grown), 64)
end)

-- Changes.

local function map_of(model, ids, layer, head)
  return model:attention { ids = ids, layer = layer, head = head }
end

check.test("dropping the first token is a text without it", function()
  local ids = lengths[3]
  local shorter = table.move(ids, 2, #ids, 1, {})
  local effects = lab.lm.intervene(tiny, { ids }, { { drop_first = true } })
  local alone = lab.lm.sinks(tiny, { shorter })
  same_heads(alone.heads, effects[1].sinks.heads, 0)
  -- The prediction of token 2 is gone; the others compare.
  check.equal(effects[1].predicted, #ids - 2)
  check.close(effects[1].loss, alone.loss, 1e-6, 0)
  local rest = 0
  for number = 3, #ids do rest = rest + effects.before.losses[1][number] end
  check.close(effects[1].loss_before, rest / (#ids - 2), 1e-6, 0)
end)

check.test("moving the first token", function()
  local effects = lab.lm.intervene(tiny, { { 1, 2, 3, 4, 5 } }, { { move_first = 3 } })
  local alone = lab.lm.sinks(tiny, { { 2, 3, 1, 4, 5 } })
  same_heads(alone.heads, effects[1].sinks.heads, 0)
  check.equal(effects[1].predicted, 3) -- of 3, 4, 5: nobody else is predicted by both
  check.close(effects[1].loss, (alone.losses[1][2] + alone.losses[1][4]
    + alone.losses[1][5]) / 3, 1e-6, 0)
end)

check.test("a masked key is seen by nobody, the others stay where they are", function()
  local ids, masked = lengths[3], { 3, 6 }
  local effects = lab.lm.intervene(tiny, { ids }, { { mask = masked, heads = "all" } },
    { maps = true })
  -- Layer 1's scores do not change: its weights are those of the whole text, with the
  -- masked columns left out and the rest of each row scaled back to a sum of 1.
  local keep = { 1, 2, 4, 5, 7, 8 }
  for head = 1, 4 do
    local whole, part = map_of(tiny, ids, 1, head):totable(),
      effects[1].sinks.mean:select(1, 1):select(1, head):totable()
    for i, q in ipairs(keep) do
      local sum = 0
      for j = 1, i do sum = sum + whole[q][keep[j]] end
      for j = 1, i do
        check.close(part[i][j], whole[q][keep[j]] / sum, 3e-6, 0, ("row %d"):format(q))
      end
    end
  end
  check.equal(effects[1].predicted, #keep - 1)
end)

check.test("masking the first key changes the sink, not the positions", function()
  local effects = lab.lm.intervene(sinker, some(3, 32, 3, 68, 1), {
    { mask = 1, heads = "all" }, { name = "only a name", zero = true } })
  check.below(effects[1].sinks:sink_k(1), 50)
  check.equal(effects[1].loss_change ~= 0, true)
  check.equal(effects[2].heads[1].first_mean, 0.0) -- weights are as before
  check.contains(tostring(effects), "mask 1 in all")
  check.contains(tostring(effects), "only a name")
end)

check.test("a change of mechanism shows in loss and sinks", function()
  local effects = lab.lm.intervene(sinker, some(3, 32, 3, 68, 1), {
    { mechanism = "softmax1" }, { mechanism = { "sinklogit", init = 20 } } })
  check.below(effects[1].heads[1].row_mass, 0, "softmax1 leaves mass")
  check.close(effects[2].sinks.heads[1].row_mass, 0, 1e-3, 0, "a large logit takes all")
end)

check.test("the dense changes of lab.intervene", function()
  local ids = lengths[3]
  -- A key masked in all heads densely, and as a token left out, are the same.
  local every = {}
  for layer = 1, 2 do for head = 1, 4 do every[#every + 1] = { layer, head } end end
  local all = tiny:with { mask = { 1, 2 }, heads = every }:logits(ids)
  local left = tiny:logits({ table.move(ids, 3, 8, 1, {}) }, {
    positions = { { 2, 3, 4, 5, 6, 7 } } })
  check.close((all:narrow(2, 3, 6) - left):abs():max():item(), 0, 2e-5, 0)
  local listed = lab.lm.intervene(tiny, { ids }, { { mask = { 1, 2 }, heads = every } })
  check.equal(listed[1].sinks, nil)
  -- Weight taken from a position, or its value set to 0, in one head.
  local off = tiny:with { remove = 1, heads = { { 1, 2 } } }:logits(ids)
  local value = tiny:with { value = { position = 1, to = 0 }, heads = { { 1, 2 } } }
  check.close((off - value:logits(ids)):abs():max():item(), 0, 1e-5, 0)
  local each = lab.lm.intervene(tiny, { ids }, { { off = 1 } })
  check.equal(#each, 8)
  check.equal({ each[6].layer, each[6].head, each[6].name }, { 2, 2, "off 1 in 2:2" })
end)

check.test("changes that do not fit are refused", function()
  local ids = lengths[3]
  local function refused(words, change, model)
    check.raises(words, lab.lm.intervene, model or tiny, { ids }, { change })
  end
  refused("change 1 changes nothing", {})
  refused("no such option 'drop_frist' (did you mean 'drop_first'?)",
    { drop_frist = true })
  refused("the first token cannot move to position 9 of 8", { move_first = 9 })
  refused("no token is left", { mask = { 1, 2, 3, 4, 5, 6, 7, 8 }, heads = "all" })
  refused("mask is position 9; there are 1 to 8", { mask = 9, heads = "all" })
  refused("off and zero; give one change at a time", { zero = true, off = 1 })
  refused("drop_first is of all heads", { drop_first = true, heads = "all" })
  refused("layers are those of a mechanism", { zero = true, layers = { 1 } })
  check.raises("the changes must be a list of changes", lab.lm.intervene, tiny,
    { ids }, { drop_first = true })
  check.raises("sequences of one document", lab.lm.intervene, tiny,
    { { ids = ids, documents = { 1, 4 } } }, { { drop_first = true } })
  check.raises("sequence 2 is empty", lab.lm.sinks, tiny, { ids, {} })
end)

check.done()
