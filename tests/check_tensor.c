/* check_tensor.c - shapes, views, broadcasting, copies, refusals, counts. */
#include "base/memory_test.h"
#include "support/suite.h"
#include "tensor/tensor.h"
#include <math.h>
#include <stdint.h>
#include <string.h>

#define DIMS(...)       \
  (const ptrdiff_t[]) { \
    __VA_ARGS__         \
  }

static sl_error error;

/* 0, 1, 2, ... in the given shape. */
static sl_tensor *counting (sl_dtype dtype, int ndim, const ptrdiff_t *dim) {
  sl_tensor *t = sl_tensor_new (dtype, ndim, dim, &error);
  sl_view v;
  ck_assert_msg (t != NULL, "%s", error.text);
  v = sl_tensor_view (t);
  for (size_t i = 0; i < sl_view_count (&v); i++)
    sl_view_set (&v, dtype, i, (double)i);
  return t;
}

/* t has this shape and these numbers, by both ways of reading. Releases t. */
static void expect (sl_tensor *t, const char *shape, const double *x) {
  char text[SL_SHAPE_TEXT];
  double read[64];
  sl_view v;
  ck_assert_msg (t != NULL, "%s", error.text);
  v = sl_tensor_view (t);
  ck_assert_str_eq (sl_shape_text (t->ndim, t->dim, text, sizeof text), shape);
  ck_assert_uint_le (sl_view_count (&v), 64);
  sl_tensor_to_doubles (t, read);
  for (size_t i = 0; i < sl_view_count (&v); i++) {
    CLOSE (read[i], x[i], 0, 0, "%s to_doubles %zu", shape, i);
    CLOSE (sl_view_get (&v, t->storage->dtype, i), x[i], 0, 0, "%s get %zu",
           shape, i);
  }
  sl_tensor_release (t);
}
#define EXPECT(t, shape, ...) expect (t, shape, (const double[]){ __VA_ARGS__ })

static void expect_error (const sl_tensor *t, const char *text) {
  ck_assert_ptr_null (t);
  ck_assert_str_eq (error.text, text);
}

START_TEST (new_is_zero_and_row_major) {
  size_t live = sl_alloc_live ();
  sl_tensor *t = sl_tensor_new (SL_F32, 2, DIMS (2, 3), &error);
  sl_view v = sl_tensor_view (t);
  ck_assert_int_eq ((int)((uintptr_t)v.data % 64), 0);
  ck_assert_int_eq (v.stride[0] * 10 + v.stride[1], 31);
  ck_assert (sl_view_contiguous (&v));
  EXPECT (t, "(2, 3)", 0, 0, 0, 0, 0, 0);
  EXPECT (sl_tensor_scalar (SL_F64, 0.1, &error), "()", 0.1);
  EXPECT (sl_tensor_scalar (SL_F32, 0.1, &error), "()", (double)0.1f);
  EXPECT (sl_tensor_new (SL_F64, 3, DIMS (2, 0, 3), &error), "(2, 0, 3)", 0);
  ck_assert_uint_eq (sl_alloc_live (), live);
}
END_TEST

START_TEST (impossible_shapes_are_refused) {
  const ptrdiff_t huge = PTRDIFF_MAX / 2;
  expect_error (sl_tensor_new (SL_F32, 7, DIMS (1, 1, 1, 1, 1, 1, 1), &error),
                "a tensor cannot have 7 axes: at most 6");
  expect_error (sl_tensor_new (SL_F32, -1, NULL, &error),
                "a tensor cannot have -1 axes: at most 6");
  expect_error (sl_tensor_new (SL_F32, 2, DIMS (2, -3), &error),
                "shape (2, -3) has a negative size or is too large");
  ck_assert_ptr_null (sl_tensor_new (SL_F64, 2, DIMS (huge, 4), &error));
  ck_assert (strstr (error.text, "too large") != NULL);
  /* no elements, but strides that do not fit */
  ck_assert_ptr_null (sl_tensor_new (SL_F64, 3, DIMS (0, huge, huge), &error));
  ck_assert (strstr (error.text, "too large") != NULL);
  ck_assert_ptr_null (sl_tensor_new (SL_F64, 1, DIMS (huge), &error));
}
END_TEST

