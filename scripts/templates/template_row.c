/* template_row.c - w_i = exp (s_i / temperature) / sum_j exp (s_j /
** temperature).
**
** Row: scores s (n) of the visible keys of one query -> weights w (n). Compile
** it as it is, run 'make check', then change one step at a time:
**
**   1. forward: your formula. The scores may be huge, equal, or one alone.
**   2. backward: ds_i = sum_j dw_j dw_j/ds_i. 's' and 'w' are those of forward.
**   3. options, one line each; drop them if you need none (then the config, the
**      list and two fields at the end of this file go).
**   4. properties: what holds for the weights. 'sinklab plugin check' tests each.
**   5. this comment: formula, source, shapes. */
#include <sinklab/reduce.h>

typedef struct config {
  double temperature;
} config;

static const sl_option options[] = { SL_OPTION_REAL (
                                         config, temperature, 1, 0.01, 100,
                                         "scores are divided by this"),
                                     { 0 } };

static void forward (const sl_call *c, int n, const real *restrict s,
                     real *restrict w) {
  const config *o = c->config;
  const real scale = (real)(1 / o->temperature), max = sl_row_max (n, s);
  for (int i = 0; i < n; i++) w[i] = sl_expv (scale * (s[i] - max));
  sl_row_scale (n, w, 1 / sl_row_sum (n, w));
}

/* forward: w = softmax (z), z_i = s_i / temperature
** ds_i = w_i (dw_i - sum_j w_j dw_j) / temperature */
static void backward (const sl_call *c, int n, const real *s,
                      const real *restrict w, const real *restrict dw,
                      real *restrict ds, real *dparam) {
  const config *o = c->config;
  const real scale = (real)(1 / o->temperature), mean = sl_row_dot (n, w, dw);
  (void)s, (void)dparam;
  for (int i = 0; i < n; i++) ds[i] = scale * w[i] * (dw[i] - mean);
}

static const sl_row_kernel row = { forward, backward };

SL_PLUGIN = { SL_ABI,
              "template_row",
              "0.1",
              "softmax with a temperature",
              .properties =
                  SL_NONNEGATIVE | SL_SUMS_TO_ONE | SL_SHIFT_INVARIANT,
              .config_size = sizeof (config),
              .options = options,
              .row = &row };
