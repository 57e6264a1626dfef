/* product.h - C = keep C + A B where C may have any strides, as gradients of
** views do.
** Numeric code: include it from files that are compiled per precision. */
#ifndef SL_PRODUCT_H
#define SL_PRODUCT_H
#include "base/number.h"
#include "ops/gemm.h"

/* A matrix inside a view: two strides, of any sign, also 0. */
typedef struct sl_matrix {
  real *at;
  ptrdiff_t row, col;
} sl_matrix;

static inline sl_matrix sl_turned (sl_matrix x) {
  return (sl_matrix){ x.at, x.col, x.row };
}

enum { SL_PRODUCT_STRIP = 32 }; /* keeps what follows it aligned */

/* How many reals of scratch sl_product wants. */
static inline size_t sl_product_scratch (ptrdiff_t m, ptrdiff_t n,
                                         ptrdiff_t k) {
  const size_t one = SL (sl_gemm_scratch) (m, n, k);
  const size_t other = SL (sl_gemm_scratch) (n, m, k);
  return (one > other ? one : other) + (size_t)SL_PRODUCT_STRIP * (size_t)n;
}

/* C (m x n) = keep C + A (m x k) B (k x n): into C where its rows or columns
** lie in one piece, else through strips of rows in scratch. keep 0 reads no
** C. */
static inline void sl_product (ptrdiff_t m, ptrdiff_t n, ptrdiff_t k,
                               sl_matrix a, sl_matrix b, real keep, sl_matrix c,
                               real *scratch) {
  if (c.col == 1 && (c.row != 0 || m == 1)) {
    SL_GEMM (m, n, k, 1, a.at, a.row, a.col, b.at, b.row, b.col, keep, c.at,
             c.row, scratch);
    return;
  }
  if (c.row == 1 && (c.col != 0 || n == 1)) {
    SL_GEMM (n, m, k, 1, b.at, b.col, b.row, a.at, a.col, a.row, keep, c.at,
             c.col, scratch);
    return;
  }
  real *strip = scratch;
  scratch += SL_PRODUCT_STRIP * n;
  for (ptrdiff_t i = 0; i < m; i += SL_PRODUCT_STRIP) {
    const ptrdiff_t rows = sl_min (m - i, SL_PRODUCT_STRIP);
    SL_GEMM (rows, n, k, 1, a.at + i * a.row, a.row, a.col, b.at, b.row, b.col,
             0, strip, n, scratch);
    for (ptrdiff_t r = 0; r < rows; r++)
      for (ptrdiff_t j = 0; j < n; j++) {
        real *to = &c.at[(i + r) * c.row + j * c.col];
        *to = (keep != 0 ? *to : 0) + strip[r * n + j];
      }
  }
}
#endif
