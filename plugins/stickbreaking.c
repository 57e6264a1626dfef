/* stickbreaking.c - w_j = b_j prod_{k > j} (1 - b_k) with b = sigmoid (s) (Tan
** et al. 2024, arXiv 2410.17980): each key takes a share of the mass that later
** keys left.
**
** Row: scores s (n) -> weights w (n). Keys are taken from the last visible one
** to the first. With a causal mask that is nearest first, as published; with
** full visibility, keys after the query come first. The remainder is null mass.
** As published, the query's own key has weight 0, so the first row of causal
** attention is all zeros; 'attend_current' includes it (the name in
** flash-linear-attention).
**
** Sinks: none reported; null mass does the work of a sink. */
#include <sinklab/vmath.h>

typedef struct config {
  int attend_current;
} config;

static const sl_option options[] = {
  SL_OPTION_BOOL (config, attend_current, 0,
                  "the query's own key gets a weight, too"),
  { 0 }
};

/* The key that gets no weight; n if there is none. */
static int skipped_key (const sl_call *c, int n) {
  const config *o = c->config;
  const int own = c->position - c->first_key;
  return o->attend_current || own < 0 || own > n ? n : own;
}

static void forward (const sl_call *c, int n, const real *restrict s,
                     real *restrict w) {
  const int skip = skipped_key (c, n);
  real *restrict rest = c->scratch, left = 1;
  for (int j = 0; j < n; j++) {
    w[j] = sl_sigmoidv (s[j]);
    rest[j] = sl_sigmoidv (-s[j]);
  }
  if (skip < n) {
    w[skip] = 0;
    rest[skip] = 1;
  }
  for (int j = n - 1; j >= 0; j--) {
    w[j] *= left;
    left *= rest[j];
  }
}

/* forward: w_j = b_j prod_{k > j} (1 - b_k), b = sigmoid (s)
** ds_j = (1 - b_j) w_j dw_j - b_j sum_{k < j} w_k dw_k */
static void backward (const sl_call *c, int n, const real *restrict s,
                      const real *restrict w, const real *restrict dw,
                      real *restrict ds, real *dparam) {
  const int skip = skipped_key (c, n);
  real *restrict sum = c->scratch, before = 0;
  (void)dparam;
  for (int j = 0; j < n; j++) {
    sum[j] = before;
    before += w[j] * dw[j];
  }
  for (int j = 0; j < n; j++)
    ds[j] = sl_sigmoidv (-s[j]) * w[j] * dw[j] - sl_sigmoidv (s[j]) * sum[j];
  if (skip < n) ds[skip] = 0;
}

static const sl_row_kernel row = { forward, backward };

SL_PLUGIN = { SL_ABI,
              "stickbreaking",
              "1.0",
              "each key takes its share of what nearer keys left",
              .properties = SL_NONNEGATIVE | SL_NULL_MASS,
              .config_size = sizeof (config),
              .options = options,
              .row = &row };
