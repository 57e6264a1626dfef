--- ops.lua - operations on tensors.
--
-- Each is a function and, where its first argument is a tensor, a method too:
-- lab.softmax(x, 2) is x:softmax(2). They run at once; while lab.record records they
-- are also kept, to be replayed and differentiated. Shapes broadcast: axes of size 1
-- are repeated. A number in place of a tensor is a tensor of shape (). This file
-- documents core/lua/lua_ops.c; nothing in it runs.

--- a + b, elementwise.
-- @param a  tensor or number
-- @param b  tensor or number; one of the two is a tensor
-- @return tensor of the broadcast shape
-- @example
--   print(lab.add(lab.tensor { 1, 2 }, 10))
function lab.add(a, b) end

--- a - b, elementwise.
-- @param a  tensor or number
-- @param b  tensor or number; one of the two is a tensor
-- @return tensor of the broadcast shape
-- @example
--   print(lab.sub(1, lab.tensor { 1, 2 }))
function lab.sub(a, b) end

--- a * b, elementwise.
-- @param a  tensor or number
-- @param b  tensor or number; one of the two is a tensor
-- @return tensor of the broadcast shape
-- @example
--   print(lab.mul(lab.tensor { 1, 2 }, lab.tensor { 3, 4 }))
function lab.mul(a, b) end

--- a / b, elementwise.
-- @param a  tensor or number
-- @param b  tensor or number; one of the two is a tensor
-- @return tensor of the broadcast shape
-- @example
--   print(lab.div(lab.tensor { 1, 2 }, 2))
function lab.div(a, b) end

--- a to the power b, elementwise.
-- @param a  tensor or number
-- @param b  tensor or number; one of the two is a tensor
-- @return tensor of the broadcast shape
-- @example
--   print(lab.tensor { 1, 2, 3 } ^ 2)
function lab.pow(a, b) end

--- The larger of a and b, elementwise; half the gradient to each at a tie.
-- @param a  tensor or number
-- @param b  tensor or number; one of the two is a tensor
-- @return tensor of the broadcast shape
-- @example
--   print(lab.maximum(lab.tensor { -1, 2 }, 0))
function lab.maximum(a, b) end

--- The smaller of a and b, elementwise; half the gradient to each at a tie.
-- @param a  tensor or number
-- @param b  tensor or number; one of the two is a tensor
-- @return tensor of the broadcast shape
-- @example
--   print(lab.minimum(lab.tensor { -1, 2 }, 0))
function lab.minimum(a, b) end

--- 1 where a equals b, else 0, elementwise; no gradient.
-- @param a  tensor or number
-- @param b  tensor or number; one of the two is a tensor
-- @return tensor of the broadcast shape
-- @example
--   print(lab.eq(lab.tensor { 1, 2, 3 }, 2))
function lab.eq(a, b) end

--- 1 where a differs from b, else 0, elementwise; no gradient.
-- @param a  tensor or number
-- @param b  tensor or number; one of the two is a tensor
-- @return tensor of the broadcast shape
-- @example
--   print(lab.ne(lab.tensor { 1, 2, 3 }, 2))
function lab.ne(a, b) end

--- 1 where a is less than b, else 0, elementwise; no gradient.
-- @param a  tensor or number
-- @param b  tensor or number; one of the two is a tensor
-- @return tensor of the broadcast shape
-- @example
--   print(lab.lt(lab.tensor { 1, 2, 3 }, 2))
function lab.lt(a, b) end

--- 1 where a is at most b, else 0, elementwise; no gradient.
-- @param a  tensor or number
-- @param b  tensor or number; one of the two is a tensor
-- @return tensor of the broadcast shape
-- @example
--   print(lab.le(lab.tensor { 1, 2, 3 }, 2))
function lab.le(a, b) end

--- 1 where a is greater than b, else 0, elementwise; no gradient.
-- @param a  tensor or number
-- @param b  tensor or number; one of the two is a tensor
-- @return tensor of the broadcast shape
-- @example
--   print(lab.gt(lab.tensor { 1, 2, 3 }, 2))
function lab.gt(a, b) end

--- 1 where a is at least b, else 0, elementwise; no gradient.
-- @param a  tensor or number
-- @param b  tensor or number; one of the two is a tensor
-- @return tensor of the broadcast shape
-- @example
--   print(lab.ge(lab.tensor { 1, 2, 3 }, 2))
function lab.ge(a, b) end

--- a where the condition is not 0, else b, elementwise.
-- @param condition  tensor or number
-- @param a          tensor or number
-- @param b          tensor or number
-- @return tensor of the broadcast shape
-- @example
--   local x = lab.tensor { -1, 2 }
--   print(lab.where(lab.gt(x, 0), x, 0))
function lab.where(condition, a, b) end

--- -x, elementwise.
-- @param x  tensor
-- @return tensor of the same shape
-- @example
--   print(lab.neg(lab.tensor { 0.5, 1, 2 }))
function lab.neg(x) end

--- e to the power x, elementwise.
-- @param x  tensor
-- @return tensor of the same shape
-- @example
--   print(lab.exp(lab.tensor { 0.5, 1, 2 }))
function lab.exp(x) end

