/* gemm.h - the one matrix product: C = alpha A B + beta C.
**
** A (m x k) has any two strides, so a transposed or repeated A costs nothing. B
** (k x n) is read fastest with b_col 1; any other strides are packed first. The
** rows of C (m x n) are contiguous, c_row elements apart. Strides are in
** elements and may be 0 or negative for A and B. C overlaps nothing else.
**
** The sum of an element starts at beta C and takes its k products in order,
** each (alpha a) b: its bits do not depend on the sizes, the blocking or the
** threads around it. beta 0 does not read C. NaN and infinity
** propagate (0 * NaN is NaN). Any thread; nothing is allocated.
**
** Numeric code: include it from files that are compiled per precision. */
#ifndef SL_GEMM_H
#define SL_GEMM_H
#include <sinklab/plugin.h>

/* For callers: SL_GEMM (m, n, k, ...). */
#define SL_GEMM SL (sl_gemm)

/* How many reals of scratch a product of these sizes wants. */
size_t SL (sl_gemm_scratch) (ptrdiff_t m, ptrdiff_t n, ptrdiff_t k);

/* 'scratch' is aligned to 64 bytes and holds that many. */
void SL (sl_gemm) (ptrdiff_t m, ptrdiff_t n, ptrdiff_t k, real alpha,
                   const real *a, ptrdiff_t a_row, ptrdiff_t a_col,
                   const real *b, ptrdiff_t b_row, ptrdiff_t b_col, real beta,
                   real *c, ptrdiff_t c_row, real *scratch);

/* The same through a few blocks on the stack (at most 64 KB): for sl_host.gemm,
** whose arguments it has. The same bits, somewhat slower when large. */
void SL (sl_gemm_host) (int ta, int tb, int m, int n, int k, real alpha,
                        const real *a, int lda, const real *b, int ldb,
                        real beta, real *c, int ldc);
#endif
