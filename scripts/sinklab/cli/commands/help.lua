--- help.lua - sinklab help: every command in a line, or one of them in full.
local check = require "sinklab.base.check"
local command = require "sinklab.cli.command"
local strings = require "sinklab.base.strings"
local text = require "sinklab.base.text"

local print = strings.print

-- Where the words on a command begin.
local COLUMN = 34

local function overview()
  print "sinklab: a laboratory for attention sinks\n\nCommands, after `sinklab`:"
  for _, name in ipairs(command.names) do
    local spec = command.find(name)
    local left = "  " .. command.usage(name, spec, true)
    local doc = text.wrap(spec.doc, 80 - COLUMN, 0):gsub("\n", "\n" .. (" "):rep(COLUMN))
    -- A long usage has a line of its own.
    if #left > COLUMN - 2 then left = left .. "\n" end
    local last = left:match "[^\n]*$"
    print(left .. (" "):rep(COLUMN - #last) .. doc)
  end
  print "\nOptions (a script's own: sinklab run SCRIPT --help):"
  local options = { command.find "run".options[1] }
  table.move(command.host_options, 1, #command.host_options, 2, options)
  for _, o in ipairs(options) do
    print(("  %-13s  %s"):format(command.option_text(o), o.doc))
  end
  print [[

Exit status: 0 it ran and every claim held, 1 an error, 2 it ran and a claim
did not hold, 128 + N ended by signal N: Ctrl-C (130), a closed pipe (141),
SIGTERM (143), SIGHUP (129), SIGXFSZ (153).]]
end

return {
  doc = "print this text, or the help of one command",
  words = { { "COMMAND", "a command", optional = true,
    complete = function() return command.names end },
    { "ACTION", "one of its actions", optional = true } },
  run = function(words)
    local name, action = words[1], words[2]
    if not name then return overview() end
    if not command.is_known(name) then
      command.refuse("help: no command '%s'%s", name,
        check.did_you_mean(name, command.names, "\n  try: sinklab help"))
    end
    local spec = command.find(name)
    if not action then return command.help(name, spec) end
    if not spec.actions then
      command.refuse("help: '%s' has no actions, so no '%s'\n  try: sinklab help %s",
        name, action, name)
    end
    command.help(name .. " " .. action, command.action(name, spec, action))
  end,
}
