/* logn_softmax.c - w = softmax (a log (n) s), n the number of keys: logits grow
** with the context, so that the largest keeps its weight.
**
** Row: scores s (n), if learned parameter a (1) -> weights w (n). a = 0.43 is
** SSMax's (Nakanishi 2025, arXiv 2501.19399, figure 1), who learns it per head
** and layer: option 'learned', initial value 'scale'. a = 1 is Chiang and
** Cholak (2022, arXiv 2202.12172); a = 1 / log L is plain softmax at length L.
** A row of one key has weight 1 and no gradient.
**
** Sinks: not studied. */
#include <sinklab/count.h>
#include <sinklab/reduce.h>

typedef struct config {
  int n, learned;
  double scale;
} config;

static const sl_option options[] = {
  SL_OPTION_REAL (config, scale, 0.43, 0, 10,
                  "a, or the initial value of the learned a"),
  SL_OPTION_COUNT (config, n, SL_COUNT_VISIBLE, "n"),
  SL_OPTION_BOOL (config, learned, 0, "learn a, one number per head"),
  { 0 }
};

static const sl_param params[] = {
  { "scale", "a of the head", { 0, 1 }, SL_CONST, 0 }, { 0 }
};

static void adapt (const void *options_in_effect, sl_param *param,
                   sl_input *input) {
  const config *o = options_in_effect;
  (void)input;
  param->scale = o->scale;
  if (!o->learned) param->width = (sl_width){ 0, 0 };
}

static real log_n (const sl_call *c, int n) {
  const config *o = c->config;
  return sl_logv ((real)sl_token_count (c, n, o->n));
}

static real factor (const sl_call *c, int n) {
  const config *o = c->config;
  return log_n (c, n) * (o->learned ? c->param[0] : (real)o->scale);
}

/* argmax_i f s_i; f can be negative, because a is learned. */
static int argmax (int n, real f, const real *s) {
  int k = 0;
  for (int i = 1; i < n; i++)
    if (f * s[i] > f * s[k]) k = i;
  return k;
}

static void forward (const sl_call *c, int n, const real *restrict s,
                     real *restrict w) {
  const real f = factor (c, n), top = s[argmax (n, f, s)];
  for (int i = 0; i < n; i++) w[i] = sl_expv (f * (s[i] - top));
  sl_row_scale (n, w, 1 / sl_row_sum (n, w));
}

/* forward: w = softmax (z), z = a log (n) s
** dz_i = w_i (dw_i - sum_j w_j dw_j), ds = a log (n) dz, da = log (n) s . dz
** s_k and dw_k of the largest weight w_k are subtracted from s and dw: that
** changes neither result and keeps the digits of a row near one-hot, whose dz
** are small. */
static void backward (const sl_call *c, int n, const real *restrict s,
                      const real *restrict w, const real *restrict dw,
                      real *restrict ds, real *dparam) {
  const config *o = c->config;
  const real f = factor (c, n);
  const int k = argmax (n, f, s);
  real *restrict from = c->scratch, mean;
  for (int i = 0; i < n; i++) from[i] = dw[i] - dw[k];
  mean = sl_row_dot (n, w, from);
  for (int i = 0; i < n; i++) ds[i] = w[i] * (from[i] - mean);
  for (int i = 0; i < n; i++) from[i] = s[i] - s[k];
  if (o->learned) dparam[0] += log_n (c, n) * sl_row_dot (n, from, ds);
  for (int i = 0; i < n; i++) ds[i] *= f;
}

/* log n of the lanes from l on. */
static sl_lanes lanes_log_n (const sl_call *c, int l) {
  const config *o = c->config;
  return sl_lanes_log (sl_lanes_token_count (c, l, o->n));
}

static real scale_of (const sl_call *c) {
  const config *o = c->config;
  return o->learned ? c->param[0] : (real)o->scale;
}

/* s and dw of the visible key with the largest scale * s, per lane. */
static sl_lanes top (const sl_call *c, int n, int l, real scale, const real *s,
                     const real *dw, sl_lanes *dw_top) {
  sl_lanes best = sl_load (s + l);
  *dw_top = sl_load (dw + l);
  for (int j = 1; j < n; j++) {
    const sl_lanes x = sl_load (s + sl_at (j, l));
    const sl_mask better =
        (scale < 0 ? (sl_mask)(x < best) : (sl_mask)(x > best)) &
        sl_key_mask (c, j, l);
    best = sl_select (better, x, best);
    *dw_top = sl_select (better, sl_load (dw + sl_at (j, l)), *dw_top);
  }
  return best;
}

static void forward_block (const sl_call *c, int keys, const real *restrict s,
                           real *restrict w) {
  (void)keys;
  for (int l = 0; l < SL_QUERIES; l += SL_LANES) {
    const int n = sl_lanes_keys (c, l);
    const sl_lanes f = lanes_log_n (c, l) * scale_of (c);
    sl_lanes none, best = top (c, n, l, scale_of (c), s, s, &none), sum = { 0 };
    for (int j = 0; j < n; j++) {
      const sl_lanes e = sl_select (
          sl_key_mask (c, j, l),
          sl_lanes_exp (f * (sl_load (s + sl_at (j, l)) - best)), sl_splat (0));
      sl_store (w + sl_at (j, l), e);
      sum += e;
    }
    sl_keys_scale (n, w + l, 1 / sum);
  }
}

static void backward_block (const sl_call *c, int keys, const real *restrict s,
                            const real *restrict w, const real *restrict dw,
                            real *restrict ds, real *dparam) {
  (void)keys;
  const config *o = c->config;
  const real scale = scale_of (c);
  for (int l = 0; l < SL_QUERIES; l += SL_LANES) {
    const int n = sl_lanes_keys (c, l);
    const sl_lanes log_n = lanes_log_n (c, l);
    sl_lanes dw_top, best = top (c, n, l, scale, s, dw, &dw_top);
    sl_lanes mean = { 0 }, sum = { 0 };
    for (int j = 0; j < n; j++)
      mean +=
          sl_load (w + sl_at (j, l)) * (sl_load (dw + sl_at (j, l)) - dw_top);
    for (int j = 0; j < n; j++) {
      const sl_lanes dz = sl_load (w + sl_at (j, l)) *
                          (sl_load (dw + sl_at (j, l)) - dw_top - mean);
      const sl_lanes below = sl_load (s + sl_at (j, l)) - best;
      sum += sl_select (sl_key_mask (c, j, l), below * dz, sl_splat (0));
      sl_store (ds + sl_at (j, l), dz * log_n * scale);
    }
    if (o->learned) dparam[0] += sl_lanes_sum (log_n * sum);
  }
}

static const sl_row_kernel row = { forward, backward };
static const sl_block_kernel block = { forward_block, backward_block };

SL_PLUGIN = { SL_ABI,
              "logn_softmax",
              "1.0",
              "softmax of scores times log n: sharper in longer contexts",
              .properties =
                  SL_NONNEGATIVE | SL_SUMS_TO_ONE | SL_SHIFT_INVARIANT,
              .config_size = sizeof (config),
              .options = options,
              .params = params,
              .row = &row,
              .adapt = adapt,
              .block = &block };
