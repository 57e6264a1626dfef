/* softpick.c - w_i = max (t_i, 0) / (sum_j |t_j| + eps) with t = exp (s) - 1
** (Zuhri et al. 2025, arXiv 2504.20966; eps = 1e-6).
**
** Row: scores s (n) -> weights w (n). A row sums to P / (P + N), P and N the
** sums of the positive and of the negative |t_j|; the rest is null mass, and a
** row without a positive score is all zeros. Large scores are computed as exp
** (s - m) - exp (-m) with m the largest. The published kernel adds eps to that
** sum, so its eps is eps exp (m) in the formula above: option 'scaled_eps'.
** Gradients at a score of 0 are 0.
**
** Sinks: none, and low kurtosis, at 340M parameters (Zuhri et al. 2025). The
** row sum may be near 0, so a share of it misleads. */
#include <sinklab/reduce.h>

typedef struct config {
  int scaled_eps;
  double eps;
} config;

static const sl_option options[] = {
  SL_OPTION_REAL (config, eps, 1e-6, 1e-12, 1,
                  "added to the sum of |exp (s) - 1|"),
  SL_OPTION_BOOL (config, scaled_eps, 0,
                  "eps is in units of exp (largest score), as in the published "
                  "kernel"),
  { 0 }
};

/* t and eps are multiplied by 'unit'; scale = 1 / (sum_j |t_j| + eps). */
typedef struct sums {
  real unit, eps, scale;
} sums;

/* Rows whose largest score is smaller need no unit but 1, and expm1 keeps small
** t_i exact. */
enum { UNSCALED_BELOW = 16 };

/* unit t into t (n), unit |t| into size (n). */
static sums rectified (const sl_call *c, int n, const real *restrict s,
                       real *restrict t, real *restrict size) {
  const config *o = c->config;
  const real max = sl_larger (sl_row_max (n, s), 0);
  sums u = { 1, (real)o->eps, 0 };
  if (max < UNSCALED_BELOW) {
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
  const sums u = rectified (c, n, s, w, c->scratch);
  for (int i = 0; i < n; i++) w[i] = w[i] <= 0 ? 0 : w[i] * u.scale;
}

/* forward: w_i = max (t_i, 0) / D, t_i = exp (s_i) - 1, D = sum_j |t_j| + eps
** ds_i = exp (s_i) / D g_i with g_i = dw_i - mean where t_i > 0, mean where
** t_i < 0, else 0; mean = sum_j w_j dw_j. A scaled eps depends on the largest
** score s_k: ds_k -= mean eps / D. */
static void backward (const sl_call *c, int n, const real *restrict s,
                      const real *restrict w, const real *restrict dw,
                      real *restrict ds, real *dparam) {
  const config *o = c->config;
  real *restrict t = c->scratch;
  const sums u = rectified (c, n, s, t, ds);
  const real mean = sl_row_dot (n, w, dw);
  (void)dparam;
  for (int i = 0; i < n; i++) {
    const real g = t[i] > 0 ? dw[i] - mean : t[i] < 0 ? mean : 0;
    ds[i] = (t[i] + u.unit) * u.scale * g;
  }
  if (o->scaled_eps) {
    int largest = 0;
    for (int i = 1; i < n; i++)
      if (s[i] > s[largest]) largest = i;
    ds[largest] -= mean * u.eps * u.scale;
  }
}

static const sl_row_kernel row = { forward, backward };

SL_PLUGIN = { SL_ABI,
              "softpick",
              "1.0",
              "rectified exp (s) - 1 over the sum of its magnitudes",
              .properties = SL_NONNEGATIVE | SL_NULL_MASS | SL_KINKED,
              .config_size = sizeof (config),
              .options = options,
              .row = &row };
