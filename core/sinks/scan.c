/* scan.c - one row of weights is read: its sums, and its part of the columns.
**
** Sums are in double over lanes, in an order that depends on the numbers'
** places alone; logarithms are in the precision of the row. */
#include "sinks/scan.h"
#include "base/number.h"
#include <math.h>
#include <sinklab/lanes.h>

enum { LANES = 8, CHUNK = 128 };
#define NOTHING 1e-5 /* a weight of no account (softpick's sparsity) */

/* As many doubles as a vector holds, and that many weights. */
enum { WIDE = SL_LANE_BYTES / sizeof (double) };
typedef double wide __attribute__ ((vector_size (SL_LANE_BYTES),
                                    aligned (sizeof (double)), may_alias));
typedef int64_t wide_bits __attribute__ ((vector_size (SL_LANE_BYTES)));
typedef real narrow __attribute__ ((vector_size (WIDE * sizeof (real)),
                                    aligned (sizeof (real)), may_alias));

SL_VMATH wide widened (const real *x) {
  return __builtin_convertvector(*(const narrow *)x, wide);
}

SL_VMATH wide wide_abs (wide x) {
  return (wide)((wide_bits)x & INT64_MAX);
}

/* (a + b) + (c + d), lane by lane, then in order */
static double folded (wide a, wide b, wide c, wide d) {
  const wide x = (a + b) + (c + d);
  double sum = x[0];
  for (int l = 1; l < WIDE; l++) sum += x[l];
  return sum;
}

static double sum (const void *row, int first, int last) {
  const real *x = row;
  double lane[LANES] = { 0 };
  int i = first;
  for (; i + LANES <= last; i += LANES)
    for (int l = 0; l < LANES; l++) lane[l] += (double)x[i + l];
  for (; i < last; i++) lane[(i - first) % LANES] += (double)x[i];
  return sl_fold_halves (lane);
}

static double absolute (real x) {
  return fabs ((double)x);
}

/* *plain = sum of x, *size = sum of |x| */
static void sums (const real *x, int n, double *plain, double *size) {
  wide s[2] = { { 0 }, { 0 } }, z[2] = { { 0 }, { 0 } };
  double rest = 0, rest_size = 0;
  int i = 0;
  for (; i + 2 * WIDE <= n; i += 2 * WIDE)
    for (int k = 0; k < 2; k++) {
      const wide v = widened (x + i + k * WIDE);
      s[k] += v;
      z[k] += wide_abs (v);
    }
  for (; i < n; i++) {
    rest += (double)x[i];
    rest_size += absolute (x[i]);
  }
  *plain = folded (s[0], s[1], (wide){ 0 }, (wide){ 0 }) + rest;
  *size = folded (z[0], z[1], (wide){ 0 }, (wide){ 0 }) + rest_size;
}

/* p log p with 0 log 0 = 0 */
SL_VMATH real plogp (real p) {
  return p * sl_logv (sl_choose (p == 0, 1, p));
}

SL_VMATH real magnitude (real x) {
  return sl_choose (x < 0, -x, x);
}

/* 1 / size; 0 for a row that is zero, or so nearly that this overflows. */
static real inverse (double size) {
  const real share = (real)(1 / size);
  return size == 0 || isinf (share) ? 0 : share;
}

/* out = p log p of n weights, p = |w| share */
static void plogps (const real *w, int n, real share, real *out) {
  int i = 0;
  for (; i + SL_LANES <= n; i += SL_LANES) {
    const sl_lanes p = sl_lanes_abs (sl_load (w + i)) * share;
    const sl_lanes x = sl_select ((sl_mask)(p == 0), sl_splat (1), p);
    sl_store (out + i, p * sl_lanes_log (x));
  }
  for (; i < n; i++) out[i] = plogp (magnitude (w[i]) * share);
}

/* Sum of p log p of columns lo..hi-1. */
static double information (const real *w, int lo, int hi, real share) {
  real out[CHUNK];
  double all = 0, sum, size;
  for (int i = lo; i < hi; i += CHUNK) {
    const int n = hi - i < CHUNK ? hi - i : CHUNK;
    plogps (w + i, n, share, out);
    sums (out, n, &sum, &size);
    all += sum;
  }
  return all;
}

/* One chunk of n weights, the first at column 'at' of c. */
static void add_chunk (const real *restrict w, int n, real share,
                       double over_rowsum, const real *restrict out,
                       const sl_columns *c, ptrdiff_t at) {
  double *restrict weight = c->weight + at, *restrict to_over_rowsum =
                                                c->over_rowsum + at;
  double *restrict to_plogp = c->plogp + at, *restrict to_share = c->share + at;
  uint32_t *restrict seen = c->seen + at;
  for (int j = 0; j < n; j++) {
    const double p = absolute (w[j]) * (double)share;
    weight[j] += (double)w[j];
    to_share[j] += p;
    to_over_rowsum[j] += p * over_rowsum;
    to_plogp[j] += (double)out[j];
  }
  for (int j = 0; j < n; j++) seen[j] += w[j] != 0;
}

