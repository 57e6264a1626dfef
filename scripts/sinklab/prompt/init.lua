--- init.lua - inputs at the prompt: a piece of Lua, a question, or a command.
--
-- The terminal is core/lua/repl.c's; nothing here reads or writes a key.
local core = require "sinklab.core"
local check = require "sinklab.base.check"
local command = require "sinklab.cli.command"
local contexts = require "sinklab.cli.context"
local scan = require "sinklab.prompt.scan"
local text = require "sinklab.base.text"

local repl = {}

local function columns() return core.columns() or tonumber(os.getenv "COLUMNS") or 80 end

local function pass(...) return ... end

--- A function of the text: as an expression, whose values are shown, else as
-- statements. nil, message and whether more lines may complete it.
--
-- The expression is an argument of a call: as "return EXPRESSION" it might be a tail
-- call, which leaves no line of the input that an error could name. The call ends on the
-- input's last line, whose number an error has then, unless a comment hides its end
-- there.
local function compile(source)
  local f
  for _, close in ipairs { ")", "\n)" } do
    f = load("local pass <const> = ... return pass(" .. source:gsub("[;%s]+$", "")
      .. close, "=stdin", "t")
    if f then return function() return f(pass) end end
  end
  f = load("return " .. source, "=stdin", "t") -- 1 + 1; -- with a comment
  if f then return f end
  local g, message = load(source, "=stdin", "t")
  if g then return g end
  return nil, message, message:match "<eof>$" ~= nil
end

local function is_silenced(source) return source:match ";%s*$" ~= nil end

local commands = {}

--- %help
function commands.help()
  print [[
?NAME           help on a function, option, plugin or experiment; also NAME?
??NAME          the same with its code; of anything else: a search
%time INPUT     run it and say how long it took
%run SCRIPT ... run a script here, with its --key=VALUE options; its globals stay
%who            the variables that you have made
TAB             completes; _ is the last result; a line that ends in ; prints nothing
Ctrl-C          stops what runs; Ctrl-D leaves]]
end

local standard = {}
for name in pairs(_G) do standard[name] = true end

