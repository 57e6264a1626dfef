--- model.lua - lab.model: models made of attention, described by a table.
local core = require "sinklab.core"
local check = require "sinklab.base.check"
local text = require "sinklab.base.text"
local init_values = require "sinklab.model.init_values"
local params = require "sinklab.model.params"
local layers = require "sinklab.model.layers"
local attention = require "sinklab.model.attention"

local model = {}
local methods = {}
local Model = { __index = methods, __name = "sinklab.model" }

--- Raise unless x is what the model's task gives: numbers of its width, or token ids.
local function check_input(self, x)
  local width = self.options.task.d_model
  local shape = core.is_tensor(x) and x.shape or {}
  local fits = #shape == (width and 3 or 2) and (not width or shape[3] == width)
  if fits then return end
  check.fail("model: it reads %s, got %s",
    width and ("numbers (B, T, %d)"):format(width) or "token ids (B, T)",
    core.is_tensor(x) and ("a tensor (%s)"):format(table.concat(shape, ", "))
    or "a " .. type(x))
end

--- Predictions for x: (B, seq_len, d_model) numbers or (B, seq_len) token ids.
-- @param x       the sequences
-- @param length  optional (B): valid tokens of each sequence
-- @param first_key   optional (B, seq_len): the first position, from 0, that each one may
--                see (packed documents, left padding); past it: it sees none. Not with
--                registers, key biases or a mixer
-- @param hooks   optional { layer = function (layer, h): called with the residual stream,
--                (B, tokens, width) with registers first, before layer 1 (as layer 0) and
--                after each layer; attend = function (call): heads' output in place of
--                lab.attention or lab.mixer, whose table it gets }
-- @return (B, seq_len, d_output)
-- @error x of another shape than the task's
-- @example
--   local task = lab.task.trigger_mean {}
--   local model = lab.model.attention_only { task = task }
--   print(model:forward(task:batch { n = 2 }.x).shape[3])
function methods:forward(x, length, first_key, hooks)
  check_input(self, x)
  hooks = hooks or {}
  local h, n = self:embed(x), self.registers
  if first_key and (n > 0 or self.attention.virtual_keys > 0
      or self.mechanism.shape ~= "row") then
    check.fail("model: documents and left padding do not go with registers, "
      .. "key biases or the mixer '%s'", self.mechanism.name)
  end
  if n > 0 then
    local shape = h.shape
    local first = self:parameter "registers":reshape { 1, n, shape[3] }
    h = core.concat({ first:broadcast { shape[1], n, shape[3] }, h }, 2)
    length = length and length + n
  end
  if hooks.layer then hooks.layer(0, h) end
  for layer, block in ipairs(self.blocks) do
    h = block(h, length, first_key, hooks.attend)
    if hooks.layer then hooks.layer(layer, h) end
  end
  if n > 0 then h = h:narrow(2, n + 1, h.shape[2] - n) end
  return self:unembed(h)
end

--- A parameter by name: a view, so changing it changes the model.
-- @param name  as print (model) lists it
-- @return tensor
-- @error no such parameter
-- @example
--   local task = lab.task.trigger_mean {}
--   local model = lab.model.attention_only { task = task }
--   print(model:parameter "layer1.w_q")
function methods:parameter(name)
  local t = self.params:get(name)
  if not t then
    local names = {}
    for i, entry in ipairs(self.params.order) do names[i] = entry.name end
    check.fail("model: no parameter '%s'%s", tostring(name),
      check.did_you_mean(name, names))
  end
  return t
end

--- Set a parameter from a tensor or nested table of its shape.
-- @param name   as print (model) lists it
-- @param value  tensor of either precision, or nested lists of numbers
-- @return the model itself
-- @error no such parameter, another shape
-- @example
--   local task = lab.task.trigger_mean {}
--   local model = lab.model.attention_only { task = task }
--   model:set("layer1.w_q", lab.zeros({ 16, 16 }))
function methods:set(name, value)
  local t = self:parameter(name)
  if not core.is_tensor(value) then value = core.tensor(value, self.dtype) end
  t:copy(value:to(self.dtype))
  return self
