/* elu1.c - w_i = phi (s_i) / (sum_j phi (s_j) + eps), or w_i = phi (s_i), with
** phi (s) = elu (s) + 1: s + 1 for s > 0, else exp (s) (Gu et al. 2024, arXiv
** 2410.10781, "sim" variants; eps = 1e-8).
**
** Row: scores s (n) -> weights w (n). Where all scores are negative, numerator
** and denominator are divided by exp (max_j s_j), so that the row does not
** underflow.
**
** Sinks: 0.8 % of a language model's heads without normalisation (Gu et al.
** 2024). */
#include <sinklab/lanes.h>
#include <sinklab/reduce.h>

typedef struct config {
  int normalise;
  double eps;
} config;

static const sl_option options[] = {
  SL_OPTION_BOOL (config, normalise, 1, "divide by the sum of the row"),
  SL_OPTION_REAL (config, eps, 1e-8, 0, 1, "added to that sum"),
  { 0 }
};

/* The least shift beside eps, where exp (-shift) is finite. */
static real least_shift (const config *o) {
  return o->eps > 0 ? 9 - SL_EXP_HIGH : -SL_MAX_REAL;
}

/* a_i = phi (s_i) / exp (shift), (n); returns 1 / D, so that w = a / D. */
static real features (const sl_call *c, int n, const real *restrict s,
                      real *restrict a) {
  const config *o = c->config;
  const real max = sl_row_max (n, s);
  const real least = least_shift (o), low = max < least ? least : max;
  const real shift = o->normalise && max < 0 ? low : 0;
  real sum;
  for (int i = 0; i < n; i++) {
    const real below = sl_expv (s[i] - shift);
    a[i] = s[i] > 0 ? s[i] + 1 : below;
  }
  if (!o->normalise) return 1;
  sum = sl_row_sum (n, a);
  return 1 / (o->eps > 0 ? sum + (real)o->eps * sl_expv (-shift) : sum);
}

static void forward (const sl_call *c, int n, const real *restrict s,
                     real *restrict w) {
  const real scale = features (c, n, s, w);
  sl_row_scale (n, w, scale);
}

/* forward: w_i = phi (s_i) / D, D = sum_j phi (s_j) + eps, or D = 1
** ds_i = phi' (s_i) / D (dw_i - sum_j w_j dw_j), without the sum if D = 1;
** phi' (s) = 1 for s > 0, else phi (s) */
static void backward (const sl_call *c, int n, const real *restrict s,
                      const real *restrict w, const real *restrict dw,
                      real *restrict ds, real *dparam) {
  const config *o = c->config;
  real *restrict a = c->scratch;
  const real scale = features (c, n, s, a);
  const real mean = o->normalise ? sl_row_dot (n, w, dw) : 0;
  (void)dparam;
  for (int i = 0; i < n; i++)
    ds[i] = (s[i] > 0 ? 1 : a[i]) * scale * (dw[i] - mean);
}

/* The same for one column of a block. */
static sl_lanes features_block (const sl_call *c, int n, const real *s,
                                real *a) {
  const config *o = c->config;
  const sl_lanes zero = { 0 };
  sl_lanes shift = zero, sum = zero;
  if (o->normalise)
    shift = sl_lanes_max (sl_splat (least_shift (o)),
                          sl_lanes_min (sl_keys_max (n, s), zero));
  for (int j = 0; j < n; j++) {
    const sl_lanes x = sl_load (s + sl_at (j, 0));
    const sl_lanes y =
        sl_select ((sl_mask)(x > zero), x + (real)1, sl_lanes_exp (x - shift));
    sl_store (a + sl_at (j, 0), y);
    sum += y;
  }
  if (!o->normalise) return sl_splat (1);
  if (o->eps > 0) sum += (real)o->eps * sl_lanes_exp (-shift);
  return 1 / sum;
}

static void forward_block (const sl_call *c, int keys, const real *restrict s,
                           real *restrict w) {
  (void)keys;
  for (int l = 0; l < SL_QUERIES; l += SL_LANES) {
    const int n = sl_lanes_keys (c, l);
    sl_keys_scale (n, w + l, features_block (c, n, s + l, w + l));
  }
}

static void backward_block (const sl_call *c, int keys, const real *restrict s,
                            const real *restrict w, const real *restrict dw,
                            real *restrict ds, real *dparam) {
  (void)keys, (void)dparam;
  const config *o = c->config;
  for (int l = 0; l < SL_QUERIES; l += SL_LANES) {
    const int n = sl_lanes_keys (c, l);
    const sl_lanes scale = features_block (c, n, s + l, ds + l);
    sl_lanes mean = { 0 };
    if (o->normalise) mean = sl_keys_dot (n, w + l, dw + l);
    for (int j = 0; j < n; j++) {
      const sl_lanes a = sl_load (ds + sl_at (j, l));
      const sl_mask up = (sl_mask)(sl_load (s + sl_at (j, l)) > sl_splat (0));
      sl_store (ds + sl_at (j, l), sl_select (up, sl_splat (1), a) * scale *
                                       (sl_load (dw + sl_at (j, l)) - mean));
    }
  }
}

static const sl_row_kernel row = { forward, backward };
static const sl_block_kernel block = { forward_block, backward_block };

SL_PLUGIN = { SL_ABI,
              "elu1",
              "1.0",
              "elu (s) + 1, over its sum or alone",
              .properties = SL_NONNEGATIVE,
              .config_size = sizeof (config),
              .options = options,
              .row = &row,
              .block = &block };
