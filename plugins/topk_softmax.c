/* topk_softmax.c - softmax over the k largest scores of a row, 0 elsewhere
** (Zhao et al. 2019, arXiv 1912.11637; k = 8).
**
** Whatever ties with the k-th largest is kept, as published, so equal scores
** have equal weights. Weights jump where a score enters or leaves.
**
** Sinks: not studied. */
#include <sinklab/reduce.h>
#include <sinklab/vmath.h>

typedef struct config {
  int k;
} config;

static const sl_option options[] = { { .name = "k",
                                       .doc = "how many scores a row keeps",
                                       .type = SL_INT,
                                       .offset = offsetof (config, k),
                                       .def = 8,
                                       .min = 1,
                                       .max = 1 << 30 },
                                     { 0 } };

/* The element that sorting x downwards would put at index k (Hoare 1961); x is
** rearranged. */
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
  real least = s[0], scale;
  if (o->k < n) {
    for (int i = 0; i < n; i++) c->scratch[i] = s[i];
    least = select_largest (n, c->scratch, o->k - 1);
  }
  for (int i = 0; i < n; i++) {
    const real x = sl_expv (s[i] - max);
    w[i] = o->k < n && s[i] < least ? 0 : x;
  }
  scale = 1 / sl_row_sum (n, w);
  for (int i = 0; i < n; i++) w[i] *= scale;
}

/* ds_i = w_i (dw_i - sum_j w_j dw_j): 0 for what is left out */
static void backward (const sl_call *c, int n, const real *s,
                      const real *restrict w, const real *restrict dw,
                      real *restrict ds, real *dparam) {
  const real mean = sl_row_dot (n, w, dw);
  (void)c, (void)s, (void)dparam;
  for (int i = 0; i < n; i++) ds[i] = w[i] * (dw[i] - mean);
}

static const sl_row_kernel row = { forward, backward };

SL_PLUGIN = { SL_ABI,
              "topk_softmax",
              "1.0",
              "softmax over the k largest scores",
              .flags = SL_NONNEGATIVE | SL_SUMS_TO_ONE | SL_SHIFT_INVARIANT |
                       SL_KINKED,
              .config_size = sizeof (config),
              .options = options,
              .row = &row };
