/* even.c - the plugin of check_install.sh: equal weights on all visible
** keys. */
#include <sinklab/plugin.h>

static void forward (const sl_call *c, int n, const real *s, real *w) {
  (void)c, (void)s;
  for (int i = 0; i < n; i++) w[i] = 1 / (real)n;
}

static void backward (const sl_call *c, int n, const real *s, const real *w,
                      const real *dw, real *ds, real *dparam) {
  (void)c, (void)s, (void)w, (void)dw, (void)dparam;
  for (int i = 0; i < n; i++) ds[i] = 0;
}

static const sl_row_kernel row = { forward, backward };

SL_PLUGIN = { SL_ABI,
              "even",
              "1.0",
              "Equal weights on all visible keys, whatever the scores.",
              .properties =
                  SL_NONNEGATIVE | SL_SUMS_TO_ONE | SL_SHIFT_INVARIANT,
              .row = &row };
