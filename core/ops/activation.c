/* activation.c - gelu and silu (Hendrycks, Gimpel 2016; Elfwing et al. 2018).
**
**   gelu   x Phi (x), Phi the normal distribution function; or its tanh form
**          x / 2 (1 + tanh (sqrt (2 / pi) (x + 0.044715 x^3))), which is
**          x sigmoid (2 sqrt (2 / pi) (x + 0.044715 x^3))
**   silu   x sigmoid (x) */
#include "ops/broadcast.h"
#include "ops/ops.h"
#include <sinklab/vmath.h>

enum { G, X }; /* operands: gradient of the result (backward only), input */

/* Phi (x) and its density, without a branch. With a = |x| / sqrt 2 and
** t = k / (k + a): Phi (-|x|) = exp (-a^2) t p (t) / 2, where p is the minimax
** polynomial for exp (a^2) erfc (a) / t. */
SL_VMATH real normal (real x, real *density) {
  const real size = sl_abs (x);
  const real a = sl_choose (size > 40, 40, size); /* NaN passes */
  /* a^2 / 2 = square + rest; the square of a's upper bits is exact */
  const real upper = sl_from_bits (
      sl_to_bits (a) & ~(((sl_bits)1 << (SL_MANTISSA / 2 + 1)) - 1));
  const real half = (real)0.5 * upper * upper;
  const real more = (real)0.5 * (a - upper) * (a + upper);
  const real square = half + more, rest = (half - square) + more;
  const real e = sl_expv (-square) * (1 - rest);
#ifdef SL_SINGLE
  const real t = 2 / (2 + a * (real)0.70710678118654752440);
  real p = (real)0.044098709663;
  p = p * t - (real)0.23918173322;
  p = p * t + (real)0.50294771972;
  p = p * t - (real)0.46551605609;
  p = p * t + (real)0.1392872639;
  p = p * t - (real)0.06204940747;
  p = p * t + (real)0.094074057626;
  p = p * t + (real)0.1752720955;
  p = p * t + (real)0.24687742562;
  p = p * t + (real)0.28209520253;
  p = p * t + (real)0.2820947289;
#else
  const real t = 4 / (4 + a * (real)0.70710678118654752440);
  real p = (real)0.0010899361047281481453;
  p = p * t - (real)0.011821777491847032179;
  p = p * t + (real)0.057148838376773869463;
  p = p * t - (real)0.16097918258939852842;
  p = p * t + (real)0.28991484919659959996;
  p = p * t - (real)0.34339881093110541377;
  p = p * t + (real)0.25587296141854892761;
  p = p * t - (real)0.074639819472475180118;
  p = p * t - (real)0.091528256977830166341;
  p = p * t + (real)0.15576314491998552447;
  p = p * t - (real)0.13540484185208725987;
  p = p * t + (real)0.091693718355290332322;
  p = p * t - (real)0.022845401732627973468;
  p = p * t + (real)0.043589196907949517845;
  p = p * t + (real)0.040557887098096649658;
  p = p * t + (real)0.063467865346867144427;
  p = p * t + (real)0.080887921887359423567;
  p = p * t + (real)0.099061397642259838014;
  p = p * t + (real)0.11501150994802361582;
  p = p * t + (real)0.12782441877044842249;
  p = p * t + (real)0.13663965290614565884;
  p = p * t + (real)0.14104739628762980042;
  p = p * t + (real)0.141047395880665144;
#endif
  const real tail = (real)0.5 * e * t * p;
  *density = e * (real)0.39894228040143267794;
  return sl_choose (x < 0, tail, 1 - tail);
}

/* y = x Phi (x) */
static void gelu_y (ptrdiff_t n, const real *const *x, real *restrict d) {
  const real *restrict a = x[X];
  for (ptrdiff_t i = 0; i < n; i++) {
    real density;
    d[i] = a[i] * normal (a[i], &density);
  }
}

/* y = x Phi (x): dx += dy (Phi + x density) */
static void gelu_da (ptrdiff_t n, const real *const *x, real *restrict d) {
  const real *restrict a = x[X], *restrict g = x[G];
  for (ptrdiff_t i = 0; i < n; i++) {
    real density;
    const real phi = normal (a[i], &density);
    d[i] += g[i] * (phi + a[i] * density);
  }
}

