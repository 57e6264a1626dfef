/* sparsemax.c - w_i = max (s_i - tau, 0) with tau such that the row sums to 1:
** the projection of s onto the simplex (Martins and Astudillo 2016, arXiv
** 1602.02068, equation 2).
**
** Row: scores s (n) -> weights w (n). tau is found without sorting (Michelot
** 1986): for a set of keys that contains the support, (sum of its scores - 1) /
** size <= tau; keys at or below that bound are removed, until none is.
**
** Sinks: not studied; rows sum to 1, so the argument for softmax stands. */
#include <sinklab/reduce.h>

static void forward (const sl_call *c, int n, const real *restrict s,
                     real *restrict w) {
  const real max = sl_row_max (n, s);
  real *restrict z = c->scratch, tau = -1; /* < z = 0 of the largest */
  int before = n + 1, count = 0;
  for (int i = 0; i < n; i++) z[i] = s[i] - max;
  for (;;) {
    count = 0;
    for (int i = 0; i < n; i++) count += z[i] > tau;
    if (count >= before || count == 0) break;
    for (int i = 0; i < n; i++) w[i] = z[i] > tau ? z[i] : 0;
    tau = (sl_row_sum (n, w) - 1) / (real)count;
    before = count;
  }
  for (int i = 0; i < n; i++) w[i] = z[i] <= tau ? 0 : z[i] - tau;
}

/* forward: w_i = max (s_i - tau, 0), sum_i w_i = 1
** ds_i = dw_i - mean of dw over the keys with w_j > 0 where w_i > 0, else 0 */
static void backward (const sl_call *c, int n, const real *s,
                      const real *restrict w, const real *restrict dw,
                      real *restrict ds, real *dparam) {
  real mean;
  int count = 0;
  (void)c, (void)s, (void)dparam;
  for (int i = 0; i < n; i++) {
    count += w[i] > 0;
    ds[i] = w[i] > 0 ? dw[i] : 0;
  }
  mean = sl_row_sum (n, ds) / (real)count;
  for (int i = 0; i < n; i++) ds[i] = w[i] > 0 ? dw[i] - mean : 0;
}

static const sl_row_kernel row = { forward, backward };

SL_PLUGIN = { SL_ABI,
              "sparsemax",
              "1.0",
              "projection of the scores onto the simplex: weights of exactly 0",
              .properties = SL_NONNEGATIVE | SL_SUMS_TO_ONE |
                            SL_SHIFT_INVARIANT | SL_KINKED,
              .row = &row };
