--- texts.lua - texts as token sequences: read, tokenised, with a beginning, cut.
local core = require "sinklab.core"
local check = require "sinklab.base.check"
local sequences = require "sinklab.lm.sequences"

local texts = {}

--- The text of a file, or raise.
local function text_of(what, path)
  local file <close>, why = io.open(path, "rb")
  if not file then check.fail("%s: %s", what, why) end
  local text, message = file:read "a"
  if not text then check.fail("%s: %s: %s", what, path, message or "cannot be read") end
  local zero = text:find("\0", 1, true)
  if zero then check.fail("%s: %s: byte %d is 0: this is no text", what, path, zero) end
  return text
end

--- Ids from "1,5,6" or a .npy file of whole numbers.
local function ids_of(what, words)
  if words:match "%.npy$" then
    local t, message = core.load_npy(words)
    if not t then check.fail("%s: %s", what, message) end
    return t:reshape { -1 }:totable()
  end
  local ids = {}
  for word in words:gmatch "[^,%s]+" do
    local id = word:match "^%d+$" and math.tointeger(tonumber(word))
    if not id then
      check.fail("%s: expected token ids such as 1,5,6 or a .npy file, got '%s'",
        what, word)
    end
    ids[#ids + 1] = id
  end
  if #ids == 0 then check.fail("%s: there are no token ids in '%s'", what, words) end
  return ids
end

--- Token ids as integers, within the vocabulary.
local function whole(what, ids, vocab)
  for i, id in ipairs(ids) do
    ids[i] = math.tointeger(id)
        or check.fail("%s: token id %s is no whole number", what, id)
    if ids[i] < 0 or ids[i] >= vocab then
      check.fail("%s: token id %d is outside 0 to %d", what, ids[i], vocab - 1)
    end
  end
  return ids
end

--- Cut ids into samples of at most `tokens` tokens, each with `before` in front. A
-- shorter rest is dropped, unless it is the only sample.
local function cut(ids, before, tokens, most, source)
  local list, room, at = {}, tokens - #before, 1
  while at <= #ids and #list < most do
    local last = room < #ids - at + 1 and at + room - 1 or #ids
    if last - at + 1 < room and #list > 0 then break end
    local own = table.move(before, 1, #before, 1, {})
    table.move(ids, at, last, #own + 1, own)
    list[#list + 1] = sequences.new(own, source)
    at = last + 1
  end
  return list
end

--- The tokens in front of a text: { ids, text = the policy in words }. Token ids that a
-- user gives are not changed unless a policy is named.
local function beginning(what, model, tokenizer, bos, ids, is_ids)
  if is_ids and (bos == nil or bos == "auto") then
    return { ids = {}, text = "auto: token ids are taken as they are" }
  end
  local policy = bos or "auto"
  if tokenizer then
    local begun = tokenizer:begin(policy, ids)
    if begun.text ~= policy then begun.text = policy .. ": " .. begun.text end
    return begun
  end
  local id = policy:match "^%d+$" and math.tointeger(tonumber(policy))
  if policy == "none" then return { ids = {}, text = "none" } end
  if not id or id >= model.config.vocab then
    check.fail("%s: the beginning '%s' needs a tokenizer, and the model has none; "
      .. "none or an id from 0 to %d is allowed", what, policy, model.config.vocab - 1)
  end
  return { ids = { id }, text = ("%s: %d"):format(policy, id) }
end

local Reader = {}
Reader.__index = Reader

function Reader:warn(kind, message, ...)
  if self.warned[kind] then return end
  self.warned[kind] = true
  self.warnings[#self.warnings + 1] = message:format(...)
end

--- Add a source: its ids, cut into samples with a beginning each.
function Reader:add(name, ids, is_ids, tokens)
  local what, model = self.what, self.model
  local bos = self.tokenizer and self.tokenizer.bos or model.config.bos
  local begun = beginning(what, model, self.tokenizer, self.given.bos, ids, is_ids)
  self.begun = begun.text
  if #begun.ids >= tokens then
    check.fail("%s: samples of %d tokens have no room for a text", what, tokens)
  end
  whole(what, ids, model.config.vocab)
  local list = cut(ids, begun.ids, tokens, self.given.samples, name)
  if #list == 0 then check.fail("%s: '%s' has no token", what, name) end
  for i, s in ipairs(list) do
    if bos and s.ids[1] == bos and s.ids[2] == bos then
      self:warn("double", "%s: sample %d begins with token %d twice: "
        .. "the sink may split over them", name, i, bos)
    end
    if #s.ids > model.config.context then
      self:warn("context", "%s: sample %d has %d tokens, the model was made for %d",
        name, i, #s.ids, model.config.context)
    end
    if bos then sequences.split_at(s, bos) end
    if s.documents then
      self:warn("packed", "%s: sample %d has %d documents, each begun by token %d: "
        .. "they are kept apart", name, i, #s.documents, bos)
    end
  end
  self.sources[#self.sources + 1] = { name = name, sequences = list }
end

function Reader:encode(text)
  if not self.tokenizer then
    check.fail("%s: %s has no tokenizer; give token ids (--ids)", self.what,
      self.model.path)
  end
  local ids, message = self.tokenizer:encode(text, { bos = "none" })
  return ids or check.fail("%s: %s", self.what, message)
end

--- Sequences of the texts, prompts and ids that a user names, a list for each source.
-- @param given  { text = files, prompt = texts, ids = "1,2" or .npy files: lists of
--               strings; bos, tokens = of a sample, samples = of a source at most, pack }
-- @return list of { name =, sequences = }, and { text = the policy of the beginning in
--         words, warnings = list }
function texts.read(what, model, tokenizer, given)
  local self = setmetatable({ what = what, model = model, tokenizer = tokenizer,
    given = given, sources = {}, warnings = {}, warned = {} }, Reader)
  for _, path in ipairs(given.text or {}) do
    self:add(path:match "[^/]*$", self:encode(text_of(what, path)), false, given.tokens)
  end
  for i, prompt in ipairs(given.prompt or {}) do
    self:add("prompt " .. i, self:encode(prompt), false, math.maxinteger)
  end
  for i, words in ipairs(given.ids or {}) do
    self:add("ids " .. i, ids_of(what, words), true, math.maxinteger)
  end
  local sources = self.sources
  if #sources == 0 then
    check.fail("%s: nothing to read: give a text, a prompt or ids", what)
  end
  if given.pack then
    local all = {}
    for _, source in ipairs(sources) do
      table.move(source.sequences, 1, #source.sequences, #all + 1, all)
    end
    sources = { { name = "packed", sequences = { sequences.pack(all, "packed") } } }
  end
  return sources, { text = self.begun, warnings = self.warnings }
end

--- Labels of the tokens of a sequence on an axis.
function texts.labels(tokenizer, s)
  local out = {}
  for i, id in ipairs(s.ids) do
    out[i] = tokenizer and tokenizer:name(id) or tostring(id)
  end
  return out
end

return texts
