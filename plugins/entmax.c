/* entmax.c - w_i = max ((alpha - 1) s_i - tau, 0)^(1 / (alpha - 1)) with tau
** such that the row sums to 1: alpha-entmax, 1 <= alpha <= 2 (Peters et al.
** 2019, arXiv 1905.05702). alpha = 1 is softmax, 2 is sparsemax.
**
** Row: scores s (n) -> weights w (n). With the largest score subtracted, z <=
** 0, u = -tau and e = 1 / (alpha - 1),
**
**     w_i = r_i / sum r,  r_i = max (1 + z_i / (e u), 0)^e,  u^e sum r = 1,
**
** which keeps its digits as alpha goes to 1, where r becomes exp (z). The root
** u is between 0 and 1. The e-norm of max (u + z / e, 0) is convex and
** increasing in u, so Newton's method for norm = 1 decreases u from 1 and stays
** above the root; it ends when rounding stops the decrease. Bisection would
** take about 50 steps.
**
** Sinks: not studied; rows sum to 1, so the argument for softmax stands. */
#include <sinklab/reduce.h>

typedef struct config {
  double alpha;
} config;

static const sl_option options[] = {
  SL_OPTION_REAL (config, alpha, 1.5, 1, 2,
                  "1 is softmax, 2 is sparsemax; weights reach 0 above 1"),
  { 0 }
};

/* log (1 + y) for y > -1; the second term corrects the rounding of 1 + y. */
SL_VMATH real log1p_of (real y) {
  const real x = 1 + y;
  return sl_logv (x) + (y - (x - 1)) / x;
}

/* r_i into r (n), and r_i / (1 + z_i / (e u)), whose sum is the slope of
** Newton's method, into slope (n). */
static void ratios (int n, real e, real u, real max, const real *restrict s,
                    real *restrict r, real *restrict slope) {
  const real step = 1 / (e * u);
  for (int i = 0; i < n; i++) {
    const real y = (s[i] - max) * step;
    const real inside = y <= -1 ? 0 : y;
    const real x = sl_expv (e * log1p_of (inside));
    r[i] = y <= -1 ? 0 : x;
    slope[i] = r[i] / (1 + inside);
  }
}

static void forward (const sl_call *c, int n, const real *restrict s,
                     real *restrict w) {
  const config *o = c->config;
  const real inverse = (real)(o->alpha - 1), max = sl_row_max (n, s);
  real *restrict r = c->scratch, scale;
  if (inverse == 0)
    sl_row_exp (n, s, max, r);
  else
    for (real u = 1, next;; u = next) {
      real sum;
      ratios (n, (real)(1 / (o->alpha - 1)), u, max, s, r, w);
      sum = sl_row_sum (n, r);
      next = u -
             sum * (u - sl_expv (-inverse * sl_logv (sum))) / sl_row_sum (n, w);
      if (!(next < u)) break;
    }
  scale = 1 / sl_row_sum (n, r);
  for (int i = 0; i < n; i++) w[i] = r[i] * scale;
}

/* forward: w_i = max ((alpha - 1) s_i - tau, 0)^(1 / (alpha - 1)), sum_i w_i =
** 1 ds_i = g_i (dw_i - sum_j g_j dw_j / sum_j g_j), g_i = w_i^(2 - alpha) where
** w_i > 0, else 0 */
static void backward (const sl_call *c, int n, const real *s,
                      const real *restrict w, const real *restrict dw,
                      real *restrict ds, real *dparam) {
  const config *o = c->config;
  const real power = (real)(2 - o->alpha);
  real *restrict g = c->scratch, mean;
  (void)s, (void)dparam;
  for (int i = 0; i < n; i++) {
    const real x = sl_expv (power * sl_logv (w[i] > 0 ? w[i] : 1));
    g[i] = w[i] > 0 ? x : 0;
  }
  mean = sl_row_dot (n, g, dw) / sl_row_sum (n, g);
  for (int i = 0; i < n; i++) ds[i] = g[i] * (dw[i] - mean);
}

static const sl_row_kernel row = { forward, backward };

SL_PLUGIN = { SL_ABI,
              "entmax",
              "1.0",
              "alpha-entmax: from softmax (1) to sparsemax (2)",
              .properties = SL_NONNEGATIVE | SL_SUMS_TO_ONE |
                            SL_SHIFT_INVARIANT | SL_KINKED,
              .config_size = sizeof (config),
              .options = options,
              .row = &row };
