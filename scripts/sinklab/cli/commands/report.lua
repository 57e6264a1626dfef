--- report.lua - sinklab report: runs as one HTML page.
local command = require "sinklab.cli.command"
local strings = require "sinklab.base.strings"

local print = strings.print

return {
  doc = "write one HTML page for a run, or for several side by side",
  text = [[
The page needs no network and no other file. It shows options, tables, claims, figures,
training curves and the maps of every head. The page of one run is report.html in its
directory; that of several runs is report.html in the current directory.]],
  words = { { "RUN_DIR", "a run directory", many = true, complete = "folder" } },
  options = { { "out", "FILE", kind = "file", doc = "the file to write" } },
  run = function(words, given)
    local path, why = require "sinklab.report".write(words, given.out)
    if not path then command.refuse("report: %s", why) end
    print(path)
  end,
}
