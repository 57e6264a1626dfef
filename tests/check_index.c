/* check_index.c - one_hot, embedding, gather, scatter_add, concat. */
#include "support/op_try.h"
#include "support/suite.h"
#include <math.h>

/* Whole numbers 0..n-1. */
static sl_tensor *indices (op_try *t, int n, int ndim, const ptrdiff_t *dim) {
  sl_tensor *x = op_random (t, 0, n, ndim, dim);
  const sl_view v = sl_tensor_view (x);
  for (size_t i = 0; i < op_count (x); i++)
    sl_view_set (&v, t->dtype, i, fmin (floor (op_at (x, i)), n - 1));
  return x;
}

static void release (int n, sl_tensor *const *x) {
  for (int i = 0; i < n; i++) sl_tensor_release (x[i]);
}

static void one_hot_test (op_try *t) {
  const double id[] = { 0, 2, 3, -1, NAN, 0.5 };
  const sl_one_hot_attr attr = { 3 }, none = { 0 };
  sl_tensor *ids = op_values (t, id, DIMS (3, 2));
  sl_tensor *y = op_call (t, "one_hot", &attr, 1, &ids);
  ck_assert_int_eq (y->ndim, 3);
  ck_assert_int_eq (y->dim[2], 3);
  for (size_t i = 0; i < 6; i++)
    for (size_t c = 0; c < 3; c++) {
      if (i >= 4)
        ck_assert_double_nan (op_at (y, i * 3 + c));
      else
        ck_assert_double_eq (op_at (y, i * 3 + c), id[i] == (double)c);
    }
  op_refuses (t, "one_hot", &none, 1, &ids, "classes is 0");
  release (2, (sl_tensor *[]){ ids, y });
}

START_TEST (one_hot) {
  op_each (one_hot_test);
}
END_TEST

static void embedding_test (op_try *t) {
  sl_error e;
  sl_tensor *plain = op_random (t, -1, 1, DIMS (7, 5));
  sl_tensor *wide = op_random (t, -1, 1, DIMS (5, 7));
  sl_tensor *turned = sl_tensor_transpose (wide, 0, 1, &e);
  sl_tensor *ids = indices (t, 7, DIMS (2, 9));
  sl_tensor *const tables[] = { plain, turned };
  for (int k = 0; k < 2; k++) {
    sl_tensor *const in[] = { tables[k], ids };
    sl_tensor *y = op_call (t, "embedding", NULL, 2, in);
    ck_assert_int_eq (y->ndim, 3);
    for (size_t i = 0; i < 18; i++)
      for (size_t j = 0; j < 5; j++)
        ck_assert_double_eq (op_at (y, i * 5 + j),
                             op_at (tables[k], (size_t)op_at (ids, i) * 5 + j));
    sl_tensor_release (y);
  }
  sl_tensor *row = op_zeros (t, DIMS (7));
  op_refuses (t, "embedding", NULL, 2, (sl_tensor *[]){ row, ids },
              "the table has 1 axes");
  release (5, (sl_tensor *[]){ plain, wide, turned, ids, row });
}

START_TEST (embedding) {
  op_each (embedding_test);
}
END_TEST

