--- figure.lua - figures, the results of lab.plot.
local describe = require "sinklab.base.schema".describe

describe("figure:save", "Write the figure to a file.",
  { { "path", "string", doc = "ends with .png, .svg or .pdf" } },
  "true, or nil and a message",
  [[assert(lab.plot.heat({ { 1, 0 }, { 0.5, 0.5 } }):save "map.png")]],
  { errors = "another ending" })

describe("figure:text",
  "The figure as text for a terminal, coloured if standard output is one.",
  { { "columns", "integer", optional = true, min = 20, max = 1000,
    default_doc = "the terminal's" } },
  "text", "print(lab.plot.heat({ { 1, 0 }, { 0.5, 0.5 } }):text(40))")

describe("figure:close", "Free the figure now, not when it is collected.", {}, "nothing",
  "lab.plot.heat({ { 1, 0 }, { 0.5, 0.5 } }):close()")
