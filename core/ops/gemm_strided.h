/* gemm_strided.h - C = beta C + A B where C may have any strides, such as the
** gradient of a view.
** Numeric code: include it from files that are compiled per precision. */
#ifndef SL_GEMM_STRIDED_H
#define SL_GEMM_STRIDED_H
#include "base/number.h"
#include "ops/gemm.h"

/* A matrix inside a view. Strides may have any sign, also be 0. */
typedef struct sl_matrix {
  real *at;
  ptrdiff_t row, col;
} sl_matrix;

static inline sl_matrix sl_transposed (sl_matrix x) {
  return (sl_matrix){ x.at, x.col, x.row };
}

enum { SL_STRIP_ROWS = 32 }; /* a multiple of 16: scratch stays aligned */

/* Reals of scratch that sl_gemm_strided needs. */
static inline size_t sl_gemm_strided_scratch (ptrdiff_t m, ptrdiff_t n,
                                              ptrdiff_t k) {
  const size_t one = SL (sl_gemm_scratch) (m, n, k);
  const size_t other = SL (sl_gemm_scratch) (n, m, k);
  return (one > other ? one : other) + (size_t)SL_STRIP_ROWS * (size_t)n;
}

/* C (m, n) = beta C + A (m, k) B (k, n), beta 0 or 1; 0 does not read C. Rows
** or columns of C that are contiguous are written directly, others through
** strips of rows in scratch. */
static inline void sl_gemm_strided (ptrdiff_t m, ptrdiff_t n, ptrdiff_t k,
                                    sl_matrix a, sl_matrix b, real beta,
                                    sl_matrix c, real *scratch) {
  if (c.col == 1 && (c.row != 0 || m == 1)) {
    SL_GEMM (m, n, k, 1, a.at, a.row, a.col, b.at, b.row, b.col, beta, c.at,
             c.row, scratch);
    return;
  }
  if (c.row == 1 && (c.col != 0 || n == 1)) {
    SL_GEMM (n, m, k, 1, b.at, b.col, b.row, a.at, a.col, a.row, beta, c.at,
             c.col, scratch);
    return;
  }
  real *strip = scratch;
  scratch += SL_STRIP_ROWS * n;
  for (ptrdiff_t i = 0; i < m; i += SL_STRIP_ROWS) {
    const ptrdiff_t rows = sl_min (m - i, SL_STRIP_ROWS);
    SL_GEMM (rows, n, k, 1, a.at + i * a.row, a.row, a.col, b.at, b.row, b.col,
             0, strip, n, scratch);
    for (ptrdiff_t r = 0; r < rows; r++)
      for (ptrdiff_t j = 0; j < n; j++) {
        real *to = &c.at[(i + r) * c.row + j * c.col];
        *to = (beta != 0 ? *to : 0) + strip[r * n + j];
      }
  }
}
#endif
