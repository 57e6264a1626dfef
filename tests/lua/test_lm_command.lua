--- test_lm_command.lua - sinklab sinks, and which heads tell two classes apart.
local lab = require "sinklab"
local check = require "check"
local process = require "process"
local models = arg[0]:match "^(.*)/lua/[^/]*$" .. "/models/"
local texts = require "sinklab.lm.texts"
local stories = models .. "llm/stories260K-q8_0.gguf"
local folder = process.folder "lm_command"

local function sinks(...)
  return process.run({ "sinks", "--threads=1", ... }, { folder = folder })
end

local function record(out)
  return assert(lab.json.decode(process.read(folder .. "/" .. out .. "/run.json")))
end

check.test("a prompt, in full", function()
  local r = sinks(stories, "--prompt=Once upon a time, there was a girl.",
    "--keep=2:3,5:1", "--out=a")
  check.equal(r.code, 0, r.err)
  check.contains(r.out, "llama, 5 layers, 8 heads (4 key/value)")
  check.contains(r.out, "beginning: auto: <s> (1)")
  check.contains(r.out, "residual stream")
  check.contains(r.out, "tokens/s")
  local got = record "a"
  check.equal(got.script, "sinks")
  check.equal(got.status, "complete")
  check.equal(got.options.keep[2], { 5, 1 })
  check.equal(#got.results.sinks.sinks.heads, 40)
  check.contains(got.results.sinks.beginning, "auto")
  check.equal(#got.results.sinks.sinks.hidden.states, 6)
  -- The kept head is the model's own map of that prompt.
  local model = assert(lab.lm.open(stories))
  local ids = lab.lm.tokenizer(model.file):encode "Once upon a time, there was a girl."
  local kept = lab.load_npy(folder .. "/a/head-2-3.npy")
  local own = model:attention { ids = ids, layer = 2, head = 3 }
  check.equal((kept - own):abs():max():item(), 0.0)
  local sink = lab.load_npy(folder .. "/a/positions.npy")
  check.equal(sink.shape, { 5, 8, #ids })
  check.close(100 * sink:select(3, 1):mean():item(), got.results.sinks.sinks.sink_1, 1e-4,
    0)
  for _, name in ipairs { "first", "positions", "residual", "head-2-3", "head-5-1" } do
    process.read(folder .. "/a/" .. name .. ".png")
  end
  check.contains(process.read(folder .. "/a/report.html"), "head-2-3")
end)

local opened = assert(lab.lm.open(stories))
local tokenizer = assert(lab.lm.tokenizer(opened.file))

local function read(given)
  given.tokens, given.samples = given.tokens or 64, given.samples or 100
  return texts.read("sinks", opened, tokenizer, given)
end

check.test("how every sample begins, in words; doubled ones are warned about", function()
  local function begins(bos, words, first)
    local sources, begun = read { prompt = { "Hi there" }, bos = bos }
    check.equal(begun.text:sub(1, #words), words)
    local ids = sources[1].sequences[1].ids
    check.equal(table.move(ids, 1, #first, 1, {}), first, bos or "default")
    return table.concat(begun.warnings, " ")
  end
  check.equal(begins(nil, "auto: <s> (1)", { 1 }), "")
  begins("none", "none", {})
  begins("one", "one: <s> (1)", { 1 })
  check.contains(begins("two", "two: two of <s> (1)", { 1, 1 }),
    "sample 1 begins with token 1 twice")
  begins("5", "5: ", { 5 })
  begins("</s>", "</s>: </s> (2)", { 2 })
  local _, begun = read { ids = { "1,1,403,261" } }
  check.equal(begun.text, "auto: token ids are taken as they are")
  check.contains(begun.warnings[1], "begins with token 1 twice")
  check.raises("'nonesuch' is neither auto, none, one, two",
    read, { prompt = { "Hi" }, bos = "nonesuch" })
end)

check.test("texts are cut into samples, each begun", function()
  local path = process.write(folder .. "/x.txt",
    ("Tom and Sue went to the big red house. ")
    :rep(12))
  local list = read { text = { path }, tokens = 24, samples = 5 }[1].sequences
  check.equal(#list, 5)
  local all = tokenizer:encode(process.read(path), { bos = "none" })
  for i, s in ipairs(list) do
    check.equal(#s.ids, 24)
    check.equal(s.ids[1], 1)
    check.equal(table.move(s.ids, 2, 24, 1, {}),
      table.move(all, (i - 1) * 23 + 1, i * 23, 1, {}))
  end
  check.raises("samples of 1 tokens have no room", read, { text = { path }, tokens = 1 })
  check.raises("none.txt", read, { text = { folder .. "/none.txt" } })
end)

check.test("more tokens than the model was made for are warned about", function()
  local _, begun = read { ids = { ("5,"):rep(513) } }
  check.equal(begun.warnings[1], "ids 1: sample 1 has 513 tokens, "
    .. "the model was made for 512")
  _, begun = read { ids = { ("5,"):rep(512) } }
  check.equal(#begun.warnings, 0)
end)

check.test("beginning tokens inside token ids begin documents", function()
  local sources, begun = read { ids = { "1,403,261,1,385,328,432" } }
  check.equal(sources[1].sequences[1].documents, { 1, 4 })
  check.contains(begun.warnings[1], "2 documents")
end)

check.test("packed samples are kept apart, several texts spread", function()
  local prompts = { "--prompt=The cat sat.", "--prompt=A dog ran to the park." }
  local r = sinks(stories, prompts[1], prompts[2], "--pack", "--out=e")
  check.equal(r.code, 0, r.err)
  local packed = record("e").results.sinks.sinks
  r = sinks(stories, prompts[1], prompts[2], "--out=f")
  check.contains(r.out, "mean +- std")
  local apart = record("f").results
  local a, b = apart["1-sinks"].sinks, apart["2-sinks"].sinks
  for i, head in ipairs(packed.heads) do
    local x, y = a.heads[i], b.heads[i]
    local n, m = x.plain_rows, y.plain_rows
    check.equal(head.plain_rows, n + m)
    check.close(head.first_mean, (x.first_mean * n + y.first_mean * m) / (n + m), 1e-5, 0)
  end
end)

check.test("a change beside the unchanged model", function()
  local r = sinks(stories, "--prompt=The cat sat on the mat.", "--mechanism=softmax1",
    "--layers=2,3", "--out=g")
  check.equal(r.code, 0, r.err)
  check.contains(r.out, "softmax1 in layers 2 3")
  local changed = record("g").results["change-1"]
  check.close(changed.loss_change, changed.loss - changed.loss_before, 1e-12, 0)
  check.below(changed.heads[9].row_mass, 0, "softmax1 leaves mass in layer 2")
  check.below(math.abs(changed.heads[1].row_mass), 1e-6, "layer 1 is softmax")
  -- Every measurement has its change: heads, and the residual stream by layer.
  local before = record("g").results.sinks.sinks
  for i, head in ipairs(before.heads) do
    for key, value in pairs(head) do
      if type(value) == "number" and key ~= "layer" and key ~= "head" then
        check.close(changed.heads[i][key], changed.sinks.heads[i][key] - value, 1e-12, 0,
          key)
      end
    end
  end
  local states, after = before.hidden.states, changed.sinks.hidden.states
  check.equal(#changed.states, 6)
  check.equal({ changed.states[1].other_norm, changed.states[3].other_norm ~= 0 },
    { 0.0, true })
  check.close(changed.states[4].peak, after[4].peak - states[4].peak, 1e-12, 0)
  -- Options of the mechanism count, and the record says what was typed, and of what.
  r = sinks(stories, "--prompt=The cat sat.", "--mechanism=sinklogit:init=9", "--out=j")
  check.equal(r.code, 0, r.err)
  local got = record "j"
  check.equal({ got.options.mechanism, got.options.model },
    { "sinklogit:init=9", stories })
  check.below(got.results["change-1"].sinks.row_mass.mean, 0.5)
  r = sinks(stories, "--prompt=The cat sat.", "--drop-first", "--zero=1:1,1:2",
    "--out=h")
  check.contains(r.out, "drop first")
  check.contains(r.out, "zero in 1:1 1:2")
end)

check.test("mistakes", function()
  local function refused(words, ...)
    local r = sinks(...)
    check.equal(r.code, 1)
    check.contains(r.err, words)
  end
  refused("sinks needs something to read", stories)
  refused("No such file", folder .. "/none.gguf", "--prompt=x")
  refused("No such file", folder .. "/none.gguf")
  process.write(folder .. "/picture.png", "\137PNG\r\n\0\1")
  refused("picture.png: byte 7 is 0: this is no text", stories,
    "--text=" .. folder .. "/picture.png")
  refused("--keep: expected LAYER:HEAD", stories, "--prompt=x", "--keep=3")
  refused("layer 9, head 1 is to be kept; there are 5 layers of 8 heads", stories,
    "--prompt=x", "--keep=9:1", "--out=i")
  refused("token id 600 is outside 0 to 511", stories, "--ids=1,600")
  refused("expected token ids such as 1,5,6", stories, "--ids=1,x")
  refused("no option '--promt=x' (did you mean '--prompt'?)", stories, "--promt=x")
  refused("--layers needs --mechanism", stories, "--prompt=x", "--layers=1")
  -- What is wrong with a change is said before anything is measured.
  for words, option in pairs {
    ["--mechanism: expected a plugin, such as"] = "--mechanism=softmax1:init",
    ["sinklogit has no option 'inti' (did you mean 'init'?)"] =
      "--mechanism=sinklogit:inti=2",
    ["no plugin 'sofmax' (did you mean 'softmax'?)"] = "--mechanism=sofmax",
    ["heads[1] must be { layer, head } within 5 layers of 8 heads"] = "--zero=9:9",
    ["mask is position 99; there are 1 to"] = "--mask=99",
    ["cannot move to position 50 of"] = "--move-first=50",
    ["--threshold: expected a number above 0 and at most 1, got '3'"] = "--threshold=3",
  } do
    refused(words, stories, "--prompt=x", option, "--out=never")
  end
  check.equal(io.open(folder .. "/never/run.json"), nil)
  refused("there is no tokenizer.json", models .. "arch/opt/hf", "--prompt=x")
end)

check.test("token ids need no tokenizer", function()
  local r = sinks(models .. "arch/opt/hf", "--ids=2,5,9,33,7", "--bos=2", "--out=j")
  check.equal(r.code, 0, r.err)
  check.contains(r.out, "beginning: 2: 2")
end)

check.test("the benchmark of a prefill, beside a peer that says 100 tokens/s", function()
  local peer = process.write(folder .. "/peer", [[
#!/bin/sh
# as llama-bench is called: -m FILE -p TOKENS -n 0 -t THREADS -r REPEATS -o json
head -c 4 "$2" | grep -q GGUF &&
  echo '[ { "n_prompt": '$4', "samples_ts": [ 90.0, 100.0 ] } ]'
]])
  process.shell("chmod +x '" .. peer .. "'")
  local r = process.run({ "run", arg[0]:match "^(.*)/lua/[^/]*$" .. "/bench/prefill.lua",
    "--layers=1", "--d_model=32", "--heads=2", "--kv_heads=2", "--d_ffn=64", "--vocab=50",
    "--tokens=8", "--longest=64", "--repeats=1", "--peer=" .. peer, "--threads=1" },
    { folder = folder })
  check.equal(r.code, 0, r.err)
  check.contains(r.out, "prefill of 8 tokens: ")
  check.contains(r.out, "peer: 100.0 tokens/s; sinklab has ")
end)

-- Which heads tell two classes apart.

local model = assert(lab.lm.open(models .. "arch/llama_gqa/model.gguf"))

local function some(n, tokens)
  local list, x = {}, 99
  for i = 1, n do
    list[i] = { 1 }
    while #list[i] < tokens do
      x = (x * 1103515245 + 12345) % 2147483648
      list[i][#list[i] + 1] = 3 + x // 65536 % 70
    end
  end
  return list
end

check.test("a planted difference is found, and its size is that of the maps", function()
  local list, classes, sums = some(12, 16), {}, { { 0, 0 }, { 0, 0 } }
  for s, ids in ipairs(list) do
    -- Class 1: the rows on which layer 2 head 3 uses the first position most.
    local map, sorted = model:attention { ids = ids, layer = 2, head = 3 }:totable(), {}
    for i = 2, 16 do sorted[i - 1] = map[i][1] end
    table.sort(sorted)
    classes[s] = { -1 }
    for i = 2, 16 do
      local class = map[i][1] >= sorted[12] and 1 or 0
      classes[s][i] = class
      sums[class + 1][1] = sums[class + 1][1] + map[i][1]
      sums[class + 1][2] = sums[class + 1][2] + 1
    end
  end
  local found = lab.lm.contrast(model, list, classes, { permutations = 199 })
  check.equal({ found[1].layer, found[1].head }, { 2, 3 })
  check.at_most(found[1].p_family, 0.01, "p " .. found[1].p_family)
  check.close(found[1].mean_0, sums[1][1] / sums[1][2], 1e-6, 0)
  check.close(found[1].mean_1, sums[2][1] / sums[2][2], 1e-6, 0)
  check.close(found[1].difference, found[1].mean_1 - found[1].mean_0, 1e-7, 0)
  check.equal({ found.n0, found.n1 }, { sums[1][2], sums[2][2] })
  local again = lab.lm.contrast(model, list, classes, { permutations = 199 })
  check.equal(again[5].p, found[5].p, "the same seed")
end)

check.test("classes that mean nothing are not found", function()
  local list, classes, sequences = some(10, 16), {}, {}
  for s = 1, 10 do
    classes[s], sequences[s] = {}, s % 2
    for i = 1, 16 do classes[s][i] = i > 1 and (s * 7 + i * i) % 3 // 2 or -1 end
  end
  for _, labels in ipairs { classes, sequences } do
    local found = lab.lm.contrast(model, list, labels, { permutations = 199 })
    check.above(found[1].p_family, 0.05, "p " .. found[1].p_family)
  end
end)

check.test("two classes of sequences", function()
  local list, classes = some(16, 12), {}
  for s, ids in ipairs(list) do
    classes[s] = s <= 8 and 0 or 1
    -- In class 1 every token is the first one again.
    if s > 8 then for i = 2, 12 do ids[i] = ids[1] end end
  end
  local found = lab.lm.contrast(model, list, classes, { permutations = 199 })
  check.at_most(found[1].p_family, 0.01, "p " .. found[1].p_family)
  check.equal({ found.n0, found.n1 }, { 8, 8 })
end)

check.test("a map of what has signs is around 0", function()
  local head_scan = require "sinklab.lm.head_scan"
  local found = { samples = 3, heads = { { difference = -0.5 }, { difference = 0.25 } } }
  local function map(signed)
    return head_scan.map(found, 2, "difference", "difference", "t", signed):text()
  end
  check.contains(map(true), "-0.5")
  check.equal(map(false):find("-0.5", 1, true), nil)
  found.heads = { { difference = 0 }, { difference = 0 } }
  check.contains(map(true), "-1")
end)

check.test("mistakes in classes", function()
  local list = some(2, 6)
  local function refused(words, classes)
    check.raises(words, lab.lm.contrast, model, list, classes, { permutations = 19 })
  end
  refused("1 classes for 2 sequences", { 1 })
  refused("2 of class 0 and 0 of class 1: there is nothing to compare", { 0, 0 })
  refused("class 2 is a number, the first a table", { { 0, 1, 0, 1, 0, 1 }, 1 })
  refused("2 classes for the 6 tokens of sequence 1", { { 0, 1 }, { 0, 1 } })
end)

check.done()
