--- command.lua - the command line: one table describes the arguments of a command.
--
-- A command is one module, sinklab/cli/commands/NAME.lua, and its name in `names` below.
-- The module returns a table from which arguments are checked and read, and from which
-- `sinklab help`, the man page and the shells' completions are made:
--
--   return {
--     doc = "its purpose in a few words",        -- for `sinklab help`
--     text = "More, for the man page and --help.",
--     words = { { "RUN_DIR", "a run directory", many = true, complete = "folder" } },
--     options = { { "seed", "N", kind = "whole", doc = "of the draws, default 0" },
--                 { "json", doc = "print JSON" } },
--     run = function(words, given, context) ... end, -- given.seed, given.json
--   }
--
-- A word: its name as usage shows it, what an error calls it; `optional`, `many` (the
-- last one), `complete`: "file", "folder", "plugins", a list or function () -> list. An
-- option with a second entry takes a value; `kind` is one of `kinds` below or a function
-- (text) -> value or nil, what was expected; `many` gathers the values in a list;
-- `complete` is that of a word.
-- In `given` a dash in the name is an underscore. `actions` in place of `words` and
-- `run` is a list of such tables with a `name` each: sinklab plugin list, ...
-- `more` is a function that prints more text for --help. A command refuses by
-- `command.refuse`, and ends with another status by core.quit (status). The context is
-- that of cli/context.lua; with `others` it gets the options that the table lacks.
local core = require "sinklab.core"
local check = require "sinklab.base.check"
local contexts = require "sinklab.cli.context"
local text = require "sinklab.base.text"

local did_you_mean = check.did_you_mean

local command = {}

-- In the order of `sinklab help`.
command.names = {
  "run",
  "repl",
  "list",
  "new",
  "plugin",
  "sinks",
  "runs",
  "report",
  "model",
  "doctor",
  "completion",
  "version",
  "help",
}

-- The host reads these before Lua starts, for every command.
command.host_options = {
  { "threads", "N", doc = "worker threads; 0 = all (default)" },
  { "quiet", doc = "no progress lines: results, claims and errors only" },
  { "traceback", doc = "show the Lua stack with an error" },
  { "help", doc = "the arguments of a command or script" },
}

--- End the command with one sentence (a format) and status 1. No place in a script is
-- named: the command line is to blame.
function command.refuse(message, ...) error(message:format(...), 0) end

local refuse = command.refuse

-- Kinds of option values: text -> value; or nil, and the expected kind in words.
local kinds = {}
command.kinds = kinds
function kinds.whole(s)
  return s:match "^%d+$" and math.tointeger(tonumber(s)), "a whole number from 0"
end
function kinds.count(s)
  local n = s:match "^%d+$" and math.tointeger(tonumber(s))
  return n and n > 0 and n, "a whole number from 1"
end
function kinds.number(s)
  return s:match "^[+-]?[%d.]+[eE]?[+-]?%d*$" and tonumber(s), "a number"
end
function kinds.seconds(s)
  local n = s:match "^[%d.]+$" and tonumber(s)
  return n and n > 0 and n <= 86400 and n, "seconds, above 0 and at most 86400"
end
function kinds.text(s) return s, "text" end
function kinds.folder(s) return s ~= "" and s, "a folder" end
function kinds.file(s) return s ~= "" and s, "a file" end

--- The table of a command.
function command.find(name) return require("sinklab.cli.commands." .. name) end

--- Names of a list of actions.
function command.action_names(spec)
  local names = {}
  for i, action in ipairs(spec.actions) do names[i] = action.name end
  return names
end

--- "--seed=N", "--json".
function command.option_text(o) return "--" .. o[1] .. (o[2] and "=" .. o[2] or "") end

local function word_text(w)
  local s = w[1] .. (w.many and "..." or "")
  return w.optional and "[" .. s .. "]" or s
end

