--- sinks.lua - sinklab sinks: the attention sinks of a language model.
local check = require "sinklab.base.check"
local command = require "sinklab.cli.command"
local schema = require "sinklab.base.schema"
local strings = require "sinklab.base.strings"

-- Its range and its default are those of lab.sinks.
local threshold = schema.rules(require "sinklab.measure.measures".rows).threshold

-- Tokens at once without --batch: memory grows with them, speed hardly does.
local BATCH_TOKENS = 1024

--- "L:H,L:H" as { { L, H }, ... }.
local function heads_of(s)
  local list = {}
  for part in (s .. ","):gmatch "([^,]*)," do
    local layer, head = part:match "^(%d+):(%d+)$"
    if not layer then return nil, "LAYER:HEAD,LAYER:HEAD,... counted from 1" end
    list[#list + 1] = { math.tointeger(tonumber(layer)), math.tointeger(tonumber(head)) }
  end
  return list
end

--- "1,4,9" as a list.
local function numbers_of(s)
  local list = {}
  for part in (s .. ","):gmatch "([^,]*)," do
    local n = part:match "^%d+$" and math.tointeger(tonumber(part))
    if not n or n < 1 then return nil, "whole numbers from 1, such as 1,4,9" end
    list[#list + 1] = n
  end
  return list
end

local function threshold_of(s)
  local x = command.kinds.number(s)
  return x and x > threshold.above and x <= threshold.max and x,
      "a number " .. check.limits(threshold)
end

--- "NAME" or "NAME:OPTION=VALUE,OPTION=VALUE".
local function mechanism_of(s)
  local what = "a plugin, such as softmax1 or sinklogit:init=2"
  local name, options = s:match "^([^:,=%s]+)$", nil
  if not name then name, options = s:match "^([^:,=%s]+):(.+)$" end
  if not name then return nil, what end
  local out = { name }
  for part in ((options or "") .. ","):gmatch "([^,]*)," do
    local key, value = part:match "^([%w_]+)=(.+)$"
    if options and (not key or out[key] ~= nil) then return nil, what end
    if value == "true" or value == "false" then
      out[key] = value == "true"
    elseif key then
      out[key] = math.tointeger(tonumber(value)) or tonumber(value) or value
    end
  end
  return out
end

local function say(...) print(string.format(...)) end

local function warn(message) strings.complain("warning: " .. message) end

--- The changes that the options name: a list for lab.lm.intervene.
local function changes_of(given)
  local list = {}
  local function add(on, change) if on then list[#list + 1] = change end end
  if given.layers and not given.mechanism then
    command.refuse("--layers needs --mechanism")
  end
  add(given.drop_first, { drop_first = true })
  add(given.move_first, { move_first = given.move_first })
  add(given.mask, { mask = given.mask, heads = "all" })
  add(given.zero, { zero = true, heads = given.zero })
  add(given.mechanism, { mechanism = given.mechanism, layers = given.layers })
  return list
end

--- The tokenizer, or nil where token ids are all there is.
local function tokenizer_of(model, given)
  local lm = require "sinklab.lm"
  local tokenizer, message = lm.tokenizer(model.file)
  if not tokenizer and (given.text or given.prompt) then
    command.refuse("%s\n  try: --ids=1,5,6", message)
  end
  return tokenizer
end

--- A mechanism as it was typed.
local function mechanism_text(m)
  local options = {}
  for key, value in pairs(m) do
    if key ~= 1 then options[#options + 1] = ("%s=%s"):format(key, tostring(value)) end
  end
  table.sort(options)
  return m[1] .. (#options > 0 and ":" .. table.concat(options, ",") or "")
end

local function open_run(path, given)
  local run = require "sinklab.record.run".open { script = "sinks", shown = "sinks",
    out = given.out, arguments = {} }
  run.record.options.model = path
  for key, value in pairs(given) do
    run.record.options[key] = key == "mechanism" and mechanism_text(value) or value
  end
  return run
end

--- Tables of one source.
local function print_source(model, found)
  local head_scan = require "sinklab.lm.head_scan"
  local names, rows, left = head_scan.heads(found)
  if left > 0 then
    say("\n%s", head_scan.table(head_scan.layers(found, model.config.heads)))
    say("\nthe %d heads that use position 1 most (all are in run.json):", #rows)
  else
    say ""
  end
  say("%s", head_scan.table(names, rows))
  say("\nresidual stream\n%s", tostring(found.hidden))
end

--- Figures of one source.
local function draw(run, model, tokenizer, source, label, found, given)
  local head_scan = require "sinklab.lm.head_scan"
  local texts = require "sinklab.lm.texts"
  local heads = model.config.heads
  run:figure(label .. "first", head_scan.map(found, heads, "first_mean",
    "mean weight on position 1", source.name))
  run:figure(label .. "positions", head_scan.positions(found, source.name))
  run:array(label .. "positions", found.sink)
  run:figure(label .. "residual", head_scan.residual(found, source.name))
  local alone = #source.sequences == 1 and texts.labels(tokenizer, source.sequences[1])
  for i, pair in ipairs(given.keep or {}) do
    local name = ("%shead-%d-%d"):format(label, pair[1], pair[2])
    run:figure(name, head_scan.head(found.kept[i],
      ("%s: layer %d head %d"):format(source.name, pair[1], pair[2]), alone or nil,
      found.samples))
    run:array(name, found.kept[i].mean)
  end
end

--- Compare with the changes that were asked for.
local function print_changes(run, model, source, label, found, changes, o)
  local head_scan = require "sinklab.lm.head_scan"
  local effects = require "sinklab.lm.intervene".effects(found, changes, o)
  say("\n%s", tostring(effects))
  for i, e in ipairs(effects) do
    local name = ("%schange-%d"):format(label, i)
    run:add(name, { change = e.name, loss_before = e.loss_before, loss = e.loss,
      loss_change = e.loss_change, predicted = e.predicted,
      sinks = e.sinks and head_scan.record(e.sinks), heads = e.heads, states = e.states })
    if e.sinks then
      run:figure(name, head_scan.map(e.sinks, model.config.heads, "first_mean",
        "mean weight on position 1", source.name .. ", " .. e.name))
    end
  end
end

local function run_sinks(words, given)
  local lm = require "sinklab.lm"
  local texts = require "sinklab.lm.texts"
  local head_scan = require "sinklab.lm.head_scan"
  local what = "sinks"
  given.tokens, given.samples = given.tokens or 64, given.samples or 100
  given.threshold = given.threshold or threshold.default
  local changes = changes_of(given)
  local model, message = lm.open(words[1])
  if not model then command.refuse("%s", message) end
  if not (given.text or given.prompt or given.ids) then
    command.refuse("sinks needs something to read: --text=FILE, --prompt=TEXT "
      .. "or --ids=1,5,6")
  end
  local tokenizer = tokenizer_of(model, given)
  local sources, begun = texts.read(what, model, tokenizer, given)
  for _, source in ipairs(sources) do
    source.changes = require "sinklab.lm.intervene".prepare(what, model,
      source.sequences, changes)
  end
  local run = open_run(words[1], given)
  say("%s: %s", words[1], tostring(model))
  say("beginning: %s", begun.text)
  for _, warning in ipairs(begun.warnings) do warn(warning) end
  local all, seconds, tokens = {}, 0, 0
  for i, source in ipairs(sources) do
    local label = #sources > 1 and i .. "-" or ""
    local list, longest = source.sequences, 1
    for _, s in ipairs(list) do longest = math.max(longest, #s.ids) end
    local o = { batch = given.batch or math.max(1, BATCH_TOKENS // longest),
      threshold = given.threshold, keep = given.keep,
      measures = { "columns", "norms", "hidden" } }
    local found = lm.sinks(model, list, o)
    o.keep = nil
    seconds = seconds + found.seconds
    for _, s in ipairs(list) do tokens = tokens + #s.ids end
    say("\n%s: %d sample%s of at most %d tokens", source.name, found.samples,
      found.samples == 1 and "" or "s", found.tokens)
    print_source(model, found)
    all[i] = { name = source.name, sinks = found }
    run:add(label .. "sinks", { text = source.name, beginning = begun.text,
      sinks = head_scan.record(found) })
    draw(run, model, tokenizer, source, label, found, given)
    if #changes > 0 then
      print_changes(run, model, source, label, found, source.changes, o)
    end
  end
  say("\n%s", head_scan.table(head_scan.sources(all)))
  local speed = lm.speed(model, tokens, seconds)
  say("\nprefill with measurements: %.0f tokens/s%s", speed.tokens_per_s,
    speed.share and (", %.0f %% of the arithmetic peak"):format(100 * speed.share) or "")
  run:add("speed", speed)
  run:finish()
  local page, why = require "sinklab.report".write({ run.folder })
  if not page then command.refuse("report: %s", why) end
end

return {
  doc = "measure the attention sinks of a language model on texts",
  text = [[
Reads texts with the model's own tokenizer, cuts them into samples, and measures the
prefill as it runs: the weight on position 1, Sink_1^eps (100 times the share of samples
and heads whose mean weight on position 1 is above eps), the position after it that gets
most, entropy, row mass, contribution, norms of values and of the residual stream, massive
activations. Memory grows with the tokens, not with their square, except for the heads
that --keep names.
Results go to the run directory: run.json, figures, arrays and report.html.
The beginning of the samples is always printed: --bos=auto follows the model's file,
none adds nothing, one or two its beginning token, anything else is a token id or a
token of the vocabulary.
With --drop-first, --move-first, --mask, --zero or --mechanism the same is measured again
with each of these changes, and the change in loss is over the same tokens.]],
  words = { { "MODEL", "a GGUF file or a folder", complete = "file" } },
  options = {
    { "text", "FILE", kind = "file", many = true,
      doc = "a text to read; may be repeated" },
    { "prompt", "TEXT", many = true, doc = "a text, as one sample" },
    { "ids", "LIST", many = true, doc = "token ids 1,5,6 or a .npy file, as one sample" },
    { "bos", "POLICY", complete = { "auto", "none", "one", "two" },
      doc = "auto, none, one, two or a token; default auto" },
    { "tokens", "N", kind = "count",
      doc = "tokens of each sample of a text, default 64" },
    { "samples", "N", kind = "count",
      doc = "largest number of samples of a text, default 100" },
    { "pack", doc = "pack all samples into one sequence, as separate documents" },
    { "batch", "N", kind = "count",
      doc = "samples at once, default 1024 tokens; changes no result" },
    { "threshold", "EPS", kind = threshold_of,
      doc = "of Sink_1, default " .. threshold.default },
    { "keep", "L:H,...", kind = heads_of,
      doc = "heads whose weights are saved and drawn" },
    { "drop-first", doc = "change: remove the first token" },
    { "move-first", "K", kind = "count",
      doc = "change: move the first token to position K" },
    { "mask", "LIST", kind = numbers_of,
      doc = "change: keys masked for every query, by position" },
    { "zero", "L:H,...", kind = heads_of,
      doc = "change: set the output of these heads to 0" },
    { "mechanism", "NAME", kind = mechanism_of, complete = "plugins",
      doc = "change: a plugin in place of softmax, as NAME:OPTION=VALUE,..." },
    { "layers", "LIST", kind = numbers_of, doc = "layers of --mechanism, default all" },
    { "out", "DIR", kind = "folder",
      doc = "folder of the results, default runs/sinks-<UTC time>" },
  },
  run = run_sinks,
}