START_TEST (dtypes_by_name) {
  sl_dtype d;
  ck_assert_int_eq (sl_dtype_parse ("f64", &d, &error), 0);
  ck_assert_int_eq (d, SL_F64);
  ck_assert_str_eq (sl_dtype_name (SL_F32), "f32");
  ck_assert_int_eq (sl_dtype_parse ("f16", &d, &error), -1);
  ck_assert_str_eq (error.text, "unknown dtype 'f16': must be 'f32' or 'f64'");
}
END_TEST

START_TEST (views_share_and_compose) {
  size_t live = sl_alloc_live ();
  sl_tensor *t = counting (SL_F64, 3, DIMS (2, 3, 4));
  sl_tensor *n = sl_tensor_narrow (t, 1, 1, 2, &error);
  sl_tensor *x = sl_tensor_transpose (n, 0, -1, &error);
  sl_view v = sl_tensor_view (x);
  sl_tensor_release (t); /* the views keep the storage */
  ck_assert (!sl_view_contiguous (&v));
  EXPECT (sl_tensor_select (n, 0, 1, &error), "(2, 4)", 16, 17, 18, 19, 20, 21,
          22, 23);
  EXPECT (sl_tensor_select (x, 0, 3, &error), "(2, 2)", 7, 19, 11, 23);
  EXPECT (sl_tensor_narrow (x, -1, 2, 0, &error), "(4, 2, 0)", 0);
  sl_view_set (&v, SL_F64, 0, -1);
  EXPECT (sl_tensor_narrow (sl_tensor_retain (n), 2, 0, 1, &error), "(2, 2, 1)",
          -1, 8, 16, 20);
  sl_tensor_release (n);
  sl_tensor_release (n);
  sl_tensor_release (x);
  ck_assert_uint_eq (sl_alloc_live (), live);
}
END_TEST

START_TEST (views_outside_are_refused) {
  sl_tensor *t = counting (SL_F32, 2, DIMS (2, 3));
  expect_error (sl_tensor_narrow (t, 2, 0, 1, &error),
                "narrow: shape (2, 3) has no axis 2 (from 0)");
  expect_error (sl_tensor_narrow (t, 1, 2, 2, &error),
                "narrow: start 2 (from 0), length 2 do not fit axis 1 of size "
                "3");
  expect_error (sl_tensor_narrow (t, 1, PTRDIFF_MAX, PTRDIFF_MAX, &error),
                "narrow: start 9223372036854775807 (from 0), length "
                "9223372036854775807 do not fit axis 1 of size 3");
  expect_error (sl_tensor_narrow (t, 1, -1, 1, &error),
                "narrow: start -1 (from 0), length 1 do not fit axis 1 of size "
                "3");
  expect_error (sl_tensor_select (t, 0, 2, &error),
                "select: index 2 (from 0) is outside axis 0 of size 2");
  expect_error (sl_tensor_transpose (t, 0, -3, &error),
                "transpose: shape (2, 3) has no axis -3 (from 0)");
  expect_error (sl_tensor_broadcast (t, 2, DIMS (2, 4), &error),
                "broadcast: shape (2, 3) does not broadcast to (2, 4)");
  expect_error (sl_tensor_broadcast (t, 1, DIMS (3), &error),
                "broadcast: shape (2, 3) does not broadcast to (3)");
  ck_assert_ptr_null (sl_tensor_broadcast (
      t, 4, DIMS (PTRDIFF_MAX / 4, PTRDIFF_MAX / 4, 2, 3), &error));
  sl_tensor_release (t);
}
END_TEST

