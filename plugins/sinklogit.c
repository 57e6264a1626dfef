/* sinklogit.c - w_i = exp (s_i) / (exp (b) + sum_j exp (s_j)): softmax over the
** scores and one learned logit b per head (gpt-oss, OpenAI 2025:
** gpt_oss/torch/model.py, 'sinks').
**
** Row: scores s (n), parameter b (1) -> weights w (n). The weight of the logit
** is null mass; b = 0 is softmax1. max (b, s_1 .. s_n) is subtracted first.
**
** Sinks: the mass moves from tokens to the logit. */
#include <sinklab/lanes.h>
#include <sinklab/reduce.h>

typedef struct config {
  double init;
} config;

static const sl_option options[] = {
  SL_OPTION_REAL (config, init, 0, -1e4, 1e4, "initial value of the logit"),
  { 0 }
};

static const sl_param params[] = {
  { "logit", "score of a key without a value", { 0, 1 }, SL_CONST, 0 }, { 0 }
};

static void adapt (const void *options_in_effect, sl_param *param,
                   sl_input *input) {
  const config *o = options_in_effect;
  (void)input;
  param->scale = o->init;
}

/* w (n) from s (n); returns the weight of the logit, exp (b) / denominator. */
static real softmax (const sl_call *c, int n, const real *restrict s,
                     real *restrict w) {
  const real b = c->param[0], max = sl_larger (sl_row_max (n, s), b);
  const real sink = sl_expv (b - max);
  real scale;
  sl_row_exp (n, s, max, w);
  scale = 1 / (sl_row_sum (n, w) + sink);
  sl_row_scale (n, w, scale);
  return sink * scale;
}

static void forward (const sl_call *c, int n, const real *s, real *w) {
  softmax (c, n, s, w);
}

/* forward: w_i = exp (s_i) / (exp (b) + sum_j exp (s_j)), w_b likewise
** ds_i = w_i (dw_i - mean), db = -w_b mean, mean = sum_j w_j dw_j
** w_b is computed again, because 1 - sum_j w_j would cancel. */
static void backward (const sl_call *c, int n, const real *s,
                      const real *restrict w, const real *restrict dw,
                      real *restrict ds, real *dparam) {
  const real mean = sl_row_softmax_backward (n, w, dw, ds);
  dparam[0] -= softmax (c, n, s, c->scratch) * mean;
}

static void forward_block (const sl_call *c, int keys, const real *restrict s,
                           real *restrict w) {
  (void)keys;
  const sl_lanes b = sl_splat (c->param[0]);
  for (int l = 0; l < SL_QUERIES; l += SL_LANES) {
    const int n = sl_lanes_keys (c, l);
    const sl_lanes max = sl_lanes_max (sl_keys_max (n, s + l), b);
    const sl_lanes sum = sl_keys_exp (n, s + l, max, w + l);
    sl_keys_scale (n, w + l, 1 / (sum + sl_lanes_exp (b - max)));
  }
}

/* The weight of the logit, w_b, from a column of scores. */
static sl_lanes logit_weight (int n, const real *s, sl_lanes b) {
  const sl_lanes max = sl_lanes_max (sl_keys_max (n, s), b);
  const sl_lanes own = sl_lanes_exp (b - max);
  sl_lanes sum = own;
  for (int j = 0; j < n; j++)
    sum += sl_lanes_exp (sl_load (s + sl_at (j, 0)) - max);
  return own / sum;
}

static void backward_block (const sl_call *c, int keys, const real *restrict s,
                            const real *restrict w, const real *restrict dw,
                            real *restrict ds, real *dparam) {
  (void)keys;
  const sl_lanes b = sl_splat (c->param[0]);
  for (int l = 0; l < SL_QUERIES; l += SL_LANES) {
    const int n = sl_lanes_keys (c, l);
    const sl_lanes mean = sl_keys_softmax_backward (n, w + l, dw + l, ds + l);
    dparam[0] -= sl_lanes_sum (logit_weight (n, s + l, b) * mean);
  }
}

static const sl_row_kernel row = { forward, backward };
static const sl_block_kernel block = { forward_block, backward_block };

SL_PLUGIN = { SL_ABI,
              "sinklogit",
              "1.0",
              "softmax with one learned logit per head that has no value",
              .properties = SL_NONNEGATIVE | SL_NULL_MASS,
              .config_size = sizeof (config),
              .options = options,
              .params = params,
              .row = &row,
              .adapt = adapt,
              .block = &block };
