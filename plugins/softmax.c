/* softmax.c - w_i = exp (s_i) / sum_j exp (s_j): the usual attention
** (Vaswani et al. 2017, arXiv 1706.03762, section 3.2.1).
**
** The largest score is taken off first, so that no exponential overflows and
** the sum is at least 1.
**
** Sinks: everywhere in trained language models (Xiao et al. 2024, arXiv
** 2309.17453); needed for tasks like the trigger-conditional mean (Ran-Milo
** 2026, arXiv 2603.11487). */
#include <sinklab/lanes.h>
#include <sinklab/reduce.h>

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

static void forward_block (const sl_call *c, int most, const real *restrict s,
                           real *restrict w) {
  (void)most;
  for (int l = 0; l < SL_QUERIES; l += SL_LANES) {
    const int n = sl_keys (c, l);
    const sl_lanes max = sl_keys_max (n, s + l);
    const sl_lanes sum = sl_keys_exp (n, s + l, max, w + l);
    sl_keys_scale (n, w + l, 1 / sum);
  }
}

static void backward_block (const sl_call *c, int most, const real *restrict s,
                            const real *restrict w, const real *restrict dw,
                            real *restrict ds, real *dparam) {
  (void)most, (void)s, (void)dparam;
  for (int l = 0; l < SL_QUERIES; l += SL_LANES) {
    const int n = sl_keys (c, l);
    sl_keys_spread (n, w + l, dw + l, sl_keys_dot (n, w + l, dw + l), ds + l);
  }
}

static const sl_row_kernel row = { forward, backward };
static const sl_block_kernel block = { forward_block, backward_block };

SL_PLUGIN = { SL_ABI,
              "softmax",
              "1.0",
              "exp (s) over its sum: the usual attention",
              .flags = SL_NONNEGATIVE | SL_SUMS_TO_ONE | SL_SHIFT_INVARIANT,
              .row = &row,
              .block = &block };
