--- object.lua - what every model of lab.model can do: run, be read, written and printed.
--
-- A model is { params, config and blocks of sinklab.layers, outer = { embedding, ... },
-- attention = from attention.options, outputs = list of w_o, ... }.
local core = require "sinklab.core"
local attention = require "sinklab.model.attention"
local check = require "sinklab.base.check"
local layers = require "sinklab.layers"
local schema = require "sinklab.base.schema"
local text = require "sinklab.base.text"

local methods = {}
local Model = { __index = methods, __name = "sinklab.model" }

--- The example of a method: one more line behind a small model.
local function example(line)
  return "local task = lab.task.trigger_mean {}\n"
      .. "local model = lab.model.attention_only { task = task }\n" .. line
end

--- Raise unless x is an input of the model's task: numbers of its width, or token ids.
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

--- h (B, T, D) and length (B) with the registers in front, (n, D).
local function with_registers(registers, h, length)
  local n, d = registers.shape[1], registers.shape[2]
  local first = registers:reshape { 1, n, d }:broadcast { h.shape[1], n, d }
  return core.concat({ first, h }, 2), length and length + n
end

methods.forward = schema.func("model:forward", {
  doc = "Predictions for x: (B, seq_len, d_model) numbers or (B, seq_len) token ids.",
  args = { { "x", "any", doc = "the sequences" },
    { "length", "tensor", optional = true, doc = "(B): valid tokens of each sequence" },
    { "first_key", "tensor", optional = true, doc = [[(B, seq_len): the first position,
      from 0, that each query may see (packed documents, left padding); a query with one
      past its own position sees none. Not with registers, key biases or a mixer]] } },
  options = {
    { "layer", "function", doc = [[function (layer, h): called with the residual stream,
      (B, tokens, width) with registers first, before layer 1 (as layer 0) and after each
      layer]] },
    { "attend", "function", doc = [[function (call): the heads' output in place of
      lab.attention or lab.mixer, whose table it gets]] } },
  returns = "(B, seq_len, d_output)",
  errors = "x of another shape than the task's",
  example = example "print(model:forward(task:batch { n = 2 }.x).shape[3])",
}, function(self, x, length, first_key, hooks)
  check_input(self, x)
  local c, n = self.config, self.registers
  if first_key and (n > 0 or self.attention.virtual_keys > 0
      or self.mechanism.shape ~= "row") then
    check.fail("model: documents and left padding do not go with registers, "
      .. "key biases or the mixer '%s'", self.mechanism.name)
  end
  local h = layers.embed(c, self.outer, x, self.positions)
  if n > 0 then h, length = with_registers(self.outer.registers, h, length) end
  if hooks.layer then hooks.layer(0, h) end
  local call = { length = length, first_key = first_key, attend = hooks.attend }
  for number, block in ipairs(self.blocks) do
    h = self.run_layer(c, block, h, call)
    if hooks.layer then hooks.layer(number, h) end
  end
  if n > 0 then h = h:narrow(2, n + 1, h.shape[2] - n) end
  return layers.logits(c, self.outer, h)
end)

methods.parameter = schema.func("model:parameter", {
  doc = "A parameter by name: a view, so changing it changes the model.",
  args = { { "name", "string", doc = "as print (model) lists it" } },
  returns = "tensor", errors = "no such parameter",
  example = example "print(model:parameter \"layer1.w_q\")",
}, function(self, name)
  local t = self.params:get(name)
  if t then return t end
  local names = {}
  for i, entry in ipairs(self.params.order) do names[i] = entry.name end
  check.fail("model: no parameter '%s'%s", name,
    check.did_you_mean(name, names))
end)

methods.set = schema.func("model:set", {
  doc = "Set a parameter from a tensor or nested table of its shape.",
  args = { { "name", "string", doc = "as print (model) lists it" },
    { "value", "tensor table number", doc = "nested lists are of its shape" } },
  returns = "the model itself", errors = "no such parameter, another shape",
  example = example "model:set(\"layer1.w_q\", lab.zeros({ 16, 16 }))",
}, function(self, name, value)
  local t = self:parameter(name)
  if not core.is_tensor(value) then value = core.tensor(value, self.dtype) end
  t:copy(value:to(self.dtype))
  return self
end)

methods.to = schema.func("model:to", {
  doc = "The same model in another precision: model:to \"f64\". Parameters are copied.",
  args = { { "dtype", "string", choices = { "f32", "f64" } } },
  returns = "model", example = example "print(model:to \"f64\")",
}, function(self, dtype)
  local options = {}
  for key, value in pairs(self.options) do options[key] = value end
  options.dtype = dtype
  local copy = require "sinklab.model"[self.kind](options)
  copy.params.flat:copy(self.params.flat:to(dtype))
  return copy
end)

methods.parameters = schema.func("model:parameters", {
  doc = "Every parameter, as views.", returns = "{ name = tensor }",
  example = example
    "for name, t in pairs(model:parameters()) do print(name, t.count) end",
}, function(self)
  local out = {}
  for _, entry in ipairs(self.params.order) do
    out[entry.name] = self.params:get(entry.name)
  end
  return out
end)

methods.save = schema.func("model:save", {
  doc = "Write the parameters as safetensors.",
  args = { { "path", "string", doc = "of the file; written whole or not at all" } },
  returns = "true, or nil and a message",
  example = example "assert(model:save \"model.safetensors\")",
}, function(self, path)
  return core.save_safetensors(path, self:parameters(),
    { model = self.kind, dtype = self.dtype })
end)

methods.load = schema.func("model:load", {
  doc = "Read parameters that save wrote for a model of the same shape.",
  args = { { "path", "string",
    doc = "of the file, which has these parameters and no others" } },
  returns = "the model, or nil and a message; then the model is as before",
  example = example
    "model:save \"model.safetensors\"\nassert(model:load \"model.safetensors\")",
}, function(self, path)
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
end)

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

return Model
