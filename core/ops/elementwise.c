/* elementwise.c - arithmetic and functions of one element, broadcasting.
**
** Conventions where mathematics has none: relu' (0) = 0 and abs' (0) = 0; a tie
** of maximum or minimum gives half of the gradient to each side; NaN passes
** through all of them. pow: the gradient to the exponent is NaN where the base
** is below 0, 0 where it is 0 and the exponent is not below 0; the gradient to
** the base is 0 where the exponent is 0. log (0), sqrt' (0), x / 0 are as IEEE 754 has them.
** where sends nothing to its condition, which is true for every number but
** 0. */
#include "ops/broadcast.h"
#include <math.h>
#include <sinklab/vmath.h>

/* Operands of a loop: g and y, gradient and value of the result (backward
** only), and a, b, c, the inputs in order. A loop may read only the ones that
** its SL_OP_ line lists. */
enum { G, Y, A, B, C };
enum {
  USE_G = 1 << G,
  USE_Y = 1 << Y,
  USE_A = 1 << A,
  USE_B = 1 << B,
  USE_C = 1 << C
};

#define LOOP(name, statement)                                              \
  static void name (ptrdiff_t n, const real *const *x, real *restrict d) { \
    const real *restrict g = x[G], *restrict y = x[Y];                     \
    const real *restrict a = x[A], *restrict b = x[B], *restrict c = x[C]; \
    (void)g, (void)y, (void)a, (void)b, (void)c;                           \
    for (ptrdiff_t i = 0; i < n; i++) statement;                           \
  }

/* 'pair' is NULL or the same function of two operands, by rows. */
static void run_forward (const sl_run *r, sl_pair_kernel pair,
                         sl_kernel kernel) {
  const sl_view *x[SL_KERNEL_IN] = { NULL };
  if (pair && SL (sl_elementwise_pair) (pair, r->in, &r->out[0])) return;
  for (int k = 0; k < r->n_in; k++) x[A + k] = &r->in[k];
  SL (sl_elementwise) (kernel, SL_KERNEL_IN, x, &r->out[0]);
}

static void run_backward (const sl_run *r, int input, sl_kernel assign,
                          sl_kernel add, unsigned uses) {
  const sl_view *x[SL_KERNEL_IN] = { NULL };
  if (!r->dout[0].data) return;
  if (uses & USE_G) x[G] = &r->dout[0];
  if (uses & USE_Y) x[Y] = &r->out[0];
  for (int k = 0; k < r->n_in; k++)
    if (uses & (1u << (A + k))) x[A + k] = &r->in[k];
  SL (sl_write_gradient)
  ((int)(r->assigns >> input & 1), assign, add, SL_KERNEL_IN, x, &r->din[input],
   &r->out[0]);
}

static int broadcast_shapes (sl_shape_query *q, sl_error *e) {
  q->n_out = 1;
  q->out[0] = q->in[0];
  for (int k = 1; k < q->n_in; k++) {
    const sl_view before = q->out[0];
    if (sl_broadcast_shape (&before, &q->in[k], &q->out[0], e)) return -1;
  }
  return 0;
}

