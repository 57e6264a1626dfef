/* softmax.c - w_i = exp (s_i) / sum_j exp (s_j): the usual attention (Vaswani
** et al. 2017, arXiv 1706.03762, equation 1).
**
** Row: scores s (n) -> weights w (n). The maximum is subtracted first, so that
** no exponential overflows and the sum is at least 1.
**
** Sinks: everywhere in trained language models (Xiao et al. 2024, arXiv
** 2309.17453); needed for tasks like the trigger-conditional mean (Ran-Milo
** 2026, arXiv 2603.11487). */
#include <sinklab/lanes.h>
#include <sinklab/reduce.h>

static void forward (const sl_call *c, int n, const real *restrict s,
                     real *restrict w) {
  (void)c;
  sl_row_softmax (n, s, w);
}

/* forward: w_i = exp (s_i) / sum_j exp (s_j)
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
  for (int l = 0; l < SL_QUERIES; l += SL_LANES)
    sl_keys_softmax (sl_lanes_keys (c, l), s + l, w + l);
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
              "softmax",
              "1.0",
              "exp (s) over its sum: the usual attention",
              .properties =
                  SL_NONNEGATIVE | SL_SUMS_TO_ONE | SL_SHIFT_INVARIANT,
              .row = &row,
              .block = &block };
