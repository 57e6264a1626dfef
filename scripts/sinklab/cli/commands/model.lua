--- model.lua - sinklab model info: the contents of a language model's files.
local core = require "sinklab.core"
local command = require "sinklab.cli.command"
local json = require "sinklab.base.json"
local strings = require "sinklab.base.strings"
local text = require "sinklab.base.text"

local print = strings.print

local order = { "path", "format", "version", "bytes", "architecture", "name",
  "parameters", "layers", "d_model", "heads", "kv_heads", "d_head", "d_ffn", "vocab",
  "context", "positions", "types", "tokenizer", "scanned", "unusual", "ignored",
  "refused" }

local grouped = text.grouped

--- Bytes in a unit that a person reads.
local function amount(bytes)
  local unit, units = 0, { [0] = "bytes", "KiB", "MiB", "GiB", "TiB" }
  while bytes >= 1024 and unit < 4 do bytes, unit = bytes / 1024, unit + 1 end
  return unit == 0 and ("%d bytes"):format(bytes)
      or ("%.4g %s"):format(bytes, units[unit])
end

local function show(o)
  local function line(label, value)
    if value ~= nil then print(("%-13s %s"):format(label, strings.visible(value))) end
  end
  local t = o.tokenizer
  line("file", o.path)
  line("format", ("%s%s, %s"):format(o.format == "gguf" and "GGUF" or o.format,
    o.version and " version " .. o.version or "", amount(o.bytes)))
  line("architecture", (o.architecture or "not named")
    .. (o.name and (" (%s)"):format(o.name) or ""))
  line("parameters", grouped(o.parameters))
  if o.layers then
    line("sizes", ("%d layer%s of width %d, MLP %s"):format(o.layers,
      o.layers == 1 and "" or "s", o.d_model, o.d_ffn or "-"))
    line("heads", ("%d of %d%s"):format(o.heads, o.d_head, o.kv_heads ~= o.heads
      and (", %d for keys and values"):format(o.kv_heads) or ""))
    line("vocabulary", o.vocab and grouped(o.vocab))
    line("context", ("%s, positions: %s"):format(grouped(o.context), o.positions))
  end
  if t.refused then
    line("tokenizer", "none: " .. t.refused)
  else
    line("tokenizer", ("%s, %s tokens%s"):format(t.kind, grouped(t.size),
      t.kind == "BPE" and ", pre-tokenizer " .. t.pre or ""))
    line("begins with", t.begins)
    line("special", ("beginning %s, end %s"):format(t.bos or "none", t.eos or "none"))
  end
  local rows = {}
  for i, each in ipairs(o.types) do
    rows[i] = { each.type, each.tensors, grouped(each.numbers), amount(each.bytes) }
  end
  if #rows > 0 then
    print("\n" .. text.table({ "type", "tensors", "numbers", "bytes" }, rows))
  end
  print ""
  for _, each in ipairs(o.unusual) do line("unusual", each) end
  if #o.unusual == 0 then line("unusual", "nothing") end
  if o.ignored and #o.ignored > 0 then line("ignored", table.concat(o.ignored, ", ")) end
  if not o.scanned then
    line("not searched", "for numbers that are not finite; --scan reads all weights")
  end
  line("not opened", o.refused)
end

local function info(words, given)
  local out, message = require "sinklab.lm".info(words[1],
    { scan = given.scan or nil })
  if not out then command.refuse("%s", message) end
  if given.json then
    json.array(out.types)
    json.array(out.unusual)
    if out.ignored then json.array(out.ignored) end
    print(json.encode(json.object(out, order)))
  else
    show(out)
  end
  if out.refused then core.quit(1) end
end

return {
  doc = "describe the file of a language model",
  actions = {
    {
      name = "info",
      doc = "print architecture, sizes, types, tokenizer and anomalies",
      text = [[
FILE is a GGUF file, a safetensors file, an index of shards or a Hugging Face folder.
Weights of files up to 1 GiB are searched for numbers that are infinite or NaN. The exit
status is 1 if lab.lm.open would refuse the model.]],
      words = { { "FILE", "a model's file or folder", complete = "file" } },
      options = {
        { "json", doc = "print JSON" },
        { "scan", doc = "search the weights of a file of any size" },
      },
      run = info,
    },
  },
}
