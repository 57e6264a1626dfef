/* scan.c - one row of weights is read: its sums, and its part of the columns.
**
** Sums are in double over lanes, element i in lane i % LANES, so that the bits
** depend on the numbers alone; logarithms are in the precision of the row. */
#include "sinks/scan.h"
#include <math.h>
#include <sinklab/vmath.h>

enum { LANES = 8 };
#define NOTHING 1e-5 /* a weight of no account (softpick's sparsity) */

static double fold (const double *lane) {
  return ((lane[0] + lane[4]) + (lane[2] + lane[6])) +
         ((lane[1] + lane[5]) + (lane[3] + lane[7]));
}

static double sum (const void *row, int first, int last) {
  const real *x = row;
  double lane[LANES] = { 0 };
  int i = first;
  for (; i + LANES <= last; i += LANES)
    for (int l = 0; l < LANES; l++) lane[l] += (double)x[i + l];
  for (; i < last; i++) lane[(i - first) % LANES] += (double)x[i];
  return fold (lane);
}

static double absolute (real x) {
  return fabs ((double)x);
}

static double size_of (const real *x, int first, int last) {
  double lane[LANES] = { 0 };
  int i = first;
  for (; i + LANES <= last; i += LANES)
    for (int l = 0; l < LANES; l++) lane[l] += absolute (x[i + l]);
  for (; i < last; i++) lane[(i - first) % LANES] += absolute (x[i]);
  return fold (lane);
}

/* p log p with 0 log 0 = 0 */
SL_VMATH real plogp (real p) {
  return p * sl_logv (sl_choose (p == 0, 1, p));
}

SL_VMATH real magnitude (real x) {
  return sl_choose (x < 0, -x, x);
}

/* 1 / size; 0 for a row that is zero, or so nearly that this overflows. */
static double inverse (double size) {
  const double share = 1 / size;
  return size == 0 || isinf (share) ? 0 : share;
}

static double entropy (const real *w, int lo, int hi, double size) {
  const double share = inverse (size);
  double lane[LANES] = { 0 }, h;
  int i = lo;
  for (; i + LANES <= hi; i += LANES)
    for (int l = 0; l < LANES; l++)
      lane[l] += (double)plogp ((real)(absolute (w[i + l]) * share));
  for (; i < hi; i++)
    lane[(i - lo) % LANES] += (double)plogp ((real)(absolute (w[i]) * share));
  h = -fold (lane);
  return h < 0 ? 0 : h; /* a rounding below zero; NaN stays */
}

/* The largest |A| and how many are next to nothing. */
static void extremes (const real *w, int lo, int hi, sl_scan *out) {
  real largest[LANES] = { 0 }, most = 0;
  int32_t zeros[LANES] = { 0 }, all = 0;
  int i = lo;
  for (; i + LANES <= hi; i += LANES)
    for (int l = 0; l < LANES; l++) {
      const real a = magnitude (w[i + l]);
      largest[l] = sl_choose (a > largest[l], a, largest[l]);
      zeros[l] += a <= (real)NOTHING;
    }
  for (; i < hi; i++) {
    const real a = magnitude (w[i]);
    most = sl_choose (a > most, a, most);
    all += a <= (real)NOTHING;
  }
  for (int l = 0; l < LANES; l++) {
    most = sl_choose (largest[l] > most, largest[l], most);
    all += zeros[l];
  }
  out->largest = (double)most;
  out->zeros = all;
}

static void row (const void *weights, int lo, int hi, int token, sl_scan *out) {
  const real *w = weights;
  const int from = lo > token ? lo : token < hi ? token : hi;
  out->outside = sum (w, lo, from);
  out->outside_size = size_of (w, lo, from);
  out->mass = sum (w, from, hi);
  out->size = size_of (w, from, hi);
  out->entropy = entropy (w, lo, hi, out->size + out->outside_size);
  extremes (w, from, hi, out);
}

static void columns (const void *weights, int first, int last, double size,
                     const sl_columns *c) {
  const real *w = (const real *)weights + first;
  const ptrdiff_t n = last - first;
  const double share = inverse (size);
  const double proxy = size / (size + 1e-8);
  double *restrict weight = c->weight, *restrict to_proxy = c->proxy;
  double *restrict to_plogp = c->plogp, *restrict to_share = c->share;
  uint32_t *restrict seen = c->seen;
  for (ptrdiff_t j = 0; j < n; j++) {
    const double p = absolute (w[j]) * share;
    weight[j] += (double)w[j];
    to_share[j] += p;
    to_proxy[j] += p * proxy;
    to_plogp[j] += (double)plogp ((real)p);
  }
  for (ptrdiff_t j = 0; j < n; j++) seen[j] += w[j] != 0;
}

static double norm (const void *vector, ptrdiff_t step, int d, const double *w,
                    int n, double *y) {
  const real *x = vector;
  double squares = 0;
  if (w == NULL) {
    for (int j = 0; j < d; j++)
      squares += (double)x[j * step] * (double)x[j * step];
    return sqrt (squares);
  }
  for (int i = 0; i < n; i++) y[i] = 0;
  for (int j = 0; j < d; j++) {
    const double a = (double)x[j * step];
    const double *restrict from = w + (size_t)j * (size_t)n;
    for (int i = 0; i < n; i++) y[i] += a * from[i];
  }
  for (int i = 0; i < n; i++) squares += y[i] * y[i];
  return sqrt (squares);
}

static void widen (const void *weights, int n, double *restrict out) {
  const real *w = weights;
  for (int j = 0; j < n; j++) out[j] = (double)w[j];
}

static double dot (int n, const double *restrict x, const double *restrict y) {
  double sum[4] = { 0 };
  int i = 0;
  for (; i + 4 <= n; i += 4)
    for (int l = 0; l < 4; l++) sum[l] += x[i + l] * y[i + l];
  for (; i < n; i++) sum[0] += x[i] * y[i];
  return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

/* W = Q R by the modified Gram-Schmidt process; Q has columns of length 1 (or
** 0) at right angles, so that || W x || = || R x ||. r[j] is column j of R. */
static void shorten (double *w, int d, int n, double *r) {
  for (int i = 0; i < d; i++) {
    double *restrict own = w + (size_t)i * (size_t)n;
    const double length = sqrt (dot (n, own, own));
    for (int k = 0; k < n; k++) own[k] = length > 0 ? own[k] / length : 0;
    for (int j = 0; j < i; j++) r[j * d + i] = 0;
    r[i * d + i] = length;
    for (int j = i + 1; j < d; j++) {
      double *restrict other = w + (size_t)j * (size_t)n;
      const double along = dot (n, own, other);
      for (int k = 0; k < n; k++) other[k] -= along * own[k];
      r[j * d + i] = along;
    }
  }
}

extern const sl_scan_kernels SL (sl_scan_rows);
const sl_scan_kernels SL (sl_scan_rows) = { row,  columns, sum,
                                            norm, widen,   shorten };
