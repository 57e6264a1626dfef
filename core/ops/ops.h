/* ops.h - the operations by name, with their attributes.
**
** Elementwise: add sub mul div pow maximum minimum, eq ne lt le gt ge (1 or 0;
** no gradient), where (condition, a, b), which broadcast; neg exp log tanh
** sigmoid relu abs sqrt square sin cos silu gelu; copy makes its input
** row-major.
**
**   gelu                                          sl_gelu_attr
**   sum mean max var                              sl_reduce_attr
**   argmax (no gradient)                          sl_axis_attr
**   cumsum softmax log_softmax                    sl_axis_attr
**   concat (1 to 8 inputs)                        sl_axis_attr
**   one_hot (index) (no gradient)                 sl_one_hot_attr
**   embedding (table (n, d), ids)                 -> ids.shape + (d)
**   gather (x, index)                             sl_axis_attr
**   scatter_add (x, index, src)                   sl_axis_attr
**   uniform normal randint bernoulli              sl_random_attr; no gradient
**   categorical (probabilities (k))               sl_random_attr; no gradient
**   matmul (a, b)                                 batch axes broadcast
**   linear (x, w (out, in), [bias (out)])
**   layer_norm (x, [gamma, beta])                 last axis; sl_norm_attr
**   rms_norm (x, [gamma])                         last axis; sl_norm_attr
**   cross_entropy (logits (..., c), targets)      sl_cross_entropy_attr
**                                    -> mean loss, loss per target, count
**   mse (a, b)                                    -> scalar
**   max_abs_error (a, b)                          -> scalar; no gradient
**   rope, attention, gate, mixer, row_weights       attention/attention.h
**
** Indices are whole numbers from 0. gather: x and index broadcast on the other
** axes, the result has index's size on the axis; scatter_add is x plus src at
** those places. An index that chooses nothing (outside, a fraction, NaN) gives
** NaN there and no gradient; one_hot gives zeros for a whole number outside its
** classes. What gradients are at kinks and ties: elementwise.c, reduce.c. Which
** random words an element is made of: distributions.c. */
#ifndef SL_OPS_H
#define SL_OPS_H
#include "ops/op.h"

typedef struct sl_axis_attr {
  int axis; /* negative counts from the end */
} sl_axis_attr;

typedef struct sl_reduce_attr {
  unsigned axes;  /* bit i: axis i (from 0) is reduced; 0: all axes */
  int keep;       /* 1: reduced axes stay with size 1 */
  int correction; /* var: divides by n - correction (0 biased, 1 unbiased) */
} sl_reduce_attr;

typedef struct sl_one_hot_attr {
  ptrdiff_t classes; /* an index outside 0..classes-1 gives a zero row */
} sl_one_hot_attr;

typedef struct sl_gelu_attr {
  int approximate; /* 1: the tanh form; 0: erf */
} sl_gelu_attr;

typedef struct sl_norm_attr {
  double eps;
} sl_norm_attr;

typedef struct sl_cross_entropy_attr {
  double ignore; /* targets equal to this are left out (usually -100) */
} sl_cross_entropy_attr;

/* Axis 0 of the result counts samples: see sl_draw.
** uniform [a, b); normal mean a, standard deviation b; randint a..b, both
** included; bernoulli 1 with probability a. */
typedef struct sl_random_attr {
  uint32_t stream;
  int ndim;
  ptrdiff_t dim[SL_MAX_DIMS];
  double a, b;
} sl_random_attr;
#endif
