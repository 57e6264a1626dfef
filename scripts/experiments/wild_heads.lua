--- Heads in the wild: which use the first position differently in two kinds of text?
--
-- Ranks the heads of a language model by the difference of their mean weight on the first
-- position, on tokens with a trigger (default: an apostrophe) and on others, or in two
-- classes of texts (--a and --b), with a permutation test over all heads; draws the best
-- heads on one text of each kind, side by side (figures 1 and 2 of the paper).
local lab = require "sinklab"
local core = require "sinklab.core"
local contrast = require "sinklab.lm.contrast"
local head_scan = require "sinklab.lm.head_scan"
local texts = require "sinklab.lm.texts"

local opt = lab.options {
  model = { default = core.scripts .. "/../tests/models/llm/stories260K-q8_0.gguf",
    doc = "a GGUF file or a Hugging Face folder" },
  text = { default = core.scripts .. "/data/shakespeare.txt",
    doc = "where a trigger is looked for" },
  trigger = { default = "'",
    doc = "tokens with this text in them are class 1, others class 0" },
  a = { default = "",
    doc = "texts of class 0, separated by commas: in place of a trigger" },
  b = { default = "", doc = "texts of class 1" },
  bos = { default = "auto",
    doc = "what samples begin with: auto, none, one, two or a token" },
  tokens = { default = 48, doc = "of a sample", min = 8 },
  samples = { default = 60, doc = "samples at most, of each class", min = 2 },
  permutations = { default = 499, quick = 199, doc = "of the labels", min = 19 },
  best = { default = 3, quick = 1, doc = "heads that are drawn", min = 1 },
  alpha = { default = 0.05,
    doc = "a head is found when its p over all heads is at most this",
    above = 0, max = 1 },
  seed = { default = 0, doc = "of the permutations", min = 0 },
  quick = { default = false, doc = "199 permutations, one head drawn" },
}
local permutations = opt.permutations

local model, message = lab.lm.open(opt.model)
if not model then
  error(message .. "\n  try: --model=FILE, a GGUF file or a Hugging Face folder", 0)
end
local tokenizer
tokenizer, message = lab.lm.tokenizer(model.file)
if not tokenizer then error(message, 0) end
local run = lab.run()
print(("%s: %s"):format(opt.model:match "[^/]*$", tostring(model)))

--- Sequences of files, and their first tokens in words.
local function read(files)
  local list = {}
  local sources, begun = texts.read("wild_heads", model, tokenizer, { text = files,
    bos = opt.bos, tokens = opt.tokens, samples = opt.samples })
  for _, source in ipairs(sources) do
    for _, s in ipairs(source.sequences) do list[#list + 1] = s end
  end
  return list, begun.text
end

local function split(words)
  local out = {}
  for word in words:gmatch "[^,]+" do out[#out + 1] = word end
  return out
end

local list, classes, names, begun
local two_texts = opt.a ~= "" or opt.b ~= ""
if two_texts then
  if opt.a == "" or opt.b == "" then
    error("wild_heads: two classes of texts need both --a and --b", 0)
  end
  local second
  list, begun = read(split(opt.a))
  second = read(split(opt.b))
  classes = {}
  for i = 1, #list do classes[i] = 0 end
  for _, s in ipairs(second) do
    list[#list + 1], classes[#classes + 1] = s, 1
  end
  names = { [0] = opt.a:match "[^/,]*$", opt.b:match "[^/,]*$" }
else
  list, begun = read { opt.text }
  classes = {}
  for i, s in ipairs(list) do
    classes[i] = {}
    for j, id in ipairs(s.ids) do
      classes[i][j] = tokenizer:name(id):find(opt.trigger, 1, true) and 1 or 0
    end
  end
  names = { [0] = "other tokens", "tokens with " .. opt.trigger }
end
print("beginning: " .. begun)

local found = lab.lm.contrast(model, list, classes, { permutations = permutations,
  seed = opt.seed })
local columns, rows = contrast.rows(found, 12)
columns[3], columns[4] = names[0], names[1]
print(("\nmean weight on position 1: %d %s%s, %d %s%s"):format(found.n0,
  two_texts and "samples of " or "", names[0], found.n1,
  two_texts and "samples of " or "", names[1]))
run:table(columns, rows)
if #found > #rows then print(("and %d more heads in run.json"):format(#found - #rows)) end

-- Tokens of a figure: as many as have names on the axes.
local DRAWN = 32

--- One sequence of each kind to draw: the first, or where most triggers are among the
-- tokens drawn, and where fewest are.
local function example(class)
  local best, most
  for i, s in ipairs(list) do
    local n = 0
    if two_texts then
      n = classes[i] == class and #s.ids or -1
    else
      for j = 1, math.min(DRAWN, #s.ids) do n = n + classes[i][j] end
      if class == 0 then n = -n end
    end
    if not most or n > most then best, most = s, n end
  end
  return best
end

local shown = { [0] = example(0), example(1) }
for i = 1, math.min(opt.best, #found) do
  local head, panels = found[i], {}
  for class = 0, 1 do
    local s = shown[class]
    local n = math.min(DRAWN, #s.ids)
    local map = model:attention { ids = s.ids, layer = head.layer, head = head.head }
    panels[#panels + 1] = { data = map:narrow(1, 1, n):narrow(2, 1, n),
      tokens = table.move(texts.labels(tokenizer, s), 1, n, 1, {}), vmin = 0, vmax = 1,
      mask_upper = true, quantity = "attention weight",
      title = ("%s (mean on position 1: %.3f)"):format(names[class],
        head["mean_" .. class]) }
  end
  run:figure(("head-%d-%d"):format(head.layer, head.head), lab.plot.panels(panels, {
    columns = 2, size = 5, title = ("layer %d head %d"):format(head.layer, head.head),
    caption = ("the first %d tokens of two samples; z = %.1f, p = %.3f over all %d heads")
      :format(DRAWN, head.z, head.p_family, #found) }))
end

local heads = {}
for i, row in ipairs(found) do
  heads[i] = {}
  for key, value in pairs(row) do heads[i][key] = value end
end
run:add("contrast", { class_0 = names[0], class_1 = names[1], n0 = found.n0,
  n1 = found.n1, beginning = begun, permutations = permutations, heads = heads })
local map = {}
for _, row in ipairs(found) do
  local at = (row.layer - 1) * model.config.heads + row.head
  map[at] = { layer = row.layer, head = row.head, difference = row.difference }
end
run:figure("difference", head_scan.map({ heads = map, samples = #list },
  model.config.heads,
  "difference", "difference of mean weights on position 1",
  ("%s less %s"):format(names[1], names[0]), true))
run:claim("a head tells the two apart: p over all heads", found[1].p_family, "<=",
  opt.alpha)
