/* sinklogit.c - w_i = exp (s_i) / (exp (b) + sum_j exp (s_j)): softmax over the
** scores and one learned logit b a head, whose share is mass on nothing (gpt-oss,
** OpenAI 2025: gpt_oss/torch/model.py, 'sinks').
**
** softmax1 is b = 0. The largest of scores and b is taken off first.
**
** Sinks: the mass moves from tokens to the logit. */
#include <sinklab/reduce.h>
#include <sinklab/vmath.h>

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

static void adapt (const void *config_, sl_param *param, sl_input *input) {
  const config *o = config_;
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

/* ds_i = w_i (dw_i - sum_j w_j dw_j); the sink's is the same with dw = 0. Its weight
** is computed again: 1 - sum of w would lose a small one. */
static void backward (const sl_call *c, int n, const real *s,
                      const real *restrict w, const real *restrict dw,
                      real *restrict ds, real *dparam) {
  const real mean = sl_row_dot (n, w, dw);
  for (int i = 0; i < n; i++) ds[i] = w[i] * (dw[i] - mean);
  dparam[0] -= weigh (c, n, s, c->scratch) * mean;
}

static const sl_row row = { forward, backward };

SL_PLUGIN = { SL_ABI,
              "sinklogit",
              "1.0",
              "softmax with one learned logit a head that has no value",
              .flags = SL_NONNEGATIVE | SL_NULL_MASS,
              .config_size = sizeof (config),
              .options = options,
              .params = params,
              .row = &row,
              .adapt = adapt };
