/* softmax.c - w_i = exp (s_i) / sum_j exp (s_j): the usual attention
** (Vaswani et al. 2017, arXiv 1706.03762, section 3.2.1).
**
** The largest score is taken off first, so that no exponential overflows and the
** sum is at least 1. Sums run in LANES parts, element i in part i % LANES: the
** compiler can use vectors, and the bits depend on the scores alone. */
#include <sinklab/vmath.h>

enum { LANES = 16 };

/* The parts of a sum, added pairwise. */
static real fold (real *part) {
  for (int half = LANES / 2; half > 0; half /= 2)
    for (int l = 0; l < half; l++) part[l] += part[l + half];
  return part[0];
}

static real total (int n, const real *w) {
  real part[LANES] = { 0 };
  int i = 0;
  for (; i + LANES <= n; i += LANES)
    for (int l = 0; l < LANES; l++) part[l] += w[i + l];
  for (int l = 0; i + l < n; l++) part[l] += w[i + l];
  return fold (part);
}

static real largest (int n, const real *s) {
  real part[LANES];
  int i = 0;
  for (int l = 0; l < LANES; l++) part[l] = s[0];
  for (; i + LANES <= n; i += LANES)
    for (int l = 0; l < LANES; l++) {
      const real x = s[i + l], p = part[l];
      part[l] = x > p ? x : p;
    }
  for (int l = 0; i + l < n; l++) {
    const real x = s[i + l], p = part[l];
    part[l] = x > p ? x : p;
  }
  for (int half = LANES / 2; half > 0; half /= 2)
    for (int l = 0; l < half; l++)
      part[l] = part[l] > part[l + half] ? part[l] : part[l + half];
  return part[0];
}

static void forward (const sl_call *c, int n, const real *restrict s,
                     real *restrict w) {
  const real max = largest (n, s);
  real scale;
  (void)c;
  for (int i = 0; i < n; i++) w[i] = sl_expv (s[i] - max);
  scale = 1 / total (n, w);
  for (int i = 0; i < n; i++) w[i] *= scale;
}

/* ds_i = w_i (dw_i - sum_j w_j dw_j) */
static void backward (const sl_call *c, int n, const real *s, const real *w,
                      const real *dw, real *ds, real *dparam) {
  real part[LANES] = { 0 }, dot;
  int i = 0;
  (void)c, (void)s, (void)dparam;
  for (; i + LANES <= n; i += LANES)
    for (int l = 0; l < LANES; l++) part[l] += w[i + l] * dw[i + l];
  for (int l = 0; l < LANES; l++)
    if (i + l < n) part[l] += w[i + l] * dw[i + l];
  dot = fold (part);
  for (i = 0; i < n; i++) ds[i] = w[i] * (dw[i] - dot);
}

static const sl_row row = { forward, backward };

SL_PLUGIN = { SL_ABI,
              "softmax",
              "1.0",
              "exp (s) over its sum: the usual attention",
              .flags = SL_NONNEGATIVE | SL_SUMS_TO_ONE | SL_SHIFT_INVARIANT,
              .row = &row };