static double entropy (const void *weights, int lo, int hi, double size,
                       int first, int last, const sl_columns *c) {
  const real *w = weights;
  const real share = inverse (size);
  const double over_rowsum = size / (size + 1e-8);
  double all = information (w, lo, first, share), plain, absolutes;
  real out[CHUNK];
  for (int i = first; i < last; i += CHUNK) {
    const int n = last - i < CHUNK ? last - i : CHUNK;
    plogps (w + i, n, share, out);
    sums (out, n, &plain, &absolutes);
    all += plain;
    if (c) add_chunk (w + i, n, share, over_rowsum, out, c, i - first);
  }
  all = -(all + information (w, last, hi, share));
  return all < 0 ? 0 : all; /* a rounding below zero; NaN stays */
}

/* The largest |A| and how many are next to nothing. */
static void extremes (const real *w, int lo, int hi, sl_scan *out) {
  sl_lanes largest = { 0 };
  sl_mask zeros = { 0 };
  real most = 0;
  ptrdiff_t all = 0;
  int i = lo;
  for (; i + SL_LANES <= hi; i += SL_LANES) {
    const sl_lanes a = sl_lanes_abs (sl_load (w + i));
    largest = sl_lanes_max (a, largest);
    zeros -= (sl_mask)(a <= (real)NOTHING);
  }
  for (; i < hi; i++) {
    const real a = magnitude (w[i]);
    most = sl_choose (a > most, a, most);
    all += a <= (real)NOTHING;
  }
  for (int l = 0; l < SL_LANES; l++) {
    most = sl_choose (largest[l] > most, largest[l], most);
    all += (ptrdiff_t)zeros[l];
  }
  out->largest = (double)most;
  out->zeros = all;
}

static void row (const void *weights, int lo, int hi, int token, sl_scan *out) {
  const real *w = weights;
  const int from = sl_max_int (lo, sl_min_int (token, hi));
  sums (w + lo, from - lo, &out->virtual_mass, &out->virtual_size);
  sums (w + from, hi - from, &out->mass, &out->size);
  extremes (w, from, hi, out);
}

static double norm (const void *vector, ptrdiff_t step, int d, const double *w,
                    int n, int triangle) {
  enum { AT_ONCE = 4 * WIDE };
  const real *x = vector;
  double squares[4] = { 0 };
  int i = 0;
  if (w == NULL) {
    for (int j = 0; j < d; j++)
      squares[j % 4] += (double)x[j * step] * (double)x[j * step];
    return sqrt ((squares[0] + squares[1]) + (squares[2] + squares[3]));
  }
  for (; i + AT_ONCE <= n; i += AT_ONCE) {
    wide y0 = { 0 }, y1 = { 0 }, y2 = { 0 }, y3 = { 0 };
    for (int j = triangle ? i : 0; j < d; j++) {
      const double a = (double)x[j * step];
      const wide *from = (const wide *)(w + (size_t)j * (size_t)n + i);
      y0 += a * from[0];
      y1 += a * from[1];
      y2 += a * from[2];
      y3 += a * from[3];
    }
    squares[0] += folded (y0 * y0, y1 * y1, y2 * y2, y3 * y3);
  }
  for (; i < n; i++) {
    double y = 0;
    for (int j = triangle ? i : 0; j < d; j++)
      y += (double)x[j * step] * w[(size_t)j * (size_t)n + (size_t)i];
    squares[0] += y * y;
  }
  return sqrt (squares[0]);
}

static void widen (const void *weights, int n, double *restrict out) {
  const real *w = weights;
  for (int j = 0; j < n; j++) out[j] = (double)w[j];
}

static double dot (int n, const double *x, const double *y) {
  const wide *a = (const wide *)x, *b = (const wide *)y;
  wide s0 = { 0 }, s1 = { 0 }, s2 = { 0 }, s3 = { 0 };
  double rest = 0;
  int i = 0;
  for (; i + 4 * WIDE <= n; i += 4 * WIDE, a += 4, b += 4) {
    s0 += a[0] * b[0];
    s1 += a[1] * b[1];
    s2 += a[2] * b[2];
    s3 += a[3] * b[3];
  }
  for (; i < n; i++) rest += x[i] * y[i];
  return folded (s0, s1, s2, s3) + rest;
}

/* W = Q R by the modified Gram-Schmidt process; Q has columns of length 1 (or
** 0) at right angles, so that || W x || = || R x ||. r[j] is column j of R. */
static void shorten (double *w, int d, int n, double *r) {
  for (int i = 0; i < d; i++) {
    double *restrict own = w + (size_t)i * (size_t)n;
    const double length = sqrt (dot (n, own, own));
    for (int k = 0; k < n; k++) own[k] = length > 0 ? own[k] / length : 0;
    for (int j = 0; j < i; j++) r[(ptrdiff_t)j * d + i] = 0;
    r[(ptrdiff_t)i * d + i] = length;
    for (int j = i + 1; j < d; j++) {
      double *restrict other = w + (size_t)j * (size_t)n;
      const double along = dot (n, own, other);
      for (int k = 0; k < n; k++) other[k] -= along * own[k];
      r[(ptrdiff_t)j * d + i] = along;
    }
  }
}

extern const sl_scan_kernels SL (sl_scan_rows);
const sl_scan_kernels SL (sl_scan_rows) = { row,  entropy, sum,
                                            norm, widen,   shorten };
