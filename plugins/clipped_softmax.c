/* clipped_softmax.c - w_i = clip ((eta - gamma) p_i + gamma, 0, 1), p the
** softmax of the scores (Bondarenko et al. 2023, arXiv 2306.12929; gamma =
** -0.025 and eta = 1 for BERT, gamma = -12 / length for OPT in their scripts).
**
** The stretch makes 0 (and, with eta above 1, 1) reachable by finite scores.
** With eta = 1 no weight is above p: rows then sum to at most 1. Gradients are
** 0 where a weight is clipped.
**
** Sinks: made so that a head can do nothing without one; fewer outliers in BERT
** and OPT (Bondarenko et al. 2023). */
#include <sinklab/lanes.h>
#include <sinklab/reduce.h>

typedef struct config {
  double gamma, eta, alpha;
} config;

static const sl_option options[] = {
  { .name = "gamma",
    .doc = "where the stretched softmax begins: 0 is no stretch",
    .type = SL_REAL,
    .offset = offsetof (config, gamma),
    .def = -0.025,
    .min = -100,
    .max = 0 },
  { .name = "eta",
    .doc = "where it ends: 1 is no stretch",
    .type = SL_REAL,
    .offset = offsetof (config, eta),
    .def = 1,
    .min = 1,
    .max = 100 },
  { .name = "alpha",
    .doc = "above 0: gamma is -alpha / length of the sequence instead",
    .type = SL_REAL,
    .offset = offsetof (config, alpha),
    .min = 0,
    .max = 1e6 },
  { 0 }
};

static real gamma_of (const sl_call *c) {
  const config *o = c->config;
  return (real)(o->alpha > 0 ? -o->alpha / c->length : o->gamma);
}

static void softmax (int n, const real *restrict s, real *restrict p) {
  const real max = sl_row_max (n, s);
  real scale;
  for (int i = 0; i < n; i++) p[i] = sl_expv (s[i] - max);
  scale = 1 / sl_row_sum (n, p);
  for (int i = 0; i < n; i++) p[i] *= scale;
}

static void forward (const sl_call *c, int n, const real *restrict s,
                     real *restrict w) {
  const config *o = c->config;
  const real gamma = gamma_of (c), stretch = (real)o->eta - gamma;
  softmax (n, s, w);
  for (int i = 0; i < n; i++) {
    const real x = stretch * w[i] + gamma;
    const real below = x <= 0 ? 0 : x;
    w[i] = below >= 1 ? 1 : below;
  }
}

/* ds_i = p_i (dp_i - sum_j p_j dp_j), dp_i = (eta - gamma) dw_i where
** 0 < w_i < 1, else 0. */
static void backward (const sl_call *c, int n, const real *restrict s,
                      const real *restrict w, const real *restrict dw,
                      real *restrict ds, real *dparam) {
  const config *o = c->config;
  const real stretch = (real)o->eta - gamma_of (c);
  real *restrict p = c->scratch, mean;
  (void)dparam;
  softmax (n, s, p);
  for (int i = 0; i < n; i++)
    ds[i] = w[i] > 0 && w[i] < 1 ? stretch * dw[i] : 0;
  mean = sl_row_dot (n, p, ds);
  for (int i = 0; i < n; i++) ds[i] = p[i] * (ds[i] - mean);
}

static void softmax_block (int n, const real *s, real *p) {
  const sl_lanes sum = sl_keys_exp (n, s, sl_keys_max (n, s), p);
  sl_keys_scale (n, p, 1 / sum);
}

static void forward_block (const sl_call *c, int most, const real *restrict s,
                           real *restrict w) {
  (void)most;
  const config *o = c->config;
  const real gamma = gamma_of (c), stretch = (real)o->eta - gamma;
  for (int l = 0; l < SL_QUERIES; l += SL_LANES) {
    const int n = sl_keys (c, l);
    softmax_block (n, s + l, w + l);
    for (int j = 0; j < n; j++) {
      const sl_lanes x = stretch * sl_load (w + sl_at (j, l)) + gamma;
      const sl_lanes below = sl_lanes_max (sl_every (0), x);
      sl_store (w + sl_at (j, l), sl_lanes_min (sl_every (1), below));
    }
  }
}

static void backward_block (const sl_call *c, int most, const real *restrict s,
                            const real *restrict w, const real *restrict dw,
                            real *restrict ds, real *dparam) {
  (void)most, (void)dparam;
  const config *o = c->config;
  const real stretch = (real)o->eta - gamma_of (c);
  for (int l = 0; l < SL_QUERIES; l += SL_LANES) {
    const int n = sl_keys (c, l);
    sl_lanes mean = { 0 };
    softmax_block (n, s + l, ds + l);
    for (int pass = 0; pass < 2; pass++)
      for (int j = 0; j < n; j++) {
        const sl_lanes x = sl_load (w + sl_at (j, l));
        const sl_lanes p = sl_load (ds + sl_at (j, l));
        const sl_mask kept =
            (sl_mask)(x > sl_every (0)) & (sl_mask)(x < sl_every (1));
        const sl_lanes dp = sl_select (
            kept, stretch * sl_load (dw + sl_at (j, l)), sl_every (0));
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
              .flags = SL_NONNEGATIVE | SL_SHIFT_INVARIANT | SL_KINKED,
              .config_size = sizeof (config),
              .options = options,
              .row = &row,
              .block = &block };