end

--- The same model in another precision: model:to "f64". Parameters are copied.
-- @param dtype  "f32" or "f64"
-- @return model
-- @example
--   local model = lab.model.attention_only { task = lab.task.trigger_mean {} }
--   print(model:to "f64")
function methods:to(dtype)
  local options = {}
  for key, value in pairs(self.options) do options[key] = value end
  options.dtype = dtype
  local copy = model[self.kind](options)
  copy.params.flat:copy(self.params.flat:to(dtype))
  return copy
end

--- Every parameter, as views.
-- @return { name = tensor }
-- @example
--   local task = lab.task.trigger_mean {}
--   local model = lab.model.attention_only { task = task }
--   for name, t in pairs(model:parameters()) do print(name, t.count) end
function methods:parameters()
  local out = {}
  for _, entry in ipairs(self.params.order) do
    out[entry.name] = self.params:get(entry.name)
  end
  return out
end

--- Write the parameters as safetensors.
-- @param path  of the file; written whole or not at all
-- @return true, or nil and a message
-- @example
--   local task = lab.task.trigger_mean {}
--   local model = lab.model.attention_only { task = task }
--   assert(model:save "model.safetensors")
function methods:save(path)
  return core.save_safetensors(path, self:parameters(),
    { model = self.kind, dtype = self.dtype })
end

--- Read parameters that save wrote for a model of the same shape.
-- @param path  of the file, which has these parameters and no others
-- @return the model, or nil and a message; then the model is as before
-- @example
--   local task = lab.task.trigger_mean {}
--   local model = lab.model.attention_only { task = task }
--   model:save "model.safetensors"
--   assert(model:load "model.safetensors")
function methods:load(path)
  local read, message = core.load_safetensors(path)
  if not read then return nil, message end
  for name in pairs(read) do
    if not self.params:get(name) then
      return nil, ("%s: tensor '%s' is none of this model's"):format(path, name)
    end
  end
  for _, entry in ipairs(self.params.order) do
    local t = read[entry.name]
    if not t then
      return nil, ("%s: no tensor '%s'"):format(path, entry.name)
    end
    if table.concat(t.shape, ", ") ~= table.concat(entry.shape, ", ") then
      return nil, ("%s: tensor '%s' has shape (%s), the model's is (%s)"):format(
        path, entry.name, table.concat(t.shape, ", "),
        table.concat(entry.shape, ", "))
    end
  end
  for _, entry in ipairs(self.params.order) do
    self.params:get(entry.name):copy(read[entry.name]:to(self.dtype))
  end
  return self
end

