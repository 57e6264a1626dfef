--- report.lua - sinklab report: runs as one HTML page.
local command = require "sinklab.cli.command"

return {
  doc = "a run, or several side by side, as one HTML page",
  text = [[
Writes one file that needs no network and no other file: options, tables, claims,
figures, training curves, and the maps of every head to look into. Of one run it is
report.html in the run's directory; of several, report.html here.]],
  words = { { "RUN_DIR", "a run directory", many = true, complete = "folder" } },
  options = { { "out", "FILE", kind = "file", doc = "the file to write" } },
  run = function(words, given)
    local path, why = require "sinklab.report".write(words, given.out)
    if not path then command.refuse("report: %s", why) end
    print(path)
  end,
}