--- The natural logarithm, elementwise.
-- @param x  tensor
-- @return tensor of the same shape
-- @example
--   print(lab.log(lab.tensor { 0.5, 1, 2 }))
function lab.log(x) end

--- The hyperbolic tangent, elementwise.
-- @param x  tensor
-- @return tensor of the same shape
-- @example
--   print(lab.tanh(lab.tensor { 0.5, 1, 2 }))
function lab.tanh(x) end

--- 1 / (1 + exp (-x)), elementwise.
-- @param x  tensor
-- @return tensor of the same shape
-- @example
--   print(lab.sigmoid(lab.tensor { 0.5, 1, 2 }))
function lab.sigmoid(x) end

--- max (x, 0), elementwise; the gradient at 0 is 0.
-- @param x  tensor
-- @return tensor of the same shape
-- @example
--   print(lab.relu(lab.tensor { -1, 2 }))
function lab.relu(x) end

--- x * sigmoid (x), elementwise.
-- @param x  tensor
-- @return tensor of the same shape
-- @source Elfwing, Uchibe and Doya 2018
-- @example
--   print(lab.silu(lab.tensor { 0.5, 1, 2 }))
function lab.silu(x) end

--- x * Phi (x), the Gaussian error linear unit, elementwise.
-- @param x            tensor
-- @param approximate  true: the tanh form; false (default): erf
-- @return tensor of the same shape
-- @source Hendrycks and Gimpel 2016, arXiv 1606.08415
-- @example
--   print(lab.gelu(lab.tensor { -1, 0, 1 }, { approximate = true }))
function lab.gelu(x, options) end

--- The absolute value, elementwise; the gradient at 0 is 0.
-- @param x  tensor
-- @return tensor of the same shape
-- @example
--   print(lab.abs(lab.tensor { -1, 2 }))
function lab.abs(x) end

--- The square root, elementwise.
-- @param x  tensor
-- @return tensor of the same shape
-- @example
--   print(lab.sqrt(lab.tensor { 0.5, 1, 2 }))
function lab.sqrt(x) end

--- x * x, elementwise.
-- @param x  tensor
-- @return tensor of the same shape
-- @example
--   print(lab.square(lab.tensor { 0.5, 1, 2 }))
function lab.square(x) end

--- The sine, elementwise; x in radians.
-- @param x  tensor
-- @return tensor of the same shape
-- @example
--   print(lab.sin(lab.tensor { 0.5, 1, 2 }))
function lab.sin(x) end

--- The cosine, elementwise; x in radians.
-- @param x  tensor
-- @return tensor of the same shape
-- @example
--   print(lab.cos(lab.tensor { 0.5, 1, 2 }))
function lab.cos(x) end

--- The sum over axes.
-- @param x     tensor
-- @param axes  an axis, a list of axes, or nil for all
-- @param keep  true: reduced axes stay with size 1; default false
-- @return tensor without the axes
-- @example
--   print(lab.ones({ 2, 3 }):sum(2))
function lab.sum(x, axes, options) end

--- The mean over axes.
-- @param x     tensor
-- @param axes  an axis, a list of axes, or nil for all
-- @param keep  true: reduced axes stay with size 1; default false
-- @return tensor without the axes
-- @example
--   print(lab.arange(6):reshape { 2, 3 }:mean(1, { keep = true }))
function lab.mean(x, axes, options) end

--- The largest element over axes; the first of equals has the gradient, NaN is largest.
-- @param x     tensor
-- @param axes  an axis, a list of axes, or nil for all
-- @param keep  true: reduced axes stay with size 1; default false
-- @return tensor without the axes
-- @example
--   print(lab.tensor { { 1, 5 }, { 3, 2 } }:max(2))
function lab.max(x, axes, options) end

--- The variance over axes.
-- @param x           tensor
-- @param axes        an axis, a list of axes, or nil for all
-- @param keep        true: reduced axes stay with size 1; default false
-- @param correction  divides by n - correction; default 0, 1 is unbiased
-- @return tensor without the axes
-- @example
--   print(lab.arange(5):var(1, { correction = 1 }):item())
function lab.var(x, axes, options) end

--- Where the largest element of an axis is, from 0; no gradient.
--
-- The first of equals; NaN is the largest.
-- @param x     tensor
-- @param axis  default the last
-- @return tensor without the axis
-- @example
--   print(lab.tensor { { 1, 5 }, { 3, 2 } }:argmax())
function lab.argmax(x, axis) end

--- Running sums along an axis.
-- @param x     tensor
-- @param axis  default the last
-- @return tensor of the same shape
-- @example
--   print(lab.ones({ 4 }):cumsum())
function lab.cumsum(x, axis) end

--- exp (x) over its sum along an axis.
-- @param x     tensor
-- @param axis  default the last
-- @return tensor of the same shape; sums are 1
-- @example
--   print(lab.tensor { { 1, 2, 3 } }:softmax(2))
function lab.softmax(x, axis) end

