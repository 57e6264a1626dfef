/* sigmoid.c - w_i = sigmoid (s_i + b), or the same over its row sum + eps.
**
** Row: scores s (n), if learned parameter b (1) -> weights w (n). The bias b
** is, by the option 'bias':
**   log_n    -log n, fixed (Ramapuram et al. 2024, arXiv 2409.04431), n a token
**            count (sinklab/count.h): in the paper the sequence length
**   fixed    the option 'value'; 0 is the unbiased form (Gu et al. 2024,
**            arXiv 2410.10781)
**   learned  one number per head, initially 'value'
** Gu et al. normalise with eps = 1e-8. Without normalisation a row sums to
** anything from 0 to n; with it to less than 1 only where all weights
** underflow.
**
** Sinks: 0.4 % of a language model's heads without normalisation, 30 % with it
** (Gu et al. 2024). Where the first value is 0 its weight does not matter and
** may be 1. */
#include <sinklab/count.h>
#include <sinklab/reduce.h>

typedef struct config {
  int bias, n, normalise;
  double value, eps;
} config;

enum { LOG_N, FIXED, LEARNED };
static const char *const biases[] = { "log_n", "fixed", "learned", NULL };

static const sl_option options[] = {
  SL_OPTION_CHOICE (config, bias, LOG_N, biases,
                    "added to scores: -log n, a fixed value, one learned per "
                    "head"),
  SL_OPTION_COUNT (config, n, SL_COUNT_LENGTH, "n of log_n"),
  SL_OPTION_REAL (config, value, 0, -100, 100,
                  "the fixed bias, or the initial value of the learned one"),
  SL_OPTION_BOOL (config, normalise, 0, "divide by the sum of the row"),
  SL_OPTION_REAL (config, eps, 1e-8, 1e-12, 1, "added to that sum"),
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
  return -sl_logv ((real)sl_token_count (c, n, o->n));
}

static void forward (const sl_call *c, int n, const real *restrict s,
                     real *restrict w) {
  const config *o = c->config;
  const real b = bias_of (c, n);
  for (int i = 0; i < n; i++) w[i] = sl_sigmoidv (s[i] + b);
  if (o->normalise) sl_row_scale (n, w, 1 / (sl_row_sum (n, w) + (real)o->eps));
}

/* forward: w_i = a_i / D, a_i = sigmoid (s_i + b), D = sum_j a_j + eps, or D =
** 1 ds_i = w_i (1 - a_i) (dw_i - sum_j w_j dw_j), without the sum if D = 1; db
** = sum_i ds_i */
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
  if (o->bias == LEARNED) return sl_splat (c->param[0]);
  if (o->bias == FIXED) return sl_splat ((real)o->value);
  return -sl_lanes_log (sl_lanes_token_count (c, l, o->n));
}

static void forward_block (const sl_call *c, int keys, const real *restrict s,
                           real *restrict w) {
  (void)keys;
  const config *o = c->config;
  for (int l = 0; l < SL_QUERIES; l += SL_LANES) {
    const int n = sl_lanes_keys (c, l);
    const sl_lanes b = biases_of (c, l);
    for (int j = 0; j < n; j++)
      sl_store (w + sl_at (j, l),
                sl_lanes_sigmoid (sl_load (s + sl_at (j, l)) + b));
    if (!o->normalise) continue;
    sl_keys_scale (n, w + l, 1 / (sl_keys_sum (n, w + l) + (real)o->eps));
  }
}

static void backward_block (const sl_call *c, int keys, const real *restrict s,
                            const real *restrict w, const real *restrict dw,
                            real *restrict ds, real *dparam) {
  (void)keys;
  const config *o = c->config;
  for (int l = 0; l < SL_QUERIES; l += SL_LANES) {
    const int n = sl_lanes_keys (c, l);
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
              .properties = SL_NONNEGATIVE,
              .config_size = sizeof (config),
              .options = options,
              .params = params,
              .row = &row,
              .adapt = adapt,
              .block = &block };
