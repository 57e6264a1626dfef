--- text.lua - tasks of token ids with a known law: Bigram-Backcopy (Guo et al. 2024)
-- over the letters of a text, and independent tokens.
local core = require "sinklab.core"
local check = require "sinklab.base.check"
local schema = require "sinklab.base.schema"
local join = require "sinklab.base.tensors".join
local base = require "sinklab.task.base"

local text_tasks = {}

--- The letters of a text in the order of their bytes, and how often each, and each pair
-- of neighbours, occurs: { letters, unigram = { count }, bigram = { { count } } }.
local function count(text)
  local seen, letters, id = {}, {}, {}
  for byte in text:gmatch "." do seen[byte] = true end
  for byte in pairs(seen) do letters[#letters + 1] = byte end
  table.sort(letters)
  local n = #letters
  local unigram, bigram = {}, {}
  for i, letter in ipairs(letters) do
    id[letter:byte()], unigram[i], bigram[i] = i, 0, {}
    for j = 1, n do bigram[i][j] = 0 end
  end
  local before
  for at = 1, #text do
    local i = id[text:byte(at)]
    unigram[i] = unigram[i] + 1
    if before then bigram[before][i] = bigram[before][i] + 1 end
    before = i
  end
  return { letters = letters, unigram = unigram, bigram = bigram }
end

--- Counts as probabilities; a row of zeros (the text's last letter) takes `otherwise`.
local function normalised(counts, otherwise)
  local sum, out = 0, {}
  for _, c in ipairs(counts) do sum = sum + c end
  if sum == 0 then return otherwise end
  for i, c in ipairs(counts) do out[i] = c / sum end
  return out
end

--- The law of the next token, given the current one: rows of probabilities over letters,
-- BOS tokens and the delimiter.
local function law(counts, bos, delimiter)
  local n = #counts.letters
  local unigram, rows = normalised(counts.unigram), {}
  local size = n + bos + (delimiter > 0 and 1 or 0)
  local function row(p, share)
    local out = {}
    for i = 1, size do out[i] = i <= n and p[i] * (1 - share) or 0 end
    if share > 0 then out[size] = share end
    return out
  end
  for i = 1, n do rows[i] = row(normalised(counts.bigram[i], unigram), delimiter) end
  for i = n + 1, size do rows[i] = row(unigram, 0) end
  return rows, row(unigram, 0)
end

--- Running sums of probabilities; the last possible letter has exactly 1.
local function cumulative(p)
  local out, sum, last = {}, 0, 0
  for i, q in ipairs(p) do
    if q > 0 then last = i end
  end
  for i, q in ipairs(p) do
    sum = sum + q
    out[i] = i >= last and 1 or sum
  end
  return out
end

--- Ids, from 0, of the k most frequent letters; among equals the first.
local function most_frequent(unigram, k)
  local order, out = {}, {}
  for i = 1, #unigram do order[i] = i end
  table.sort(order, function(a, b)
    if unigram[a] ~= unigram[b] then return unigram[a] > unigram[b] end
    return a < b
  end)
  for i = 1, k do out[i] = order[i] - 1 end
  return out
end

--- The next token by each variant. `s`: current and previous token (B), draw, which
-- gives the next one by a row of the law (named or of a token), is_trigger, and more.
local variants = {}

function variants.bbm(s)
  return core.where(s.is_trigger(s.current), s.previous, s.draw(s.current))
end

function variants.markov(s) return s.draw(s.current) end

function variants.dormant_markov(s)
  return s.draw(core.where(s.is_trigger(s.current), s.previous, s.current))
end

function variants.interpolate(s)
  local copies = s.is_trigger(s.current) * core.lt(s.mix, s.p)
  return core.where(copies, s.previous, s.draw(s.current))
end

--- Once a token is there again it stays.
function variants.icl(s)
  local one_hot = core.one_hot(s.current, s.vocab)
  local known = s.seen and core.sum(s.seen * one_hot, 2)
  local fresh = s.draw_unigram()
  local next_one = known and core.where(known, s.current, fresh) or fresh
  s.seen = s.seen and core.maximum(s.seen, one_hot) or one_hot
  return next_one
end

--- -log of the probability of each target of a batch (B, seq_len), in f64: the same law
-- again, one token at a time.
local function oracle(law_of, batch)
  local out, ys = {}, batch.y:totable()
  for b, x in ipairs(batch.x:totable()) do
    local seen = {}
    out[b] = {}
    for i, token in ipairs(x) do
      local p = law_of(token // 1 + 1, x[i - 1] and x[i - 1] // 1 + 1, seen)
      out[b][i] = -math.log(p[ys[b][i] // 1 + 1])
      seen[token // 1 + 1] = true
    end
  end
  return core.tensor(out, "f64")
end

local variant_names = { "bbm", "markov", "dormant_markov", "interpolate", "icl" }

local function read_text(what, path)
  local file <close>, message = io.open(path, "rb")
  local text = file and file:read "a"
  if not text then check.fail("%s: %s", what, message or path .. ": cannot be read") end
  if #text < 2 then
    check.fail("%s: %s holds %d bytes; it must hold text", what, path, #text)
  end
  return text
end

--- The chain of a task: { letters, n = how many, vocab, rows = the law, unigram, ids =
-- of triggers, flags (vocab, 1) = 1 at them, begins = whether a sequence begins with a
-- letter that is no trigger, start = the law of that letter }, with the options.
local function chain_of(what, o)
  local counts = count(read_text(what, o.path))
  local n = #counts.letters
  if o.triggers >= n then
    check.fail("%s: option 'triggers' is %d; the text has %d letters, "
      .. "one of which must be none", what, o.triggers, n)
  end
  local rows, unigram = law(counts, o.bos, o.delimiter)
  local ids, flags, calm = most_frequent(counts.unigram, o.triggers), {}, {}
  -- The others are chains from BOS on, without triggers.
  local begins = o.variant ~= "markov" and o.variant ~= "icl"
  for i = 1, #rows do flags[i], calm[i] = { 0 }, unigram[i] end
  if begins then
    for _, id in ipairs(ids) do flags[id + 1], calm[id + 1] = { 1 }, 0 end
  end
  return { letters = counts.letters, n = n, vocab = #rows, rows = rows, ids = ids,
    unigram = unigram, flags = flags, begins = begins, bos = o.bos, variant = o.variant,
    mix = o.mix, start = o.variant == "dormant_markov" and unigram or normalised(calm) }
end

--- The sampler of sequences of L tokens.
local function sampler_of(chain, L)
  local n, variant = chain.n, chain.variant
  local sums, unigram_sums = {}, { cumulative(chain.unigram) }
  for i, row in ipairs(chain.rows) do sums[i] = cumulative(row) end
  return function(t, B)
    local dtype = t:full({ 1 }, 0).dtype
    local table_of = core.tensor(sums, dtype)
    local flag = core.tensor(chain.flags, dtype)
    local u, mixed = t:uniform(0, 1, { B, L + 1 }), nil
    if variant == "interpolate" then mixed = t:uniform(0, 1, { B, L + 1 }) end
    local tokens = {}
    --- The next token: how many running sums of its row are at most a uniform number.
    local function by(row)
      local at = u:narrow(2, #tokens + 1, 1)
      return core.sum(core.ge(at, row), 2)
    end
    local s = { vocab = chain.vocab, p = chain.mix,
      is_trigger = function(x) return core.embedding(flag, x):reshape { B } end,
      draw = function(x) return by(core.embedding(table_of, x)) end,
      draw_unigram = function() return by(core.tensor(unigram_sums, dtype)) end }
    for i = 1, chain.bos do tokens[i] = t:full({ B }, n + i - 1) end
    if chain.begins or chain.bos == 0 then
      tokens[#tokens + 1] = by(core.tensor({ cumulative(chain.start) }, dtype))
    end
    while #tokens <= L do
      s.current, s.previous = tokens[#tokens], tokens[#tokens - 1]
      if mixed then s.mix = mixed:select(2, #tokens + 1) end
      -- A lone first letter has nothing before it.
      tokens[#tokens + 1] = s.previous and variants[variant](s)
          or (variant == "icl" and variants.icl or variants.markov)(s)
    end
    for i, token in ipairs(tokens) do tokens[i] = token:reshape { B, 1 } end
    local all = join(tokens, 2)
    local x, y = all:narrow(2, 1, L), all:narrow(2, 2, L)
    return { x = x, y = y, is_trigger = core.embedding(flag, x):reshape { B, L } }
  end
end

--- The law of a chain: function (token, the one before, those seen), ids from 1, ->
-- probabilities of the next token.
local function law_of(chain)
  local n, vocab, rows, mix = chain.n, chain.vocab, chain.rows, chain.mix
  local function sure(i)
    local p = {}
    for k = 1, vocab do p[k] = k == i and 1 or 0 end
    return p
  end
  return function(token, before, seen)
    if token > n and token < n + chain.bos then return sure(token + 1) end
    if token > n and token == n + chain.bos then
      return chain.begins and chain.start or chain.unigram
    end
    if chain.variant == "icl" then return seen[token] and sure(token) or chain.unigram end
    if chain.flags[token][1] == 0 or not before then return rows[token] end
    if chain.variant == "bbm" then return sure(before) end
    if chain.variant == "dormant_markov" then return rows[before] end
    local p = {}
    for k = 1, vocab do
      p[k] = (1 - mix) * rows[token][k] + (k == before and mix or 0)
    end
    return p
  end
end

text_tasks.backcopy = schema.func("lab.task.backcopy", {
  doc = [[Bigram-Backcopy: bigrams of a text, and copies after triggers.

    BOS, then one letter from the text's unigram without triggers, then: after a trigger
    (one of the most frequent letters) the token before it, after any other letter one
    from the text's bigram. All next tokens are asked. Ids: letters by their byte from
    0, BOS tokens, the delimiter.]],
  options = {
    { "triggers", "integer", default = 3, min = 0, max = 1 << 16,
      doc = "how many letters, the most frequent, are triggers" },
    { "seq_len", "integer", default = 256, min = 2, max = 1 << 24, unit = "tokens",
      doc = "of a sequence" },
    { "variant", "string", default = "bbm", choices = variant_names, doc = [["bbm": as
      above; "markov": bigrams only, nothing to attend to; "dormant_markov": after a
      trigger, the bigram of the token before it; "interpolate": after a trigger, the
      token before it with probability mix, else the bigram; "icl": letters from the
      unigram until one occurs again, which then repeats]] },
    { "mix", "number", default = 0.5, min = 0, max = 1,
      doc = [[probability of a copy, of "interpolate"]] },
    { "bos", "integer", default = 1, min = 0, max = 2,
      doc = "how many BOS tokens a sequence begins with" },
    { "delimiter", "number", default = 0, min = 0, max = 0.5, doc = [[probability that a
      letter is followed by the delimiter, and that by a letter of the unigram]] },
    { "path", "string", default = core.scripts .. "/data/shakespeare.txt",
      default_doc = "40 kB of Shakespeare that come with sinklab", doc = "of the text" },
  },
  returns = [[task, with trigger_ids (from 0), letters (list: id + 1 -> letter), bos_id,
    and oracle (batch) -> (B, seq_len), -log of each target's probability; its batches
    have is_trigger (B, seq_len), 1 where the token is a trigger]],
  errors = "a text that cannot be read",
  source = "Guo et al. 2024, arXiv 2410.13835, and its released code",
  example = [[
    local task = lab.task.backcopy { seq_len = 16 }
    print(task:batch { n = 1 }.x)]],
}, function(o)
  local what = "lab.task.backcopy"
  local chain = chain_of(what, o)
  local follows = law_of(chain)
  local task = base.new { name = "backcopy", sample = sampler_of(chain, o.seq_len),
    seq_len = o.seq_len, vocab = chain.vocab,
    oracle = function(batch) return oracle(follows, batch) end }
  task.trigger_ids, task.letters = chain.ids, chain.letters
  task.bos_id = o.bos > 0 and chain.n or nil
  return task
end)

text_tasks.unigram = schema.func("lab.task.unigram", {
  doc = [[Independent tokens after a BOS token. The negative control: there is nothing to
    attend to.]],
  options = {
    { "symbols", "integer", default = 100, min = 2, max = 1 << 16,
      doc = "id 0 is BOS, 1..symbols are drawn" },
    { "exponent", "number", default = 1, min = 0,
      doc = "of Zipf's law: symbol i has probability proportional to i^-exponent" },
    { "seq_len", "integer", default = 64, min = 1, max = 1 << 24, unit = "tokens",
      doc = "of a sequence" },
  },
  returns = [[task, with entropy (nats), the least mean loss, and oracle as
    lab.task.backcopy]],
  example = "print(lab.task.unigram { symbols = 5, seq_len = 8 }:batch { n = 1 }.x)",
}, function(o)
  local weights, L = {}, o.seq_len
  for i = 1, o.symbols do weights[i] = i ^ -o.exponent end
  local p, entropy = normalised(weights), 0
  for _, q in ipairs(p) do entropy = entropy - q * math.log(q) end
  local function sample(t, B)
    local drawn = t:categorical(p, { B, L }) + 1
    local x = core.concat({ t:full({ B, 1 }, 0), drawn:narrow(2, 1, L - 1) }, 2)
    return { x = x, y = drawn }
  end
  local task = base.new { name = "unigram", sample = sample, seq_len = L,
    vocab = o.symbols + 1, oracle = function(batch)
      return oracle(function() return table.move(p, 1, #p, 2, { 0 }) end, batch)
    end }
  task.entropy = entropy
  return task
end)

return text_tasks
