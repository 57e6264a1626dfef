/* check_linear.c - products with packed weights against plain ones in double,
** with the same bits for every number of threads. */
#include "base/memory.h"
#include "base/random.h"
#include "lm/dequantize.h"
#include "lm/linear.h"
#include "support/suite.h"
#include "support/variants.h"
#include <string.h>

static sl_error error;

static double draw (uint32_t stream, size_t i) {
  uint32_t out[4];
  sl_philox (11, (const uint32_t[]){ (uint32_t)i, stream, 0, 0 }, out);
  return 2 * sl_uniform53 (out[0], out[1]) - 1;
}

static sl_tensor *random_tensor (sl_dtype dtype, int ndim, const ptrdiff_t *dim,
                                 uint32_t stream) {
  sl_tensor *t = sl_tensor_new (dtype, ndim, dim, &error);
  const sl_view v = sl_tensor_view (t);
  for (size_t i = 0; i < sl_view_count (&v); i++)
    sl_view_set (&v, dtype, i, draw (stream, i));
  return t;
}

/* A weight with random bytes, whose halves (scales) are moderate. */
static sl_weight random_weight (const char *type, ptrdiff_t out, ptrdiff_t in,
                                char *bytes) {
  sl_weight w = { .name = "w",
                  .type = sl_weight_type_named (type),
                  .ndim = 2,
                  .dim = { out, in },
                  .data = bytes };
  ck_assert_int_eq (sl_weight_bytes (w.type, 2, w.dim, &w.bytes, &error), 0);
  for (size_t i = 0; i < w.bytes; i++)
    bytes[i] = (char)(int)(127 * draw (3, i));
  if (w.type->block == 1) { /* plain: as good as any numbers */
    const size_t n = w.bytes / (size_t)w.type->bytes;
    for (size_t i = 0; i < n; i++) {
      const float x = (float)draw (4, i);
      const double wide = draw (4, i);
      uint32_t bits;
      memcpy (&bits, &x, sizeof bits);
      if (w.type->kind == SL_KIND_F32) memcpy (bytes + 4 * i, &x, 4);
      if (w.type->kind == SL_KIND_F64) memcpy (bytes + 8 * i, &wide, 8);
      if (w.type->kind == SL_KIND_BF16)
        memcpy (bytes + 2 * i, (char *)&bits + 2, 2);
      if (w.type->kind == SL_KIND_F16) bytes[2 * i + 1] &= (char)0xb9;
    }
  } else
    for (size_t b = 0; b < w.bytes; b += (size_t)w.type->bytes)
      for (int s = 0; s < 2; s++) { /* the exponents of d and m, or of Q6_K */
        const size_t at = w.type->kind == SL_KIND_Q6_K ? 209 : 1 + 2 * s;
        bytes[b + at] &= (char)0xa3;
        if (w.type->kind == SL_KIND_MXFP4) bytes[b] = 120;
      }
  return w;
}

static void one (const char *type, sl_dtype dtype, ptrdiff_t rows,
                 ptrdiff_t out, ptrdiff_t in, int with_bias) {
  enum { THREADS = 3 };
  char *bytes = sl_alloc ((size_t)(out * in), 8);
  const sl_weight w = random_weight (type, out, in, bytes);
  sl_tensor *x = random_tensor (dtype, 3, (ptrdiff_t[]){ 1, rows, in }, 1),
            *first = NULL;
  sl_tensor *bias = with_bias ? random_tensor (dtype, 1, &out, 2) : NULL;
  double *plain = sl_alloc ((size_t)(out * in), sizeof *plain);
  const double eps = dtype == SL_F32 ? 6e-8 : 1.2e-16;
  const sl_view vx = sl_tensor_view (x);
  sl_weight_rows (&w, 0, out, SL_F64, plain);
  for (int threads = 1; threads <= THREADS; threads++) {
    sl_pool *pool = sl_pool_new (threads, &error);
    sl_tensor *y = sl_weight_linear (pool, x, &w, bias, &error);
    ck_assert_msg (y != NULL, "%s", error.text);
    if (first == NULL)
      first = sl_tensor_retain (y);
    else
      ck_assert_msg (memcmp (first->storage->data, y->storage->data,
                             y->storage->count * sl_dtype_size (dtype)) == 0,
                     "%s %td x %td x %td: other bits with %d threads", type,
                     rows, out, in, threads);
    sl_tensor_release (y);
    sl_pool_free (pool);
  }
  ck_assert_int_eq (first->ndim, 3);
  for (ptrdiff_t i = 0; i < rows; i++)
    for (ptrdiff_t j = 0; j < out; j++) {
      const sl_view v = sl_tensor_view (first);
      double sum = 0, size = 1;
      if (bias != NULL) {
        const sl_view b = sl_tensor_view (bias);
        sum = sl_view_get (&b, dtype, (size_t)j);
      }
      for (ptrdiff_t k = 0; k < in; k++) {
        const double p =
            sl_view_get (&vx, dtype, (size_t)(i * in + k)) * plain[j * in + k];
        sum += p;
        size += p < 0 ? -p : p;
      }
      CLOSE (sl_view_get (&v, dtype, (size_t)(i * out + j)), sum,
             eps * size * (double)in, 0, "%s, row %td, column %td, seed 11",
             type, i, j);
    }
  sl_tensor_release (first);
  sl_tensor_release (x);
  sl_tensor_release (bias);
  sl_free (plain);
  sl_free (bytes);
}

