/* softcap_softmax.c - w = softmax (cap tanh (s / cap)) (Gemma 2, 2024, arXiv
** 2408.00118, section 2; cap = 50 in attention).
**
** Row: scores s (n) -> weights w (n). No logit is beyond +-cap.
**
** Sinks: not studied by itself. */
#include <sinklab/lanes.h>
#include <sinklab/reduce.h>

typedef struct config {
  double cap;
} config;

static const sl_option options[] = {
  SL_OPTION_REAL (config, cap, 50, 1e-3, 1e6, "scores stay within +-cap"), { 0 }
};

static void forward (const sl_call *c, int n, const real *restrict s,
                     real *restrict w) {
  const config *o = c->config;
  const real cap = (real)o->cap, inverse = (real)(1 / o->cap);
  for (int i = 0; i < n; i++) w[i] = cap * sl_tanhv (s[i] * inverse);
  sl_row_softmax (n, w, w);
}

/* forward: w = softmax (z), z_i = cap tanh (s_i / cap) dz_i = w_i (dw_i - sum_j
** w_j dw_j), ds_i = dz_i (1 - tanh^2 (s_i / cap)) 1 - tanh^2 (x) is 4 p (1 - p)
** with p = sigmoid (2 x), which does not cancel. */
static void backward (const sl_call *c, int n, const real *restrict s,
                      const real *restrict w, const real *restrict dw,
                      real *restrict ds, real *dparam) {
  const config *o = c->config;
  const real twice = (real)(2 / o->cap), mean = sl_row_dot (n, w, dw);
  (void)dparam;
  for (int i = 0; i < n; i++) {
    const real x = twice * s[i];
    ds[i] = w[i] * (dw[i] - mean) * (4 * sl_sigmoidv (x) * sl_sigmoidv (-x));
  }
}

/* z of key j, lanes from l on; the lowest real where the key is not visible. */
static sl_lanes capped (const sl_call *c, int j, int l, sl_lanes s) {
  const config *o = c->config;
  const sl_lanes x = (real)o->cap * sl_lanes_tanh (s * (real)(1 / o->cap));
  return sl_select (sl_key_mask (c, j, l), x, sl_splat (-SL_MAX_REAL));
}

static void forward_block (const sl_call *c, int keys, const real *restrict s,
                           real *restrict w) {
  (void)keys;
  for (int l = 0; l < SL_QUERIES; l += SL_LANES) {
    const int n = sl_lanes_keys (c, l);
    for (int j = 0; j < n; j++)
      sl_store (w + sl_at (j, l), capped (c, j, l, sl_load (s + sl_at (j, l))));
    sl_keys_softmax (n, w + l, w + l);
  }
}

static void backward_block (const sl_call *c, int keys, const real *restrict s,
                            const real *restrict w, const real *restrict dw,
                            real *restrict ds, real *dparam) {
  (void)keys, (void)dparam;
  const config *o = c->config;
  const real twice = (real)(2 / o->cap);
  for (int l = 0; l < SL_QUERIES; l += SL_LANES) {
    const int n = sl_lanes_keys (c, l);
    const sl_lanes mean = sl_keys_dot (n, w + l, dw + l);
    for (int j = 0; j < n; j++) {
      const sl_lanes x = sl_load (s + sl_at (j, l)) * twice;
      const sl_lanes slope = 4 * sl_lanes_sigmoid (x) * sl_lanes_sigmoid (-x);
      sl_store (ds + sl_at (j, l), sl_load (w + sl_at (j, l)) *
                                       (sl_load (dw + sl_at (j, l)) - mean) *
                                       slope);
    }
  }
}

static const sl_row_kernel row = { forward, backward };
static const sl_block_kernel block = { forward_block, backward_block };

SL_PLUGIN = { SL_ABI,
              "softcap_softmax",
              "1.0",
              "softmax of scores that a tanh keeps within +-cap",
              .properties = SL_NONNEGATIVE | SL_SUMS_TO_ONE,
              .config_size = sizeof (config),
              .options = options,
              .row = &row,
              .block = &block };
