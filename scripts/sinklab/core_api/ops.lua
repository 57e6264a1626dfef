--- ops.lua - operations on tensors.
--
-- Each is a function and, where its first argument is a tensor, a method too:
-- lab.softmax(x, 2) is x:softmax(2). They run at once; while lab.record records, they
-- are also kept, to be replayed and differentiated. Shapes broadcast: axes of size 1
-- are repeated. A number in place of a tensor is a tensor of shape ().
local schema = require "sinklab.base.schema"

local ops = {}

-- Their options are read in C: a call of an operation costs no Lua.
local function op(name, doc, args, returns, example, more)
  more = more or {}
  more.unchecked = true
  ops[name] = schema.describe("lab." .. name, doc, args, returns, example, more)
end

local x = { "x", "tensor" }
local last_axis = { "axis", "integer", optional = true, default_doc = "the last",
  doc = "from 1, or from -1 backwards" }
local axis = { "axis", "integer", doc = "from 1, or from -1 backwards" }
local same_shape = "tensor of the same shape"

-- Operations that differ in formula and example only.

local operands = { { "a", "tensor number" },
  { "b", "tensor number", doc = "one of the two is a tensor" } }

for _, row in ipairs {
  { "add", "a + b", "lab.add(lab.tensor { 1, 2 }, 10)" },
  { "sub", "a - b", "lab.sub(1, lab.tensor { 1, 2 })" },
  { "mul", "a * b", "lab.mul(lab.tensor { 1, 2 }, lab.tensor { 3, 4 })" },
  { "div", "a / b", "lab.div(lab.tensor { 1, 2 }, 2)" },
  { "pow", "a to the power b", "lab.tensor { 1, 2, 3 } ^ 2" },
  { "maximum", "The larger of a and b", "lab.maximum(lab.tensor { -1, 2 }, 0)",
    "; half the gradient to each at a tie" },
  { "minimum", "The smaller of a and b", "lab.minimum(lab.tensor { -1, 2 }, 0)",
    "; half the gradient to each at a tie" },
} do
  op(row[1], row[2] .. ", elementwise" .. (row[4] or "") .. ".", operands,
    "tensor of the broadcast shape", "print(" .. row[3] .. ")")
end

local comparisons = { eq = "=", ne = "~=", lt = "<", le = "<=", gt = ">", ge = ">=" }
for name, sign in pairs(comparisons) do
  op(name, ("1 where a %s b, else 0, elementwise; no gradient."):format(sign), operands,
    "tensor of the broadcast shape",
    ("print(lab.%s(lab.tensor { 1, 2, 3 }, 2))"):format(name))
end

for _, row in ipairs {
  { "neg", "-x" },
  { "exp", "e to the power x" },
  { "log", "The natural logarithm" },
  { "tanh", "The hyperbolic tangent" },
  { "sigmoid", "1 / (1 + exp (-x))" },
  { "relu", "max (x, 0)", "; the gradient at 0 is 0" },
  { "silu", "x * sigmoid (x)", source = "Elfwing, Uchibe and Doya 2018" },
  { "abs", "The absolute value", "; the gradient at 0 is 0" },
  { "sqrt", "The square root" },
  { "square", "x * x" },
  { "sin", "The sine of x in radians" },
  { "cos", "The cosine of x in radians" },
} do
  op(row[1], row[2] .. ", elementwise" .. (row[3] or "") .. ".", { x }, same_shape,
    ("print(lab.%s(lab.tensor { 0.5, 1, 2 }))"):format(row[1]), { source = row.source })
end

local axes = { "axes", "integer table", optional = true, default_doc = "all",
  doc = "an axis or a list of axes" }
local keep = { "keep", "boolean", default = false,
  doc = "reduced axes stay, with size 1" }

for _, row in ipairs {
  { "sum", "The sum over axes.", "lab.ones({ 2, 3 }):sum(2)" },
  { "mean", "The mean over axes.",
    "lab.arange(6):reshape { 2, 3 }:mean(1, { keep = true })" },
  { "max", "The largest element over axes. The first of equal elements has the "
    .. "gradient; NaN is the largest.", "lab.tensor { { 1, 5 }, { 3, 2 } }:max(2)" },
  { "var", "The variance over axes.", "lab.arange(5):var(1, { correction = 1 }):item()",
    { "correction", "integer", default = 0, min = 0, max = 1 << 30,
      doc = "the sum of squares is divided by n - correction; 1 is unbiased" } },
} do
  op(row[1], row[2], { x, axes }, "tensor without the axes", "print(" .. row[3] .. ")",
    { options = { keep, row[4] } })
end

op("where", "a where the condition is not 0, else b, elementwise.",
  schema.join({ { "condition", "tensor number" } }, operands),
  "tensor of the broadcast shape", [[
    local x = lab.tensor { -1, 2 }
    print(lab.where(lab.gt(x, 0), x, 0))]])

op("gelu", "x * Phi (x), the Gaussian error linear unit, elementwise.", { x }, same_shape,
  "print(lab.gelu(lab.tensor { -1, 0, 1 }, { approximate = true }))",
  { source = "Hendrycks and Gimpel 2016, arXiv 1606.08415",
    options = { { "approximate", "boolean", default = false,
      doc = "the tanh form; false: erf" } } })

op("argmax", [[Where the largest element of an axis is, from 0; no gradient. The first of
  equal elements; NaN is the largest.]], { x, last_axis }, "tensor without the axis",
  "print(lab.tensor { { 1, 5 }, { 3, 2 } }:argmax())")