static void products (void) {
  static const char *const types[] = { "F32",  "F64",  "F16",  "BF16", "Q4_0",
                                       "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q4_K",
                                       "Q5_K", "Q6_K", "MXFP4" };
  for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
    const ptrdiff_t block = sl_weight_type_named (types[i])->block;
    const ptrdiff_t in = block == 1 ? 37 : block == 32 ? 352 : 512;
    one (types[i], SL_F32, 5, 19, in, 1);
    one (types[i], SL_F64, 1, 3, in, 0);
  }
  /* more than one panel for each worker, more than one strip */
  one ("F32", SL_F32, 3, 1043, 300, 1);
  one ("Q8_0", SL_F32, 50, 530, 288, 0);
  one ("F32", SL_F32, 0, 5, 7, 0);
}

START_TEST (packed_products) {
  for (int isa = 0; isa < SL_ISA_COUNT; isa++)
    if (variant_use ((sl_isa)isa)) products ();
}
END_TEST

/* Strided x gives the bits of its copy. */
START_TEST (strides) {
  char bytes[40 * 24 * 4];
  const sl_weight w = random_weight ("F32", 40, 24, bytes);
  sl_pool *pool = sl_pool_new (1, &error);
  sl_tensor *a = random_tensor (SL_F32, 2, (ptrdiff_t[]){ 24, 6 }, 1);
  sl_tensor *x = sl_tensor_transpose (a, 0, 1, &error), *copy, *y, *z;
  copy = sl_tensor_new (SL_F32, 2, x->dim, &error);
  ck_assert_int_eq (sl_tensor_copy (copy, x, &error), 0);
  y = sl_weight_linear (pool, x, &w, NULL, &error);
  z = sl_weight_linear (pool, copy, &w, NULL, &error);
  ck_assert_mem_eq (y->storage->data, z->storage->data, 6 * 40 * 4);
  sl_tensor_release (a);
  sl_tensor_release (x);
  sl_tensor_release (copy);
  sl_tensor_release (y);
  sl_tensor_release (z);
  sl_pool_free (pool);
}
END_TEST

START_TEST (refusals) {
  char bytes[3 * 32 * 4];
  sl_weight w = random_weight ("F32", 3, 32, bytes);
  sl_pool *pool = sl_pool_new (1, &error);
  sl_tensor *x = random_tensor (SL_F32, 2, (ptrdiff_t[]){ 2, 31 }, 1);
  sl_tensor *ids = sl_tensor_scalar (SL_F32, 3, &error);
  ck_assert_ptr_null (sl_weight_linear (pool, x, &w, NULL, &error));
  ck_assert_str_eq (error.text, "linear: x has shape (2, 31) and the weight "
                                "'w' (3, 32); the last axis of x must be 32");
  ck_assert_ptr_null (sl_weight_embedding (&w, ids, SL_F32, &error));
  ck_assert_str_eq (error.text,
                    "embedding: the id 3 (number 1) is not a whole number "
                    "from 0 to 2, the last row of 'w'");
  w.type = sl_weight_type_named ("Q8_K");
  ck_assert_ptr_null (sl_weight_linear (pool, x, &w, NULL, &error));
  ck_assert_str_eq (error.text,
                    "linear: the tensor 'w' is of type Q8_K; read are F32 F16 "
                    "Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 Q2_K Q3_K Q4_K Q5_K Q6_K IQ4_NL "
                    "IQ4_XS F64 BF16 TQ1_0 TQ2_0 MXFP4");
  sl_tensor_release (ids);
  sl_tensor_release (x);
  sl_pool_free (pool);
}
END_TEST

START_TEST (embeddings) {
  char bytes[6 * 64 * 4];
  const sl_weight w = random_weight ("Q8_0", 6, 64, bytes);
  static const double chosen[] = { 5, 0, 5, 2 };
  sl_tensor *ids = sl_tensor_new (SL_F64, 2, (ptrdiff_t[]){ 2, 2 }, &error), *y;
  float row[64];
  ck_assert_int_eq (sl_tensor_from_doubles (ids, 4, chosen, &error), 0);
  y = sl_weight_embedding (&w, ids, SL_F32, &error);
  ck_assert_int_eq (y->ndim, 3);
  for (int i = 0; i < 4; i++) {
    sl_weight_rows (&w, (ptrdiff_t)chosen[i], 1, SL_F32, row);
    ck_assert_mem_eq ((float *)y->storage->data + i * 64, row, sizeof row);
  }
  sl_tensor_release (ids);
  sl_tensor_release (y);
}
END_TEST

/* Experts of a stack, rows of a joined matrix. */
START_TEST (parts) {
  char bytes[4 * 6 * 64 * 2];
  sl_weight w = random_weight ("Q5_1", 24, 64, bytes), expert, rows;
  float all[24 * 64], part[2 * 64];
  sl_weight_rows (&w, 0, 24, SL_F32, all);
  w.ndim = 3;
  memcpy (w.dim, (ptrdiff_t[]){ 4, 6, 64 }, 3 * sizeof *w.dim);
  expert = sl_weight_select (&w, 2);
  ck_assert_int_eq (expert.ndim * 100 + expert.dim[0] * 10, 260);
  rows = sl_weight_narrow (&expert, 3, 2);
  ck_assert_uint_eq (rows.bytes, 2 * sl_weight_row_bytes (&w));
  sl_weight_rows (&rows, 0, 2, SL_F32, part);
  ck_assert_mem_eq (part, all + (2 * 6 + 3) * 64, sizeof part);
}
END_TEST

SUITE_MAIN ("linear", packed_products, strides, refusals, embeddings, parts)