--- "plugin check NAME|PATH [--seed=N]" without the name of the program; `short` leaves
-- the options out.
function command.usage(name, spec, short)
  if spec.usage then return spec.usage end
  if spec.actions then
    return name .. " " .. table.concat(command.action_names(spec), "|") .. " ..."
  end
  local parts = { name }
  for _, w in ipairs(spec.words or {}) do parts[#parts + 1] = word_text(w) end
  for _, o in ipairs(not short and spec.options or {}) do
    parts[#parts + 1] = "[" .. command.option_text(o) .. "]"
  end
  return table.concat(parts, " ")
end

-- A usage beyond so many columns is left to --help.
local WIDE = 76

--- The usage as an error shows it; a long one is replaced by the command for help.
local function usage_or_help(name, spec)
  local usage = "sinklab " .. command.usage(name, spec)
  return #usage <= WIDE and usage or ("sinklab %s --help"):format(name)
end

local function no_option(argument, name, options, usage)
  local names = {}
  for _, o in ipairs(options) do names[#names + 1] = "--" .. o[1] end
  for _, o in ipairs(command.host_options) do names[#names + 1] = "--" .. o[1] end
  refuse("no option '%s'%s", argument, did_you_mean("--" .. name, names,
    "\n  try: " .. usage))
end

local function read_value(o, value)
  local name = o[1]
  if not o[2] then
    if value then refuse("--%s takes no value, got '%s'", name, value) end
    return true
  end
  if not value then refuse("--%s needs a value: write --%s=VALUE", name, name) end
  local kind = kinds[o.kind or "text"] or o.kind
  local read, expected = kind(value)
  if not read then refuse("--%s: expected %s, got '%s'", name, expected, value) end
  return read
end

--- Words and options of the command line, checked by a command's table; and, if the
-- table has `others`, the options that it does not name.
local function read(name, spec, arguments)
  local words, given, others = {}, {}, {}
  local usage = usage_or_help(name, spec)
  local known = {}
  for _, o in ipairs(spec.options or {}) do known[o[1]] = o end
  for _, argument in ipairs(arguments) do
    if argument:sub(1, 2) == "--" then
      local key, value = argument:match "^%-%-([^=]*)=(.*)$"
      key = key or argument:sub(3)
      local o = known[key]
      if o then
        local field = key:gsub("%-", "_")
        value = read_value(o, value)
        if o.many then
          given[field] = given[field] or {}
          table.insert(given[field], value)
        elseif given[field] ~= nil then
          refuse("--%s is given twice", key)
        else
          given[field] = value
        end
      elseif spec.others then
        others[#others + 1] = argument
      else
        no_option(argument, key, spec.options or {}, usage)
      end
    elseif argument:sub(1, 1) == "-" and #argument > 1 then
      refuse("unexpected argument '%s': options are --key=VALUE", argument)
    else
      words[#words + 1] = argument
    end
  end
  return words, given, others
end

local function count_words(name, spec, words)
  local wanted = spec.words or {}
  local last = wanted[#wanted]
  if #words > #wanted and not (last and last.many) then
    refuse("unexpected argument '%s': %s", words[#wanted + 1], spec.others
      and "options are --key=VALUE" or usage_or_help(name, spec))
  end
  local missing = {}
  for i = #words + 1, #wanted do
    if not wanted[i].optional then missing[#missing + 1] = wanted[i][2] end
  end
  if #missing > 0 then
    refuse("%s needs %s: %s%s", name, table.concat(missing, " and "),
      usage_or_help(name, spec), spec.hint and "\n  " .. spec.hint or "")
  end
end

local function print_options(options, title)
  if #options == 0 then return end
  print("\n" .. title)
  local width = 0
  for _, o in ipairs(options) do width = math.max(width, #command.option_text(o)) end
  for _, o in ipairs(options) do
    print(("  %-" .. width .. "s  %s"):format(command.option_text(o), o.doc))
  end
end

--- Print the help of a command or action; a command with one action is that action.
function command.help(name, spec)
  if spec.actions and #spec.actions == 1 then
    return command.help(name .. " " .. spec.actions[1].name, spec.actions[1])
  end
  local function heading(whole, of)
    print(text.wrap("sinklab " .. command.usage(whole, of), 88, 8) .. "\n    " .. of.doc)
  end
  if spec.actions then
    for _, action in ipairs(spec.actions) do
      heading(name .. " " .. action.name, action)
    end
    print(("\nMore on one of them: sinklab help %s %s"):format(name,
      spec.actions[1].name))
  else
    heading(name, spec)
  end
  if spec.text then print("\n" .. spec.text) end
  print_options(spec.options or {}, "Options:")
  print_options(command.host_options, "Options of every command:")
  if spec.more then spec.more() end
end

--- The action of a command that has some, by its name.
function command.action(name, spec, action)
  for _, candidate in ipairs(spec.actions) do
    if candidate.name == action then return candidate end
  end
  local names = command.action_names(spec)
  refuse("%s: no action '%s'%s", name, action, did_you_mean(action, names,
    (": expected %s\n  try: sinklab %s --help"):format(text.alternatives(names), name)))
end

--- Run the command `name` with these arguments of the command line.
-- @param context  of the program that the command may start; see cli/context.lua
function command.run(name, spec, arguments, context)
  if spec.actions then
    local action, rest = nil, {}
    for _, argument in ipairs(arguments) do
      if not action and argument:sub(1, 1) ~= "-" then
        action = argument
      else
        rest[#rest + 1] = argument
      end
    end
    if action then
      return command.run(name .. " " .. action, command.action(name, spec, action), rest,
        context)
    elseif not context.help then
      refuse("%s needs an action: sinklab %s %s", name, name,
        table.concat(command.action_names(spec), "|"))
    end
  end
  if context.help and not spec.helps then return command.help(name, spec) end
  local words, given, others = read(name, spec, arguments)
  context.arguments = others
  if context.help and #words == 0 then return command.help(name, spec) end
  count_words(name, spec, words)
  return spec.run(words, given, context)
end

local function unknown(word)
  local script = core.file_exists(word) or word:match "%.lua$"
  refuse("no command '%s'%s", word, did_you_mean(word, command.names,
    "\n  try: sinklab " .. (script and "run " .. word or "help")))
end

--- The name of a command, or nil.
function command.is_known(word)
  for _, name in ipairs(command.names) do
    if name == word then return name end
  end
end

--- Run the command that the executable was started with.
-- @param arguments  of the command line, without the executable's own options
-- @param help       whether --help was among them
-- @return the rest of the work, which is the executable's: nil, "prompt", or "script",
--         the file and the name that errors call it
function command.main(arguments, help)
  local word = arguments[1]
  if word == "--version" then
    word = "version"
  elseif not word or word:sub(1, 1) == "-" then
    -- Options alone are the prompt's.
    word = help and "help" or "repl"
    help = false
    table.insert(arguments, 1, word)
  end
  if not command.is_known(word) then unknown(word) end
  local context = { arguments = {}, help = help }
  contexts.enter(context)
  local rest = table.move(arguments, 2, #arguments, 1, {})
  return command.run(word, command.find(word), rest, context)
end

return command
