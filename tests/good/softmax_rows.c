/* softmax_rows.c - plugins/softmax.c without its block kernel. For tests. */
#include <sinklab/reduce.h>

static void forward (const sl_call *c, int n, const real *restrict s,
                     real *restrict w) {
  (void)c;
  sl_row_softmax (n, s, w);
}

static void backward (const sl_call *c, int n, const real *s,
                      const real *restrict w, const real *restrict dw,
                      real *restrict ds, real *dparam) {
  (void)c, (void)s, (void)dparam;
  sl_row_softmax_backward (n, w, dw, ds);
}

static const sl_row_kernel row = { forward, backward };

SL_PLUGIN = { SL_ABI,
              "softmax_rows",
              "1.0",
              "exp (s) over its sum, by rows alone",
              .properties =
                  SL_NONNEGATIVE | SL_SUMS_TO_ONE | SL_SHIFT_INVARIANT,
              .row = &row };
