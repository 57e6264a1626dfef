/* sparsemax.c - w_i = max (s_i - tau, 0) with tau such that the row sums to 1:
** the point of the simplex nearest to the scores (Martins and Astudillo 2016,
** arXiv 1602.02068).
**
** tau is found without sorting (Michelot 1986): from a set that holds the
** support, (sum of the set - 1) / size is below tau; what is not above it
** leaves; and so on until nothing does.
**
** Sinks: not studied; rows sum to 1, so the argument for softmax stands. */
#include <sinklab/reduce.h>

static void forward (const sl_call *c, int n, const real *restrict s,
                     real *restrict w) {
  const real max = sl_row_max (n, s);
  real *restrict z = c->scratch, tau = -1; /* the largest is z = 0: below tau */
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

/* ds_i = dw_i - mean of dw over the support, and 0 outside it */
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
              .flags = SL_NONNEGATIVE | SL_SUMS_TO_ONE | SL_SHIFT_INVARIANT |
                       SL_KINKED,
              .row = &row };
