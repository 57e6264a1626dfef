/* sinklab/reduce.h - reductions of one row for row kernels: maximum, sum, dot
** product, and the softmax made of them.
**
** Written so that gcc and clang vectorise them without -ffast-math: element i
** is added to partial sum i % SL_PARTS, the partial sums are added pairwise,
** and the last n % SL_PARTS elements are summed apart and added last. The order
** of operations, and with it the bits, depends on n alone. Up to 16 elements
** cost a few nanoseconds. Rows are (n), n >= 1. */
#ifndef SINKLAB_REDUCE_H
#define SINKLAB_REDUCE_H
#include <sinklab/vmath.h>

#define SL_REDUCE static inline __attribute__ ((unused))
enum { SL_PARTS = 8, SL_MAX_PARTS = 16 };

/* The larger of two; b where either is NaN. */
SL_REDUCE real sl_larger (real a, real b) {
  return a > b ? a : b;
}

/* max_i x_i; NaN may be ignored. */
SL_REDUCE real sl_row_max (ptrdiff_t n, const real *x) {
  real max = x[0];
  ptrdiff_t i = 0;
  if (n >= SL_MAX_PARTS) {
    real part[SL_MAX_PARTS];
    for (; i < SL_MAX_PARTS; i++) part[i] = x[i];
    for (; i + SL_MAX_PARTS <= n; i += SL_MAX_PARTS)
      for (int l = 0; l < SL_MAX_PARTS; l++)
        part[l] = sl_larger (part[l], x[i + l]);
    for (int half = SL_MAX_PARTS / 2; half > 0; half /= 2)
      for (int l = 0; l < half; l++)
        part[l] = sl_larger (part[l], part[l + half]);
    max = part[0];
  }
  for (; i < n; i++) max = sl_larger (max, x[i]);
  return max;
}

/* The partial sums, added pairwise. */
SL_REDUCE real sl_pairwise_sum (real *part) {
  for (int half = SL_PARTS / 2; half > 0; half /= 2)
    for (int l = 0; l < half; l++) part[l] += part[l + half];
  return part[0];
}

/* sum_i x_i */
SL_REDUCE real sl_row_sum (ptrdiff_t n, const real *x) {
  real part[SL_PARTS] = { 0 }, rest = 0;
  ptrdiff_t i = 0;
  for (; i + SL_PARTS <= n; i += SL_PARTS)
    for (int l = 0; l < SL_PARTS; l++) part[l] += x[i + l];
  for (; i < n; i++) rest += x[i];
  return sl_pairwise_sum (part) + rest;
}

/* sum_i x_i y_i */
SL_REDUCE real sl_row_dot (ptrdiff_t n, const real *x, const real *y) {
  real part[SL_PARTS] = { 0 }, rest = 0;
  ptrdiff_t i = 0;
  for (; i + SL_PARTS <= n; i += SL_PARTS)
    for (int l = 0; l < SL_PARTS; l++) part[l] += x[i + l] * y[i + l];
  for (; i < n; i++) rest += x[i] * y[i];
  return sl_pairwise_sum (part) + rest;
}

/* max (|a|, 1), a normaliser of rows of any sign, and its derivative. */
SL_VMATH real sl_abs_or_one (real a, real *slope) {
  const real size = a < 0 ? -a : a;
  *slope = a > 1 ? 1 : a < -1 ? -1 : 0;
  return size > 1 ? size : 1;
}

/* e_i = exp (x_i - shift); e may be x. */
SL_VMATH void sl_row_exp (ptrdiff_t n, const real *x, real shift, real *e) {
  for (ptrdiff_t i = 0; i < n; i++) e[i] = sl_expv (x[i] - shift);
}

/* x_i *= factor */
SL_VMATH void sl_row_scale (ptrdiff_t n, real *x, real factor) {
  for (ptrdiff_t i = 0; i < n; i++) x[i] *= factor;
}

/* w_i = exp (s_i) / sum_j exp (s_j); w may be s. */
SL_VMATH void sl_row_softmax (ptrdiff_t n, const real *s, real *w) {
  sl_row_exp (n, s, sl_row_max (n, s), w);
  sl_row_scale (n, w, 1 / sl_row_sum (n, w));
}

/* w_i = exp (s_i) / (sum_j exp (s_j) + anything that does not depend on s):
** ds_i = w_i (dw_i - mean), mean = sum_j w_j dw_j, which is returned. */
SL_VMATH real sl_row_softmax_backward (ptrdiff_t n, const real *w,
                                       const real *dw, real *ds) {
  const real mean = sl_row_dot (n, w, dw);
  for (ptrdiff_t i = 0; i < n; i++) ds[i] = w[i] * (dw[i] - mean);
  return mean;
}
#endif
