/* sinklogit.c - w_i = exp (s_i) / (exp (b) + sum_j exp (s_j)): softmax over the
** scores and one learned logit b a head, whose share is mass on nothing
** (gpt-oss, OpenAI 2025: gpt_oss/torch/model.py, 'sinks').
**
** softmax1 is b = 0. The largest of scores and b is taken off first.
**
** Sinks: the mass moves from tokens to the logit. */
#include <sinklab/lanes.h>
#include <sinklab/reduce.h>

typedef struct config {
  double init;
} config;

static const sl_option options[] = { { .name = "init",
                                       .doc = "where the learned logit starts",
                                       .type = SL_REAL,
                                       .offset = offsetof (config, init),
                                       .min = -1e4,
                                       .max = 1e4 },
                                     { 0 } };

static const sl_param params[] = {
  { "logit", "score of the key that is nothing", { 0, 1 }, SL_CONST, 0 }, { 0 }
};

static void adapt (const void *options_in_effect, sl_param *param,
                   sl_input *input) {
  const config *o = options_in_effect;
  (void)input;
  param->scale = o->init;
}

/* Weights into w; returns what is left for the sink. */
static real weigh (const sl_call *c, int n, const real *restrict s,
                   real *restrict w) {
  const real b = c->param[0], max = sl_larger (sl_row_max (n, s), b);
  const real sink = sl_expv (b - max);
  real scale;
  for (int i = 0; i < n; i++) w[i] = sl_expv (s[i] - max);
  scale = 1 / (sl_row_sum (n, w) + sink);
  for (int i = 0; i < n; i++) w[i] *= scale;
  return sink * scale;
}

static void forward (const sl_call *c, int n, const real *s, real *w) {
  weigh (c, n, s, w);
}

/* ds_i = w_i (dw_i - sum_j w_j dw_j); the sink's is the same with dw = 0. Its
** weight is computed again: 1 - sum of w would lose a small one. */
static void backward (const sl_call *c, int n, const real *s,
                      const real *restrict w, const real *restrict dw,
                      real *restrict ds, real *dparam) {
  const real mean = sl_row_dot (n, w, dw);
  for (int i = 0; i < n; i++) ds[i] = w[i] * (dw[i] - mean);
  dparam[0] -= weigh (c, n, s, c->scratch) * mean;
}

static void forward_block (const sl_call *c, int most, const real *restrict s,
                           real *restrict w) {
  (void)most;
  const sl_lanes b = sl_every (c->param[0]);
  for (int l = 0; l < SL_QUERIES; l += SL_LANES) {
    const int n = sl_keys (c, l);
    const sl_lanes max = sl_lanes_max (sl_keys_max (n, s + l), b);
    const sl_lanes sum = sl_keys_exp (n, s + l, max, w + l);
    sl_keys_scale (n, w + l, 1 / (sum + sl_lanes_exp (b - max)));
  }
}

/* The weight of the sink, from the scores. */
static sl_lanes sink (int n, const real *s, sl_lanes b) {
  const sl_lanes max = sl_lanes_max (sl_keys_max (n, s), b);
  const sl_lanes own = sl_lanes_exp (b - max);
  sl_lanes sum = own;
  for (int j = 0; j < n; j++)
    sum += sl_lanes_exp (sl_load (s + sl_at (j, 0)) - max);
  return own / sum;
}

static void backward_block (const sl_call *c, int most, const real *restrict s,
                            const real *restrict w, const real *restrict dw,
                            real *restrict ds, real *dparam) {
  (void)most;
  const sl_lanes b = sl_every (c->param[0]);
  for (int l = 0; l < SL_QUERIES; l += SL_LANES) {
    const int n = sl_keys (c, l);
    const sl_lanes mean = sl_keys_dot (n, w + l, dw + l);
    sl_keys_spread (n, w + l, dw + l, mean, ds + l);
    dparam[0] -= sl_lanes_sum (sink (n, s + l, b) * mean);
  }
}

static const sl_row_kernel row = { forward, backward };
static const sl_block_kernel block = { forward_block, backward_block };

SL_PLUGIN = { SL_ABI,
              "sinklogit",
              "1.0",
              "softmax with one learned logit a head that has no value",
              .flags = SL_NONNEGATIVE | SL_NULL_MASS,
              .config_size = sizeof (config),
              .options = options,
              .params = params,
              .row = &row,
              .adapt = adapt,
              .block = &block };
