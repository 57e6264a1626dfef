/* sinklab/reduce.h - the largest element, the sum and the dot product of a row.
**
** Written so that gcc and clang make vectors of them without -ffast-math:
** element i goes to part i % SL_PARTS, the parts are folded in halves, and what
** is left of the row is summed apart and added last. So the bits depend on the
** numbers and nothing else. A row may be short: up to 16 elements cost a few
** nanoseconds. */
#ifndef SINKLAB_REDUCE_H
#define SINKLAB_REDUCE_H
#include <sinklab/plugin.h>

#define SL_REDUCE static inline __attribute__ ((unused))
enum { SL_PARTS = 8, SL_MAX_PARTS = 16 };

SL_REDUCE real sl_larger (real a, real b) {
  return a > b ? a : b;
}

/* The largest of n >= 1 elements; NaN may be passed over. */
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

SL_REDUCE real sl_accumulate (real *part) {
  for (int half = SL_PARTS / 2; half > 0; half /= 2)
    for (int l = 0; l < half; l++) part[l] += part[l + half];
  return part[0];
}

SL_REDUCE real sl_row_sum (ptrdiff_t n, const real *x) {
  real part[SL_PARTS] = { 0 }, rest = 0;
  ptrdiff_t i = 0;
  for (; i + SL_PARTS <= n; i += SL_PARTS)
    for (int l = 0; l < SL_PARTS; l++) part[l] += x[i + l];
  for (; i < n; i++) rest += x[i];
  return sl_accumulate (part) + rest;
}

SL_REDUCE real sl_row_dot (ptrdiff_t n, const real *x, const real *y) {
  real part[SL_PARTS] = { 0 }, rest = 0;
  ptrdiff_t i = 0;
  for (; i + SL_PARTS <= n; i += SL_PARTS)
    for (int l = 0; l < SL_PARTS; l++) part[l] += x[i + l] * y[i + l];
  for (; i < n; i++) rest += x[i] * y[i];
  return sl_accumulate (part) + rest;
}
#endif