START_TEST (reshape_without_copying) {
  sl_tensor *t = counting (SL_F64, 3, DIMS (2, 3, 4));
  sl_tensor *swapped = sl_tensor_transpose (t, 1, 2, &error);
  sl_tensor *one = sl_tensor_narrow (t, 2, 1, 1, &error);
  sl_tensor *wide = sl_tensor_broadcast (one, 4, DIMS (2, 2, 3, 1), &error);
  sl_tensor *r = sl_tensor_reshape (t, 2, DIMS (6, -1), &error);
  EXPECT (sl_tensor_select (r, 0, 4, &error), "(4)", 16, 17, 18, 19);
  EXPECT (sl_tensor_reshape (one, 2, DIMS (3, -1), &error), "(3, 2)", 1, 5, 9,
          13, 17, 21);
  EXPECT (sl_tensor_reshape (wide, 3, DIMS (2, 1, 6), &error), "(2, 1, 6)", 1,
          5, 9, 13, 17, 21, 1, 5, 9, 13, 17, 21);
  ck_assert (!sl_tensor_can_reshape (swapped, 2, DIMS (2, 12)));
  ck_assert (sl_tensor_can_reshape (swapped, 4, DIMS (2, 2, 2, 3)));
  ck_assert (!sl_tensor_can_reshape (t, 2, DIMS (5, 5)));
  expect_error (sl_tensor_reshape (swapped, 1, DIMS (-1), &error),
                "reshape: this view of shape (2, 4, 3) cannot be seen as (24); "
                "copy it first");
  expect_error (sl_tensor_reshape (t, 2, DIMS (5, -1), &error),
                "reshape: shape (2, 3, 4) of 24 elements cannot become (5, "
                "-1)");
  expect_error (sl_tensor_reshape (t, 2, DIMS (-1, -1), &error),
                "reshape: shape (2, 3, 4) of 24 elements cannot become (-1, "
                "-1)");
  expect_error (sl_tensor_reshape (t, 3, DIMS (24, PTRDIFF_MAX, 3), &error),
                "reshape: shape (2, 3, 4) of 24 elements cannot become (24, "
                "9223372036854775807, 3)");
  sl_tensor_release (r);
  sl_tensor_release (wide);
  sl_tensor_release (one);
  sl_tensor_release (swapped);
  sl_tensor_release (t);
}
END_TEST

/* Every reshape of a strided view that is granted shows the same numbers. */
START_TEST (reshape_agrees_with_reading_in_order) {
  static const ptrdiff_t shapes[][4] = { { 24, 1, 1, 1 }, { 2, 12, 1, 1 },
                                         { 1, 2, 3, 4 },  { 4, 3, 2, 1 },
                                         { 6, 1, 4, 1 },  { 2, 2, 2, 3 },
                                         { 3, 8, 1, 1 },  { 12, 1, 2, 1 } };
  int granted = 0, refused = 0;
  sl_tensor *t = counting (SL_F32, 4, DIMS (2, 3, 4, 2));
  for (int how = 0; how < 16; how++) {
    sl_tensor *a = sl_tensor_narrow (t, 3, how & 1, 1, &error);
    sl_tensor *b = sl_tensor_transpose (a, how >> 1 & 1, how >> 2 & 3, &error);
    double want[24], got[24];
    sl_tensor_to_doubles (b, want);
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
      sl_tensor *r = sl_tensor_reshape (b, 4, shapes[s], &error);
      ck_assert_int_eq (r != NULL, sl_tensor_can_reshape (b, 4, shapes[s]));
      granted += r != NULL;
      refused += r == NULL;
      if (r == NULL) continue;
      sl_tensor_to_doubles (r, got);
      for (int i = 0; i < 24; i++)
        CLOSE (got[i], want[i], 0, 0, "view %d shape %zu element %d", how, s,
               i);
      sl_tensor_release (r);
    }
    sl_tensor_release (b);
    sl_tensor_release (a);
  }
  ck_assert_int_gt (granted, 20);
  ck_assert_int_gt (refused, 20);
  sl_tensor_release (t);
}
END_TEST

