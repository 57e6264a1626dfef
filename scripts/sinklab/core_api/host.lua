--- host.lua - the program and the machine that a script runs on.
local describe = require "sinklab.base.schema".describe

local host = {}

host.version = describe("lab.version",
  "The version of sinklab, as text.", {}, nil, "print(lab.version)")

host.clock = describe("lab.clock",
  "Seconds on a clock that never jumps.", {}, "number", [[
    local start = lab.clock()
    print(lab.clock() - start < 60)]])

host.utc = describe("lab.utc", "The time of day in UTC.",
  { { "format", "string", optional = true, default_doc = [["%Y-%m-%dT%H:%M:%SZ"]],
    doc = "as for os.date" } },
  "text", [[print(lab.utc "%Y")]])

host.threads = describe("lab.threads",
  "How many threads compute (--threads).", {}, "whole number", "print(lab.threads())")

host.isa = describe("lab.isa",
  "The instruction set in use.", {}, [["x86-64", "x86-64-v3", "x86-64-v4" or "arm64"]],
  "print(lab.isa())")

return host
