/* softcap_softmax.c - w = softmax (cap tanh (s / cap)): no score is past +-cap
** (Gemma 2, 2024, arXiv 2408.00118; cap = 50 in attention).
**
** Sinks: not studied by itself. */
#include <sinklab/reduce.h>
#include <sinklab/vmath.h>

typedef struct config {
  double cap;
} config;

static const sl_option options[] = { { .name = "cap",
                                       .doc = "scores stay within +-cap",
                                       .type = SL_REAL,
                                       .offset = offsetof (config, cap),
                                       .def = 50,
                                       .min = 1e-3,
                                       .max = 1e6 },
                                     { 0 } };

static void forward (const sl_call *c, int n, const real *restrict s,
                     real *restrict w) {
  const config *o = c->config;
  const real cap = (real)o->cap, inverse = (real)(1 / o->cap);
  real max, scale;
  for (int i = 0; i < n; i++) w[i] = cap * sl_tanhv (s[i] * inverse);
  max = sl_row_max (n, w);
  for (int i = 0; i < n; i++) w[i] = sl_expv (w[i] - max);
  scale = 1 / sl_row_sum (n, w);
  for (int i = 0; i < n; i++) w[i] *= scale;
}

/* ds_i = w_i (dw_i - sum_j w_j dw_j) (1 - tanh^2 (s_i / cap)); the last factor is
** 4 p (1 - p), p the sigmoid of 2 s_i / cap, which does not cancel. */
static void backward (const sl_call *c, int n, const real *restrict s,
                      const real *restrict w, const real *restrict dw,
                      real *restrict ds, real *dparam) {
  const config *o = c->config;
  const real twice = (real)(2 / o->cap), mean = sl_row_dot (n, w, dw);
  (void)dparam;
  for (int i = 0; i < n; i++) {
    const real x = twice * s[i];
    ds[i] = w[i] * (dw[i] - mean) * (4 * sl_sigmoidv (x) * sl_sigmoidv (-x));
  }
}

static const sl_row row = { forward, backward };

SL_PLUGIN = { SL_ABI,
              "softcap_softmax",
              "1.0",
              "softmax of scores that a tanh keeps within +-cap",
              .flags = SL_NONNEGATIVE | SL_SUMS_TO_ONE,
              .config_size = sizeof (config),
              .options = options,
              .row = &row };
