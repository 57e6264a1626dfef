/* relu.c - w_i = max (s_i, 0) / m: weights without competition.
**
** The normaliser m of query number i (from 0) is, by option:
**   earlier  max (number of visible tokens before the query, 1); causal attention
**            without a window: max (i, 1) (Ran-Milo 2026, arXiv 2603.11487, code)
**   visible  number of visible tokens; causal without a window: i + 1
**            (Guo et al. 2024, arXiv 2410.13835, code)
**   length   tokens of the sequence (Wortsman et al. 2023, arXiv 2309.08586)
** The gradient at a score of 0 is 0. A row may be all zeros; NaN stays NaN.
**
** Sinks: none needed (Ran-Milo 2026, theorem 3); none seen (Guo et al. 2024). */
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
  for (int i = 0; i < n; i++) w[i] = s[i] <= 0 ? 0 : s[i] * scale;
}

/* ds_i = dw_i / m where s_i > 0 */
static void backward (const sl_call *c, int n, const real *restrict s,
                      const real *w, const real *restrict dw, real *restrict ds,
                      real *dparam) {
  const real scale = scale_of (c, n);
  (void)w, (void)dparam;
  for (int i = 0; i < n; i++) ds[i] = s[i] <= 0 ? 0 : dw[i] * scale;
}

static const sl_row row = { forward, backward };

SL_PLUGIN = { SL_ABI,
              "relu",
              "1.0",
              "positive scores over a count: weights without competition",
              .flags = SL_NONNEGATIVE | SL_KINKED,
              .config_size = sizeof (config),
              .options = options,
              .row = &row };