START_TEST (broadcasting) {
  sl_tensor *row = counting (SL_F64, 1, DIMS (3));
  sl_tensor *column = counting (SL_F64, 2, DIMS (2, 1));
  sl_tensor *none = counting (SL_F64, 1, DIMS (0));
  sl_view a = sl_tensor_view (row), b = sl_tensor_view (column), out;
  char text[SL_SHAPE_TEXT];
  EXPECT (sl_tensor_broadcast (row, 2, DIMS (2, 3), &error), "(2, 3)", 0, 1, 2,
          0, 1, 2);
  EXPECT (sl_tensor_broadcast (column, 2, DIMS (2, 3), &error), "(2, 3)", 0, 0,
          0, 1, 1, 1);
  EXPECT (sl_tensor_broadcast (column, 2, DIMS (2, 0), &error), "(2, 0)", 0);
  ck_assert_int_eq (sl_broadcast_shape (&a, &b, &out, &error), 0);
  ck_assert_str_eq (sl_shape_text (out.ndim, out.dim, text, sizeof text),
                    "(2, 3)");
  b = sl_tensor_view (none);
  ck_assert_int_eq (sl_broadcast_shape (&a, &b, &out, &error), -1);
  ck_assert_str_eq (error.text, "shapes (3) and (0) do not broadcast");
  a = (sl_view){ .ndim = 2, .dim = { PTRDIFF_MAX / 4, 1 } };
  b = (sl_view){ .ndim = 1, .dim = { PTRDIFF_MAX / 4 } };
  ck_assert_int_eq (sl_broadcast_shape (&a, &b, &out, &error), -1);
  ck_assert (strstr (error.text, "too large") != NULL);
  sl_tensor_release (none);
  sl_tensor_release (column);
  sl_tensor_release (row);
}
END_TEST

START_TEST (copies_convert_and_survive_overlap) {
  sl_tensor *a = counting (SL_F64, 2, DIMS (3, 3));
  sl_tensor *b = sl_tensor_new (SL_F32, 2, DIMS (3, 3), &error);
  sl_tensor *turned = sl_tensor_transpose (a, 0, 1, &error);
  const double third = 1.0 / 3, nine[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9 };
  ck_assert_int_eq (sl_tensor_copy (b, turned, &error), 0);
  EXPECT (sl_tensor_retain (b), "(3, 3)", 0, 3, 6, 1, 4, 7, 2, 5, 8);
  ck_assert_int_eq (sl_tensor_copy (a, turned, &error), 0); /* in place */
  EXPECT (sl_tensor_retain (a), "(3, 3)", 0, 3, 6, 1, 4, 7, 2, 5, 8);
  sl_tensor_fill (turned, third);
  ck_assert_int_eq (sl_tensor_copy (b, a, &error), 0);
  CLOSE (((float *)b->storage->data)[8], (float)third, 0, 0, "rounded");
  ck_assert_int_eq (sl_tensor_from_doubles (turned, 9, nine, &error), 0);
  EXPECT (sl_tensor_retain (a), "(3, 3)", 1, 4, 7, 2, 5, 8, 3, 6, 9);
  ck_assert_int_eq (sl_tensor_from_doubles (a, 1, &third, &error), -1);
  ck_assert_str_eq (error.text,
                    "1 values do not fill shape (3, 3) (9 elements)");
  sl_tensor_release (turned);
  turned = sl_tensor_narrow (a, 0, 0, 2, &error);
  ck_assert_int_eq (sl_tensor_copy (b, turned, &error), -1);
  ck_assert_str_eq (error.text, "cannot copy shape (2, 3) into shape (3, 3)");
  sl_tensor_release (turned);
  sl_tensor_release (b);
  sl_tensor_release (a);
}
END_TEST