/* An index that chooses nothing: NaN where it would have gone, nothing
** elsewhere, and no gradient. */
static void outside_test (op_try *t) {
  const double id[] = { 0, 4, -1, 1.5, NAN, 3 };
  const sl_axis_attr axis = { 0 };
  sl_tensor *table = op_random (t, 1, 2, DIMS (4, 2));
  sl_tensor *ids = op_values (t, id, DIMS (6));
  sl_tensor *index = op_values (t, id, DIMS (6, 1));
  sl_tensor *dy = op_random (t, 1, 2, DIMS (6, 2));
  sl_tensor *const in[] = { table, ids }, *const gin[] = { table, index };
  sl_tensor *a = op_call (t, "embedding", NULL, 2, in);
  sl_tensor *b = op_call (t, "gather", &axis, 2, gin);
  sl_tensor *da = op_gradient (t, "embedding", NULL, 2, in, 0, dy);
  sl_tensor *db = op_gradient (t, "gather", &axis, 2, gin, 0, dy);
  for (size_t i = 0; i < 12; i++) {
    const int good = i / 2 == 0 || i / 2 == 5;
    ck_assert_int_eq (isnan (op_at (a, i)), !good);
    ck_assert_int_eq (isnan (op_at (b, i)), !good);
  }
  for (size_t i = 0; i < 8; i++) {
    const double want = i < 2 ? op_at (dy, i) : i >= 6 ? op_at (dy, i + 4) : 0;
    ck_assert_double_eq (op_at (da, i), want);
    ck_assert_double_eq (op_at (db, i), want);
  }
  /* scatter_add: the whole line along the axis */
  const double column[] = { 0, 9 };
  sl_tensor *two = op_values (t, column, DIMS (1, 2));
  sl_tensor *src = op_random (t, 1, 2, DIMS (1, 2));
  sl_tensor *const sin_[] = { table, two, src };
  sl_tensor *y = op_call (t, "scatter_add", &axis, 3, sin_);
  for (size_t i = 0; i < 8; i++)
    ck_assert_int_eq (isnan (op_at (y, i)), i % 2 == 1);
  release (11,
           (sl_tensor *[]){ table, ids, index, dy, a, b, da, db, two, src, y });
}

START_TEST (indices_outside) {
  op_each (outside_test);
}
END_TEST

/* x[.., at, ..] where the other indices are those of row-major place i of
** 'shape', with broadcasting. */
static size_t place (const sl_tensor *x, const sl_tensor *shape, size_t i,
                     int axis, size_t at) {
  size_t offset = 0, scale = 1;
  size_t index[SL_MAX_DIMS];
  for (int k = shape->ndim - 1; k >= 0; k--) {
    index[k] = i % (size_t)shape->dim[k];
    i /= (size_t)shape->dim[k];
  }
  for (int k = x->ndim - 1; k >= 0; k--) {
    const size_t here = k == axis ? at : x->dim[k] == 1 ? 0 : index[k];
    offset += here * scale;
    scale *= (size_t)x->dim[k];
  }
  return offset;
}

static void gather_test (op_try *t) {
  sl_error e;
  static const ptrdiff_t sizes[][3] = {
    { 2, 6, 9 }, { 1, 1, 1 }, { 2, 6, 1 }, { 1, 6, 9 }, { 2, 1, 9 }
  };
  sl_tensor *x = op_random (t, -1, 1, DIMS (2, 6, 9));
  sl_tensor *other = op_random (t, -1, 1, DIMS (9, 6, 2));
  sl_tensor *turned = sl_tensor_transpose (other, 0, 2, &e);
  sl_tensor *const all[] = { x, turned };
  for (int k = 0; k < 2; k++)
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
      for (int axis = 0; axis < 3; axis++) {
        const sl_axis_attr attr = { axis - 3 };
        sl_tensor *ids = indices (t, (int)x->dim[axis], 3, sizes[s]);
        sl_tensor *const in[] = { all[k], ids };
        sl_tensor *y = op_call (t, "gather", &attr, 2, in);
        for (int d = 0; d < 3; d++)
          ck_assert_int_eq (y->dim[d], d == axis ? sizes[s][d] : x->dim[d]);
        for (size_t i = 0; i < op_count (y); i++) {
          size_t along = i;
          for (int d = 2; d > axis; d--) along /= (size_t)y->dim[d];
          along %= (size_t)y->dim[axis];
          const size_t id = (size_t)op_at (ids, place (ids, y, i, axis, along));
          ck_assert_double_eq (op_at (y, i),
                               op_at (all[k], place (x, y, i, axis, id)));
        }
        release (2, (sl_tensor *[]){ ids, y });
      }
  sl_tensor *flat = op_zeros (t, DIMS (3));
  const sl_axis_attr axis = { 1 };
  op_refuses (t, "gather", &axis, 2, (sl_tensor *[]){ x, flat }, "same number");
  release (4, (sl_tensor *[]){ x, other, turned, flat });
}

