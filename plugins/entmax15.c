/* entmax15.c - w_i = max (s_i / 2 - tau, 0)^2 with tau such that the row sums
** to 1: entmax with alpha = 1.5, between softmax and sparsemax (Peters et al.
** 2019, arXiv 1905.05702).
**
** Row: scores s (n) -> weights w (n). With the largest score subtracted, -1 <=
** tau < 0. The norm of max (s / 2 - tau, 0) is convex and decreasing in tau, so
** Newton's method for norm = 1 increases tau from -1 and stays below the root;
** it ends when rounding stops the increase, after about six steps.
**
** Sinks: not studied; rows sum to 1, so the argument for softmax stands. */
#include <math.h>
#include <sinklab/reduce.h>

static real root (real x) {
  return (real)sqrt ((double)x);
}

static void forward (const sl_call *c, int n, const real *restrict s,
                     real *restrict w) {
  const real max = sl_row_max (n, s);
  real *restrict x = c->scratch, tau = -1;
  for (;;) {
    real norm, next;
    for (int i = 0; i < n; i++) {
      const real z = (s[i] - max) * (real)0.5 - tau;
      x[i] = z <= 0 ? 0 : z;
      w[i] = x[i] * x[i];
    }
    norm = root (sl_row_sum (n, w));
    next = tau + (norm - 1) * norm / sl_row_sum (n, x);
    if (!(next > tau)) break;
    tau = next;
  }
}

/* forward: w_i = max (s_i / 2 - tau, 0)^2, sum_i w_i = 1
** ds_i = g_i (dw_i - sum_j g_j dw_j / sum_j g_j), g_i = sqrt (w_i) */
static void backward (const sl_call *c, int n, const real *s,
                      const real *restrict w, const real *restrict dw,
                      real *restrict ds, real *dparam) {
  real *restrict g = c->scratch, mean;
  (void)s, (void)dparam;
  for (int i = 0; i < n; i++) g[i] = root (w[i]);
  mean = sl_row_dot (n, g, dw) / sl_row_sum (n, g);
  for (int i = 0; i < n; i++) ds[i] = g[i] * (dw[i] - mean);
}

static const sl_row_kernel row = { forward, backward };

SL_PLUGIN = { SL_ABI,
              "entmax15",
              "1.0",
              "entmax with alpha = 1.5: between softmax and sparsemax",
              .properties =
                  SL_NONNEGATIVE | SL_SUMS_TO_ONE | SL_SHIFT_INVARIANT,
              .row = &row };
