--- program.lua - programs: operations recorded, replayed and differentiated.
--
-- lab.train does all this itself; these are for looking closer.
local describe = require "sinklab.base.schema".describe

local program = {}

program.record = describe("lab.record", "Record the operations that a function runs.",
  { { "f", "function", doc = "run once" }, { "...", "any", doc = "its arguments" } },
  "program, and the results of f", [[
    local w = lab.tensor { 1, 2 }
    local program, loss = lab.record(function() return lab.square(w):sum() end)
    print(program)]], { errors = "an error that f raises" })

describe("program:want", "Say that the gradient with respect to a tensor is wanted.",
  { { "tensor", "tensor", doc = "a parameter that the program uses" } },
  "the program itself", [[
    local w = lab.tensor { 1, 2 }
    local program, loss = lab.record(function() return lab.square(w):sum() end)
    program:want(w)]], { errors = "a tensor that the program does not use" })

describe("program:loss", "Say which tensor is differentiated.",
  { { "tensor", "tensor", doc = "of shape (), made by the program" } },
  "the program itself", [[
    local w = lab.tensor { 1, 2 }
    local program, loss = lab.record(function() return lab.square(w):sum() end)
    program:want(w):loss(loss)]], { errors = "a tensor that the program did not make" })

describe("program:input",
  "Say that each replica has numbers of its own for a tensor, which replica:set sets.",
  { { "tensor", "tensor", doc = "one that the program uses and did not make" } },
  "the program itself", [[
    local x = lab.tensor { 1, 2 }
    local program, y = lab.record(function() return x * 2 end)
    local replica = program:input(x):replica()
    print(replica:set(x, { 5, 6 }):forward():value(y))]])

describe("program:check", "Compare the gradients with differences of the loss.", {},
  "the largest difference, over max (1, largest gradient)", [[
    local w = lab.tensor({ 1, 2 }, "f64")
    local program, loss = lab.record(function() return lab.square(w):sum() end)
    print(program:want(w):loss(loss):check { samples = 2 } < 1e-6)]],
  { unchecked = true, options = {
    { "samples", "integer", min = 0, default = 0,
      doc = "how many elements of the wanted tensors; 0: all" },
    { "seed", "integer", min = 0, default = 0, doc = "of their choice" } } })

describe("program:text",
  "The operations, one in a line: number, name, shapes.", {}, "text",
  "print(lab.record(function() return lab.ones({ 2 }) * 3 end):text())")

describe("program:replica",
  "Buffers of their own to run the program in.", {}, "replica", [[
    local program, y = lab.record(function() return lab.ones({ 2 }) * 3 end)
    print(program:replica():forward():value(y))]])

describe("replica:forward", "Run the program.", {}, "the replica itself", [[
    local program, x = lab.record(function()
      return lab.generator(0):normal(0, 1, { 2 })
    end)
    print(program:replica():forward { seed = 7 }:value(x))]],
  { unchecked = true, options = {
    { "seed", "integer", min = 0, default = 0, doc = "of random draws" },
    { "step", "integer", min = 0, default = 0, doc = "of random draws" },
    { "first_sample", "integer", min = 0, default = 0, doc = "its number" } } })

describe("replica:backward",
  "Add the gradients of the loss to those held; after forward.",
  { { "factor", "number", default = 1, doc = "of the loss" } },
  "the replica itself", [[
    local w = lab.tensor { 1, 2 }
    local program, loss = lab.record(function() return lab.square(w):sum() end)
    local replica = program:want(w):loss(loss):replica()
    print(replica:forward():backward():gradient(w))]])

describe("replica:zero", "Set the gradients to 0.", {}, "the replica itself",
  "lab.record(function() return lab.ones({ 2 }) * 3 end):replica():zero()")

describe("replica:value",
  "A copy of the numbers of a tensor of the program after the last forward.",
  { { "tensor", "tensor", doc = "made or used by the program" } }, "tensor", [[
    local program, y = lab.record(function() return lab.ones({ 2 }) * 3 end)
    print(program:replica():forward():value(y))]],
  { errors = "a tensor that the program does not know" })

describe("replica:gradient", "A copy of a tensor's gradient.",
  { { "tensor", "tensor", doc = "one that program:want named" } }, "tensor", [[
    local w = lab.tensor { 1, 2 }
    local program, loss = lab.record(function() return lab.square(w):sum() end)
    local replica = program:want(w):loss(loss):replica()
    print(replica:forward():backward():gradient(w))]],
  { errors = "a gradient that was not wanted" })

describe("replica:set", "Set the numbers of an input.",
  { { "tensor", "tensor", doc = "one that program:input named" },
    { "values", "tensor table number", doc = "nested lists are of its shape" } },
  "the replica itself", [[
    local x = lab.tensor { 1, 2 }
    local program, y = lab.record(function() return x * 2 end)
    print(program:input(x):replica():set(x, { 5, 6 }):forward():value(y))]],
  { errors = "a tensor that is no input" })

return program
