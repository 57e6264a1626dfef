--- generator.lua - random numbers: the `t` of a task's sampler.
--
-- A generator is a seed and a count of its draws. The same calls in the same order
-- give the same numbers, whatever the number of threads; in a recorded sampler each
-- call keeps its stream, and the trainer replays it under its own seed and step. Axis
-- 1 of a draw counts samples. `dtype` in the last table changes the precision
-- of one draw.
local describe = require "sinklab.base.schema".describe

local generator = {}

local shape = { "shape", "integer table", doc = "of the tensor" }
local dtypes = { "f32", "f64" }
local dtype = { options = { { "dtype", "string", choices = dtypes,
  default_doc = "the generator's" } } }

generator.generator = describe("lab.generator", "A source of random numbers.",
  { { "seed", "integer", min = 0 } }, "generator", [[
    local t = lab.generator(0)
    print(t:uniform(-1, 1, { 2, 3 }))]],
  { unchecked = true,
    options = { { "dtype", "string", choices = dtypes, default = "f32",
      doc = "of its draws" } } })

describe("generator:uniform", "Numbers uniform on [low, high).",
  { { "low", "number" }, { "high", "number", doc = "excluded" }, shape },
  "tensor without a gradient", "print(lab.generator(1):uniform(0, 1, { 3 }))",
  dtype)

describe("generator:normal", "Numbers of a normal distribution.",
  { { "mean", "number" }, { "std", "number", doc = "standard deviation" }, shape },
  "tensor without a gradient", "print(lab.generator(1):normal(0, 1, { 3 }))",
  dtype)

describe("generator:randint", "Whole numbers, each equally often.",
  { { "low", "integer" }, { "high", "integer", doc = "included" }, shape },
  "tensor without a gradient", "print(lab.generator(1):randint(1, 6, { 5 }))",
  dtype)

describe("generator:bernoulli", "1 with a probability, else 0.",
  { { "p", "number", min = 0, max = 1, doc = "probability of 1" }, shape },
  "tensor without a gradient", "print(lab.generator(1):bernoulli(0.5, { 8 }))",
  dtype)

describe("generator:categorical", "Classes from 0 with given probabilities.",
  { { "probabilities", "tensor table", doc = [[(k), or a list of k numbers,
    at least 0 and not all 0; their sum need not be 1]] }, shape },
  "tensor of 0 .. k - 1, without a gradient",
  "print(lab.generator(1):categorical({ 0.1, 0.9 }, { 8 }))", dtype)

describe("generator:full",
  "A tensor whose elements all have one value; nothing is drawn.",
  { shape, { "value", "number" } },
  "tensor", "print(lab.generator(1):full({ 2 }, 7))", dtype)

describe("generator:arange", "The numbers 0, 1, ... n - 1; nothing is drawn.",
  { { "n", "integer", min = 0, doc = "how many" } }, "tensor (n)",
  "print(lab.generator(1):arange(4))", dtype)

describe("generator:one_hot",
  "1 at the place that each id names, 0 elsewhere, in the precision of the ids.",
  { { "ids", "tensor", doc = "whole numbers from 0" },
    { "classes", "integer", min = 1, doc = "size of the new last axis" } },
  "tensor (..., classes)", [[
    local t = lab.generator(1)
    print(t:one_hot(t:randint(0, 2, { 2 }), 3))]])

describe("generator:fill",
  [[A tensor that a function fills: for values that no operation gives.

  In a program the function is called at each replay and keeps training on one thread,
  so it is slower than operations.]],
  { shape, { "f", "function", doc = [[(buffer, step, first_sample): the buffer is zero
    before; step counts training steps from 1 and is 0 elsewhere; first_sample says which
    sequence of the batch, from 0, is the buffer's first]] } },
  "tensor without a gradient", [[
    local t = lab.generator(1)
    print(t:fill({ 3 }, function(buffer) buffer:set(2, 1) end))]],
  { options = dtype.options,
    errors = "an error that the function raises; training then ends before that step" })

return generator
