--- weights.lua - the tensors of a model file, found by their role.
--
-- Each part of an architecture is found under the name that the file's form gives it,
-- its shape is compared with what the sizes ask for, and what a file has beyond that is
-- refused: a tensor that nothing uses would mean a model computed wrongly.
local core = require "sinklab.core"
local architectures = require "sinklab.lm.architectures"
local config = require "sinklab.lm.config"
local unsupported = require "sinklab.lm.unsupported"

local weights = {}

-- Shapes: (rows, columns) of a matrix that maps columns to rows, or the width of a norm.
local shapes = {
  embedding = function(c) return { c.vocab, c.d_model } end,
  unembedding = function(c) return { c.vocab, c.d_model } end,
  position = function(c) return { c.context + c.position_offset, c.d_model } end,
  q = function(c) return { c.heads * c.d_head, c.d_model } end,
  k = function(c) return { c.kv_heads * c.d_head, c.d_model } end,
  v = function(c) return { c.kv_heads * c.d_value, c.d_model } end,
  qkv = function(c)
    return { (c.heads + c.kv_heads) * c.d_head + c.kv_heads * c.d_value, c.d_model }
  end,
  o = function(c) return { c.d_model, c.heads * c.d_value } end,
  gate = function(c) return { c.d_ffn, c.d_model } end,
  up = function(c) return { c.d_ffn, c.d_model } end,
  gate_up = function(c) return { 2 * c.d_ffn, c.d_model } end,
  down = function(c) return { c.d_model, c.d_ffn } end,
  sinks = function(c) return { c.heads } end,
  router = function(c) return { c.experts, c.d_model } end,
  expert_gate = function(c) return { c.experts, c.d_ffn, c.d_model } end,
  expert_up = function(c) return { c.experts, c.d_ffn, c.d_model } end,
  expert_down = function(c, form)
    return form == "hf" and { c.experts, c.d_ffn, c.d_model }
        or { c.experts, c.d_model, c.d_ffn }
  end,
  expert_gate_up = function(c) return { c.experts, c.d_model, 2 * c.d_ffn } end,
  q_norm = function(c) return c.qk_norm_shape(c.heads) end,
  k_norm = function(c) return c.qk_norm_shape(c.kv_heads) end,
  rope_divisors = function(c) return { c.rope.rotated // 2 } end,
}
shapes.rope_long, shapes.rope_short = shapes.rope_divisors, shapes.rope_divisors

-- Of biases, where it is not the rows of the matrix.
local bias_shapes = {
  expert_gate = function(c) return { c.experts, c.d_ffn } end,
  expert_up = function(c) return { c.experts, c.d_ffn } end,
  expert_gate_up = function(c) return { c.experts, 2 * c.d_ffn } end,
  expert_down = function(c) return { c.experts, c.d_model } end,
}

-- Of q_norm and k_norm, by the entry's qk_norm.
local qk_norm_shapes = {
  head = function(c) return function() return { c.d_head } end end,
  heads = function(c) return function(n) return { n, c.d_head } end end,
  full = function(c) return function(n) return { n * c.d_head } end end,
}

local function same(a, b)
  if #a ~= #b then return false end
  for i, n in ipairs(a) do if n ~= b[i] then return false end end
  return true
end

local function shape_text(shape) return "(" .. table.concat(shape, ", ") .. ")" end

local Binder = {}
Binder.__index = Binder

function Binder:refuse(message, ...)
  unsupported.raise(self.path .. ": " .. message:format(...))
end

--- Full names that a part may have, its weight and its bias.
function Binder:candidates(part, layer)
  local given = self.names[part]
  local found = {}
  for _, name in ipairs(type(given) == "table" and given or { given }) do
    local bare = name:sub(1, 1) == "^"
    local whole = name:sub(-1) == "."
    local stem = bare and name:sub(2) or name
    if whole then stem = stem:sub(1, -2) end
    local middle = layer and self.names.layer:format(layer - 1) or ""
    for _, prefix in ipairs(bare and { "" } or self.names.prefix) do
      found[#found + 1] = { prefix .. middle .. stem .. (whole and "" or ".weight"),
        prefix .. middle .. stem .. (whole and "_bias" or ".bias") }
    end
  end
  return found
end

--- The weight of this full name, compared with the shape it must have.
function Binder:take(name, shape)
  local found = self.there[name]
  if not same(found.shape, shape) then
    self:refuse("tensor '%s' has shape %s; it must be %s", name, shape_text(found.shape),
      shape_text(shape))
  end
  self.used[name] = true
  local weight, message = self.file:weight(name)
  return weight or unsupported.raise(message)
end

--- One gamma a head, from tensors of their own.
function Binder:per_head(part, layer, shape)
  local parts = {}
  for head = 1, shape[1] do
    local name = self:candidates(part, layer)[1][1]:format(head - 1)
    if not self.there[name] then
      if head == 1 then return nil end
      self:refuse("there is no tensor '%s'", name)
    end
    parts[head] = self:take(name, { shape[2] }):tensor "f32"
  end
  local rows = core.zeros(shape)
  for head, row in ipairs(parts) do rows:select(1, head):copy(row) end
  return rows
end

--- The names under which the file has a part, or nil if it may be missing and is.
function Binder:find(part, layer, may_miss)
  local candidates = self:candidates(part, layer)
  for _, names in ipairs(candidates) do
    if self.there[names[1]] then return names end
  end
  if not may_miss then self:refuse("there is no tensor '%s'", candidates[1][1]) end
end

--- Whether the file's matrices are (inputs, outputs).
function Binder:is_turned(part, layer)
  return self.entry.conv1d and self.form == "hf" and layer and shapes[part]
end

--- { weight, bias, name } of a part, or nil where it may be missing and is.
function Binder:part(word, layer)
  local may_miss, mark = word:sub(1, 1) == "(", word:match "[+?]"
  local c, part = self.c, word:match "[%w_]+"
  if not self.names[part] then return nil end
  local shape = (shapes[part] or function() return { c.d_model } end)(c, self.form)
  if self.entry.qk_norm == "heads" and part:match "^[qk]_norm$" and self.form == "hf" then
    local gamma = self:per_head(part, layer, shape)
    return gamma and { gamma = gamma, name = part }
  end
  local names = self:find(part, layer, may_miss)
  if not names then return nil end
  local rows = shape[1]
  if self:is_turned(part, layer) then shape = { shape[2], shape[1] } end
  local found = { name = names[1], weight = self:take(names[1], shape) }
  if mark == "+" or mark == "?" and self.there[names[2]] then
    if not self.there[names[2]] then self:refuse("there is no tensor '%s'", names[2]) end
    local width = bias_shapes[part] and bias_shapes[part](c) or { rows }
    found.bias = self:take(names[2], width):tensor "f32"
  end
  return found
end

--- A part as it is used: norms and small tensors as numbers, matrices the right way
-- round.
function Binder:finish(part, stem, layer)
  if not part then return nil end
  if stem:match "norm" then
    part.gamma = part.gamma or part.weight:tensor "f32"
    local shift = self.entry.norm_shift and self.entry.norm_shift[self.form]
    if shift then part.gamma = part.gamma + shift end
  elseif stem == "sinks" or stem:match "^rope_" or stem == "position" then
    part.tensor = part.weight:tensor "f32"
  elseif self:is_turned(stem, layer) then
    part.transposed = part.weight:tensor("f32"):transpose(1, 2)
  end
  return part
end

function Binder:parts(words, layer)
  local out = {}
  for word in words:gmatch "%S+" do
    local stem = word:match "[%w_]+"
    out[stem] = self:finish(self:part(word, layer), stem, layer)
  end
  return out
end

--- Refuse tensors that nothing has used.
function Binder:check_unused()
  local left = {}
  for name in pairs(self.there) do
    local known = self.used[name]
    for _, pattern in ipairs(self.form == "hf" and architectures.no_parameters or {}) do
      known = known or name:match(pattern) ~= nil
    end
    if not known then left[#left + 1] = name end
  end
  if #left == 0 then return end
  table.sort(left)
  self:refuse("tensor '%s'%s is nothing that the architecture %s uses", left[1],
    #left > 1 and (" (and %d more)"):format(#left - 1) or "", self.c.architecture)
end

--- All tensors of a model: outer parts by name, and layers[i] the same.
-- @param file   of lab.lm.file
-- @param c      from config.read; vocab is filled in where the file leaves it out
-- @param entry  of the architecture
function weights.bind(file, path, c, entry)
  local form = c.form
  local names = form == "gguf" and architectures.gguf_names or entry.names
  if form == "gguf" and entry.gguf_names then
    local own = {}
    for part, name in pairs(names) do own[part] = entry.gguf_names[part] or name end
    names = own
  end
  local self = setmetatable({ file = file, path = path, c = c, entry = entry,
    form = form, names = names, there = {}, used = {} }, Binder)
  for _, tensor in ipairs(file.tensors) do self.there[tensor.name] = tensor end
  c.position_offset = entry.position_offset or 0
  if entry.qk_norm then c.qk_norm_shape = qk_norm_shapes[entry.qk_norm](c) end
  if not c.vocab then
    for _, pair in ipairs(self:candidates "embedding") do
      local found = self.there[pair[1]]
      if found and #found.shape == 2 then c.vocab = found.shape[1] end
    end
    if not c.vocab then
      self:refuse("there is no tensor '%s'", self:candidates("embedding")[1][1])
    end
  end
  local outer = config.of_form(entry.outer, form)
  if form == "gguf" and c.rope then
    outer = outer .. " (rope_divisors) (rope_long) (rope_short)"
  end
  local bound = self:parts(outer)
  if not bound.unembedding and not c.tied then
    self:refuse("there is no tensor '%s', and the embedding is not tied to it",
      self:candidates("unembedding")[1][1])
  end
  bound.layers = {}
  for layer = 1, c.layers do
    bound.layers[layer] = self:parts(config.of_form(entry.parts, form), layer)
    if not c.parallel and names.ffn_norm and entry.parallel
        and not bound.layers[layer].ffn_norm then
      self:refuse("there is no tensor '%s', and its layers are not parallel",
        self:candidates("ffn_norm", layer)[1][1])
    end
  end
  self:check_unused()
  return bound
end

return weights
