/* elu1.c - w_i = phi (s_i) / (sum_j phi (s_j) + eps), or phi (s_i) alone;
** phi (s) = elu (s) + 1, which is s + 1 above 0 and exp (s) below (Gu et al.
** 2024, arXiv 2410.10781, "sim" variants; eps = 1e-8).
**
** A row of negative scores is scaled by exp (-largest), so that it cannot
** vanish before the division.
**
** Sinks: 0.8 % of a language model's heads without normalisation (Gu et al.
** 2024). */
#include <sinklab/lanes.h>
#include <sinklab/reduce.h>

typedef struct config {
  int normalise;
  double eps;
} config;

static const sl_option options[] = { { .name = "normalise",
                                       .doc = "divide by the sum of the row",
                                       .type = SL_BOOL,
                                       .offset = offsetof (config, normalise),
                                       .def = 1 },
                                     { .name = "eps",
                                       .doc = "added to that sum",
                                       .type = SL_REAL,
                                       .offset = offsetof (config, eps),
                                       .def = 1e-8,
                                       .min = 0,
                                       .max = 1 },
                                     { 0 } };

/* phi (s), scaled, into a; returns what it is to be multiplied by. */
static real similar (const sl_call *c, int n, const real *restrict s,
                     real *restrict a) {
  const config *o = c->config;
  const real max = sl_row_max (n, s);
  const real shift = o->normalise && max < 0 ? max : 0;
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
  const real scale = similar (c, n, s, w);
  for (int i = 0; i < n; i++) w[i] *= scale;
}

/* ds_i = phi' (s_i) (dw_i - sum_j w_j dw_j) / D, and phi' (s_i) dw_i without D;
** phi' = 1 above 0, phi below. */
static void backward (const sl_call *c, int n, const real *restrict s,
                      const real *restrict w, const real *restrict dw,
                      real *restrict ds, real *dparam) {
  const config *o = c->config;
  real *restrict a = c->scratch;
  const real scale = similar (c, n, s, a);
  const real mean = o->normalise ? sl_row_dot (n, w, dw) : 0;
  (void)dparam;
  for (int i = 0; i < n; i++)
    ds[i] = (s[i] > 0 ? 1 : a[i]) * scale * (dw[i] - mean);
}

/* similar () of a block. */
static sl_lanes similar_block (const sl_call *c, int n, const real *s,
                               real *a) {
  const config *o = c->config;
  const sl_lanes zero = { 0 };
  sl_lanes shift = zero, sum = zero;
  if (o->normalise) shift = sl_lanes_min (sl_keys_max (n, s), zero);
  for (int j = 0; j < n; j++) {
    const sl_lanes x = sl_load (s + sl_at (j, 0));
    const sl_lanes y =
        sl_select ((sl_mask)(x > zero), x + (real)1, sl_lanes_exp (x - shift));
    sl_store (a + sl_at (j, 0), y);
    sum += y;
  }
  if (!o->normalise) return sl_every (1);
  if (o->eps > 0) sum += (real)o->eps * sl_lanes_exp (-shift);
  return 1 / sum;
}

static void forward_block (const sl_call *c, int most, const real *restrict s,
                           real *restrict w) {
  (void)most;
  for (int l = 0; l < SL_QUERIES; l += SL_LANES) {
    const int n = sl_keys (c, l);
    sl_keys_scale (n, w + l, similar_block (c, n, s + l, w + l));
  }
}

static void backward_block (const sl_call *c, int most, const real *restrict s,
                            const real *restrict w, const real *restrict dw,
                            real *restrict ds, real *dparam) {
  (void)most, (void)dparam;
  const config *o = c->config;
  for (int l = 0; l < SL_QUERIES; l += SL_LANES) {
    const int n = sl_keys (c, l);
    const sl_lanes scale = similar_block (c, n, s + l, ds + l);
    sl_lanes mean = { 0 };
    if (o->normalise) mean = sl_keys_dot (n, w + l, dw + l);
    for (int j = 0; j < n; j++) {
      const sl_lanes a = sl_load (ds + sl_at (j, l));
      const sl_mask up = (sl_mask)(sl_load (s + sl_at (j, l)) > sl_every (0));
      sl_store (ds + sl_at (j, l), sl_select (up, sl_every (1), a) * scale *
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
              .flags = SL_NONNEGATIVE,
              .config_size = sizeof (config),
              .options = options,
              .row = &row,
              .block = &block };