#define OP(name, inputs, more)                                         \
  SL_OP (name, .min_in = inputs, .max_in = inputs,                     \
         .flags = SL_OP_ASSIGNS | (more), .arguments = SL_ARGS_INPUTS, \
         .shapes = broadcast_shapes, .forward = name##_forward,        \
         .backward = name##_backward);

/* y = value; da = gradient or += gradient, an expression of the operands in
** 'uses'. */
#define KERNELS_1(name, value, uses, gradient)           \
  LOOP (name##_y, d[i] = value)                          \
  LOOP (name##_da, d[i] = gradient)                      \
  LOOP (name##_add_da, d[i] += gradient)                 \
  static void name##_forward (const sl_run *r) {         \
    run_forward (r, NULL, name##_y);                     \
  }                                                      \
  static void name##_backward (const sl_run *r) {        \
    run_backward (r, 0, name##_da, name##_add_da, uses); \
  }

#define SL_OP_1(name, value, uses, gradient) \
  KERNELS_1 (name, value, uses, gradient)    \
  OP (name, 1, 0)

#define SL_OP_2(name, flags, pair, value, uses_a, gradient_a, uses_b, \
                gradient_b)                                           \
  LOOP (name##_y, d[i] = value)                                       \
  LOOP (name##_da, d[i] = gradient_a)                                 \
  LOOP (name##_db, d[i] = gradient_b)                                 \
  LOOP (name##_add_da, d[i] += gradient_a)                            \
  LOOP (name##_add_db, d[i] += gradient_b)                            \
  static void name##_forward (const sl_run *r) {                      \
    run_forward (r, pair, name##_y);                                  \
  }                                                                   \
  static void name##_backward (const sl_run *r) {                     \
    run_backward (r, 0, name##_da, name##_add_da, uses_a);            \
    run_backward (r, 1, name##_db, name##_add_db, uses_b);            \
  }                                                                   \
  OP (name, 2, flags)

/* The larger of two, NaN if one is NaN; and the factor of the gradient of
** 'mine': 1 if it is the result, 1/2 at a tie, else 0. */
static inline real larger (real a, real b) {
  return sl_choose ((a > b) | (a != a), a, b);
}
static inline real share (real mine, real other, real result) {
  return sl_choose (mine == other, (real)0.5, sl_choose (mine == result, 1, 0));
}

static inline real power (real a, real b) {
  return b == 2
             ? a * a
             : (real)(sizeof a == 4 ? powf ((float)a, (float)b) : pow (a, b));
}
static inline real power_da (real a, real b) {
  return b == 0 ? 0 : b == 2 ? 2 * a : b * power (a, b - 1);
}
static inline real power_db (real a, real b, real y) {
  return a == 0 && b >= 0 ? 0 : y * (real)log ((double)a);
}

static inline real sine (real x) {
  return sizeof x == 4 ? (real)sinf ((float)x) : (real)sin ((double)x);
}
static inline real cosine (real x) {
  return sizeof x == 4 ? (real)cosf ((float)x) : (real)cos ((double)x);
}
static inline real root (real x) {
  return sizeof x == 4 ? (real)sqrtf ((float)x) : (real)sqrt ((double)x);
}

SL_PAIR (add_pair, a + b)
SL_PAIR (sub_pair, a - b)
SL_PAIR (mul_pair, a *b)
SL_PAIR (div_pair, a / b)

SL_OP_2 (add, SL_OP_GRAD_IS_IDENTITY, add_pair, a[i] + b[i], USE_G, g[i], USE_G,
         g[i])
SL_OP_2 (sub, 0, sub_pair, a[i] - b[i], USE_G, g[i], USE_G, -g[i])
SL_OP_2 (mul, 0, mul_pair, a[i] * b[i], USE_G | USE_B, g[i] * b[i],
         USE_G | USE_A, g[i] * a[i])
SL_OP_2 (div, 0, div_pair, a[i] / b[i], USE_G | USE_B, g[i] / b[i],
         USE_G | USE_Y | USE_B, -(g[i] * y[i] / b[i]))
SL_OP_2 (pow, 0, NULL, power (a[i], b[i]), USE_G | USE_A | USE_B,
         g[i] * power_da (a[i], b[i]), USE_G | USE_Y | USE_A | USE_B,
         g[i] * power_db (a[i], b[i], y[i]))
SL_OP_2 (maximum, 0, NULL, larger (a[i], b[i]), USE_G | USE_Y | USE_A | USE_B,
         g[i] * share (a[i], b[i], y[i]), USE_G | USE_Y | USE_A | USE_B,
         g[i] * share (b[i], a[i], y[i]))
SL_OP_2 (minimum, 0, NULL, -larger (-a[i], -b[i]),
         USE_G | USE_Y | USE_A | USE_B, g[i] * share (a[i], b[i], y[i]),
         USE_G | USE_Y | USE_A | USE_B, g[i] * share (b[i], a[i], y[i]))

SL_OP_1 (neg, -a[i], USE_G, -g[i])
SL_OP_1 (exp, sl_expv (a[i]), USE_G | USE_Y, g[i] * y[i])
SL_OP_1 (log, sl_logv (a[i]), USE_G | USE_A, g[i] / a[i])
SL_OP_1 (tanh, sl_tanhv (a[i]), USE_G | USE_Y, g[i] * (1 - y[i] * y[i]))
SL_OP_1 (sigmoid, sl_sigmoidv (a[i]), USE_G | USE_Y, g[i] * (y[i] * (1 - y[i])))
SL_OP_1 (relu, sl_choose (a[i] < 0, 0, a[i]), USE_G | USE_A,
         sl_choose (a[i] > 0, g[i], 0))
SL_OP_1 (abs, sl_abs (a[i]), USE_G | USE_A,
         sl_choose (a[i] > 0, g[i], sl_choose (a[i] < 0, -g[i], 0)))
SL_OP_1 (sqrt, root (a[i]), USE_G | USE_Y, g[i] * (real)0.5 / y[i])
SL_OP_1 (square, a[i] * a[i], USE_G | USE_A, 2 * g[i] * a[i])
SL_OP_1 (sin, sine (a[i]), USE_G | USE_A, g[i] * cosine (a[i]))
SL_OP_1 (cos, cosine (a[i]), USE_G | USE_A, -(g[i] * sine (a[i])))
KERNELS_1 (copy, a[i], USE_G, g[i])
SL_OP (copy, .min_in = 1, .max_in = 1,
       .flags = SL_OP_ASSIGNS | SL_OP_GRAD_IS_IDENTITY,
       .shapes = broadcast_shapes, .forward = copy_forward,
       .backward = copy_backward); /* t:copy is something else in Lua */

/* y = a != 0 ? b : c: db += a != 0 ? dy : 0, dc += a != 0 ? 0 : dy. The
** condition a has no gradient. */
LOOP (where_da, d[i] = 0)
LOOP (where_add_da, d[i] += 0)
LOOP (where_y, d[i] = sl_choose (a[i] != 0, b[i], c[i]))
LOOP (where_db, d[i] = sl_choose (a[i] != 0, g[i], 0))
LOOP (where_dc, d[i] = sl_choose (a[i] != 0, 0, g[i]))
LOOP (where_add_db, d[i] += sl_choose (a[i] != 0, g[i], 0))
LOOP (where_add_dc, d[i] += sl_choose (a[i] != 0, 0, g[i]))

static void where_forward (const sl_run *r) {
  run_forward (r, NULL, where_y);
}

static void where_backward (const sl_run *r) {
  if (r->assigns & 1) run_backward (r, 0, where_da, where_add_da, USE_G);
  run_backward (r, 1, where_db, where_add_db, USE_G | USE_A);
  run_backward (r, 2, where_dc, where_add_dc, USE_G | USE_A);
}
SL_OP (where, .min_in = 3, .max_in = 3, .flags = SL_OP_ASSIGNS,
       .arguments = SL_ARGS_INPUTS, .shapes = broadcast_shapes,
       .forward = where_forward, .backward = where_backward);
