/* relu2.c - w_i = max (s_i, 0)^2 / m: squared ReLU, as in the gated attention unit
** (Hua et al. 2022, arXiv 2202.10447), with the normalisers of relu.c.
**
** The gradient is continuous and 0 at a score of 0. A row may be all zeros.
**
** Sinks: not studied. */
#include <sinklab/count.h>

typedef struct config {
  int normaliser;
} config;

static const sl_option options[] = {
  { .name = "normaliser",
    .doc = "weights are divided by: earlier visible tokens (at least 1), all "
           "visible tokens, or the length of the sequence",
    .type = SL_CHOICE,
    .offset = offsetof (config, normaliser),
    .def = SL_EARLIER,
    .choices = sl_counts },
  { 0 }
};

static real scale_of (const sl_call *c, int n) {
  const config *o = c->config;
  return 1 / (real)sl_count (c, n, o->normaliser);
}

static void forward (const sl_call *c, int n, const real *restrict s,
                     real *restrict w) {
  const real scale = scale_of (c, n);
  for (int i = 0; i < n; i++) w[i] = s[i] <= 0 ? 0 : s[i] * s[i] * scale;
}

/* ds_i = 2 s_i dw_i / m where s_i > 0 */
static void backward (const sl_call *c, int n, const real *restrict s,
                      const real *w, const real *restrict dw, real *restrict ds,
                      real *dparam) {
  const real scale = 2 * scale_of (c, n);
  (void)w, (void)dparam;
  for (int i = 0; i < n; i++) ds[i] = s[i] <= 0 ? 0 : s[i] * dw[i] * scale;
}

static const sl_row row = { forward, backward };

SL_PLUGIN = { SL_ABI,
              "relu2",
              "1.0",
              "squared positive scores over a count",
              .flags = SL_NONNEGATIVE,
              .config_size = sizeof (config),
              .options = options,
              .row = &row };
