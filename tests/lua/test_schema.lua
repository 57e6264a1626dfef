-- test_schema.lua - schemas: every public name has one, every default passes its own
-- rule, and every wrong use of an option is a sentence that begins with the function's
-- name.
local check = require "check"
local core = require "sinklab.core"
local help = require "sinklab.help"
local lab = require "sinklab"
local rules = require "sinklab.base.check"
local schema = require "sinklab.base.schema"

help.index() -- every module is read

--- A function whose arguments are checked and returned.
local function echo(name, spec)
  local f = schema.func(name, spec, function(...) return ... end)
  schema.entries()[name] = nil -- it is no public name
  return f
end

check.test("arguments and options are checked and filled", function()
  local f = echo("lab.f", { doc = "F.", args = { { "path", "string" },
    { "count", "integer", default = 2, min = 1 } }, options = {
      { "lr", "number", above = 0, default = 0.5 },
      { "list", "table", default = { 1 } },
      { "stop", "table", default = {}, fields = {
        { "loss", "number", default = 3 } } } } })
  local path, count, o = f("x")
  check.equal({ path, count, o.lr, o.stop.loss }, { "x", 2, 0.5, 3 })
  o.list[2] = 5 -- the next caller does not see it
  check.equal(select(3, f("x")).list, { 1 })
  check.equal(select(2, f("x", 3.0)), 3)
  for text, call in pairs {
    ["lab.f: the path must be a string, got nil"] = { },
    ["lab.f: the count is 0; it must be at least 1"] = { "x", 0 },
    ["lab.f: expected a table of options, got 5"] = { "x", 1, 5 },
    ["lab.f: option 'lr' is 0; it must be above 0"] = { "x", 1, { lr = 0 } },
    ["lab.f: no such option 'rl' (did you mean 'lr'?)"] = { "x", 1, { rl = 1 } },
    ["lab.f: no such option 'a'"] = { "x", 1, { z = 1, y = 1, x = 1, a = 1, lr = 0 } },
    ["lab.f: no such option '1'; it takes list, lr or stop"] = { "x", 1, { 1 } },
    ["lab.f: stop: option 'loss' must be a number, got 'x'"] = { "x", 1,
      { stop = { loss = "x" } } },
  } do
    check.raises(text, f, table.unpack(call))
  end
end)

check.test("a method is given its object, a wrong use is blamed on the caller", function()
  local method = echo("thing:go", { doc = "Go.", options = {
    { "n", "integer", default = 1, min = 0, max = 9 } } })
  check.raises("thing:go: expected a thing before the ':', got a table", method, {})
  local self = setmetatable({}, { __name = "sinklab.thing" })
  local got, o = method(self)
  check.equal({ rawequal(got, self), o.n }, { true, 1 })
  local message = check.raises("thing:go: option 'n' is 10; it must be at least 0 and at "
    .. "most 9", function() method(self, { n = 10 }) end)
  check.contains(message, "test_schema.lua:")
end)

check.test("every public name has a schema, with types and ranges in its help", function()
  for _, entry in ipairs(help.index()) do
    if not entry.schema then error(entry.name .. " has no schema", 0) end
  end
  local options = {}
  for _, o in ipairs(help.options(help.find "lab.task.backcopy")) do
    options[o[1]] = o[2]
  end
  check.equal(options.bos, "how many BOS tokens a sequence begins with (whole number, at "
    .. "least 0 and at most 2), default 1")
  check.contains(options.path, "default 40 kB of Shakespeare")
end)

check.test("a row holds what a row may hold", function()
  local known = { name = true, doc = true, default = true, default_doc = true,
    required = true, optional = true, min = true, max = true, above = true,
    below = true,
    choices = true, unit = true, fields = true, list = true, of = true,
    keys = true, nan = true }
  for name, entry in pairs(schema.entries()) do
    for _, list in ipairs { entry.args, entry.options or {} } do
      for _, rule in ipairs(list) do
        for key in pairs(rule) do
          if key ~= 1 and not known[key] then
            error(("%s: %s has a field '%s'"):format(name, rule.name, tostring(key)), 0)
          end
        end
        for kind in rule[1]:gmatch "[%w_]+" do
          check.equal(rules.is_kind(kind), true, name .. ": " .. kind)
        end
      end
    end
  end
end)

