--- tensor.lua - tensors: numbers in a grid, f32 or f64, and views of them.
--
-- Indices and axes count from 1; -1 is the last. A view shares its numbers with the
-- tensor it was taken from. t.shape, t.dtype ("f32" or "f64"), t.ndim and t.count (of
-- elements) are fields; `+ - * / ^` work elementwise with numbers and tensors, #t is
-- the size of axis 1.
local describe = require "sinklab.base.schema".describe

local tensor = {}

local dtype = { "dtype", "string", default = "f32", choices = { "f32", "f64" } }
local shape = { "shape", "integer table", doc = "sizes, { rows, columns }, or one size" }
local axis = { "axis", "integer", doc = "from 1, or from -1 backwards" }

tensor.tensor = describe("lab.tensor",
  "A tensor from a number or nested lists of numbers.",
  { { "values", "number table",
    doc = "a number, which gives shape (), or lists of equal lengths" }, dtype },
  "tensor", [[
    local x = lab.tensor { { 1, 2, 3 }, { 4, 5, 6 } }
    print(x.shape[1], x.shape[2], x.dtype)]],
  { errors = "lists of unequal lengths, elements that are no numbers" })

tensor.zeros = describe("lab.zeros", "A tensor of zeros.",
  { shape, dtype },
  "tensor", "print(lab.zeros({ 2, 3 }))")

tensor.ones = describe("lab.ones", "A tensor of ones.",
  { shape, dtype },
  "tensor", "print(lab.ones({ 2, 3 }):sum():item())")

tensor.full = describe("lab.full", "A tensor whose elements all have one value.",
  { shape, { "value", "number" }, dtype },
  "tensor", [[print(lab.full({ 4 }, 0.5, "f64"))]])

tensor.arange = describe("lab.arange", "The numbers 0, 1, ... n - 1.",
  { { "n", "integer", min = 0, doc = "how many" }, dtype }, "tensor (n)",
  "print(lab.arange(5):get(-1))")

tensor.is_tensor = describe("lab.is_tensor",
  "Whether a value is a tensor.", { { "value", "any" } },
  "true or false", "print(lab.is_tensor(lab.zeros(3)), lab.is_tensor { 1, 2 })")

describe("tensor:item", "The only element, as a number.", {}, "number",
  "print(lab.tensor { 1, 2, 3 }:sum():item())", { errors = "more than one element" })

describe("tensor:get", "One element.",
  { { "...", "any", doc = "an index for each axis, from 1; -1 is the last" } }, "number",
  "print(lab.tensor { { 1, 2 }, { 3, 4 } }:get(2, -1))",
  { errors = "an index outside the shape, too few or too many of them" })

describe("tensor:set", "Change one element.",
  { { "...", "any", doc = "an index for each axis, from 1, then the number" } },
  "the tensor itself", [[
    local x = lab.zeros({ 2, 2 })
    x:set(1, 2, 5)]], { errors = "in a recording: a program would not repeat it" })

describe("tensor:fill",
  "Change every element to one number.", { { "x", "number" } },
  "the tensor itself", "lab.zeros({ 2, 2 }):fill(1)",
  { errors = "in a recording: a program would not repeat it" })

describe("tensor:copy", "Take over the numbers of another tensor of the same shape.",
  { { "from", "tensor", doc = "its precision is converted" } },
  "the tensor itself", "lab.zeros({ 3 }):copy(lab.tensor { 1, 2, 3 })",
  { errors = "another shape; in a recording" })

describe("tensor:clone",
  "A new tensor with the same numbers, row-major.", {}, "tensor", [[
    local x = lab.tensor { 1, 2 }
    local y = x:clone():fill(0)
    print(x:get(1), y:get(1))]])

describe("tensor:to",
  "The same numbers in another precision; the tensor itself if it has it already.",
  { { "dtype", "string", choices = dtype.choices } }, "tensor",
  [[print(lab.tensor { 1 / 3 }:to("f64").dtype)]])

describe("tensor:totable",
  "Nested lists of the elements; a number for shape ().", {}, "table or number",
  "print(lab.tensor { { 1, 2 }, { 3, 4 } }:totable()[2][1])")

describe("tensor:save_npy", "Write the tensor as a .npy file of NumPy.",
  { { "path", "string", doc = "of the file; written whole or not at all" } },
  "true, or nil and a message", [[assert(lab.tensor { 1, 2 }:save_npy("x.npy"))]])

describe("tensor:narrow", "A view of some neighbouring elements along an axis.",
  { axis, { "start", "integer", doc = "first index, from 1" },
    { "length", "integer", min = 0, doc = "how many" } },
  "view of the same number of axes", "print(lab.arange(10):narrow(1, 3, 2))",
  { errors = "a range that does not fit the axis" })

describe("tensor:select", "A view of the part at one index of an axis, without the axis.",
  { axis, { "index", "integer", doc = "from 1, or from -1 backwards" } },
  "view with one axis less", "print(lab.tensor { { 1, 2 }, { 3, 4 } }:select(2, 1))",
  { errors = "an index outside the axis" })

describe("tensor:transpose", "A view with two axes exchanged.",
  { { "a", "integer", doc = "an axis" }, { "b", "integer", doc = "the other" } }, "view",
  "print(lab.zeros({ 2, 3 }):transpose(1, 2).shape[1])")

describe("tensor:reshape", "The same numbers in another shape.",
  { { "shape", "table", doc = "sizes with the same product; one may be -1" } },
  "a view where that is possible, else a (recorded) copy",
  "print(lab.arange(6):reshape { 2, -1 })", { errors = "sizes that do not fit" })

describe("tensor:broadcast", "A view repeated to a larger shape.",
  { { "shape", "table",
    doc = "sizes; axes of size 1, and new ones in front, are repeated" } },
  "view; an element and its repetitions are one number",
  "print(lab.tensor { 1, 2 }:broadcast { 3, 2 })",
  { errors = "a size that is neither equal nor 1" })

return tensor