--- The logarithm of softmax, without cancellation.
-- @param x     tensor
-- @param axis  default the last
-- @return tensor of the same shape
-- @example
--   print(lab.tensor { { 1, 2, 3 } }:log_softmax())
function lab.log_softmax(x, axis) end

--- Tensors one after another along an axis.
-- @param tensors  list of 1 to 8, of equal shape but for the axis
-- @param axis     from 1, or from -1 backwards
-- @return tensor
-- @error shapes that differ elsewhere
-- @example
--   print(lab.concat({ lab.zeros({ 1, 2 }), lab.ones({ 1, 2 }) }, 1))
function lab.concat(tensors, axis) end

--- 1 at the place that each id names, 0 elsewhere; no gradient.
-- @param ids      tensor of whole numbers from 0; others give a zero row
-- @param classes  size of the new last axis
-- @return tensor (..., classes)
-- @example
--   print(lab.one_hot(lab.tensor { 0, 2 }, 3))
function lab.one_hot(ids, classes) end

--- The rows of a table that ids name.
-- @param table  tensor (n, d)
-- @param ids    tensor of whole numbers from 0; what names no row gives NaN
-- @return tensor (..., d)
-- @example
--   local table = lab.tensor { { 1, 2 }, { 3, 4 } }
--   print(lab.embedding(table, lab.tensor { 1, 0 }))
function lab.embedding(table, ids) end

--- Elements along an axis, chosen by an index of their own.
-- @param x      tensor
-- @param axis   from 1, or from -1 backwards
-- @param index  tensor of whole numbers from 0, of as many axes; others broadcast;
--               what names no element gives NaN
-- @return tensor with index's size on the axis
-- @example
--   local x = lab.tensor { { 1, 2 }, { 3, 4 } }
--   print(x:gather(2, lab.tensor { { 1 }, { 0 } }))
function lab.gather(x, axis, index) end

--- x with values added at places along an axis: the reverse of gather.
-- @param x       tensor
-- @param axis    from 1, or from -1 backwards
-- @param index   tensor of whole numbers from 0
-- @param values  tensor of the shape of index
-- @return tensor of the shape of x
-- @example
--   local x = lab.zeros({ 1, 3 })
--   print(x:scatter_add(2, lab.tensor { { 2 } }, lab.tensor { { 5 } }))
function lab.scatter_add(x, axis, index, values) end

--- The matrix product; axes before the last two broadcast.
-- @param a  tensor (..., m, k)
-- @param b  tensor (..., k, n)
-- @return tensor (..., m, n)
-- @error inner sizes that differ
-- @example
--   local a = lab.tensor { { 1, 2 }, { 3, 4 } }
--   print(a:matmul(a))
function lab.matmul(a, b) end

--- x times the transpose of w, plus a bias.
-- @param x     tensor (..., inputs)
-- @param w     tensor (outputs, inputs)
-- @param bias  tensor (outputs), or nil
-- @return tensor (..., outputs)
-- @example
--   local x, w = lab.ones({ 4, 3 }), lab.ones({ 2, 3 })
--   print(lab.linear(x, w).shape[2])
function lab.linear(x, w, bias) end

--- The last axis with mean 0 and variance 1, times gamma, plus beta.
-- @param x      tensor (..., d)
-- @param gamma  tensor (d), or nil
-- @param beta   tensor (d), or nil
-- @param eps    added to the variance, default 1e-5
-- @return tensor of the shape of x
-- @source Ba, Kiros and Hinton 2016, arXiv 1607.06450
-- @example
--   print(lab.layer_norm(lab.tensor { { 1, 2, 3 } }))
function lab.layer_norm(x, gamma, beta, options) end

--- The last axis over its root mean square, times gamma.
-- @param x      tensor (..., d)
-- @param gamma  tensor (d), or nil
-- @param eps    added to the mean square, default 1e-6
-- @return tensor of the shape of x
-- @source Zhang and Sennrich 2019, arXiv 1910.07467
-- @example
--   print(lab.rms_norm(lab.tensor { { 3, 4 } }))
function lab.rms_norm(x, gamma, options) end

--- The mean of -log softmax (logits) at the targets.
-- @param logits   tensor (..., classes)
-- @param targets  tensor (...) of classes from 0
-- @param ignore   targets of this value are left out, default -100
-- @return mean loss (nats), loss of each target, number of targets counted
-- @example
--   local logits = lab.tensor { { 2, 0 }, { 0, 2 } }
--   print(lab.cross_entropy(logits, lab.tensor { 0, 1 }):item())
function lab.cross_entropy(logits, targets, options) end

--- The mean of (a - b)^2.
-- @param a  tensor
-- @param b  tensor of the same shape
-- @return tensor of shape ()
-- @example
--   print(lab.mse(lab.tensor { 1, 2 }, lab.tensor { 1, 4 }):item())
function lab.mse(a, b) end

--- The largest |a - b|; no gradient.
-- @param a  tensor
-- @param b  tensor of the same shape
-- @return tensor of shape ()
-- @example
--   print(lab.max_abs_error(lab.tensor { 1, 2 }, lab.tensor { 1, 4 }):item())
function lab.max_abs_error(a, b) end
