--- tokenizer.lua - lab.lm.tokenizer: text to token ids and back; tokens before a text.
local core = require "sinklab.core"
local check = require "sinklab.base.check"
local schema = require "sinklab.base.schema"
local strings = require "sinklab.base.strings"
local files = require "sinklab.lm.file"

local tokenizers = {}

local methods = {}
local Tokenizer = { __index = methods, __name = "sinklab.lm.tokenizer" }

-- GGUF's numbers of kinds of tokens.
local kinds = { "normal", "unknown", "control", "added", "unused", "byte" }

--- Whether a path is of a tokenizer alone: a folder, with weights or without, or a
-- tokenizer.json.
local function is_bare(path)
  return core.folder_exists(path)
      or path:match "%.json$" and not path:match "%.index%.json$"
end

tokenizers.tokenizer = schema.func("lab.lm.tokenizer", {
  doc = [[The tokenizer of a model.

    The object has `kind` ("SentencePiece" or "BPE"), `pre` (the pre-tokenizer), `size`,
    `bos`, `eos`, `unknown` (ids, nil for none), `add_bos` (whether text begins with
    `bos`; nil: nobody says), `said_bos` (the file says so; else it is usual for this
    kind) and `note` (what is unusual, or nil).]],
  args = { { "file", "table string", doc = [[from `lab.lm.file`; or a path: what
    lab.lm.file opens, a tokenizer.json, a folder that has one]] } },
  returns = "the tokenizer",
  errors = "nil and a sentence if there is none, or it works in a way that is not known",
  example = [[print(lab.lm.tokenizer "model.gguf") -- or nil, and why]],
}, function(file)
  local bare = type(file) == "string" and is_bare(file)
  if type(file) == "string" and not bare then
    local message
    file, message = files.file(file)
    if not file then return nil, message end
  end
  if not bare and (type(file) ~= "table" or not file.handle) then
    check.fail("lab.lm.tokenizer: expected a path or a file of lab.lm.file, got %s",
      tostring(file))
  end
  local core_tokenizer, message = core.lm.tokenizer(bare and file or file.handle)
  if not core_tokenizer then return nil, message end
  local self = core_tokenizer:about()
  self.core = core_tokenizer
  return setmetatable(self, Tokenizer)
end)

--- The id of a token by its name in the vocabulary, or by its number.
local function id_of(self, what, token)
  local id = math.tointeger(tonumber(token))
  if id and id >= 0 and id < self.size then return id end
  id = type(token) == "string" and self.core:id(token)
  if id then return id end
  check.fail("%s: '%s' is neither auto, none, one, two nor one of the %d tokens",
    what, tostring(token), self.size)
end

--- The result of `begin` for any text.
local function policy_of(self, bos)
  if bos == nil then bos = "auto" end
  local function named(id) return ("%s (%d)"):format(self:name(id), id) end
  local function needed()
    if not self.bos then
      check.fail("bos = \"%s\": the vocabulary names no beginning token; give a token",
        bos)
    end
    return self.bos
  end
  if bos == "none" then return { ids = {}, text = "none" } end
  if bos == "one" then return { ids = { needed() }, text = named(needed()) } end
  if bos == "two" then
    return { ids = { needed(), needed() }, text = "two of " .. named(needed()) }
  end
  if bos ~= "auto" then
    local id = id_of(self, "bos", bos)
    return { ids = { id }, text = named(id) }
  end
  local why = self.said_bos and ", as the file says" or ", as is usual for this kind"
  if self.add_bos and self.bos then
    return { ids = { self.bos }, text = named(self.bos) .. why }
  end
  return { ids = {}, text = self.add_bos == nil and "none: the file says nothing"
    or self.add_bos and "none: the file names no beginning token" or "none" .. why }
end