op("cumsum", "Running sums along an axis.", { x, last_axis }, same_shape,
  "print(lab.ones({ 4 }):cumsum())")

op("softmax", "exp (x) over its sum along an axis.", { x, last_axis },
  "tensor of the same shape; sums are 1",
  "print(lab.tensor { { 0, 1 }, { 5, 5 } }:softmax(2))")

op("log_softmax", "The logarithm of softmax.", { x, last_axis }, same_shape,
  "print(lab.tensor { { 1, 2, 3 } }:log_softmax())")

op("concat", "Tensors one after another along an axis.",
  { { "tensors", "table", doc = "list of 1 to 8, of equal shape except along the axis" },
    axis },
  "tensor", "print(lab.concat({ lab.zeros({ 1, 2 }), lab.ones({ 1, 2 }) }, 1))",
  { errors = "shapes that differ along other axes" })

op("one_hot", "1 at the place that each id names, 0 elsewhere; no gradient.",
  { { "ids", "tensor", doc = "whole numbers from 0; others give a row of zeros" },
    { "classes", "integer", min = 1, doc = "size of the new last axis" } },
  "tensor (..., classes)", "print(lab.one_hot(lab.tensor { 0, 2 }, 3))")

op("embedding", "The rows of a table that ids name.",
  { { "table", "tensor", doc = "(n, d)" },
    { "ids", "tensor", doc = "whole numbers from 0; an id of no row gives NaN" } },
  "tensor (..., d)", [[
    local table = lab.tensor { { 1, 2 }, { 3, 4 } }
    print(lab.embedding(table, lab.tensor { 1, 0 }))]])

op("gather", "Elements along an axis, chosen by an index of their own.",
  { x, axis, { "index", "tensor", doc = "whole numbers from 0, of as many axes as x; its "
    .. "other axes broadcast; an index of no element gives NaN" } },
  "tensor with index's size on the axis", [[
    local x = lab.tensor { { 1, 2 }, { 3, 4 } }
    print(x:gather(2, lab.tensor { { 1 }, { 0 } }))]])

op("scatter_add", "x with values added at places along an axis: the reverse of gather.",
  { x, axis, { "index", "tensor", doc = "whole numbers from 0" },
    { "values", "tensor", doc = "of the shape of index" } },
  "tensor of the shape of x", [[
    local x = lab.zeros({ 1, 3 })
    print(x:scatter_add(2, lab.tensor { { 2 } }, lab.tensor { { 5 } }))]])

op("matmul", "The matrix product; axes before the last two broadcast.",
  { { "a", "tensor", doc = "(..., m, k)" }, { "b", "tensor", doc = "(..., k, n)" } },
  "tensor (..., m, n)", [[
    local a = lab.tensor { { 1, 2 }, { 3, 4 } }
    print(a:matmul(a))]], { errors = "inner sizes that differ" })

op("linear", "x times the transpose of w, plus a bias.",
  { { "x", "tensor", doc = "(..., inputs)" },
    { "w", "tensor", doc = "(outputs, inputs)" },
    { "bias", "tensor", optional = true, doc = "(outputs)", default_doc = "none" } },
  "tensor (..., outputs)", [[
    local x, w = lab.ones({ 4, 3 }), lab.ones({ 2, 3 })
    print(lab.linear(x, w).shape[2])]])

local gamma = { "gamma", "tensor", optional = true, doc = "(d)", default_doc = "none" }

op("layer_norm", "The last axis with mean 0 and variance 1, times gamma, plus beta.",
  { { "x", "tensor", doc = "(..., d)" }, gamma,
    { "beta", "tensor", optional = true, doc = "(d)", default_doc = "none" } },
  "tensor of the shape of x", "print(lab.layer_norm(lab.tensor { { 1, 2, 3 } }))",
  { source = "Ba, Kiros and Hinton 2016, arXiv 1607.06450", options = {
    { "eps", "number", default = 1e-5, doc = "added to the variance" } } })

op("rms_norm", "The last axis over its root mean square, times gamma.",
  { { "x", "tensor", doc = "(..., d)" }, gamma },
  "tensor of the shape of x", "print(lab.rms_norm(lab.tensor { { 3, 4 } }))",
  { source = "Zhang and Sennrich 2019, arXiv 1910.07467", options = {
    { "eps", "number", default = 1e-6, doc = "added to the mean square" } } })

op("cross_entropy", "The mean of -log softmax (logits) at the targets.",
  { { "logits", "tensor", doc = "(..., classes)" },
    { "targets", "tensor", doc = "(...): classes from 0" } },
  "mean loss (nats), loss of each target (nats), number of targets counted", [[
    local logits = lab.tensor { { 2, 0 }, { 0, 2 } }
    print(lab.cross_entropy(logits, lab.tensor { 0, 1 }):item())]],
  { options = { { "ignore", "number", default = -100,
    doc = "targets of this value are not counted" } } })

op("mse", "The mean of (a - b)^2.",
  { { "a", "tensor" }, { "b", "tensor", doc = "of the same shape" } },
  "tensor of shape ()",
  "print(lab.mse(lab.tensor { 1, 2 }, lab.tensor { 1, 4 }):item())")

op("max_abs_error", "The largest |a - b|; no gradient.",
  { { "a", "tensor" }, { "b", "tensor", doc = "of the same shape" } },
  "tensor of shape ()",
  "print(lab.max_abs_error(lab.tensor { 1, 2 }, lab.tensor { 1, 4 }):item())")

return ops
