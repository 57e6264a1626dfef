/* softmax1.c - w_i = exp (s_i) / (1 + sum_j exp (s_j)): softmax off by one
** (Miller 2023, "Attention is off by one", evanmiller.org).
**
** Row: scores s (n) -> weights w (n). The 1 is a key with score 0 and value 0:
** its weight is null mass. m = max (0, s_1 .. s_n) is subtracted first, which
** makes the 1 exp (-m), so that nothing overflows.
**
** Sinks: reported to end the first token's dominance, though not outliers (Kaul
** et al. 2024, arXiv 2410.17174). */
#include <sinklab/lanes.h>
#include <sinklab/reduce.h>

static void forward (const sl_call *c, int n, const real *restrict s,
                     real *restrict w) {
  const real max = sl_larger (sl_row_max (n, s), 0);
  (void)c;
  sl_row_exp (n, s, max, w);
  sl_row_scale (n, w, 1 / (sl_row_sum (n, w) + sl_expv (-max)));
}

/* forward: w_i = exp (s_i) / (1 + sum_j exp (s_j))
** ds_i = w_i (dw_i - sum_j w_j dw_j) */
static void backward (const sl_call *c, int n, const real *s,
                      const real *restrict w, const real *restrict dw,
                      real *restrict ds, real *dparam) {
  (void)c, (void)s, (void)dparam;
  sl_row_softmax_backward (n, w, dw, ds);
}

static void forward_block (const sl_call *c, int keys, const real *restrict s,
                           real *restrict w) {
  (void)keys;
  for (int l = 0; l < SL_QUERIES; l += SL_LANES) {
    const int n = sl_lanes_keys (c, l);
    const sl_lanes max = sl_lanes_max (sl_keys_max (n, s + l), sl_splat (0));
    const sl_lanes sum = sl_keys_exp (n, s + l, max, w + l);
    sl_keys_scale (n, w + l, 1 / (sum + sl_lanes_exp (-max)));
  }
}

static void backward_block (const sl_call *c, int keys, const real *restrict s,
                            const real *restrict w, const real *restrict dw,
                            real *restrict ds, real *dparam) {
  (void)keys, (void)s, (void)dparam;
  for (int l = 0; l < SL_QUERIES; l += SL_LANES)
    sl_keys_softmax_backward (sl_lanes_keys (c, l), w + l, dw + l, ds + l);
}

static const sl_row_kernel row = { forward, backward };
static const sl_block_kernel block = { forward_block, backward_block };

SL_PLUGIN = { SL_ABI,
              "softmax1",
              "1.0",
              "softmax with 1 more in the denominator",
              .properties = SL_NONNEGATIVE | SL_NULL_MASS,
              .row = &row,
              .block = &block };
