/* relu.c - w_i = max (s_i, 0) / n: independent weights.
**
** Row: scores s (n) -> weights w (n). The normaliser n is a token count
** (sinklab/count.h), by the option 'normaliser':
**   earlier  Ran-Milo 2026 (arXiv 2603.11487, code)
**   visible  Guo et al. 2024 (arXiv 2410.13835, code)
**   length   Wortsman et al. 2023 (arXiv 2309.08586)
** The gradient at a score of 0 is 0. A row may be all zeros; NaN stays NaN.
**
** Sinks: none needed (Ran-Milo 2026, theorem 3); none observed (Guo et al.
** 2024). */
#include <sinklab/count.h>

typedef struct config {
  int normaliser;
} config;

static const sl_option options[] = { SL_OPTION_COUNT (config, normaliser,
                                                      SL_COUNT_EARLIER,
                                                      "weights are divided by"),
                                     { 0 } };

static real scale_of (const sl_call *c, int n) {
  const config *o = c->config;
  return 1 / (real)sl_token_count (c, n, o->normaliser);
}

static void forward (const sl_call *c, int n, const real *restrict s,
                     real *restrict w) {
  const real scale = scale_of (c, n);
  for (int i = 0; i < n; i++) w[i] = s[i] <= 0 ? 0 : s[i] * scale;
}

/* forward: w_i = max (s_i, 0) / n
** ds_i = dw_i / n where s_i > 0, else 0 */
static void backward (const sl_call *c, int n, const real *restrict s,
                      const real *w, const real *restrict dw, real *restrict ds,
                      real *dparam) {
  const real scale = scale_of (c, n);
  (void)w, (void)dparam;
  for (int i = 0; i < n; i++) ds[i] = s[i] <= 0 ? 0 : dw[i] * scale;
}

static void forward_block (const sl_call *c, int keys, const real *restrict s,
                           real *restrict w) {
  (void)keys;
  const config *o = c->config;
  for (int l = 0; l < SL_QUERIES; l += SL_LANES) {
    const int n = sl_lanes_keys (c, l);
    const sl_lanes scale = 1 / sl_lanes_token_count (c, l, o->normaliser);
    for (int j = 0; j < n; j++) {
      const sl_lanes x = sl_load (s + sl_at (j, l));
      sl_store (w + sl_at (j, l), sl_where_positive (x, x * scale));
    }
  }
}

static void backward_block (const sl_call *c, int keys, const real *restrict s,
                            const real *restrict w, const real *restrict dw,
                            real *restrict ds, real *dparam) {
  (void)keys, (void)w, (void)dparam;
  const config *o = c->config;
  for (int l = 0; l < SL_QUERIES; l += SL_LANES) {
    const int n = sl_lanes_keys (c, l);
    const sl_lanes scale = 1 / sl_lanes_token_count (c, l, o->normaliser);
    for (int j = 0; j < n; j++) {
      const sl_lanes x = sl_load (s + sl_at (j, l));
      sl_store (ds + sl_at (j, l),
                sl_where_positive (x, sl_load (dw + sl_at (j, l)) * scale));
    }
  }
}

static const sl_row_kernel row = { forward, backward };
static const sl_block_kernel block = { forward_block, backward_block };

SL_PLUGIN = { SL_ABI,
              "relu",
              "1.0",
              "positive scores over a count: weights without competition",
              .properties = SL_NONNEGATIVE | SL_KINKED,
              .config_size = sizeof (config),
              .options = options,
              .row = &row,
              .block = &block };
