/* clipped_softmax.c - w_i = clip ((eta - gamma) p_i + gamma, 0, 1) with p =
** softmax (s) (Bondarenko et al. 2023, arXiv 2306.12929, section 4.1; gamma =
** -0.025 and eta = 1 for BERT, gamma = -12 / length for OPT in their scripts).
**
** Row: scores s (n) -> weights w (n). The stretch makes 0 (and, with eta above
** 1, also 1) reachable with finite scores. With eta = 1 no weight is above p_i,
** so rows sum to at most 1. The gradient is 0 where a weight is clipped.
**
** Sinks: designed so that a head can be idle without one; fewer outliers in
** BERT and OPT (Bondarenko et al. 2023). */
#include <sinklab/lanes.h>
#include <sinklab/reduce.h>

typedef struct config {
  double gamma, eta, alpha;
} config;

static const sl_option options[] = {
  SL_OPTION_REAL (config, gamma, -0.025, -100, 0,
                  "lower end of the stretched softmax; 0: no stretch"),
  SL_OPTION_REAL (config, eta, 1, 1, 100,
                  "upper end of the stretched softmax; 1: no stretch"),
  SL_OPTION_REAL (config, alpha, 0, 0, 1e6,
                  "above 0: gamma is -alpha / length of the sequence instead"),
  { 0 }
};

static real gamma_of (const sl_call *c) {
  const config *o = c->config;
  return (real)(o->alpha > 0 ? -o->alpha / c->length : o->gamma);
}

static void forward (const sl_call *c, int n, const real *restrict s,
                     real *restrict w) {
  const config *o = c->config;
  const real gamma = gamma_of (c), stretch = (real)o->eta - gamma;
  sl_row_softmax (n, s, w);
  for (int i = 0; i < n; i++) {
    const real x = stretch * w[i] + gamma;
    const real below = x <= 0 ? 0 : x;
    w[i] = below >= 1 ? 1 : below;
  }
}

/* forward: w_i = clip ((eta - gamma) p_i + gamma, 0, 1), p = softmax (s)
** dp_i = (eta - gamma) dw_i where 0 < w_i < 1, else 0
** ds_i = p_i (dp_i - sum_j p_j dp_j) */
static void backward (const sl_call *c, int n, const real *restrict s,
                      const real *restrict w, const real *restrict dw,
                      real *restrict ds, real *dparam) {
  const config *o = c->config;
  const real stretch = (real)o->eta - gamma_of (c);
  real *restrict p = c->scratch;
  (void)dparam;
  sl_row_softmax (n, s, p);
  for (int i = 0; i < n; i++)
    ds[i] = w[i] > 0 && w[i] < 1 ? stretch * dw[i] : 0;
  sl_row_softmax_backward (n, p, ds, ds);
}

static void forward_block (const sl_call *c, int keys, const real *restrict s,
                           real *restrict w) {
  (void)keys;
  const config *o = c->config;
  const real gamma = gamma_of (c), stretch = (real)o->eta - gamma;
  for (int l = 0; l < SL_QUERIES; l += SL_LANES) {
    const int n = sl_lanes_keys (c, l);
    sl_keys_softmax (n, s + l, w + l);
    for (int j = 0; j < n; j++) {
      const sl_lanes x = stretch * sl_load (w + sl_at (j, l)) + gamma;
      const sl_lanes below = sl_lanes_max (sl_splat (0), x);
      sl_store (w + sl_at (j, l), sl_lanes_min (sl_splat (1), below));
    }
  }
}

static void backward_block (const sl_call *c, int keys, const real *restrict s,
                            const real *restrict w, const real *restrict dw,
                            real *restrict ds, real *dparam) {
  (void)keys, (void)dparam;
  const config *o = c->config;
  const real stretch = (real)o->eta - gamma_of (c);
  for (int l = 0; l < SL_QUERIES; l += SL_LANES) {
    const int n = sl_lanes_keys (c, l);
    sl_lanes mean = { 0 };
    sl_keys_softmax (n, s + l, ds + l);
    for (int pass = 0; pass < 2; pass++)
      for (int j = 0; j < n; j++) {
        const sl_lanes x = sl_load (w + sl_at (j, l));
        const sl_lanes p = sl_load (ds + sl_at (j, l));
        const sl_mask kept =
            (sl_mask)(x > sl_splat (0)) & (sl_mask)(x < sl_splat (1));
        const sl_lanes dp = sl_select (
            kept, stretch * sl_load (dw + sl_at (j, l)), sl_splat (0));
        if (pass == 0)
          mean += p * dp;
        else
          sl_store (ds + sl_at (j, l), p * (dp - mean));
      }
  }
}

static const sl_row_kernel row = { forward, backward };
static const sl_block_kernel block = { forward_block, backward_block };

SL_PLUGIN = { SL_ABI,
              "clipped_softmax",
              "1.0",
              "softmax stretched to gamma..eta and clipped to 0..1",
              .properties = SL_NONNEGATIVE | SL_SHIFT_INVARIANT | SL_KINKED,
              .config_size = sizeof (config),
              .options = options,
              .row = &row,
              .block = &block };
