--- tensor.lua - tensors: numbers in a grid, f32 or f64, and views of them.
--
-- Indices and axes count from 1; -1 is the last. A view shares its numbers with the
-- tensor it was taken from. t.shape, t.dtype ("f32" or "f64"), t.ndim and t.count (of
-- elements) are fields; `+ - * / ^` work elementwise with numbers and tensors, #t is
-- the size of axis 1. This file documents core/lua/lua_tensor.c and lua_view.c;
-- nothing in it runs.

--- A tensor from a number or nested lists of numbers.
-- @param values  a number, which gives shape (), or lists of equal lengths
-- @param dtype   "f32" (default) or "f64"
-- @return tensor
-- @error lists of unequal lengths, elements that are no numbers
-- @example
--   local x = lab.tensor { { 1, 2, 3 }, { 4, 5, 6 } }
--   print(x.shape[1], x.shape[2], x.dtype)
function lab.tensor(values, dtype) end

--- A tensor of zeros.
-- @param shape  sizes, { rows, columns, ... }, or one size
-- @param dtype  "f32" (default) or "f64"
-- @return tensor
-- @example
--   print(lab.zeros({ 2, 3 }))
function lab.zeros(shape, dtype) end

--- A tensor of ones.
-- @param shape  sizes, { rows, columns, ... }, or one size
-- @param dtype  "f32" (default) or "f64"
-- @return tensor
-- @example
--   print(lab.ones({ 2, 3 }):sum():item())
function lab.ones(shape, dtype) end

--- A tensor whose elements all have one value.
-- @param shape  sizes, { rows, columns, ... }, or one size
-- @param value  a number
-- @param dtype  "f32" (default) or "f64"
-- @return tensor
-- @example
--   print(lab.full({ 4 }, 0.5, "f64"))
function lab.full(shape, value, dtype) end

--- The numbers 0, 1, ... n - 1.
-- @param n      how many
-- @param dtype  "f32" (default) or "f64"
-- @return tensor (n)
-- @example
--   print(lab.arange(5):get(-1))
function lab.arange(n, dtype) end

--- Whether a value is a tensor.
-- @param value  anything
-- @return true or false
-- @example
--   print(lab.is_tensor(lab.zeros(3)), lab.is_tensor { 1, 2 })
function lab.is_tensor(value) end

--- The only element, as a number.
-- @return number
-- @error more than one element
-- @example
--   print(lab.tensor { 1, 2, 3 }:sum():item())
function tensor:item() end

--- One element.
-- @param ...  an index for each axis, from 1; -1 is the last
-- @return number
-- @error an index outside the shape, too few or too many of them
-- @example
--   print(lab.tensor { { 1, 2 }, { 3, 4 } }:get(2, -1))
function tensor:get(...) end

--- Change one element.
-- @param ...  an index for each axis, from 1, then the number
-- @return the tensor itself
-- @error in a recording: a program would not repeat it
-- @example
--   local x = lab.zeros({ 2, 2 })
--   x:set(1, 2, 5)
function tensor:set(...) end

--- Change every element to one number.
-- @param x  the number
-- @return the tensor itself
-- @error in a recording: a program would not repeat it
-- @example
--   lab.zeros({ 2, 2 }):fill(1)
function tensor:fill(x) end

--- Take over the numbers of another tensor of the same shape.
-- @param from  tensor; its precision is converted
-- @return the tensor itself
-- @error another shape; in a recording
-- @example
--   lab.zeros({ 3 }):copy(lab.tensor { 1, 2, 3 })
function tensor:copy(from) end

--- A new tensor with the same numbers, row-major.
-- @return tensor
-- @example
--   local x = lab.tensor { 1, 2 }
--   local y = x:clone():fill(0)
--   print(x:get(1), y:get(1))
function tensor:clone() end

--- The same numbers in another precision; the tensor itself if it has it already.
-- @param dtype  "f32" or "f64"
-- @return tensor
-- @example
--   print(lab.tensor { 1 / 3 }:to("f64").dtype)
function tensor:to(dtype) end

--- Nested lists of the elements; a number for shape ().
-- @return table or number
-- @example
--   print(lab.tensor { { 1, 2 }, { 3, 4 } }:totable()[2][1])
function tensor:totable() end

--- Write the tensor as a .npy file of NumPy.
-- @param path  of the file; written whole or not at all
-- @return true, or nil and a message
-- @example
--   assert(lab.tensor { 1, 2 }:save_npy("x.npy"))
function tensor:save_npy(path) end

--- A view of some neighbouring elements along an axis.
-- @param axis    from 1, or from -1 backwards
-- @param start   first index, from 1
-- @param length  how many
-- @return view of the same number of axes
-- @error what does not fit the axis
-- @example
--   print(lab.arange(10):narrow(1, 3, 2))
function tensor:narrow(axis, start, length) end

--- A view of the part at one index of an axis, without the axis.
-- @param axis   from 1, or from -1 backwards
-- @param index  from 1, or from -1 backwards
-- @return view with one axis less
-- @error an index outside the axis
-- @example
--   print(lab.tensor { { 1, 2 }, { 3, 4 } }:select(2, 1))
function tensor:select(axis, index) end

--- A view with two axes exchanged.
-- @param a  an axis
-- @param b  the other
-- @return view
-- @example
--   print(lab.zeros({ 2, 3 }):transpose(1, 2).shape[1])
function tensor:transpose(a, b) end

--- The same numbers in another shape.
-- @param shape  sizes with the same product; one may be -1
-- @return a view where that is possible, else a (recorded) copy
-- @error sizes that do not fit
-- @example
--   print(lab.arange(6):reshape { 2, -1 })
function tensor:reshape(shape) end

--- A view repeated to a larger shape.
-- @param shape  sizes; axes of size 1, and new ones in front, are repeated
-- @return view; an element and its repetitions are one number
-- @error a size that is neither equal nor 1
-- @example
--   print(lab.tensor { 1, 2 }:broadcast { 3, 2 })
function tensor:broadcast(shape) end