START_TEST (gather) {
  op_each (gather_test);
}
END_TEST

static void scatter_test (op_try *t) {
  for (int axis = 0; axis < 2; axis++) {
    const sl_axis_attr attr = { axis };
    sl_tensor *x = op_random (t, -1, 1, DIMS (4, 3));
    sl_tensor *src = op_random (
        t, -1, 1, 2, axis ? (ptrdiff_t[]){ 4, 7 } : (ptrdiff_t[]){ 7, 3 });
    sl_tensor *ids = indices (t, 3, 2, src->dim);
    sl_tensor *const in[] = { x, ids, src };
    sl_tensor *y = op_call (t, "scatter_add", &attr, 3, in);
    double want[12];
    for (size_t i = 0; i < 12; i++) want[i] = op_at (x, i);
    for (size_t i = 0; i < op_count (src); i++)
      want[place (x, src, i, axis, (size_t)op_at (ids, i))] += op_at (src, i);
    for (size_t i = 0; i < 12; i++)
      CLOSE (op_at (y, i), want[i], op_ulps (t, 8, 8), 0, "axis %d, %s", axis,
             t->isa);
    release (4, (sl_tensor *[]){ x, src, ids, y });
  }
  const sl_axis_attr attr = { 0 };
  sl_tensor *x = op_zeros (t, DIMS (4, 3)), *ids = op_zeros (t, DIMS (2, 3));
  sl_tensor *src = op_zeros (t, DIMS (2, 2));
  op_refuses (t, "scatter_add", &attr, 3, (sl_tensor *[]){ x, ids, src },
              "(2, 2)");
  release (3, (sl_tensor *[]){ x, ids, src });
}

START_TEST (scatter_add) {
  op_each (scatter_test);
}
END_TEST

static void concat_test (op_try *t) {
  sl_error e;
  for (int axis = 0; axis < 3; axis++) {
    ptrdiff_t dim[3][3] = { { 2, 3, 5 }, { 2, 3, 5 }, { 2, 3, 5 } };
    const sl_axis_attr attr = { axis - 3 };
    sl_tensor *in[3], *turned;
    dim[1][axis] = 0;
    dim[2][axis] = 4;
    for (int k = 0; k < 3; k++) in[k] = op_random (t, -1, 1, 3, dim[k]);
    turned = op_random (t, -1, 1, DIMS (5, 3, 2));
    sl_tensor_release (in[0]);
    in[0] = sl_tensor_transpose (turned, 0, 2, &e);
    sl_tensor *y = op_call (t, "concat", &attr, 3, in);
    for (size_t i = 0; i < op_count (y); i++) {
      size_t along = i;
      int k = 0;
      for (int d = 2; d > axis; d--) along /= (size_t)y->dim[d];
      along %= (size_t)y->dim[axis];
      while (along >= (size_t)in[k]->dim[axis])
        along -= (size_t)in[k++]->dim[axis];
      ck_assert_double_eq (op_at (y, i),
                           op_at (in[k], place (in[k], y, i, axis, along)));
    }
    release (5, (sl_tensor *[]){ in[0], in[1], in[2], turned, y });
  }
  const sl_axis_attr attr = { 0 };
  sl_tensor *a = op_zeros (t, DIMS (2, 3)), *b = op_zeros (t, DIMS (2, 4));
  op_refuses (t, "concat", &attr, 2, (sl_tensor *[]){ a, b }, "(2, 4)");
  release (2, (sl_tensor *[]){ a, b });
}

START_TEST (concat) {
  op_each (concat_test);
}
END_TEST

SUITE_MAIN ("index", one_hot, embedding, indices_outside, gather, scatter_add,
            concat)
