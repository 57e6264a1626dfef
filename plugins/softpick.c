/* softpick.c - w_i = max (t_i, 0) / (sum_j |t_j| + eps) with t = exp (s) - 1
** (Zuhri et al. 2025, arXiv 2504.20966; eps = 1e-6).
**
** Rows sum to P / (P + N), P and N being the sums of positive and of negative
** t: the rest is mass on nothing, and a row without a positive score is all
** zeros. Large scores need exp (s - m) - exp (-m) with m the largest; then the
** published kernel adds the same eps, which is eps exp (m) here ('scaled_eps'),
** and the formula's is eps exp (-m) there. Gradients at a score of 0 are 0.
**
** Sinks: none, and low kurtosis, at 340M parameters (Zuhri et al. 2025). The
** row sum may be near 0, so a share of it misleads. */
#include <sinklab/reduce.h>
#include <sinklab/vmath.h>

typedef struct config {
  int scaled_eps;
  double eps;
} config;

static const sl_option options[] = {
  { .name = "eps",
    .doc = "added to the sum of |exp (s) - 1|",
    .type = SL_REAL,
    .offset = offsetof (config, eps),
    .def = 1e-6,
    .min = 1e-12,
    .max = 1 },
  { .name = "scaled_eps",
    .doc = "eps is in units of exp (largest score), as in the published kernel",
    .type = SL_BOOL,
    .offset = offsetof (config, scaled_eps) },
  { 0 }
};

/* t_i and eps, both times 'unit', and 1 / (sum |t| + eps). */
typedef struct sums {
  real unit, eps, scale;
} sums;

/* Below this largest score t needs no scaling, and expm1 keeps small ones
** exact. */
enum { PLAIN = 16 };

static sums pick (const sl_call *c, int n, const real *restrict s,
                  real *restrict t, real *restrict size) {
  const config *o = c->config;
  const real max = sl_larger (sl_row_max (n, s), 0);
  sums u = { 1, (real)o->eps, 0 };
  if (max < PLAIN) {
    for (int i = 0; i < n; i++) t[i] = sl_expm1v (s[i]);
    if (o->scaled_eps) u.eps *= sl_expv (max);
  } else {
    u.unit = sl_expv (-max);
    for (int i = 0; i < n; i++) t[i] = sl_expv (s[i] - max) - u.unit;
    if (!o->scaled_eps) u.eps *= u.unit;
  }
  for (int i = 0; i < n; i++) size[i] = sl_abs (t[i]);
  u.scale = 1 / (sl_row_sum (n, size) + u.eps);
  return u;
}

static void forward (const sl_call *c, int n, const real *restrict s,
                     real *restrict w) {
  const sums u = pick (c, n, s, w, c->scratch);
  for (int i = 0; i < n; i++) w[i] = w[i] <= 0 ? 0 : w[i] * u.scale;
}

/* With d = sum_j w_j dw_j and D the denominator: ds_i = exp (s_i) / D times
** dw_i - d where t_i > 0, and d where t_i < 0. A scaled eps is part of D and
** moves with the largest score. */
static void backward (const sl_call *c, int n, const real *restrict s,
                      const real *restrict w, const real *restrict dw,
                      real *restrict ds, real *dparam) {
  const config *o = c->config;
  real *restrict t = c->scratch;
  const sums u = pick (c, n, s, t, ds);
  const real d = sl_row_dot (n, w, dw);
  (void)dparam;
  for (int i = 0; i < n; i++) {
    const real up = t[i] > 0 ? dw[i] - d : t[i] < 0 ? d : 0;
    ds[i] = (t[i] + u.unit) * u.scale * up;
  }
  if (o->scaled_eps) {
    int largest = 0;
    for (int i = 1; i < n; i++)
      if (s[i] > s[largest]) largest = i;
    ds[largest] -= d * u.eps * u.scale;
  }
}

static const sl_row_kernel row = { forward, backward };

SL_PLUGIN = { SL_ABI,
              "softpick",
              "1.0",
              "rectified exp (s) - 1 over the sum of its magnitudes",
              .flags = SL_NONNEGATIVE | SL_NULL_MASS | SL_KINKED,
              .config_size = sizeof (config),
              .options = options,
              .row = &row };