methods.begin = schema.func("lm.tokenizer:begin", {
  doc = [[The tokens in front of a text, by a policy.

    "auto" does as the file says (nothing if it says nothing), "none" adds nothing,
    "one" and "two" add that many beginning-of-sequence tokens, anything else names a
    token (by its text in the vocabulary or its id) that is put in front.]],
  args = {
    { "bos", "string integer", default = "auto", doc = "the policy" },
    { "ids", "table", optional = true, doc = "of the text" },
  },
  returns = [[a table: `ids` to put in front, `text` that says so in words, `warning` if
    the text begins with that token itself, so that it stands there twice]],
  example = [[
    local t = lab.lm.tokenizer "model.gguf"
    print(t and t:begin("auto").text)]],
}, function(self, bos, ids)
  local begin = policy_of(self, bos)
  local first = begin.ids[1]
  if first and ids and ids[1] == first then
    begin.warning = ("the text itself begins with %s, which now stands there %s"):format(
      self:name(first), #begin.ids == 1 and "twice" or "three times")
  end
  return begin
end)

methods.encode = schema.func("lm.tokenizer:encode", {
  doc = "Token ids of a text.",
  args = { { "text", "string", doc = "any bytes" } },
  options = {
    { "bos", "string integer", default = "auto",
      doc = "what to begin with (see `begin`)" },
    { "special", "boolean", default = false,
      doc = "whether names of control tokens in the text become those tokens" },
  },
  returns = "a list of ids; a warning of `begin` goes to standard error",
  errors = "nil and a sentence if the vocabulary cannot spell the text",
  example = [[
    local t = lab.lm.tokenizer "model.gguf"
    print(t and #t:encode("Once upon a time", { bos = "none" }))]],
}, function(self, text, o)
  local ids, message = self.core:encode(text, o.special)
  if not ids then return nil, message end
  local begin = self:begin(o.bos, ids)
  if begin.warning then
    strings.complain("sinklab: warning: " .. begin.warning)
  end
  if #begin.ids > 0 then
    table.move(ids, 1, #ids, #begin.ids + 1)
    table.move(begin.ids, 1, #begin.ids, 1, ids)
  end
  return ids
end)

methods.decode = schema.func("lm.tokenizer:decode", {
  doc = "The text of token ids, as bytes.",
  args = { { "ids", "table", doc = "a list of ids" } },
  options = {
    { "special", "boolean", default = false,
      doc = "whether control tokens show by name" },
  },
  returns = "text",
  example = [[
    local t = lab.lm.tokenizer "model.gguf"
    print(t and t:decode(t:encode "Once upon a time"))]],
}, function(self, ids, o)
  return self.core:decode(ids, o.special)
end)

methods.token = schema.func("lm.tokenizer:token", {
  doc = [[A token as it stands in the vocabulary ("▁the", "Ġthe", "<0x0A>").]],
  args = { { "id", "integer", doc = "from 0" } },
  returns = [[its text there, and its kind: "normal", "unknown", "control", "added",
    "unused" or "byte"; nil if there is no such id]],
  example = [[
    local t = lab.lm.tokenizer "model.gguf"
    print(t and t:token(0))]],
}, function(self, id)
  local text, kind = self.core:token(id)
  if text then return text, kinds[kind] end
end)

methods.id = schema.func("lm.tokenizer:id", {
  doc = "The id of a token by its text in the vocabulary.",
  args = { { "text", "string", doc = "as `token` gives it" } },
  returns = "the id, or nil",
  example = [[
    local t = lab.lm.tokenizer "model.gguf"
    print(t and t:id "<s>")]],
}, function(self, text)
  return self.core:id(text)
end)


methods.name = schema.func("lm.tokenizer:name", {
  doc = [[A token for people to read, on one line: its text with a space where it has
    one, escapes for control characters and for bytes that are no UTF-8.]],
  args = { { "id", "integer", doc = "from 0" } },
  returns = "text",
  example = [[
    local t = lab.lm.tokenizer "model.gguf"
    print(t and t:name(0))]],
}, function(self, id)
  local text, kind = self:token(id)
  if not text then return ("<%d>"):format(id) end
  if kind == "normal" or kind == "byte" then
    -- behind another token, so that a space in front is kept
    local before = self.core:decode { id }
    text = self.core:decode { id, id }:sub(#before + 1)
  end
  return strings.visible(text)
end)

function Tokenizer:__tostring()
  return ("%s tokenizer, %d tokens, %s"):format(self.kind, self.size,
    "begins with " .. self:begin().text)
end

return tokenizers
