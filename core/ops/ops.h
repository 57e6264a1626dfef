/* ops.h - the attributes of operations that core applies itself or that several
** files share.
**
** Every operation is described in its own file, behind SL_OP: formula, shapes,
** gradients at kinks and ties (elementwise.c, reduce.c), the random words of an
** element (distributions.c), and indices that select nothing (index.c).
** core/attention/attention.h has those of attention, gate, mixer, rope and
** row_weights. An operation that is not named below has no attributes. */
#ifndef SL_OPS_H
#define SL_OPS_H
#include "ops/op.h"

/* argmax cumsum softmax log_softmax concat gather scatter_add */
typedef struct sl_axis_attr {
  int axis; /* negative counts from the end */
} sl_axis_attr;

/* sum mean max var */
typedef struct sl_reduce_attr {
  unsigned axes;  /* bit i: axis i (from 0) is reduced; 0: all axes */
  int keep;       /* 1: reduced axes stay with size 1 */
  int correction; /* var: divides by n - correction (0 biased, 1 unbiased) */
} sl_reduce_attr;

/* one_hot */
typedef struct sl_one_hot_attr {
  ptrdiff_t classes; /* an index outside 0..classes-1 gives a zero row */
} sl_one_hot_attr;

/* gelu */
typedef struct sl_gelu_attr {
  int approximate; /* 1: the tanh form; 0: erf */
} sl_gelu_attr;

/* layer_norm rms_norm */
typedef struct sl_norm_attr {
  double eps; /* added to the variance, to the mean square */
} sl_norm_attr;

/* cross_entropy */
typedef struct sl_cross_entropy_attr {
  double ignore; /* targets equal to this are left out (usually -100) */
} sl_cross_entropy_attr;

/* uniform on [a, b); normal with mean a and standard deviation b; randint a..b,
** both included; bernoulli: 1 with probability a; categorical. Axis 0 of the
** result counts samples: see sl_draw. */
typedef struct sl_random_attr {
  uint32_t stream;
  int ndim;
  ptrdiff_t dim[SL_MAX_DIMS];
  double a, b;
} sl_random_attr;
#endif