--- %who: variables that are not Lua's or sinklab's, with their values.
function commands.who()
  local rows = {}
  for name, value in pairs(_G) do
    if not standard[name] and name ~= "lab" and name ~= "_" and name ~= "arg" then
      local said = type(value) == "function" and "function"
          or require "sinklab.prompt.show".line(value)
      rows[#rows + 1] = { tostring(name), said }
    end
  end
  table.sort(rows, function(a, b) return a[1] < b[1] end)
  if #rows == 0 then return print "nothing yet" end
  local width = 0
  for _, row in ipairs(rows) do width = math.max(width, #row[1]) end
  for _, row in ipairs(rows) do
    print((row[1] .. (" "):rep(width - #row[1]) .. "  " .. row[2]):sub(1, columns() - 1))
  end
end

local function duration(seconds)
  if seconds >= 60 then return require "sinklab.base.progress".duration(seconds) end
  return ("%.3g s"):format(seconds)
end

--- %time: the values of the rest, and seconds on the clock and of all threads.
function commands.time(rest)
  local f, message = compile(rest)
  if not f then error(message, 0) end
  local wall, cpu = core.clock(), os.clock()
  local results = table.pack(f())
  wall, cpu = core.clock() - wall, os.clock() - cpu
  io.stderr:write(("%s on the clock, %s of computing\n"):format(duration(wall),
    duration(cpu)))
  return table.unpack(results, 1, results.n)
end

--- Run a script that is found; its results.
local function run_script(words, context)
  local what, path, shown = command.run("run", command.find "run", words, context)
  if what ~= "script" then return {} end -- --help was given
  local f, message = loadfile(path, "t")
  if not f then error(message, 0) end
  local search = package.path
  local folder = path:match "^(.*)/[^/]*$" or "."
  package.path = ("%s/?.lua;%s/?/init.lua;%s"):format(folder, folder, search)
  local results = table.pack(pcall(f, table.unpack(context.arguments)))
  package.path = search
  if not results[1] then error(results[2], 0) end
  return table.move(results, 2, results.n, 1, { n = results.n - 1 }), shown
end

--- %run: a script as `sinklab run` would, but in here: its globals stay, and its run
-- is closed when it ends.
function commands.run(rest)
  local words, context = {}, { arguments = {}, help = false }
  local prompt = contexts.enter(context)
  for word in rest:gmatch "%S+" do
    if word == "--help" then
      context.help = true
    else
      words[#words + 1] = word
    end
  end
  local finish = require "sinklab.record.run".finish
  local ok, outcome = pcall(run_script, words, context)
  local quit = not ok and type(outcome) == "userdata" -- core.quit
  if ok or quit then
    finish "complete"
  else
    finish(core.interrupted() and "interrupted" or "failed", tostring(outcome))
  end
  contexts.enter(prompt)
  rawset(_G, "arg", nil)
  if quit then return end
  if not ok then error(outcome, 0) end
  return table.unpack(outcome, 1, outcome.n)
end

local names = {}
for name in pairs(commands) do names[#names + 1] = "%" .. name end
table.sort(names)

--- "%name rest" -> a function, or nil and a message.
local function read_command(source)
  local name, rest = source:match "^%%(%w*)%s*(.-)[%s;]*$"
  local run = commands[name]
  if not run then
    return nil, ("no command '%%%s'%s"):format(name, check.did_you_mean("%" .. name,
      names, ": it is " .. text.alternatives(names)))
  end
  if (name == "time" or name == "run") and rest == "" then
    return nil, ("%%%s needs %s"):format(name, name == "run" and "a script"
      or "something to run")
  end
  return function() return run(rest) end
end

--- "?name", "??name", "name?", "name??" -> the name and whether all is wanted.
local function question(source)
  local marks, name = source:match "^(%?%??)%s*(.-)[%s;]*$"
  if not marks then name, marks = source:match "^([%w_.:\"']+)(%?%??)%s*$" end
  return name, marks == "??"
end

-- Words that people try where no variable has the name.
local hints = {
  exit = "Ctrl-D leaves (or os.exit())",
  quit = "Ctrl-D leaves (or os.exit())",
  help = "?NAME describes a name, ? alone lists all names, %help the other inputs",
}

--- Read an input.
-- @param source  the lines typed so far
-- @return "more": another line is needed; "run", a function whose values are shown, and
--         whether they are silenced; "none": there is nothing to do; "error", a message
function repl.read(source)
  if source:match "^%s*$" then return "none" end
  local plain = source:match "^%s*(.-)%s*$"
  local name, whole = question(plain)
  if name then
    return "run", function()
      local found, message = require "sinklab.help.text".of(name, _G, columns(), whole)
      print(found or message)
    end, false
  end
  if plain:sub(1, 1) == "%" then
    local f, message = read_command(plain)
    if not f then return "error", message end
    return "run", f, is_silenced(source)
  end
  if hints[plain] and rawget(_G, plain) == nil then return "error", hints[plain] end
  local f, message, more = compile(source)
  if f then
    local lost = scan.outer_local(source)
    if lost then
      io.stderr:write(("note: the local '%s' is gone after this input; without `local` "
        .. "it stays\n"):format(lost))
    end
    return "run", f, is_silenced(source)
  elseif more then
    return "more"
  end
  return "error", message
end

--- Inputs one after another, as if they were typed.
local function run_lines(source)
  local pending = ""
  for line in (source .. "\n"):gmatch "(.-)\n" do
    pending = pending .. line .. "\n"
    local what, f, silent = repl.read(pending)
    if what == "run" then
      repl.show(silent, f())
    elseif what == "error" then
      error(f, 0)
    end
    if what ~= "more" then pending = "" end
  end
  if pending:match "%S" then error(select(2, compile(pending)), 0) end
end

--- The text of a pipe as a function: one script; with questions and commands among its
-- lines, one input after another.
function repl.piped(source)
  local f, message = compile(source)
  if f then return f end
  if ("\n" .. source):find "\n%s*[?%%]" then return function() run_lines(source) end end
  error(message, 0)
end

--- Keep the first value in _ and show all.
function repl.show(silent, ...)
  if select("#", ...) == 0 then return end
  rawset(_G, "_", (...))
  if not silent then require "sinklab.prompt.show".print(...) end
end

--- The effect of Tab at the end of an unfinished input: text to insert, candidates.
-- On a blank line it indents.
function repl.complete(source)
  if source:match "[^\n]*$":match "^%s*$" then return "  ", {} end
  return require "sinklab.prompt.complete" (source, _G)
end

return repl
