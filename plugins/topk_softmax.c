/* topk_softmax.c - softmax over the k largest scores of a row, 0 elsewhere
** (Zhao et al. 2019, arXiv 1912.11637; k = 8).
**
** Row: scores s (n) -> weights w (n). Scores equal to the k-th largest are all
** kept, as published, so equal scores have equal weights. A weight is
** discontinuous where its score enters or leaves the k largest.
**
** Sinks: not studied. */
#include <sinklab/reduce.h>

typedef struct config {
  int k;
} config;

static const sl_option options[] = {
  SL_OPTION_INT (config, k, 8, 1, 1 << 30, "number of scores that a row keeps"),
  { 0 }
};

/* x[k] of x (n) sorted in descending order, by quickselect (Hoare 1961);
** reorders x. */
static real select_largest (int n, real *x, int k) {
  int lo = 0, hi = n - 1;
  while (lo < hi) {
    const real pivot = x[lo + (hi - lo) / 2];
    int i = lo, j = hi;
    while (i <= j) {
      while (x[i] > pivot) i++;
      while (x[j] < pivot) j--;
      if (i <= j) {
        const real t = x[i];
        x[i++] = x[j];
        x[j--] = t;
      }
    }
    if (k <= j)
      hi = j;
    else if (k >= i)
      lo = i;
    else
      break;
  }
  return x[k];
}

static void forward (const sl_call *c, int n, const real *restrict s,
                     real *restrict w) {
  const config *o = c->config;
  const real max = sl_row_max (n, s);
  real least = s[0];
  if (o->k < n) {
    for (int i = 0; i < n; i++) c->scratch[i] = s[i];
    least = select_largest (n, c->scratch, o->k - 1);
  }
  for (int i = 0; i < n; i++) {
    const real x = sl_expv (s[i] - max);
    w[i] = o->k < n && s[i] < least ? 0 : x;
  }
  sl_row_scale (n, w, 1 / sl_row_sum (n, w));
}

/* forward: w_i = exp (s_i) / sum_kept exp (s_j), 0 where s_i is not kept
** ds_i = w_i (dw_i - sum_j w_j dw_j) */
static void backward (const sl_call *c, int n, const real *s,
                      const real *restrict w, const real *restrict dw,
                      real *restrict ds, real *dparam) {
  (void)c, (void)s, (void)dparam;
  sl_row_softmax_backward (n, w, dw, ds);
}

static const sl_row_kernel row = { forward, backward };

SL_PLUGIN = { SL_ABI,
              "topk_softmax",
              "1.0",
              "softmax over the k largest scores",
              .properties = SL_NONNEGATIVE | SL_SUMS_TO_ONE |
                            SL_SHIFT_INVARIANT | SL_KINKED,
              .config_size = sizeof (config),
              .options = options,
              .row = &row };
