/* compare.c - eq ne lt le gt ge: y = 1 where a < b (and so on), else 0.
**
** As IEEE 754 has it, a comparison with NaN is 0, except ne, which is 1. */
#include "ops/broadcast.h"

static int shapes (sl_shape_query *q, sl_error *e) {
  q->n_out = 1;
  return sl_broadcast_shape (&q->in[0], &q->in[1], &q->out[0], e);
}

/* 1 in the lanes of x where a comparison holds: all of their bits are set. */
#define SL_TRUE(holds, x) \
  ((__typeof__ (x))((holds) & (__typeof__ (holds))((__typeof__ (x)){ 0 } + 1)))

#define SL_OP_COMPARE(name, operator)                                    \
  static void name##_loop (ptrdiff_t n, const real *const *x,            \
                           real *restrict y) {                           \
    const real *restrict a = x[0], *restrict b = x[1];                   \
    for (ptrdiff_t i = 0; i < n; i++) y[i] = a[i] operator b[i] ? 1 : 0; \
  }                                                                      \
  SL_PAIR (name##_pair, SL_TRUE (a operator b, a))                       \
  static void name##_forward (const sl_run *r) {                         \
    const sl_view *const x[SL_KERNEL_IN] = { &r->in[0], &r->in[1] };     \
    if (!SL (sl_elementwise_pair) (name##_pair, r->in, &r->out[0]))      \
      SL (sl_elementwise) (name##_loop, 2, x, &r->out[0]);               \
  }                                                                      \
  SL_OP (name, .min_in = 2, .max_in = 2, .flags = SL_OP_NO_GRADIENT,     \
         .arguments = SL_ARGS_INPUTS, .shapes = shapes,                  \
         .forward = name##_forward);

SL_OP_COMPARE (eq, ==)
SL_OP_COMPARE (ne, !=)
SL_OP_COMPARE (lt, <)
SL_OP_COMPARE (le, <=)
SL_OP_COMPARE (gt, >)
SL_OP_COMPARE (ge, >=)
