/* sigmoid.c - w_i = sigmoid (s_i + b), or that over its row sum.
**
** The bias b is, by option:
**   log_n    -log n, fixed (Ramapuram et al. 2024, arXiv 2409.04431), with n a
**            count of tokens: their paper takes the sequence length
**   fixed    the option 'value'; 0 is the unbiased form (Gu et al. 2024,
**            arXiv 2410.10781)
**   learned  one number a head, which starts at 'value'
** 'normalise' divides by the row sum + eps (Gu et al.: eps = 1e-8). Without it
** rows sum to anything from 0 to n; with it they sum to less than 1 only where
** the whole row has died out.
**
** Sinks: 0.4 % of a language model's heads without normalisation, 30 % with it
** (Gu et al. 2024). Where the first value is 0 its weight is free and may
** be 1. */
#include <sinklab/count.h>
#include <sinklab/reduce.h>

typedef struct config {
  int bias, count, normalise;
  double value, eps;
} config;

enum { LOG_N, FIXED, LEARNED };
static const char *const biases[] = { "log_n", "fixed", "learned", NULL };

static const sl_option options[] = {
  { .name = "bias",
    .doc = "added to the scores: -log n, a fixed value, or one learned a head",
    .type = SL_CHOICE,
    .offset = offsetof (config, bias),
    .def = LOG_N,
    .choices = biases },
  { .name = "n",
    .doc = "what log_n counts: earlier visible tokens (at least 1), all "
           "visible tokens, or the length of the sequence",
    .type = SL_CHOICE,
    .offset = offsetof (config, count),
    .def = SL_LENGTH,
    .choices = sl_counts },
  { .name = "value",
    .doc = "the fixed bias, or where the learned one starts",
    .type = SL_REAL,
    .offset = offsetof (config, value),
    .min = -100,
    .max = 100 },
  { .name = "normalise",
    .doc = "divide by the sum of the row",
    .type = SL_BOOL,
    .offset = offsetof (config, normalise) },
  { .name = "eps",
    .doc = "added to that sum",
    .type = SL_REAL,
    .offset = offsetof (config, eps),
    .def = 1e-8,
    .min = 1e-12,
    .max = 1 },
  { 0 }
};

static const sl_param params[] = {
  { "bias", "added to every score of the head", { 0, 1 }, SL_CONST, 0 }, { 0 }
};

static void adapt (const void *options_in_effect, sl_param *param,
                   sl_input *input) {
  const config *o = options_in_effect;
  (void)input;
  param->scale = o->value;
  if (o->bias != LEARNED) param->width = (sl_width){ 0, 0 };
}

static real bias_of (const sl_call *c, int n) {
  const config *o = c->config;
  if (o->bias == LEARNED) return c->param[0];
  if (o->bias == FIXED) return (real)o->value;
  return -sl_logv ((real)sl_count (c, n, o->count));
}

static void forward (const sl_call *c, int n, const real *restrict s,
                     real *restrict w) {
  const config *o = c->config;
  const real b = bias_of (c, n);
  real scale;
  for (int i = 0; i < n; i++) w[i] = sl_sigmoidv (s[i] + b);
  if (!o->normalise) return;
  scale = 1 / (sl_row_sum (n, w) + (real)o->eps);
  for (int i = 0; i < n; i++) w[i] *= scale;
}

/* With a_i the sigmoid: ds_i = w_i (1 - a_i) dw_i, where w is a; normalised,
** dw_i has sum_j w_j dw_j taken off. */
static void backward (const sl_call *c, int n, const real *restrict s,
                      const real *restrict w, const real *restrict dw,
                      real *restrict ds, real *dparam) {
  const config *o = c->config;
  const real b = bias_of (c, n);
  const real mean = o->normalise ? sl_row_dot (n, w, dw) : 0;
  for (int i = 0; i < n; i++)
    ds[i] = w[i] * sl_sigmoidv (-(s[i] + b)) * (dw[i] - mean);
  if (o->bias == LEARNED) dparam[0] += sl_row_sum (n, ds);
}

static sl_lanes biases_of (const sl_call *c, int l) {
  const config *o = c->config;
  if (o->bias == LEARNED) return sl_every (c->param[0]);
  if (o->bias == FIXED) return sl_every ((real)o->value);
  return -sl_lanes_log (sl_lanes_count (c, l, o->count));
}

static void forward_block (const sl_call *c, int most, const real *restrict s,
                           real *restrict w) {
  (void)most;
  const config *o = c->config;
  for (int l = 0; l < SL_QUERIES; l += SL_LANES) {
    const int n = sl_keys (c, l);
    const sl_lanes b = biases_of (c, l);
    for (int j = 0; j < n; j++)
      sl_store (w + sl_at (j, l),
                sl_lanes_sigmoid (sl_load (s + sl_at (j, l)) + b));
    if (!o->normalise) continue;
    sl_keys_scale (n, w + l, 1 / (sl_keys_sum (n, w + l) + (real)o->eps));
  }
}

static void backward_block (const sl_call *c, int most, const real *restrict s,
                            const real *restrict w, const real *restrict dw,
                            real *restrict ds, real *dparam) {
  (void)most;
  const config *o = c->config;
  for (int l = 0; l < SL_QUERIES; l += SL_LANES) {
    const int n = sl_keys (c, l);
    const sl_lanes b = biases_of (c, l);
    sl_lanes mean = { 0 }, sum = { 0 };
    if (o->normalise) mean = sl_keys_dot (n, w + l, dw + l);
    for (int j = 0; j < n; j++) {
      const sl_lanes x = sl_load (s + sl_at (j, l)) + b;
      const sl_lanes d = sl_load (w + sl_at (j, l)) * sl_lanes_sigmoid (-x) *
                         (sl_load (dw + sl_at (j, l)) - mean);
      sl_store (ds + sl_at (j, l), d);
      sum += d;
    }
    if (o->bias == LEARNED) dparam[0] += sl_lanes_sum (sum);
  }
}

static const sl_row_kernel row = { forward, backward };
static const sl_block_kernel block = { forward_block, backward_block };

SL_PLUGIN = { SL_ABI,
              "sigmoid",
              "1.0",
              "a sigmoid of every score by itself, with a bias",
              .flags = SL_NONNEGATIVE,
              .config_size = sizeof (config),
              .options = options,
              .params = params,
              .row = &row,
              .adapt = adapt,
              .block = &block };
