/* weight.c - one weight: its rows, its parts, its numbers as a tensor. */
#include "base/isa.h"
#include "base/memory.h"
#include "lm/dequantize.h"
#include "lm/weights.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

SL_VARIANTS (const sl_dequantize_table, sl_dequantizers);

ptrdiff_t sl_weight_row_size (const sl_weight *w) {
  return w->ndim > 0 ? w->dim[w->ndim - 1] : 1;
}

ptrdiff_t sl_weight_row_count (const sl_weight *w) {
  ptrdiff_t n = 1;
  for (int i = 0; i < w->ndim - 1; i++) n *= w->dim[i];
  return n;
}

size_t sl_weight_row_bytes (const sl_weight *w) {
  return (size_t)(sl_weight_row_size (w) / w->type->block) *
         (size_t)w->type->bytes;
}

void sl_weight_rows (const sl_weight *w, ptrdiff_t first, ptrdiff_t n,
                     sl_dtype dtype, void *out) {
  const ptrdiff_t blocks = sl_weight_row_size (w) / w->type->block * n;
  SL_PICK (sl_dequantizers, dtype == SL_F64)
      ->of[w->type->kind](w->data + (size_t)first * sl_weight_row_bytes (w),
                          blocks, out);
}

sl_weight sl_weight_narrow (const sl_weight *w, ptrdiff_t first, ptrdiff_t n) {
  sl_weight part = *w;
  const size_t each =
      w->dim[0] > 0 ? w->bytes / (size_t)w->dim[0] : 0; /* whole blocks */
  part.data += (size_t)first * each;
  part.bytes = (size_t)n * each;
  part.dim[0] = n;
  return part;
}

sl_weight sl_weight_select (const sl_weight *w, ptrdiff_t index) {
  sl_weight part = sl_weight_narrow (w, index, 1);
  part.ndim--;
  memmove (part.dim, part.dim + 1, (size_t)part.ndim * sizeof *part.dim);
  return part;
}

static int by_place (const void *a, const void *b) {
  const char *x = (*(const sl_weight *const *)a)->data;
  const char *y = (*(const sl_weight *const *)b)->data;
  return (x > y) - (x < y);
}

int sl_weights_disjoint (const sl_weight *w, size_t n, sl_error *e) {
  const sl_weight **sorted = sl_alloc (n, sizeof *sorted);
  int status =
      sorted == NULL ? sl_fail (e, "cannot be read: out of memory") : 0;
  for (size_t i = 0; status == 0 && i < n; i++) sorted[i] = &w[i];
  if (status == 0 && n > 0) qsort (sorted, n, sizeof *sorted, by_place);
  for (size_t i = 1; status == 0 && i < n; i++)
    if (sorted[i]->data < sorted[i - 1]->data + sorted[i - 1]->bytes)
      status = sl_fail (e,
                        "has the tensors '%.100s' and '%.100s' that share "
                        "bytes",
                        sorted[i - 1]->name, sorted[i]->name);
  sl_free (sorted);
  return status;
}

static void release (void *file) {
  sl_weights_release (file);
}

sl_tensor *sl_weight_tensor (const sl_weight *w, sl_weights *file,
                             sl_dtype dtype, sl_error *e) {
  const int kind = dtype == SL_F32 ? SL_KIND_F32 : SL_KIND_F64;
  sl_tensor *t;
  if (sl_weight_readable (w, e) < 0) return NULL;
  if (w->type->kind == kind &&
      (uintptr_t)w->data % sl_dtype_size (dtype) == 0) {
    t = sl_tensor_over (dtype, w->ndim, w->dim, (void *)(uintptr_t)w->data,
                        release, file, e);
    if (t != NULL) sl_weights_retain (file);
    return t;
  }
  t = sl_tensor_new (dtype, w->ndim, w->dim, e);
  if (t != NULL && w->bytes > 0)
    sl_weight_rows (w, 0, sl_weight_row_count (w), dtype, t->storage->data);
  return t;
}

/* Whether one of n numbers has the exponent of infinity and NaN. */
static int any_nonfinite (const float *x, size_t n) {
  const uint32_t top = 0x7f800000;
  uint32_t any = 0;
  for (size_t i = 0; i < n; i++) {
    uint32_t bits;
    memcpy (&bits, &x[i], sizeof bits);
    any |= (bits & top) == top;
  }
  return any != 0;
}

size_t sl_weight_nonfinite (const sl_weight *w, size_t *where) {
  enum { NUMBERS = 4096 }; /* a multiple of every block size */
  const sl_dequantize dequantize =
      SL_PICK (sl_dequantizers, 0)->of[w->type->kind];
  const size_t block = (size_t)w->type->block;
  float x[NUMBERS];
  size_t left = w->bytes / (size_t)w->type->bytes * block, bad = 0, at = 0;
  const char *data = w->data;
  while (left > 0) {
    const size_t n = left < NUMBERS ? left : NUMBERS;
    dequantize (data, (ptrdiff_t)(n / block), x);
    if (any_nonfinite (x, n))
      for (size_t i = 0; i < n; i++)
        if (!isfinite (x[i]) && bad++ == 0) *where = at + i;
    data += n / block * (size_t)w->type->bytes;
    at += n;
    left -= n;
  }
  return bad;
}
