--- test_lm_tokenizer.lua - text to ids and back against llama.cpp's ids, in every form.
local check = require "check"
local lab = require "sinklab"
local scratch = os.getenv "SINKLAB_TEST_SCRATCH"
local folder = arg[0]:match "^(.*)/lua/[^/]*$" .. "/models/tokenizers/ggml-vocab-"

local function read(path)
  local file <close> = assert(io.open(path, "rb"))
  return file:read "a"
end

local function write(name, text)
  local file <close> = assert(io.open(scratch .. "/" .. name, "wb"))
  file:write(text)
end

--- The texts of a vocabulary, each with its ids; behind the last mark is nothing.
local function cases_of(name)
  local texts, cases, at = read(folder .. name .. ".gguf.inp"), {}, 1
  local mark = "\n__ggml_vocab_test__\n"
  for line in (read(folder .. name .. ".gguf.out") .. "\n"):gmatch "([^\n]*)\n" do
    local from, to = texts:find(mark, at, true)
    if not from and at > #texts then break end
    local ids = {}
    for id in line:gmatch "%d+" do ids[#ids + 1] = math.tointeger(id) end
    cases[#cases + 1] = { text = texts:sub(at, (from or #texts + 1) - 1), ids = ids }
    at = (to or #texts) + 1
  end
  check.equal(#cases, 46)
  return cases
end

--- The tokenizer gives every case its ids, and the text back. `number`: the ids by
-- those of the file, if they are others. `metaspace`: it puts no mark before a text that
-- has a space there, which llama.cpp does.
local function agrees(tokenizer, name, number, metaspace)
  for i, case in ipairs(cases_of(name)) do
    if metaspace and case.text:find "^ " then goto continue end
    local ids = assert(tokenizer:encode(case.text, { bos = "none" }))
    for k, id in ipairs(number and case.ids or {}) do case.ids[k] = number[id] end
    check.equal(table.concat(ids, " "), table.concat(case.ids, " "),
      ("%s, case %d, %q"):format(name, i, case.text))
    check.equal(tokenizer:decode(ids), case.text)
    ::continue::
  end
end

--- A folder with a tokenizer.json (and weights, which make it a model).
local function in_folder(root, others)
  assert(lab.save_safetensors(scratch .. "/model.safetensors", { w = lab.ones { 1 } }))
  for _, name in ipairs { "tokenizer.json", "vocab.json", "merges.txt",
    "tokenizer_config.json", "config.json" } do
    os.remove(scratch .. "/" .. name)
  end
  if type(root) == "table" then root = lab.json.encode(root) end
  if root then write("tokenizer.json", root) end
  for name, text in pairs(others or {}) do write(name, text) end
  return lab.lm.tokenizer(scratch)
end

local gpt2 = assert(lab.lm.file(folder .. "gpt-2.gguf")).metadata
local llama = assert(lab.lm.file(folder .. "llama-spm.gguf")).metadata

local function vocabulary(tokens)
  local ids = {}
  for i, token in ipairs(tokens) do ids[token] = ids[token] or i - 1 end
  return ids
end

-- As JSON once: the texts are megabytes.
local gpt2_vocab = lab.json.encode(vocabulary(gpt2["tokenizer.ggml.tokens"]))
local gpt2_merges = lab.json.encode(gpt2["tokenizer.ggml.merges"])

check.test("GGUF vocabularies", function()
  local t = assert(lab.lm.tokenizer(folder .. "gpt-2.gguf"))
  check.equal({ t.kind, t.pre, t.size, t.bos, t.add_bos },
    { "BPE", "gpt-2", 50257, 50256 })
  agrees(t, "gpt-2")
  t = assert(lab.lm.tokenizer(folder .. "llama-spm.gguf"))
  check.equal({ t.kind, t.size, t.bos, t.eos, t.unknown, t.add_bos, t.said_bos },
    { "SentencePiece", 32000, 1, 2, 0, true, true })
  agrees(t, "llama-spm")
end)

check.test("tokenizer.json, byte-level", function()
  local function root(pre, post)
    return ([[{ "added_tokens": [
      { "id": 50256, "content": "<|endoftext|>", "special": true }],
      "pre_tokenizer": %s, "post_processor": %s,
      "model": { "type": "BPE", "vocab": %s, "merges": %s } }]]):format(
      lab.json.encode(pre), lab.json.encode(post), gpt2_vocab, gpt2_merges)
  end
  local bytes = { type = "ByteLevel", add_prefix_space = false, use_regex = true }
  local t = assert(in_folder(root(bytes, bytes),
    { ["config.json"] = '{"bos_token_id": 50256}' }))
  check.equal({ t.bos, t.add_bos }, { 50256 })
  agrees(t, "gpt-2")
  -- the same pieces by a Split, and a template with a beginning
  bytes.use_regex = false
  local words = { type = "Split", behavior = "Isolated", invert = false,
    pattern = { Regex =
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)" } }
  t = assert(in_folder(root({ type = "Sequence", pretokenizers = { words, bytes } },
    { type = "TemplateProcessing", single = {
      { SpecialToken = { id = "<|endoftext|>", type_id = 0 } },
      { Sequence = { id = "A", type_id = 0 } } } })))
  check.equal({ t.bos, t.add_bos, t.said_bos }, { 50256, true, true })
  agrees(t, "gpt-2")
  check.equal(t:encode "Hello"[1], 50256)
end)

check.test("vocab.json and merges.txt", function()
  local t = assert(in_folder(nil, {
    ["vocab.json"] = gpt2_vocab,
    ["merges.txt"] = "#version: 0.2\n" ..
      table.concat(gpt2["tokenizer.ggml.merges"], "\n") .. "\n",
    ["tokenizer_config.json"] = '{"bos_token": {"content": "<|endoftext|>"}, ' ..
      '"add_bos_token": true}',
  }))
  check.equal({ t.bos, t.add_bos, t.said_bos }, { 50256, true, true })
  check.contains(t.note, "GPT-2's is taken")
  agrees(t, "gpt-2")
end)

check.test("tokenizer.json with bytes to fall back on", function()
  -- Only tokens that the texts have can matter: the others are left out, for speed.
  local texts = {}
  for i, case in ipairs(cases_of "llama-spm") do
    texts[i] = "\u{2581}" .. case.text:gsub(" ", "\u{2581}")
  end
  texts = table.concat(texts, "\0")
  local all, kinds = llama["tokenizer.ggml.tokens"], llama["tokenizer.ggml.token_type"]
  local scores, tokens, score, number = llama["tokenizer.ggml.scores"], {}, {}, {}
  for i, token in ipairs(all) do
    if kinds[i] ~= 1 or texts:find(token, 1, true) then
      number[i - 1] = #tokens
      tokens[#tokens + 1] = token
      score[token] = scores[i]
    end
  end
  local ids, found, merges = vocabulary(tokens), {}, {}
  -- merges as transformers derives them: two tokens that make a third, the best score
  -- first
  for i, token in ipairs(tokens) do
    for at = 2, i > 259 and #token or 0 do
      local left, right = token:sub(1, at - 1), token:sub(at)
      if ids[left] and ids[right] then
        found[#found + 1] = { left, right, score[token], ids[left] }
      end
    end
  end
  table.sort(found, function(a, b)
    if a[3] ~= b[3] then return a[3] > b[3] end
    if a[4] ~= b[4] then return a[4] < b[4] end
    return ids[a[2]] < ids[b[2]]
  end)
  for i, merge in ipairs(found) do merges[i] = merge[1] .. " " .. merge[2] end
  local root = {
    added_tokens = {},
    normalizer = { type = "Sequence", normalizers = {
      { type = "Prepend", prepend = "▁" },
      { type = "Replace", pattern = { String = " " }, content = "▁" } } },
    model = { type = "BPE", vocab = ids, merges = merges, byte_fallback = true,
      fuse_unk = true, unk_token = "<unk>" },
    post_processor = { type = "TemplateProcessing", single = {
      { SpecialToken = { id = "<s>", type_id = 0 } },
      { Sequence = { id = "A", type_id = 0 } } } },
  }
  for i, token in ipairs { "<unk>", "<s>", "</s>" } do
    root.added_tokens[i] = { id = i - 1, content = token, special = true }
  end
  local t = assert(in_folder(root))
  check.equal({ t.bos, t.add_bos, t.unknown }, { 1, true, 0 })
  agrees(t, "llama-spm", number)
  -- the same as a pre-tokenizer, and merges as pairs
  for i in ipairs(merges) do merges[i] = { found[i][1], found[i][2] } end
  root.normalizer = nil
  root.pre_tokenizer = { type = "Metaspace", replacement = "▁",
    prepend_scheme = "first", split = false }
  t = assert(in_folder(root))
  agrees(t, "llama-spm", number, true)
  check.equal(t:decode(t:encode "</s> a", { special = true }), "<s></s> a")
end)

-- A small vocabulary, and texts with the ids that Hugging Face's library (0.21) gives
-- them without special tokens.
local small = {
  "<unk>", "<s>", "</s>", "▁", "H", "e", "l", "o", "W", "r", "d", "a", "b", "c", "h",
  "i", "j", "k", "n", "m", "s", "t", "u", "v", "w", "x", "y", "z", "<", ">", "|", ".",
  "!", ",", "?", "0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "He", "ll", "Hell",
  "Hello", "▁Hello", "▁▁", "Wo", "rl", "rld", "World", "▁World", "▁a", "ca",
  "cat", "▁cat",
}
local small_merges = {
  "H e", "l l", "He ll", "Hell o", "▁ Hello", "▁ ▁", "W o", "r l", "rl d",
  "Wo rld", "▁ World", "▁ a", "c a", "ca t", "▁ cat",
}

local function metaspace(scheme)
  return { type = "Metaspace", replacement = "▁", prepend_scheme = scheme,
    split = false }
end

--- The small vocabulary behind a pre-tokenizer, with one more added token.
local function small_root(o)
  local root = { added_tokens = {}, pre_tokenizer = o.pre, normalizer = o.normalizer,
    decoder = o.decoder,
    model = { type = "BPE", vocab = vocabulary(small), merges = small_merges,
      unk_token = "<unk>" } }
  for i, token in ipairs { "<unk>", "<s>", "</s>" } do
    root.added_tokens[i] = { id = i - 1, content = token, special = true }
  end
  if o.added then
    o.added.id = #small
    root.added_tokens[4] = o.added
  end
  for key, value in pairs(o.model or {}) do root.model[key] = value end
  return root
end

local library = {
  { pre = metaspace "always", cases = {
    { "Hello", "49" }, { " Hello", "49" }, { "  Hello", "3 49" },
    { "Hello World", "49 55" }, { "▁Hello", "49" }, { "", "" }, { " ", "3" },
  } },
  { pre = metaspace "first", cases = {
    { "Hello", "49" }, { " Hello", "49" }, { "  Hello", "3 49" },
    { "Hello World", "49 55" }, { "▁Hello", "49" }, { "", "" }, { " ", "3" },
  } },
  { pre = metaspace "never", cases = {
    { "Hello", "48" }, { " Hello", "49" }, { "  Hello", "3 49" },
    { "Hello World", "48 55" }, { "▁Hello", "49" }, { "", "" }, { " ", "3" },
  } },
  { pre = metaspace "first", added = { content = "<sp>" }, cases = {
    { "<sp>Hello", "60 48" }, { "<sp> Hello", "60 49" },
    { "Hello<sp>Hello", "49 60 48" }, { "Hello <sp> Hello", "49 3 60 49" },
    { " <sp>", "3 60" }, { "<sp>", "60" },
  } },
  { pre = metaspace "first", model = { fuse_unk = true }, cases = {
    { "ééé", "3 0" }, { "Hello éé", "49 3 0" }, { "é é", "3 0 3 0" },
  } },
  { pre = metaspace "first", added = { content = "cat", single_word = true }, cases = {
    { "cat", "58" }, { "a cat", "56 3 58" }, { "acat", "56 58" }, { "cats", "59 20" },
    { "cat.", "58 31" }, { "cat_", "59 0" },
  } },
  { pre = { type = "Punctuation", behavior = "Removed" }, cases = {
    { "a.b", "11 12" }, { "a..b", "11 12" }, { "H.e", "4 5" },
    { "Hel.lo!", "45 6 6 7" },
  } },
}

check.test("pre-tokenizers and added tokens, as in Hugging Face's library", function()
  for _, each in ipairs(library) do
    local t = assert(in_folder(small_root(each)))
    for _, case in ipairs(each.cases) do
      local ids = assert(t:encode(case[1], { bos = "none" }))
      check.equal(table.concat(ids, " "), case[2], ("%s, %q"):format(t.pre, case[1]))
    end
  end
end)

check.test("158 pipelines, with ids and texts of Hugging Face's library", function()
  local all = lab.json.decode(read(folder:gsub("models/tokenizers/.*$",
    "golden/lm/pre_tokenizers.json")))
  local function agree(each, root)
    local t = assert(in_folder(root))
    for _, case in ipairs(each.cases) do
      local text = all.texts[case[1]]
      local ids = assert(t:encode(text, { bos = "none" }))
      local what = lab.json.encode(each.pre_tokenizer or each.normalizer)
      check.equal(table.concat(ids, " "), case[2], ("%s, %q"):format(what, text))
      if case[3] then
        check.equal(t:decode(ids), case[3], ("%s, %q"):format(what, text))
      end
    end
  end
  for _, each in ipairs(all.small) do
    agree(each, small_root { pre = each.pre_tokenizer, normalizer = each.normalizer,
      decoder = each.decoder, added = each.added, model = { fuse_unk = each.fuse_unk } })
  end
  -- the first 2000 merges of GPT-2, for speed
  local tokens = table.move(gpt2["tokenizer.ggml.tokens"], 1, 2256, 1, {})
  local merges = table.move(gpt2["tokenizer.ggml.merges"], 1, 2000, 1, {})
  for _, each in ipairs(all.gpt2) do
    agree(each, { pre_tokenizer = each.pre_tokenizer, added_tokens = lab.json.array {},
      model = { type = "BPE", vocab = vocabulary(tokens), merges = merges } })
  end
end)

check.test("Metaspace gives a text back but for one leading space", function()
  for scheme, want in pairs { always = "Hello World", first = "Hello World",
    never = " Hello World" } do
    local t = assert(in_folder(small_root { pre = metaspace(scheme) }))
    check.equal(t:decode(t:encode "Hello World"), "Hello World", scheme)
    check.equal(t:decode(t:encode " Hello World"), want, scheme)
    check.equal(t:decode(t:encode "  Hello"), scheme == "never" and "  Hello" or " Hello")
  end
end)

check.test("added tokens with the space beside them, and in normalized text", function()
  local function of(added, text)
    local t = assert(in_folder(small_root { pre = metaspace "never", added = added }))
    return table.concat(t:encode(text, { bos = "none" }), " ")
  end
  check.equal(of({ content = "<sp>" }, "a <sp> a"), "11 3 60 56")
  check.equal(of({ content = "<sp>", lstrip = true }, "a <sp> a"), "11 60 56")
  check.equal(of({ content = "<sp>", rstrip = true }, "a <sp>  a"), "11 3 60 11")
  check.equal(of({ content = "<sp>", normalized = true }, "a<sp>a"), "11 60 11")
  -- the normalizer puts a mark before the token's text too
  local t = assert(in_folder(small_root { added = { content = "<sp>", normalized = true },
    normalizer = { type = "Sequence", normalizers = {
      { type = "Prepend", prepend = "▁" },
      { type = "Replace", pattern = { String = " " }, content = "▁" } } } }))
  check.equal(t:encode("<sp>a <sp>", { bos = "none" }), { 60, 11, 60 })
  check.equal(t:encode("a<sp>", { bos = "none" }), { 56, 28, 20, 0, 29 })
end)

check.test("a decoder's steps run in the file's order, on each token", function()
  local marks = { type = "Replace", pattern = { String = "▁" }, content = " " }
  local strip = { type = "Strip", content = " ", start = 1, stop = 0 }
  local fuse, bytes = { type = "Fuse" }, { type = "ByteFallback" }
  local letters = { type = "ByteLevel" }
  for i, case in ipairs {
    { { fuse }, "▁Hello▁catH" }, { { marks }, " Hello catH" },
    { { marks, strip }, "HellocatH" }, { { marks, fuse, strip }, "Hello catH" },
    { { fuse, strip, marks }, " Hello catH" }, { { bytes }, "▁Hello▁catH" },
    { { metaspace "first" }, "Hello catH" }, { { metaspace "never" }, " Hello catH" },
    { { letters }, "▁Hello▁catH" },
    { { { type = "Replace", pattern = { String = "cat" }, content = "dogs" } },
      "▁Hello▁dogsH" },
    { { fuse, { type = "Strip", content = "H", start = 0, stop = 2 } },
      "▁Hello▁cat" },
  } do
    local t = assert(in_folder(small_root { decoder = { type = "Sequence",
      decoders = case[1] } }))
    check.equal(t:decode { 49, 59, 4 }, case[2], "case " .. i)
  end
end)

check.test("added tokens: ids of the library, spaces that two of them share", function()
  local root = small_root { added = { content = "<sp>" }, pre = metaspace "never" }
  root.added_tokens[4].id = 70
  local t = assert(in_folder(root))
  check.equal(t:encode("<sp>", { bos = "none" }), { 60 })
  check.contains(t.note, "the added token '<sp>' has the id 60, not the 70 of its entry")
  root = small_root { added = { content = "  ", rstrip = true }, pre = metaspace "never" }
  t = assert(in_folder(root))
  check.equal(t:encode("a    b", { bos = "none" }), { 11, 60, 60, 12 })
  -- a control token of one character is text too where all tokens are asked for
  root = small_root { added = { content = "H", special = true, single_word = true } }
  t = assert(in_folder(root))
  check.equal(t:encode("aHa", { bos = "none", special = true }), { 11, 4, 11 })
end)

check.test("\\w of patterns is Oniguruma's", function()
  local t = assert(in_folder(small_root { pre = { type = "Split", behavior = "Removed",
    invert = false, pattern = { Regex = "\\w" } } }))
  -- no word: a circled digit, a joiner; word: a mark, a superscript
  check.equal(#t:encode "\u{2460}\u{200d}", 2)
  check.equal(#t:encode "\u{301}\u{b2}\u{24b6}", 0)
  t = assert(in_folder(small_root { pre = { type = "Split", behavior = "Removed",
    invert = false, pattern = { Regex = "^\\s" } } }))
  check.equal(t:encode " a\n b", { 11, 0, 12 })
end)

check.test("falcon: digits are looked for in the letters of bytes", function()
  -- the letter of byte 0xb2 is the digit ², in GGUF and in tokenizer.json
  local tokens, merges = {}, { "à ²" }
  for b = 0, 255 do
    local plain = b >= 33 and b <= 126 or b >= 161 and b ~= 173
    if plain then tokens[#tokens + 1] = utf8.char(b) end
  end
  for i = 0, 67 do tokens[#tokens + 1] = utf8.char(256 + i) end
  tokens[#tokens + 1] = "à²"
  local t = assert(in_folder { model = { type = "BPE", vocab = vocabulary(tokens),
    merges = merges }, pre_tokenizer = { type = "Sequence", pretokenizers = {
      { type = "Punctuation", behavior = "Contiguous" },
      { type = "ByteLevel", add_prefix_space = false, use_regex = true },
      { type = "Digits", individual_digits = false } } } })
  local text = "\u{c80}" -- bytes 0xe0 0xb2 0x80
  check.equal(#t:encode(text), 3)
  check.equal(t:decode(t:encode(text)), text)
end)

check.test("NFC: text that it would change is refused", function()
  local tokens = { "<unk>" }
  local t = assert(in_folder { normalizer = { type = "NFC" }, added_tokens =
    lab.json.array {}, model = { type = "BPE", vocab = vocabulary(tokens), merges =
    lab.json.array {}, unk_token = "<unk>" } })
  -- Vietnamese, Korean, Hindi, Tamil, Thai, Hebrew with points, Japanese: composed
  for _, text in ipairs {
    "Việt é", "한국어", "हिन्दी", "தமிழ் கொ",
    "ที่นี่", "שָׁלוֹם", "が", "\xff"
  } do
    check.equal(t:encode(text) ~= nil, true, text)
  end
  for text, byte in pairs { ["ae\u{301}"] = 2, ["\u{1100}\u{1161}"] = 3,
    ["か\u{3099}"] = 3, ["\u{212b}"] = 0, ["x\u{5b4}\u{5b0}"] = 3,
    ["\u{bc6}\u{bbe}"] = 3 } do
    local none, message = t:encode(text)
    check.equal(none, nil, text)
    check.contains(message, ("at byte %d the text is"):format(byte), text)
  end
end)

check.test("blocks of tokenizer.json have no setting that is read past", function()
  local function refused(part, o)
    local none, message = in_folder(small_root(o))
    check.equal(none, nil, part)
    check.contains(message, part)
  end
  local pre = metaspace "first"
  pre.mode = 3
  refused("its pre_tokenizer has the setting 'mode', which this library does not follow",
    { pre = pre })
  refused("its pre_tokenizer has the prepend_scheme 'twice', which is not known",
    { pre = metaspace "twice" })
  refused("has a Punctuation with the behavior 'Odd', which is not known",
    { pre = { type = "Punctuation", behavior = "Odd" } })
  refused("its added token has the setting 'greedy'",
    { added = { content = "<sp>", greedy = true } })
  refused("its added token has the setting ''",
    { added = { content = "<sp>", [""] = 1 } })
  refused("its model has the setting 'max_input_chars'",
    { model = { max_input_chars = 3 } })
  refused("its model has a dropout", { model = { dropout = 0.1 } })
  refused("its decoder has the step 'WordPiece', which is not known",
    { decoder = { type = "WordPiece" } })
  refused("its normalizer has Prepend twice", { normalizer = { type = "Sequence",
    normalizers = { { type = "Prepend", prepend = "▁" },
      { type = "Prepend", prepend = "▁" } } } })
  refused("first after a step that puts a mark there", { pre = { type = "Sequence",
    pretokenizers = { metaspace "always", metaspace "first" } } })
  refused("it has the added token '<unk>' twice", { added = { content = "<unk>" } })
  for pattern, part in pairs { ["z*"] = "matches between characters",
    ["\\p{N}{1,3}+"] = "has '}+'", ["\\bt"] = "has '\\bt'", ["a{,3}"] = "has '{,3'",
    ["[a&&b]"] = "has '&&b'", ["[a[^b]]"] = "has '[^b'", ["[[:punct:]]"] = "has '[:p'",
    ["\\h"] = "has '\\h'", ["(?m:.)"] = "has '(?m'", ["[\\W]"] = "has '\\W]'" } do
    refused(part, { pre = { type = "Split", behavior = "Isolated", invert = false,
      pattern = { Regex = pattern } } })
  end
end)

check.test("a tokenizer without weights; numbers and marks of other programs", function()
  local path = scratch .. "/alone"
  os.execute(("mkdir -p '%s'"):format(path))
  local text = lab.json.encode(small_root { pre = metaspace "first" })
  write("alone/tokenizer.json", "\u{feff}" .. text)
  write("alone/tokenizer_config.json", '{"add_bos_token": true, "bos_token": "<s>", '
    .. '"model_max_length": 1000000000000000019884624838656}')
  for _, from in ipairs { path, path .. "/tokenizer.json" } do
    local t = assert(lab.lm.tokenizer(from))
    check.equal(t:encode "Hello", { 1, 49 })
  end
  local value = assert(lab.json.decode '{"a": 12345678901234567890123, "b": [7, -1e3]}')
  check.equal({ value.a, value.b[1], math.type(value.b[1]) }, { 12345678901234567890123.0,
    7, "integer" })
end)

check.test("what a text begins with", function()
  local t = assert(lab.lm.tokenizer(folder .. "llama-spm.gguf"))
  local function is(bos, ids, text)
    local got = t:encode("Hello", { bos = bos })
    check.equal(table.concat(got, " "), ids)
    check.equal(t:begin(bos).text, text)
  end
  is(nil, "1 15043", "<s> (1), as the file says")
  is("auto", "1 15043", "<s> (1), as the file says")
  is("none", "15043", "none")
  is("one", "1 15043", "<s> (1)")
  is("two", "1 1 15043", "two of <s> (1)")
  is("</s>", "2 15043", "</s> (2)")
  is(15043, "15043 15043", " Hello (15043)")
  check.raises(
    "bos: 'no such' is neither auto, none, one, two nor one of the 32000 tokens",
    t.encode, t, "x", { bos = "no such" })
  check.raises("(did you mean 'bos'?)", t.encode, t, "x", { boss = "one" })
  local ids = t:encode("<s>Hello", { special = true })
  check.equal(ids, { 1, 1, 15043 })
  check.equal(t:begin("one", { 1, 15043 }).warning,
    "the text itself begins with <s>, which now stands there twice")
  ids = t:encode("<s>Hello", { special = true, bos = "none" })
  check.equal(ids, { 1, 15043 })
  t = assert(lab.lm.tokenizer(folder .. "gpt-2.gguf"))
  check.equal(t:begin().text, "none: the file says nothing")
end)

check.test("names in a text are text unless asked", function()
  local t = assert(lab.lm.tokenizer(folder .. "gpt-2.gguf"))
  local text = "a<|endoftext|>b"
  local plain, special = t:encode(text), t:encode(text, { special = true })
  check.equal(t:decode(plain), text)
  check.equal(special, { 64, 50256, 65 })
  check.equal(t:decode(special), "ab")
  check.equal(t:decode(special, { special = true }), text)
  t = assert(lab.lm.tokenizer(folder .. "llama-spm.gguf"))
  for _, hostile in ipairs { "<s>", "</s> <0x0A>", "<unk>" } do
    local ids = t:encode(hostile, { bos = "none" })
    check.equal(t:decode(ids), hostile)
    for _, id in ipairs(ids) do check.equal(select(2, t:token(id)), "normal") end
  end
end)

check.test("single tokens", function()
  local t = assert(lab.lm.tokenizer(folder .. "llama-spm.gguf"))
  check.equal({ t:token(15043) }, { "▁Hello", "normal" })
  check.equal({ t:token(13) }, { "<0x0A>", "byte" })
  check.equal({ t:token(1) }, { "<s>", "control" })
  check.equal(t:token(32000), nil)
  check.equal(t:id "▁Hello", 15043)
  check.equal(t:id "no such token", nil)
  check.equal(t:id "", nil)
  check.equal({ t:name(15043), t:name(13), t:name(1), t:name(3 + 0xe2), t:name(-1) },
    { " Hello", "\\n", "<s>", "\\xe2", "<-1>" })
  check.raises("the id 32000 (number 2) is none of the 32000 tokens 0 to 31999",
    t.decode, t, { 1, 32000 })
  check.raises("number 1 of the ids is 1.5", t.decode, t, { 1.5 })
end)

check.test("bytes that are no UTF-8 come back", function()
  for _, name in ipairs { "gpt-2", "llama-spm" } do
    local t = assert(lab.lm.tokenizer(folder .. name .. ".gguf"))
    local bytes, state = {}, 1
    for i = 1, 20000 do
      state = state * 1103515245 + 12345 & 0x7fffffff
      bytes[i] = string.char(state >> 16 & 255)
    end
    local text = table.concat(bytes)
    check.equal(t:decode(t:encode(text)) == text, true)
    for _, each in ipairs { "", "\0", "\xff", "\xe2\x96", "\xed\xa0\x80", "a\xf0\x9fb",
      ("\xe2\x96\x81"):rep(3), (" "):rep(3000), ("a"):rep(3000) } do
      if name == "llama-spm" then each = each:gsub("\xe2\x96\x81", "_") end
      check.equal(t:decode(t:encode(each)), each)
    end
  end
end)

check.test("tokenizers that are refused", function()
  local function refused(part, root, others)
    local none, message = in_folder(root, others)
    check.equal(none, nil)
    check.contains(message, part)
    check.contains(message, scratch)
  end
  local function model(change)
    local root = { model = { type = "BPE", vocab = { a = 0, b = 1, ab = 2 },
      merges = { "a b" } } }
    change(root, root.model)
    return root
  end
  refused("there is no tokenizer.json, and no vocab.json with merges.txt")
  refused("tokenizer.json is no JSON", nil, { ["tokenizer.json"] = "{" })
  refused("its model is of the kind Unigram; read is BPE",
    model(function(_, m) m.type = "Unigram" end))
  refused("its model has no vocab", model(function(_, m) m.vocab = 3 end))
  refused("merge 1: 'x' is no token", model(function(_, m) m.merges = { "a x" } end))
  refused("merge 1 is not two tokens", model(function(_, m) m.merges = { 7 } end))
  refused("the token 'a' has an id that is no number from 0 to 1029",
    model(function(_, m) m.vocab = { a = 1 << 40, b = 1, ab = 2 } end))
  refused("its normalizer has the step 'Lowercase', which is not known",
    model(function(root) root.normalizer = { type = "Lowercase" } end))
  refused("its pre_tokenizer has the step 'Whitespace', which is not known",
    model(function(root) root.pre_tokenizer = { type = "Whitespace" } end))
  refused("the pattern '(' is wrong: missing closing parenthesis",
    model(function(root)
      root.pre_tokenizer = { type = "Split", behavior = "Isolated",
        pattern = { Regex = "(" } }
    end))
  local t = assert(in_folder(model(function(root, m)
    -- a class in a class is a union to the library that these patterns are for
    m.vocab = { a = 0, b = 1, ab = 2, ["."] = 3, ["b."] = 4, [" "] = 5 }
    m.merges = { "a b", "b ." }
    root.pre_tokenizer = { type = "Split", behavior = "Isolated",
      pattern = { Regex = " ?[^(\\s|[.,!?…])]+" } }
  end)))
  check.equal(t:encode "ab.b.", { 2, 3, 1, 3 })
  t = assert(in_folder(model(function(root)
    root.pre_tokenizer = { type = "Split", behavior = "Isolated",
      pattern = { Regex = "(a+)+$" } }
  end)))
  check.equal(t:encode "ab", { 2 })
  local none, message = t:encode(("a"):rep(100) .. "b")
  check.equal(none, nil)
  check.contains(message, "the text cannot be cut into words: match limit exceeded")
  none, message = t:encode "c"
  check.equal(none, nil)
  check.contains(message, "the text has 'c' (byte 0x63), for which there is no token")
  none, message = lab.lm.tokenizer(folder .. "nothing.gguf")
  check.equal(none, nil)
  check.contains(message, "cannot read")
  check.raises("lab.lm.tokenizer: the file must be a table or a string",
    lab.lm.tokenizer, 3)
end)

check.done()
