--- program.lua - programs: operations recorded, replayed and differentiated.
--
-- lab.train does all this itself; these are for looking closer. This file documents
-- core/lua/lua_program.c; nothing in it runs.

--- Record the operations that a function runs.
-- @param f    the function; it is run once
-- @param ...  its arguments
-- @return program, and what f returned
-- @error what f raises
-- @example
--   local w = lab.tensor { 1, 2 }
--   local program, loss = lab.record(function() return lab.square(w):sum() end)
--   print(program)
function lab.record(f, ...) end

--- Say that the gradient with respect to a tensor is wanted.
-- @param tensor  a parameter that the program uses
-- @return the program itself
-- @error a tensor that the program does not use
-- @example
--   local w = lab.tensor { 1, 2 }
--   local program, loss = lab.record(function() return lab.square(w):sum() end)
--   program:want(w)
function program:want(tensor) end

--- Say which tensor is differentiated.
-- @param tensor  of shape (), made by the program
-- @return the program itself
-- @error a tensor that the program did not make
-- @example
--   local w = lab.tensor { 1, 2 }
--   local program, loss = lab.record(function() return lab.square(w):sum() end)
--   program:want(w):loss(loss)
function program:loss(tensor) end

--- Say that each replica has numbers of its own for a tensor, which replica:set sets.
-- @param tensor  one that the program uses and did not make
-- @return the program itself
-- @example
--   local x = lab.tensor { 1, 2 }
--   local program, y = lab.record(function() return x * 2 end)
--   local replica = program:input(x):replica()
--   print(replica:set(x, { 5, 6 }):forward():value(y))
function program:input(tensor) end

--- Compare the gradients with differences of the loss.
-- @param samples  how many elements of what is wanted; default 0: all
-- @param seed     of their choice, default 0
-- @return the largest difference, over max (1, largest gradient)
-- @example
--   local w = lab.tensor({ 1, 2 }, "f64")
--   local program, loss = lab.record(function() return lab.square(w):sum() end)
--   print(program:want(w):loss(loss):check { samples = 2 } < 1e-6)
function program:check(options) end

--- The operations, one in a line: number, name, shapes.
-- @return text
-- @example
--   print(lab.record(function() return lab.ones({ 2 }) * 3 end):text())
function program:text() end

--- Buffers of their own to run the program in.
-- @return replica
-- @example
--   local program, y = lab.record(function() return lab.ones({ 2 }) * 3 end)
--   print(program:replica():forward():value(y))
function program:replica() end

--- Run the program.
-- @param seed          of random draws, default 0
-- @param step          their step, default 0
-- @param first_sample  number of the first sample, default 0
-- @return the replica itself
-- @example
--   local program, x = lab.record(function()
--     return lab.generator(0):normal(0, 1, { 2 })
--   end)
--   print(program:replica():forward { seed = 7 }:value(x))
function replica:forward(options) end

--- Add the gradients of the loss to those held; after forward.
-- @param seed  factor of the loss, default 1
-- @return the replica itself
-- @example
--   local w = lab.tensor { 1, 2 }
--   local program, loss = lab.record(function() return lab.square(w):sum() end)
--   local replica = program:want(w):loss(loss):replica()
--   print(replica:forward():backward():gradient(w))
function replica:backward(seed) end

--- Set the gradients to 0.
-- @return the replica itself
-- @example
--   lab.record(function() return lab.ones({ 2 }) * 3 end):replica():zero()
function replica:zero() end

--- A copy of what a tensor of the program holds after the last forward.
-- @param tensor  one that the program made or uses
-- @return tensor
-- @error a tensor that the program does not know
-- @example
--   local program, y = lab.record(function() return lab.ones({ 2 }) * 3 end)
--   print(program:replica():forward():value(y))
function replica:value(tensor) end

--- A copy of a tensor's gradient.
-- @param tensor  one that program:want named
-- @return tensor
-- @error a gradient that was not wanted
-- @example
--   local w = lab.tensor { 1, 2 }
--   local program, loss = lab.record(function() return lab.square(w):sum() end)
--   local replica = program:want(w):loss(loss):replica()
--   print(replica:forward():backward():gradient(w))
function replica:gradient(tensor) end

--- Set the numbers of an input.
-- @param tensor  one that program:input named
-- @param values  a tensor, nested lists or a number of its shape
-- @return the replica itself
-- @error a tensor that is no input
-- @example
--   local x = lab.tensor { 1, 2 }
--   local program, y = lab.record(function() return x * 2 end)
--   print(program:input(x):replica():set(x, { 5, 6 }):forward():value(y))
function replica:set(tensor, values) end
