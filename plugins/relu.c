/* relu.c - w_i = max (s_i, 0) / m: weights without competition.
**
** The normaliser m of query number i (from 0) is, by option:
**   earlier  max (number of visible tokens before the query, 1); causal
**            attention without a window: max (i, 1) (Ran-Milo 2026, arXiv
**            2603.11487, code)
**   visible  number of visible tokens; causal without a window: i + 1
**            (Guo et al. 2024, arXiv 2410.13835, code)
**   length   tokens of the sequence (Wortsman et al. 2023, arXiv 2309.08586)
** The gradient at a score of 0 is 0. A row may be all zeros; NaN stays NaN.
**
** Sinks: none needed (Ran-Milo 2026, theorem 3); none seen (Guo et al.
** 2024). */
#include <sinklab/count.h>

typedef struct config {
  int normaliser;
} config;

static const sl_option options[] = {
  { .name = "normaliser",
    .doc = "weights are divided by: earlier visible tokens (at least 1), all "
           "visible tokens, or the length of the sequence",
    .type = SL_CHOICE,
    .offset = offsetof (config, normaliser),
    .def = SL_EARLIER,
    .choices = sl_counts },
  { 0 }
};

static real scale_of (const sl_call *c, int n) {
  const config *o = c->config;
  return 1 / (real)sl_count (c, n, o->normaliser);
}

static void forward (const sl_call *c, int n, const real *restrict s,
                     real *restrict w) {
  const real scale = scale_of (c, n);
  for (int i = 0; i < n; i++) w[i] = s[i] <= 0 ? 0 : s[i] * scale;
}

/* ds_i = dw_i / m where s_i > 0 */
static void backward (const sl_call *c, int n, const real *restrict s,
                      const real *w, const real *restrict dw, real *restrict ds,
                      real *dparam) {
  const real scale = scale_of (c, n);
  (void)w, (void)dparam;
  for (int i = 0; i < n; i++) ds[i] = s[i] <= 0 ? 0 : dw[i] * scale;
}

/* y where s > 0; NaN stays. */
static sl_lanes above (sl_lanes s, sl_lanes y) {
  return sl_select ((sl_mask)(s <= sl_every (0)), sl_every (0), y);
}

static void forward_block (const sl_call *c, int most, const real *restrict s,
                           real *restrict w) {
  (void)most;
  const config *o = c->config;
  for (int l = 0; l < SL_QUERIES; l += SL_LANES) {
    const int n = sl_keys (c, l);
    const sl_lanes scale = 1 / sl_lanes_count (c, l, o->normaliser);
    for (int j = 0; j < n; j++) {
      const sl_lanes x = sl_load (s + sl_at (j, l));
      sl_store (w + sl_at (j, l), above (x, x * scale));
    }
  }
}

static void backward_block (const sl_call *c, int most, const real *restrict s,
                            const real *restrict w, const real *restrict dw,
                            real *restrict ds, real *dparam) {
  (void)most, (void)w, (void)dparam;
  const config *o = c->config;
  for (int l = 0; l < SL_QUERIES; l += SL_LANES) {
    const int n = sl_keys (c, l);
    const sl_lanes scale = 1 / sl_lanes_count (c, l, o->normaliser);
    for (int j = 0; j < n; j++) {
      const sl_lanes x = sl_load (s + sl_at (j, l));
      sl_store (ds + sl_at (j, l),
                above (x, sl_load (dw + sl_at (j, l)) * scale));
    }
  }
}

static const sl_row_kernel row = { forward, backward };
static const sl_block_kernel block = { forward_block, backward_block };

SL_PLUGIN = { SL_ABI,
              "relu",
              "1.0",
              "positive scores over a count: weights without competition",
              .flags = SL_NONNEGATIVE | SL_KINKED,
              .config_size = sizeof (config),
              .options = options,
              .row = &row,
              .block = &block };