START_TEST (shape_text_is_cut_not_overrun) {
  char text[8];
  ck_assert_str_eq (sl_shape_text (0, NULL, text, sizeof text), "()");
  ck_assert_str_eq (sl_shape_text (3, DIMS (128, 16, 16), text, sizeof text),
                    "(128, 1");
  ck_assert_str_eq (sl_shape_text (1, DIMS (4), text, sizeof text), "(4)");
}
END_TEST

static void expect_text (const sl_tensor *t, const char *want) {
  char *text = sl_tensor_text (t);
  ck_assert_str_eq (text, want);
  sl_free (text);
}

START_TEST (text_shows_small_tensors_in_rows) {
  sl_tensor *t = counting (SL_F64, 3, DIMS (2, 2, 3));
  sl_tensor *wide = counting (SL_F32, 1, DIMS (40));
  sl_tensor *large = counting (SL_F32, 2, DIMS (101, 1));
  sl_tensor *none = counting (SL_F32, 2, DIMS (3, 0));
  sl_tensor *scalar = sl_tensor_scalar (SL_F64, 1e-7, &error);
  sl_view v = sl_tensor_view (t);
  char *text;
  sl_view_set (&v, SL_F64, 4, -0.125);
  expect_text (t, "tensor (2, 2, 3) f64  min -0.125  mean 5.1562  max 11\n"
                  "[1, ..]\n"
                  "       0       1       2\n"
                  "       3  -0.125       5\n"
                  "[2, ..]\n"
                  "       6       7       8\n"
                  "       9      10      11");
  sl_view_set (&v, SL_F64, 4, -NAN);
  text = sl_tensor_text (t);
  ck_assert_ptr_nonnull (strstr (text, "not finite: 1 of 12"));
  ck_assert_ptr_nonnull (strstr (text, "   3  nan    5\n"));
  sl_free (text);
  expect_text (wide, "tensor (40) f32  min 0  mean 19.5  max 39\n"
                     "   0   1   2   3   4   5   6   7   8   9  10  11  12  13"
                     "  14  15  16  17  18\n"
                     "     19  20  21  22  23  24  25  26  27  28  29  30  31"
                     "  32  33  34  35  36  37\n"
                     "     38  39");
  expect_text (large, "tensor (101, 1) f32  min 0  mean 50  max 100");
  expect_text (none, "tensor (3, 0) f32");
  expect_text (scalar, "tensor () f64  1e-07");
  sl_tensor_release (t);
  sl_tensor_release (wide);
  sl_tensor_release (large);
  sl_tensor_release (none);
  sl_tensor_release (scalar);
}
END_TEST

START_TEST (every_failing_allocation_is_reported) {
  size_t live = sl_alloc_live ();
  int failures = 0;
  for (long n = 0;; n++) {
    sl_tensor *t, *v = NULL;
    sl_alloc_fail_after (n);
    t = sl_tensor_new (SL_F32, 2, DIMS (2, 3), &error);
    if (t != NULL) v = sl_tensor_transpose (t, 0, 1, &error);
    sl_alloc_fail_after (-1);
    sl_tensor_release (t);
    sl_tensor_release (v);
    ck_assert_uint_eq (sl_alloc_live (), live);
    if (v != NULL) break;
    ck_assert_msg (strncmp (error.text, "out of memory", 13) == 0, "%s",
                   error.text);
    failures++;
  }
  ck_assert_int_eq (failures, 3);
}
END_TEST

SUITE_MAIN ("tensor", new_is_zero_and_row_major, impossible_shapes_are_refused,
            dtypes_by_name, views_share_and_compose, views_outside_are_refused,
            reshape_without_copying, reshape_agrees_with_reading_in_order,
            broadcasting, copies_convert_and_survive_overlap,
            shape_text_is_cut_not_overrun, text_shows_small_tensors_in_rows,
            every_failing_allocation_is_reported)
