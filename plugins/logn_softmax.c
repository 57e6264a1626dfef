/* logn_softmax.c - w = softmax (a log (n) s), n the number of keys: scores grow with
** the context, so that the largest keeps its weight.
**
** a = 0.43 is SSMax's (Nakanishi 2025, arXiv 2501.19399, figure 1), who learn it, one
** a head and layer ('learned', from 'scale' on); a = 1 is Chiang and Cholak's (2022,
** arXiv 2202.12172); a = 1 / log L makes length L plain softmax. A row of one key has
** weight 1 and no gradient.
**
** Sinks: not studied. */
#include <sinklab/count.h>
#include <sinklab/reduce.h>
#include <sinklab/vmath.h>

typedef struct config {
  int count, learned;
  double scale;
} config;

static const sl_option options[] = {
  { .name = "scale",
    .doc = "a, or where the learned one starts",
    .type = SL_REAL,
    .offset = offsetof (config, scale),
    .def = 0.43,
    .min = 0,
    .max = 10 },
  { .name = "n",
    .doc = "what is counted: earlier visible tokens (at least 1), all visible "
           "tokens, or the length of the sequence",
    .type = SL_CHOICE,
    .offset = offsetof (config, count),
    .def = SL_VISIBLE,
    .choices = sl_counts },
  { .name = "learned",
    .doc = "learn a, one number a head",
    .type = SL_BOOL,
    .offset = offsetof (config, learned) },
  { 0 }
};

static const sl_param params[] = {
  { "scale", "a of the head", { 0, 1 }, SL_CONST, 0 }, { 0 }
};

static void adapt (const void *config_, sl_param *param, sl_input *input) {
  const config *o = config_;
  (void)input;
  param->scale = o->scale;
  if (!o->learned) param->width = (sl_width){ 0, 0 };
}

static real log_n (const sl_call *c, int n) {
  const config *o = c->config;
  return sl_logv ((real)sl_count (c, n, o->count));
}

static real factor (const sl_call *c, int n) {
  const config *o = c->config;
  return log_n (c, n) * (o->learned ? c->param[0] : (real)o->scale);
}

/* The largest of a log (n) s: of s, or of -s if a has become negative. */
static int largest (int n, real f, const real *s) {
  int k = 0;
  for (int i = 1; i < n; i++)
    if (f * s[i] > f * s[k]) k = i;
  return k;
}

static void forward (const sl_call *c, int n, const real *restrict s,
                     real *restrict w) {
  const real f = factor (c, n), top = s[largest (n, f, s)];
  real scale;
  for (int i = 0; i < n; i++) w[i] = sl_expv (f * (s[i] - top));
  scale = 1 / sl_row_sum (n, w);
  for (int i = 0; i < n; i++) w[i] *= scale;
}

/* With dz_i = w_i (dw_i - sum_j w_j dw_j): ds = a log (n) dz, da = log (n) s . dz.
** Neither changes when s and dw are counted from where the weight is largest, and
** there a sharp row, whose dz are small, keeps its digits. */
static void backward (const sl_call *c, int n, const real *restrict s,
                      const real *restrict w, const real *restrict dw,
                      real *restrict ds, real *dparam) {
  const config *o = c->config;
  const real f = factor (c, n);
  const int k = largest (n, f, s);
  real *restrict from = c->scratch, mean;
  for (int i = 0; i < n; i++) from[i] = dw[i] - dw[k];
  mean = sl_row_dot (n, w, from);
  for (int i = 0; i < n; i++) ds[i] = w[i] * (from[i] - mean);
  for (int i = 0; i < n; i++) from[i] = s[i] - s[k];
  if (o->learned) dparam[0] += log_n (c, n) * sl_row_dot (n, from, ds);
  for (int i = 0; i < n; i++) ds[i] *= f;
}

static const sl_row row = { forward, backward };

SL_PLUGIN = { SL_ABI,
              "logn_softmax",
              "1.0",
              "softmax of scores times log n: sharper in longer contexts",
              .flags = SL_NONNEGATIVE | SL_SUMS_TO_ONE | SL_SHIFT_INVARIANT,
              .config_size = sizeof (config),
              .options = options,
              .params = params,
              .row = &row,
              .adapt = adapt };