function Model:__tostring()
  local lines = { ("model %s: %s, %d layer%s, %s parameters, %s"):format(self.kind,
    self.mechanism_text, #self.blocks, #self.blocks == 1 and "" or "s",
    text.grouped(self.params.size), self.dtype),
    "  attention: " .. attention.text(self.attention) }
  local wide = 0
  for _, entry in ipairs(self.params.order) do wide = math.max(wide, #entry.name) end
  for _, entry in ipairs(self.params.order) do
    lines[#lines + 1] = ("  %-" .. wide .. "s  (%s)"):format(entry.name,
      table.concat(entry.shape, ", "))
  end
  return table.concat(lines, "\n")
end

--- Rules that every model's table shares.
local function common()
  return {
    task = { "task", required = true },
    layers = { "integer", default = 1, min = 1 },
    heads = { "integer", default = 1, min = 1 },
    attention = { "string table", default = "softmax" },
    init = { "function", default = init_values.normal(0.02) },
    seed = { "integer", default = 0, min = 0 },
    dtype = { "string", default = "f32", choices = { "f32", "f64" } },
    registers = { "integer", default = 0, min = 0, max = 4096 },
  }
end

--- A model without parameters yet but its registers.
local function new(kind, what, o, a)
  local self = setmetatable({ kind = kind, what = what, options = o,
    task_name = o.task.name, seq_len = o.task.seq_len, dtype = o.dtype,
    heads = o.heads, layers = o.layers,
    blocks = {}, outputs = {}, attention = a, mechanism_text = a.name,
    mechanism = a.mechanism, registers = o.registers, params = params.plan() }, Model)
  if o.registers > 0 then
    self.params:add("registers", { o.registers, a.d_model }, o.init)
  end
  return self
end

--- The paper's model: x <- x + MHA(x), or MHA(x) alone; no norm, MLP, positions or
-- bias; every head as wide as the model unless d_head says otherwise.
-- @param task       gives d_model and seq_len
-- @param layers     default 1
-- @param heads      default 1
-- @param d_head     default the task's d_model
-- @param kv_heads   default heads; divides heads
-- @param residual   default false
-- @param attention  a plugin's name, or { mechanism =, gate =, scale =, causal =, window =,
--                   kv_bias = } (the first lines of sinklab/model/attention.lua say
--                   what each may be): scale defaults to 1 here (the paper's)
-- @param registers  learned tokens before the first one, dropped before the output
--                   (Darcet et al. 2024, arXiv 2309.16588), default 0
-- @param init       default lab.init.normal(0.02)
-- @param seed       default 0
-- @param dtype      "f32" (default) or "f64"
-- @return model; print (model) lists its parameters
-- @error a task of token ids, sizes that do not divide, an option not allowed
-- @source Ran-Milo 2026, arXiv 2603.11487
-- @example
--   local task = lab.task.trigger_mean { residual = true }
--   print(lab.model.attention_only { task = task, layers = 2, heads = 2,
--     residual = true, attention = { mechanism = "relu", gate = "sigmoid_gate" } })
function model.attention_only(given)
  local what = "lab.model.attention_only"
  local rules = common()
  rules.d_head = { "integer", min = 1 }
  rules.kv_heads = { "integer", min = 1 }
  rules.residual = { "boolean", default = false }
  local o = check.options(what, given, rules)
  local d = o.task.d_model
  if not d then
    check.fail("%s: task '%s' gives token ids; this model reads numbers "
      .. "(try lab.model.transformer)", what, tostring(o.task.name))
  end
  local a = attention.options(what, o.attention,
    { scale = 1, heads = o.heads, kv_heads = o.kv_heads or o.heads,
      d_model = d, d_head = o.d_head or d, positions = "none",
      tokens = o.task.seq_len + o.registers })
  local self = new("attention_only", what, o, a)
  local makers = {}
  for i = 1, o.layers do
    makers[i] = attention.plan(self.params, "layer" .. i, a, o.init, false, i)
  end
  self.params:make(o.seed, o.dtype)
  for i = 1, o.layers do
    local mha = makers[i](self.params)
    self.outputs[i] = mha.w_o
    self.blocks[i] = o.residual
        and function(h, ...) return h + mha.forward(h, ...) end
        or mha.forward
  end
  self.embed = function(_, x) return x end
  self.unembed = function(_, h) return h end
  return self
end

--- A transformer: embedding, blocks of attention and MLP, unembedding.
-- @param task        gives seq_len, and vocab or d_model
-- @param layers, heads, kv_heads, seed, dtype, attention, registers, init  as
--                    attention_only, but scale defaults to 1 / sqrt (d_head)
-- @param d_model     default 64 with token ids; else the task's d_model
-- @param d_head      default d_model / heads
-- @param norm        "layer" (default), "rms" or "none"
-- @param norm_place  "pre" (default) or "post"
-- @param norm_eps    default 1e-5
-- @param mlp         "gelu" (default), "gelu_tanh", "relu", "silu", "swiglu", "geglu",
--                    "reglu" or "none"
-- @param d_mlp       hidden width, default 4 d_model
-- @param positions   "learned" (default), "sinusoidal", "rotary" (interleaved pairs),
--                    "rotary_half", "alibi" or "none"
-- @param rope_base   default 10000
-- @param context     positions of the learned table, default seq_len
-- @param bias        default false: biases in every linear map and norm
-- @param tied        default false: unembed with the token embedding
-- @return model; print (model) lists its parameters
-- @error sizes that do not divide, an option not allowed
-- @example
--   local task = lab.task.trigger_mean {}
--   print(lab.model.transformer { task = task, heads = 2, norm = "rms",
--     mlp = "swiglu", positions = "rotary" })
function model.transformer(given)
  local what = "lab.model.transformer"
  local rules = common()
  rules.kv_heads = { "integer", min = 1 }
  rules.d_model = { "integer", min = 1 }
  rules.d_head = { "integer", min = 1 }
  rules.norm = { "string", default = "layer", choices = { "layer", "rms", "none" } }
  rules.norm_place = { "string", default = "pre", choices = { "pre", "post" } }
  rules.norm_eps = { "number", default = 1e-5, above = 0 }
  rules.mlp = { "string", default = "gelu", choices = layers.mlp_kinds }
  rules.d_mlp = { "integer", min = 1 }
  rules.positions = { "string", default = "learned", choices = layers.position_kinds }
  rules.rope_base = { "number", default = 10000, above = 1 }
  rules.context = { "integer", min = 1 }
  rules.bias = { "boolean", default = false }
  rules.tied = { "boolean", default = false }
  local o = check.options(what, given, rules)
  local task = o.task
  local d = o.d_model or task.d_model or 64
  if task.d_model and d ~= task.d_model then
    check.fail("%s: d_model is %d, but task '%s' gives vectors of width %d", what, d,
      task.name, task.d_model)
  end
  if o.tied and not (task.vocab and task.d_output == task.vocab) then
    check.fail("%s: tied needs a task with token ids in and out", what)
  end
  local d_head = o.d_head or d // o.heads
  if not o.d_head and d % o.heads ~= 0 then
    check.fail("%s: d_model %d is not a multiple of %d heads (give d_head)", what, d,
      o.heads)
  end
  local context = o.context or task.seq_len
  if context < task.seq_len then
    check.fail("%s: context is %d, but task '%s' has sequences of %d tokens", what,
      context, task.name, task.seq_len)
  end
  local a = attention.options(what, o.attention,
    { scale = 1 / math.sqrt(d_head), heads = o.heads,
      kv_heads = o.kv_heads or o.heads, d_model = d, d_head = d_head,
      positions = o.positions, rope_base = o.rope_base,
      tokens = task.seq_len + o.registers })
  local self = new("transformer", what, o, a)
  local plan, init = self.params, o.init

  if task.vocab then plan:add("token_embedding", { task.vocab, d }, init) end
  if o.positions == "learned" then
    plan:add("position_embedding", { context, d }, init)
  end
  local makers = {}
  for i = 1, o.layers do
    makers[i] = layers.plan_block(plan, i, a, o, d, init)
  end
  local final = o.norm ~= "none" and o.norm_place == "pre"
      and layers.plan_norm(plan, "final_norm", o.norm, d, o.bias, o.norm_eps)
  local w_out = not o.tied and (task.vocab or task.d_output ~= d)
  if w_out then plan:add("unembedding", { task.d_output, d }, init) end

  plan:make(o.seed, o.dtype)
  for i = 1, o.layers do self.blocks[i], self.outputs[i] = makers[i](plan) end
  local norm = final and final(plan) or function(h) return h end
  local positions = layers.positions(plan, o.positions, task.seq_len, d, o.dtype)
  local tokens = task.vocab and plan:get "token_embedding"
  local unembedding = o.tied and tokens or w_out and plan:get "unembedding"
  self.embed = function(_, x)
    local h = tokens and core.embedding(tokens, x) or x
    return positions and h + positions or h
  end
  self.unembed = function(_, h)
    h = norm(h)
    return unembedding and core.linear(h, unembedding) or h
  end
  return self
end

return model
