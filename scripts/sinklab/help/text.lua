--- text.lua - the text that ?name shows at the prompt: schemas, plugins, experiments,
-- commands and variables as text of a width.
local core = require "sinklab.core"
local check = require "sinklab.base.check"
local command = require "sinklab.cli.command"
local experiments = require "sinklab.cli.experiments"
local help = require "sinklab.help"
local text = require "sinklab.base.text"

local help_text = {}

local WIDEST = 96
-- A longer name has a line of its own.
local LONG_NAME = 26

local wrapped = text.wrap

local function indented(code) return "  " .. code:gsub("\n", "\n  ") end

--- Lines of two columns: names and meanings.
local function columns(rows, width)
  local left, out = 0, {}
  for _, row in ipairs(rows) do
    if #row[1] <= LONG_NAME then left = math.max(left, #row[1]) end
  end
  for i, row in ipairs(rows) do
    local head = "  " .. row[1] .. (" "):rep(left - #row[1]) .. "  "
    if #row[1] > LONG_NAME then
      head = "  " .. wrapped(row[1], width - 2, 2) .. "\n" .. (" "):rep(left + 4)
    end
    local said = wrapped(row[2], width - left - 4, 0)
        :gsub("\n", "\n" .. (" "):rep(left + 4))
    out[i] = (head .. said):gsub("%s+$", "")
  end
  return table.concat(out, "\n")
end

--- One entry of help.index in full.
-- @param width  columns of the terminal
-- @param whole  also the code, where it is Lua
function help_text.entry(entry, width, whole)
  width = math.min(width or 80, WIDEST)
  local out = { help.call(entry), "", wrapped(entry.summary or "", width, 0) }
  local function put(s) out[#out + 1] = s end
  for _, p in ipairs(entry.paragraphs or {}) do
    put ""
    put(p.block and indented(p.text) or wrapped(p.text, width, 0))
  end
  local rows = {}
  for i, p in ipairs(entry.params or {}) do rows[i] = { p.names, p.text } end
  if #rows > 0 then
    put ""
    put(columns(rows, width))
  end
  if entry["return"] or entry.error or entry.source then put "" end
  for _, tag in ipairs { { "return", "returns" }, { "error", "raises" },
    { "source", "source" } } do
    if entry[tag[1]] then put(wrapped(tag[2] .. "  " .. entry[tag[1]], width, 9)) end
  end
  if entry.example then
    put "\nexample"
    put(indented(entry.example))
  end
  if whole then
    local code = help.code(entry)
    put(code and ("\ncode, %s line %d"):format(entry.file.path, entry.line)
      or "\nThis is written in C.")
    if code then put(indented(code)) end
  end
  return table.concat(out, "\n")
end

local function sentences(entries, width)
  local rows = {}
  for i, entry in ipairs(entries) do rows[i] = { entry.name, entry.summary or "" } end
  return columns(rows, width)
end

--- Everything that begins with a prefix: lab.plot -> lab.plot.heat, ...
local function group(prefix)
  local out = {}
  for _, entry in ipairs(help.index()) do
    if entry.name:sub(1, #prefix) == prefix
        and entry.name:find("^[.:]", #prefix + 1) then
      out[#out + 1] = entry
    end
  end
  return out
end

--- The values that an option of a plugin may have.
function help_text.range(option)
  if option.choices then return text.alternatives(option.choices) end
  return option.min and ("%.10g to %.10g"):format(option.min, option.max)
      or "true or false"
end

--- A plugin: its description, options and claims.
local function plugin(name, width, whole)
  for _, p in ipairs(core.plugins()) do
    if p.name == name then
      local d = core.plugin(name)
      local out = { ('"%s", a %s: %s'):format(d.name, d.shape, d.doc), "" }
      local rows = {}
      for i, o in ipairs(d.options) do
        rows[i] = { o.name, ("%s (%s), default %s"):format(o.doc, help_text.range(o),
          tostring(o.default)) }
      end
      out[#out + 1] = #rows > 0 and columns(rows, width) or "It has no options."
      out[#out + 1] = "\nproperties  " .. (#d.properties > 0
        and table.concat(d.properties, ", ") or "none")
      if whole then out[#out + 1] = "file        " .. d.path end
      local use = d.shape == "gate" and 'attention = { gate = "%s" }'
          or 'attention = "%s"'
      out[#out + 1] = "\nexample\n  local task = lab.task.trigger_mean {}\n"
          .. "  lab.model.attention_only { task = task, " .. use:format(name) .. " }"
      return table.concat(out, "\n")
    end
  end
end

local function experiment(name)
  for _, known in ipairs(experiments.names()) do
    if known == name then
      local lines = experiments.header(experiments.path(name))
      return table.concat(lines, "\n") .. "\n\nsinklab run " .. name
          .. "   (here: %run " .. name .. ")"
    end
  end
end

local function subcommand(name)
  local word = name:match "^sinklab%s+(%S+)$" or command.is_known(name)
  if not word or not command.is_known(word) then return end
  local spec = command.find(word)
  return ("sinklab %s\n\n%s.\n\nMore: sinklab help %s"):format(
    command.usage(word, spec, true), spec.doc:gsub("^%l", string.upper), word)
end

--- A variable: the class of its value, and the methods of that class.
local function variable(name, globals, width)
  local value = globals and rawget(globals, name)
  if value == nil then return end
  local class = help.class_of(value)
  local methods = class and group(class) or {}
  local said = name .. ": " .. (class or math.type(value) or type(value))
  if #methods > 0 then said = said .. "\n\n" .. sentences(methods, width) end
  return said
end

-- Last, where a terminal still shows it: the functions of a first hour.
local BEGIN = "?task.trigger_mean  ?model.attention_only  ?train  ?sinks  ?plot.heat"

local function overview(width)
  local rows, seen = {}, {}
  for _, entry in ipairs(help.index()) do
    local f = entry.file
    if f and not seen[f] then
      seen[f] = true
      rows[#rows + 1] = { f, f.title or "" }
    end
  end
  local out = { "lab: everything that sinklab offers to scripts. ?NAME shows one thing, "
    .. "??WORD searches.\n" }
  for _, row in ipairs(rows) do
    local names = {}
    for _, entry in ipairs(help.index()) do
      if entry.file == row[1] then names[#names + 1] = entry.name:gsub("^lab%.", "") end
    end
    out[#out + 1] = wrapped(row[2]:gsub("%.$", ""), width, 0) .. "\n"
        .. indented(wrapped(table.concat(names, "  "), width - 2, 0))
  end
  out[#out + 1] = "\n" .. wrapped("To begin with: " .. BEGIN, width, 0)
  return table.concat(out, "\n")
end

local function unknown(name)
  local names = help.names()
  for _, p in ipairs(core.plugins()) do names[#names + 1] = p.name end
  for _, n in ipairs(experiments.names()) do names[#names + 1] = n end
  for _, n in ipairs(command.names) do names[#names + 1] = n end
  local parent = name:match "^(.+)%.[%w_]+$"
  local hint = parent and help.find(parent) and ("; ?%s has its options"):format(parent)
      or name:match "^[%w_.:]+$" and ("; ??%s searches"):format(name) or nil
  return nil, ("no help for '%s'%s"):format(name, check.did_you_mean(name, names, hint))
end

--- Help for the text typed after `?` (or, with `whole`, after `??`): a name
-- of the library, of a plugin (in quotes, or alone if nothing else has it; with
-- `whole` its file too), of an experiment, of a command or of a variable. `??` of
-- anything else searches.
-- @return text, or nil and a message
function help_text.of(typed, globals, width, whole)
  width = math.min(width or 80, WIDEST)
  local name = typed:match "^%s*(.-)%s*$"
  local quoted = name:match '^"(.*)"$' or name:match "^'(.*)'$"
  if quoted then
    local found = plugin(quoted, width, whole)
    if found then return found end
    return unknown(quoted)
  end
  name = name:gsub("%s*%(%s*%)$", "")
  if name == "lab" or name == "" then return overview(width) end
  local entry = help.find(name, globals)
  if entry then
    local said = help_text.entry(entry, width, whole)
    local short, more = name:match "([%w_]+)$", {}
    for _, member in ipairs(group(entry.name)) do
      more[#more + 1] = member.name:sub(#entry.name + 2)
    end
    if #more > 0 then
      said = said .. "\n\n" .. wrapped(("further, as %s.NAME  %s"):format(entry.name,
        table.concat(more, "  ")), width, 2)
    end
    for _, p in ipairs(entry.name == "lab." .. short and core.plugins() or {}) do
      if p.name == short then
        said = said .. ('\n\nThere is also a plugin of this name: ?"%s"'):format(short)
        break
      end
    end
    return said
  end
  -- lab.model.NAME, and the methods of a model.
  local members, methods = group("lab." .. name), group(name)
  table.move(methods, 1, #methods, #members + 1, members)
  if #members > 0 then return sentences(members, width) end
  local found = plugin(name, width, whole) or experiment(name) or subcommand(name)
      or variable(name, globals, width)
  if found then return found end
  if whole and name:match "%S" then
    found = help.search(name)
    if #found > 0 then return sentences(found, width) end
  end
  return unknown(name)
end

return help_text
