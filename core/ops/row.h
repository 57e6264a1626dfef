/* row.h - reductions over the elements of one contiguous row.
**
** A compiler may not reorder the additions of a plain loop, so these keep 64 bytes
** of partial results, one vector type for every instruction set: the order, and
** with equal instructions the bits, do not depend on the width of the machine.
** Numeric code: include it from files that are compiled per precision. */
#ifndef SL_ROW_H
#define SL_ROW_H
#include <sinklab/vmath.h>

enum { SL_LANES = 64 / sizeof (real) };
typedef real sl_lanes
    __attribute__ ((vector_size (64), aligned (sizeof (real)), may_alias));
typedef sl_bits sl_lane_bits __attribute__ ((vector_size (64)));

/* In each lane, m becomes x if that is larger; NaN in x is passed over. */
SL_VMATH void sl_lanes_raise (sl_lanes *m, const real *x) {
  const sl_lanes new = *(const sl_lanes *)x;
  const sl_lane_bits mask = (sl_lane_bits)(new > *m);
  *m = (sl_lanes)(((sl_lane_bits) new &mask) | ((sl_lane_bits)*m & ~mask));
}

/* Lanes added pairwise: k and k + half. */
SL_VMATH real sl_lanes_sum (const sl_lanes *v) {
  real lane[SL_LANES];
  memcpy (lane, v, sizeof lane);
  for (int half = SL_LANES / 2; half > 0; half /= 2)
    for (int k = 0; k < half; k++) lane[k] += lane[k + half];
  return lane[0];
}

/* The largest of n elements that is a number; -inf if there is none. */
static inline real sl_row_max (ptrdiff_t n, const real *x) {
  real most = -(real)__builtin_inf ();
  ptrdiff_t i = 0;
  if (n >= SL_LANES) {
    sl_lanes m = (sl_lanes){ 0 } + most;
    for (; i + SL_LANES <= n; i += SL_LANES) sl_lanes_raise (&m, x + i);
    for (int k = 0; k < SL_LANES; k++) most = m[k] > most ? m[k] : most;
  }
  for (; i < n; i++) most = x[i] > most ? x[i] : most;
  return most;
}

/* Sum of n elements. */
static inline real sl_row_sum (ptrdiff_t n, const real *x) {
  sl_lanes total = { 0 };
  real sum = 0;
  ptrdiff_t i = 0;
  for (; i + SL_LANES <= n; i += SL_LANES) total += *(const sl_lanes *)(x + i);
  if (i > 0) sum = sl_lanes_sum (&total);
  for (; i < n; i++) sum += x[i];
  return sum;
}

/* Sum of a[i] b[i]. */
static inline real sl_row_dot (ptrdiff_t n, const real *a, const real *b) {
  sl_lanes total = { 0 };
  real sum = 0;
  ptrdiff_t i = 0;
  for (; i + SL_LANES <= n; i += SL_LANES)
    total += *(const sl_lanes *)(a + i) * *(const sl_lanes *)(b + i);
  if (i > 0) sum = sl_lanes_sum (&total);
  for (; i < n; i++) sum += a[i] * b[i];
  return sum;
}

/* The n elements 'step' apart at x as a row: x itself, or a copy in 'room'. */
static inline const real *sl_row_read (ptrdiff_t n, const real *x,
                                       ptrdiff_t step, real *room) {
  if (step == 1 || n == 1) return x;
  for (ptrdiff_t i = 0; i < n; i++) room[i] = x[i * step];
  return room;
}
#endif
