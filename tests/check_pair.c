/* check_pair.c - operands that repeat, overlap or run backwards: rows of two
** operands against the same elements one by one. */
#include "base/memory.h"
#include "support/op_try.h"
#include "support/suite.h"

enum { MOST = 3, NUMBERS = 4096 };

static const char *const ops[] = { "add", "sub", "mul", "div", "eq",
                                   "ne",  "lt",  "le",  "gt",  "ge" };

static double value (int op, double a, double b) {
  const double all[] = {
    a + b, a - b, a * b, a / b, a == b, a != b, a<b, a <= b, a> b, a >= b
  };
  return all[op];
}

static double get (const op_try *t, const void *data, ptrdiff_t i) {
  return t->dtype == SL_F64 ? ((const double *)data)[i]
                            : (double)((const float *)data)[i];
}

/* Small whole numbers, some of them equal, so that results are exact but for
** quotients. */
static void *numbers (const op_try *t) {
  void *x = sl_alloc (NUMBERS, sl_dtype_size (t->dtype));
  for (int i = 0; i < NUMBERS; i++) {
    const double v = (double)(i * 7919 % 13) - 6;
    if (t->dtype == SL_F64)
      ((double *)x)[i] = v == 0 ? 0.5 : v;
    else
      ((float *)x)[i] = (float)(v == 0 ? 0.5 : v);
  }
  return x;
}

/* Every op on views of this shape with these strides, both from the middle of
** the numbers, so that rows may run backwards. */
static void check_strides (op_try *t, const void *x, int ndim,
                           const ptrdiff_t *dim, const ptrdiff_t *of_a,
                           const ptrdiff_t *of_b) {
  const ptrdiff_t start = NUMBERS / 2;
  const size_t size = sl_dtype_size (t->dtype);
  sl_view in[2] = { { .ndim = ndim }, { .ndim = ndim } }, out = in[0];
  ptrdiff_t count = 1;
  for (int i = ndim; i-- > 0; count *= dim[i]) {
    in[0].dim[i] = in[1].dim[i] = out.dim[i] = dim[i];
    in[0].stride[i] = of_a[i];
    in[1].stride[i] = of_b[i];
    out.stride[i] = count;
  }
  for (int k = 0; k < 2; k++)
    in[k].data = (char *)(uintptr_t)x + (size_t)start * size;
  /* One more, which must stay as it is. */
  out.data = sl_alloc ((size_t)count + 1, size);
  for (int op = 0; op < (int)(sizeof ops / sizeof *ops); op++) {
    sl_error e = { "" };
    const sl_op *found = sl_op_find (t->dtype, ops[op], &e);
    ck_assert_msg (found != NULL, "%s", e.text);
    found->forward (&(sl_run){ .n_in = 2, .n_out = 1, .in = in, .out = &out });
    for (ptrdiff_t i = 0; i < count; i++) {
      ptrdiff_t a = start, b = start, rest = i;
      for (int k = ndim; k-- > 0; rest /= dim[k]) {
        a += rest % dim[k] * of_a[k];
        b += rest % dim[k] * of_b[k];
      }
      CLOSE (get (t, out.data, i), value (op, get (t, x, a), get (t, x, b)), 0,
             op_ulps (t, 1, 1),
             "%s, element %td of %td x %td x %td, strides (%td %td %td) and "
             "(%td %td %td), %s, f%d",
             ops[op], i, dim[0], dim[1], dim[2], of_a[0], of_a[1], of_a[2],
             of_b[0], of_b[1], of_b[2], t->isa, t->dtype ? 64 : 32);
    }
    ck_assert_msg (get (t, out.data, count) == 0,
                   "%s writes beyond its result, %s", ops[op], t->isa);
  }
  sl_free (out.data);
}

static void strides_test (op_try *t) {
  static const ptrdiff_t lengths[] = { 1, 2, 3, 4, 5, 7, 8, 9, 13, 16, 17, 40 };
  void *x = numbers (t);
  for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
    const ptrdiff_t n = lengths[i], dim[MOST] = { 2, 3, n };
    const ptrdiff_t strides[][MOST] = {
      { 3 * n, n, 1 },   /* contiguous */
      { 3, 1, 0 },       /* a number a row */
      { n, 0, 1 },       /* a row for all rows */
      { 0, 0, 1 },       /* the same row everywhere */
      { 0, 0, 0 },       /* one number */
      { 1, 1, 1 },       /* overlapping rows */
      { 0, 2, 1 },       /* the same */
      { -3 * n, -n, 1 }, /* the last row first */
      { 1, -2, 0 },      /* numbers backwards */
      { 3 * n, n, -1 },  /* rows backwards */
      { 1, 2, 6 },       /* columns */
    };
    const int many = sizeof strides / sizeof *strides;
    for (int a = 0; a < many; a++)
      for (int b = 0; b < many; b++)
        check_strides (t, x, MOST, dim, strides[a], strides[b]);
  }
  sl_free (x);
}

START_TEST (every_stride) {
  op_each (strides_test);
}
END_TEST

SUITE_MAIN ("pair", every_stride)