check.test("every default passes its own rule", function()
  for name, entry in pairs(schema.entries()) do
    for _, rule in ipairs(entry.options or {}) do
      if rule.default ~= nil then
        local ok, message = pcall(rules.options, name, { [rule.name] = rule.default },
          { [rule.name] = rule })
        if not ok then error(message, 0) end
      end
    end
    for _, rule in ipairs(entry.args) do
      if rule.default ~= nil then rules.positional(name, rule.default, rule) end
    end
  end
end)

-- A value of none of an option's kinds; one out of its range.
local samples = { boolean = true, string = "no such choice", number = 0.5, table = {},
  ["function"] = print }

local function wrong_values(rule)
  local out, has = {}, {}
  for kind in rule[1]:gmatch "[%w_]+" do has[kind] = true end
  if has.any then return out end
  for _, kind in ipairs { "boolean", "string", "table", "function" } do
    if not has[kind] then
      out[1] = samples[kind]
      break
    end
  end
  if has.number or has.integer then
    local low = rule.above or rule.min and rule.min - 1
    if low then out[#out + 1] = low end
    if rule.max then out[#out + 1] = rule.max + 1 end
    if rule.below then out[#out + 1] = rule.below end
  end
  if rule.choices then out[#out + 1] = samples.string end
  return out
end

check.test("every option refuses wrong types, values and names", function()
  local tried = 0
  for name, entry in pairs(schema.entries()) do
    for _, rule in ipairs(entry.options or {}) do
      if rule.name ~= "..." then
        for _, value in ipairs(wrong_values(rule)) do
          tried = tried + 1
          local ok, message = pcall(rules.options, name, { [rule.name] = value },
            entry.options)
          check.equal(ok, false, ("%s: %s = %s"):format(name, rule.name, tostring(value)))
          check.contains(message, ("%s: option '%s' "):format(name, rule.name))
        end
        local _, message = pcall(rules.options, name, { [rule.name .. "x"] = 1 },
          entry.options)
        check.contains(message, ("%s: no such option '%sx'"):format(name, rule.name))
      end
    end
  end
  check.above(tried, 300, "options tried")
end)

check.test("what the C half trusts is refused before it", function()
  local task = lab.task.trigger_mean {}
  local model = lab.model.attention_only { task = task }
  check.raises("lab.train: no such option 'shards' (did you mean 'shard'?)", lab.train,
    model, task, { shards = 1 })
  check.raises("lab.train: stop: no such option 'max_abs_err' (did you mean "
    .. "'max_abs_error'?)", lab.train, model, task, { stop = { max_abs_err = 1 } })
  check.raises("lab.sinks: no such option 'treshold' (did you mean 'threshold'?)",
    lab.sinks, model, task:batch { n = 1 }, { treshold = 1 })
end)

check.test("operations have the defaults that their schemas say", function()
  local x = lab.generator(0):normal(0, 1, { 4, 3 })
  local id = lab.tensor { 0, 2, 1, -100 }
  for name, call in pairs {
    sum = function(o) return x:sum(1, o) end, var = function(o) return x:var(1, o) end,
    gelu = function(o) return x:gelu(o) end,
    layer_norm = function(o) return lab.layer_norm(x, nil, nil, o) end,
    rms_norm = function(o) return lab.rms_norm(x, nil, o) end,
    cross_entropy = function(o) return (lab.cross_entropy(x, id, o)) end,
  } do
    local o = {}
    for _, rule in ipairs(schema.entry("lab." .. name).options) do
      o[rule.name] = rule.default
    end
    check.equal(call(o):totable(), call():totable(), name)
  end
end)

check.test("functions of the C half refuse options in the same words", function()
  for name, call in pairs {
    ["lab.rope: option 'd_head' is missing (a whole number)"] = function()
      lab.rope(lab.ones { 1, 2, 4 })
    end,
    ["lab.gate: no such option 'head' (did you mean 'heads'?)"] = function()
      lab.gate { head = 1 }
    end,
    ["lab.attention: option 'mechanism' must be a mechanism made by lab.mechanism"]
    = function()
      lab.attention { mechanism = "softmax" }
    end,
    ["lab.schedule_at: no such name"] = function() return lab.schedule_at end,
    ["lab.check_plugin: no such name"] = function() return lab.check_plugin end,
  } do
    check.raises(name, call)
  end
  check.equal(core.check_plugin ~= nil, true)
end)

check.done()
