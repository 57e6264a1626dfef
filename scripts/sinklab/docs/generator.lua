--- generator.lua - random numbers: the `t` of a task's sampler.
--
-- A generator is a seed and a count of its draws. The same calls in the same order
-- give the same numbers, whatever the number of threads; in a recorded sampler each
-- call keeps its stream, and the trainer replays it under its own seed and step. Axis
-- 1 of what is drawn counts samples. `dtype` in the last table changes the precision
-- of one draw. This file documents core/lua/lua_generator.c; nothing in it runs.

--- A source of random numbers.
-- @param seed   a whole number from 0
-- @param dtype  "f32" (default) or "f64": of what it draws
-- @return generator
-- @example
--   local t = lab.generator(0)
--   print(t:uniform(-1, 1, { 2, 3 }))
function lab.generator(seed, options) end

--- Uniform on [low, high).
-- @param low    included
-- @param high   excluded
-- @param shape  of the tensor
-- @param dtype  default the generator's
-- @return tensor; no gradient
-- @example
--   print(lab.generator(1):uniform(0, 1, { 3 }))
function generator:uniform(low, high, shape, options) end

--- Normal.
-- @param mean   of the distribution
-- @param std    its standard deviation
-- @param shape  of the tensor
-- @param dtype  default the generator's
-- @return tensor; no gradient
-- @example
--   print(lab.generator(1):normal(0, 1, { 3 }))
function generator:normal(mean, std, shape, options) end

--- Whole numbers, each equally often.
-- @param low    smallest, included
-- @param high   largest, included
-- @param shape  of the tensor
-- @param dtype  default the generator's
-- @return tensor; no gradient
-- @example
--   print(lab.generator(1):randint(1, 6, { 5 }))
function generator:randint(low, high, shape, options) end

--- 1 with a probability, else 0.
-- @param p      the probability, 0 to 1
-- @param shape  of the tensor
-- @param dtype  default the generator's
-- @return tensor; no gradient
-- @example
--   print(lab.generator(1):bernoulli(0.5, { 8 }))
function generator:bernoulli(p, shape, options) end

--- Classes from 0 with given probabilities.
-- @param probabilities  tensor (k) or a list of numbers
-- @param shape          of the tensor
-- @param dtype          default that of the probabilities, else the generator's
-- @return tensor of 0 .. k - 1; no gradient
-- @example
--   print(lab.generator(1):categorical({ 0.1, 0.9 }, { 8 }))
function generator:categorical(probabilities, shape, options) end

--- A tensor whose elements all have one value; nothing is drawn.
-- @param shape  of the tensor
-- @param value  a number
-- @param dtype  default the generator's
-- @return tensor
-- @example
--   print(lab.generator(1):full({ 2 }, 7))
function generator:full(shape, value, options) end

--- The numbers 0, 1, ... n - 1; nothing is drawn.
-- @param n      how many
-- @param dtype  default the generator's
-- @return tensor (n)
-- @example
--   print(lab.generator(1):arange(4))
function generator:arange(n, options) end

--- 1 at the place that each id names, 0 elsewhere, in the precision of the ids.
-- @param ids      tensor of whole numbers from 0
-- @param classes  size of the new last axis
-- @return tensor (..., classes)
-- @example
--   local t = lab.generator(1)
--   print(t:one_hot(t:randint(0, 2, { 2 }), 3))
function generator:one_hot(ids, classes) end

--- A tensor that a function fills: for what operations cannot say.
--
-- In a program the function is called at each replay and keeps training on one
-- thread, so it is slower than operations.
-- @param shape  of the tensor
-- @param f      function (buffer, step, first_sample): the buffer is zero before;
--               step counts training steps from 1 and is 0 elsewhere; first_sample
--               says which sequence of the batch, from 0, is the buffer's first
-- @param dtype  default the generator's
-- @return tensor; no gradient
-- @error what the function raises; training then ends before that step
-- @example
--   local t = lab.generator(1)
--   print(t:fill({ 3 }, function(buffer) buffer:set(2, 1) end))
function generator:fill(shape, f, options) end