#define TWO_ROOT ((real)1.59576912160573071176) /* 2 sqrt (2 / pi) */

/* y = x s (u), s the logistic function, u = 2 sqrt (2 / pi) (x + 0.044715
** x^3) */
static void gelu_tanh_y (ptrdiff_t n, const real *const *x, real *restrict d) {
  const real *restrict a = x[X];
  for (ptrdiff_t i = 0; i < n; i++) {
    const real cubic = (real)0.044715 * a[i] * a[i] * a[i];
    d[i] = a[i] * sl_sigmoidv (TWO_ROOT * (a[i] + cubic));
  }
}

/* y = x s (u): dx += dy (s + x s (1 - s) u'). Beyond |x| = 40, s is 0 or 1, and
** x is clamped so that u' does not overflow. */
static void gelu_tanh_da (ptrdiff_t n, const real *const *x, real *restrict d) {
  const real *restrict a = x[X], *restrict g = x[G];
  for (ptrdiff_t i = 0; i < n; i++) {
    const real b = sl_choose (a[i] > 40, 40, sl_choose (a[i] < -40, -40, a[i]));
    const real square = (real)0.044715 * b * b;
    const real s = sl_sigmoidv (TWO_ROOT * (b + square * b));
    d[i] += g[i] * (s + b * s * (1 - s) * TWO_ROOT * (1 + 3 * square));
  }
}

/* y = x s (x) */
static void silu_y (ptrdiff_t n, const real *const *x, real *restrict d) {
  const real *restrict a = x[X];
  for (ptrdiff_t i = 0; i < n; i++) d[i] = a[i] * sl_sigmoidv (a[i]);
}

/* y = x s (x): dx += dy (s + x s (1 - s)) */
static void silu_da (ptrdiff_t n, const real *const *x, real *restrict d) {
  const real *restrict a = x[X], *restrict g = x[G];
  for (ptrdiff_t i = 0; i < n; i++) {
    const real s = sl_sigmoidv (a[i]);
    d[i] += g[i] * (s + a[i] * s * (1 - s));
  }
}

static int shapes (sl_shape_query *q, sl_error *e) {
  (void)e;
  q->n_out = 1;
  q->out[0] = q->in[0];
  return 0;
}

static int gelu_shapes (sl_shape_query *q, sl_error *e) {
  const sl_gelu_attr *attr = q->attr;
  if (attr->approximate != 0 && attr->approximate != 1)
    return sl_fail (e, "approximate is %d; it must be 0 or 1",
                    attr->approximate);
  return shapes (q, e);
}

static void forward (const sl_run *r, sl_kernel kernel) {
  const sl_view *x[] = { NULL, &r->in[0] };
  SL (sl_elementwise) (kernel, 2, x, &r->out[0]);
}

static void backward (const sl_run *r, sl_kernel kernel) {
  const sl_view *x[] = { &r->dout[0], &r->in[0] };
  if (r->dout[0].data)
    SL (sl_accumulate) (kernel, 2, x, &r->din[0], &r->out[0]);
}

static void gelu_forward (const sl_run *r) {
  const sl_gelu_attr *attr = r->attr;
  forward (r, attr->approximate ? gelu_tanh_y : gelu_y);
}
static void gelu_backward (const sl_run *r) {
  const sl_gelu_attr *attr = r->attr;
  backward (r, attr->approximate ? gelu_tanh_da : gelu_da);
}
static void silu_forward (const sl_run *r) {
  forward (r, silu_y);
}
static void silu_backward (const sl_run *r) {
  backward (r, silu_da);
}

static const sl_option gelu_options[] = { { .name = "approximate",
                                            .type = SL_BOOL,
                                            .offset = offsetof (sl_gelu_attr,
                                                                approximate) },
                                          { .name = NULL } };
SL_OP (gelu, .min_in = 1, .max_in = 1, .arguments = SL_ARGS_INPUTS,
       .options = gelu_options, .attr_size = sizeof (sl_gelu_attr),
       .shapes = gelu_shapes, .forward = gelu_forward,
       .backward = gelu_backward);
SL_OP (silu, .min_in = 1, .max_in = 1, .arguments = SL_ARGS_INPUTS,
       .shapes = shapes, .forward = silu_forward, .backward = silu_backward);
