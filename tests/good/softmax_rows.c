/* softmax_rows.c - softmax by rows alone: what plugins/softmax.c is without its
** block. */
#include <sinklab/reduce.h>
#include <sinklab/vmath.h>

static void forward (const sl_call *c, int n, const real *restrict s,
                     real *restrict w) {
  const real max = sl_row_max (n, s);
  real scale;
  (void)c;
  for (int i = 0; i < n; i++) w[i] = sl_expv (s[i] - max);
  scale = 1 / sl_row_sum (n, w);
  for (int i = 0; i < n; i++) w[i] *= scale;
}

static void backward (const sl_call *c, int n, const real *s,
                      const real *restrict w, const real *restrict dw,
                      real *restrict ds, real *dparam) {
  const real mean = sl_row_dot (n, w, dw);
  (void)c, (void)s, (void)dparam;
  for (int i = 0; i < n; i++) ds[i] = w[i] * (dw[i] - mean);
}

static const sl_row_kernel row = { forward, backward };

SL_PLUGIN = { SL_ABI,
              "softmax_rows",
              "1.0",
              "exp (s) over its sum, by rows alone",
              .flags = SL_NONNEGATIVE | SL_SUMS_TO_ONE | SL_SHIFT_INVARIANT,
              .row = &row };
