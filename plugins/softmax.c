/* softmax.c - w_i = exp (s_i) / sum_j exp (s_j): the usual attention
** (Vaswani et al. 2017, arXiv 1706.03762, section 3.2.1).
**
** The largest score is taken off first, so that no exponential overflows and the
** sum is at least 1.
**
** Sinks: everywhere in trained language models (Xiao et al. 2024, arXiv 2309.17453);
** needed for tasks like the trigger-conditional mean (Ran-Milo 2026, arXiv
** 2603.11487). */
#include <sinklab/reduce.h>
#include <sinklab/vmath.h>

static void forward (const sl_call *c, int n, const real *restrict s,
                     real *restrict w) {
  const real max = sl_row_max (n, s);
  real scale;
  (void)c;
  for (int i = 0; i < n; i++) w[i] = sl_expv (s[i] - max);
  scale = 1 / sl_row_sum (n, w);
  for (int i = 0; i < n; i++) w[i] *= scale;
}

/* ds_i = w_i (dw_i - sum_j w_j dw_j) */
static void backward (const sl_call *c, int n, const real *s,
                      const real *restrict w, const real *restrict dw,
                      real *restrict ds, real *dparam) {
  const real mean = sl_row_dot (n, w, dw);
  (void)c, (void)s, (void)dparam;
  for (int i = 0; i < n; i++) ds[i] = w[i] * (dw[i] - mean);
}

static const sl_row row = { forward, backward };

SL_PLUGIN = { SL_ABI,
              "softmax",
              "1.0",
              "exp (s) over its sum: the usual attention",
              .flags = SL_NONNEGATIVE | SL_SUMS_TO_ONE | SL_SHIFT_INVARIANT,
              .row = &row };
