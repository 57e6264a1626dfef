/* stickbreaking.c - w_j = b_j prod_{k > j} (1 - b_k), b = sigmoid (s): each key
** takes its share of what later keys left (Tan et al. 2024, arXiv 2410.17980).
**
** The stick is broken from the last visible key to the first. Under causal
** attention that is the nearest first, as published; with full visibility keys
** after the query come before it, the farthest first. The remainder is mass on
** nothing. As published the query's own key takes no part: the first row of
** causal attention is then all zeros. 'attend_current' lets it in (the name in
** flash-linear-attention).
**
** Sinks: none reported; what remains of the stick does the sink's work. */
#include <sinklab/vmath.h>

typedef struct config {
  int attend_current;
} config;

static const sl_option options[] = {
  { .name = "attend_current",
    .doc = "the query's own key takes its share, too",
    .type = SL_BOOL,
    .offset = offsetof (config, attend_current) },
  { 0 }
};

/* Which of the n keys takes no part; n if all do. */
static int left_out (const sl_call *c, int n) {
  const config *o = c->config;
  const int own = c->pos - c->first;
  return o->attend_current || own < 0 || own > n ? n : own;
}

static void forward (const sl_call *c, int n, const real *restrict s,
                     real *restrict w) {
  const int skip = left_out (c, n);
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

/* ds_j = (1 - b_j) w_j dw_j - b_j sum_{k < j} w_k dw_k */
static void backward (const sl_call *c, int n, const real *restrict s,
                      const real *restrict w, const real *restrict dw,
                      real *restrict ds, real *dparam) {
  const int skip = left_out (c, n);
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
              .flags = SL_NONNEGATIVE | SL_NULL_MASS,
              .config_size = sizeof (config),
              .options = options,
              .row = &row };
