/* packed_rows.c - the product with a few rows of a quantised matrix. */
#include "lm/packed_rows.h"
#include "base/denormals.h"
#include "base/number.h"
#include "lm/dequantize.h"
#include "ops/gemm.h"
#include <stdint.h>
#include <string.h>

extern const sl_dequantize_table SL (sl_dequantizers);

/* Numbers of each row that are dequantised at a time: the strip is still in the
** L2 cache when the product reads it. A multiple of every block size. */
enum { STRIP = 256 };

static size_t scratch (ptrdiff_t rows, ptrdiff_t columns, ptrdiff_t in) {
  const ptrdiff_t k = sl_min (STRIP, in);
  const size_t strip = sl_round_up (columns * k, 16);
  const size_t whole = SL (sl_gemm_scratch) (rows, columns, in);
  const size_t part = SL (sl_gemm_scratch) (rows, columns, k);
  return strip + (whole > part ? whole : part);
}

/* Plain numbers of this precision can be read where they lie. */
static int is_plain (const sl_packed_rows *p) {
  const int kind = sizeof (real) == 4 ? SL_KIND_F32 : SL_KIND_F64;
  return p->kind == kind && (uintptr_t)p->w % sizeof (real) == 0;
}

/* Adds n of the products of every number of y, or assigns them. The numbers of w
** are as stored; only the product takes denormals for zero. */
static void product (const sl_packed_rows *p, ptrdiff_t k, ptrdiff_t n,
                     const real *w, ptrdiff_t w_row, real keep, real *rest) {
  const sl_denormals before = sl_denormals_set (SL_DENORMALS_FLUSH);
  SL_GEMM (p->rows, p->columns, n, 1, (const real *)p->x + k, p->x_row, 1, w, 1,
           w_row, keep, p->y, p->y_row, rest);
  sl_denormals_set (before);
}

static void multiply (const sl_packed_rows *p) {
  const sl_dequantize dequantize = SL (sl_dequantizers).of[p->kind];
  const ptrdiff_t most = sl_min (STRIP, p->in);
  real *strip = p->scratch, *y = p->y;
  real *rest = strip + sl_round_up (p->columns * most, 16);
  real keep = 0;
  if (p->bias != NULL) {
    for (ptrdiff_t i = 0; i < p->rows; i++)
      memcpy (y + i * p->y_row, p->bias, (size_t)p->columns * sizeof (real));
    keep = 1;
  }
  if (is_plain (p) || p->in == 0) {
    product (p, 0, p->in, (const real *)p->w, p->in, keep, rest);
    return;
  }
  for (ptrdiff_t k = 0; k < p->in; k += most, keep = 1) {
    const ptrdiff_t n = sl_min (most, p->in - k);
    const char *from = p->w + k / p->block * p->bytes;
    for (ptrdiff_t j = 0; j < p->columns; j++)
      dequantize (from + (size_t)j * p->w_row, n / p->block, strip + j * n);
    product (p, k, n, strip, n, keep, rest);
  }
}

const sl_packed_rows_functions SL (sl_packed_rows_kernels) = { scratch,
                                                               multiply };
