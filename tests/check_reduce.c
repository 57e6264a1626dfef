/* check_reduce.c - sum, mean, max, var, argmax and cumsum against plain
** loops. */
#include "support/op_try.h"
#include "support/suite.h"
#include <math.h>

enum { SUM, MEAN, MAX, VAR, OPS };
static const char *const names[OPS] = { "sum", "mean", "max", "var" };

/* The values of x that go into result r, in row-major order; how many. */
static size_t group (const sl_tensor *x, unsigned axes, size_t r,
                     double *values) {
  size_t n = 0;
  for (size_t i = 0; i < op_count (x); i++) {
    size_t rest = i, place = 0, scale = 1;
    for (int k = x->ndim - 1; k >= 0; k--) {
      const size_t index = rest % (size_t)x->dim[k];
      rest /= (size_t)x->dim[k];
      if (axes >> k & 1) continue;
      place += index * scale;
      scale *= (size_t)x->dim[k];
    }
    if (place == r) values[n++] = op_at (x, i);
  }
  return n;
}

static double reference (int op, size_t n, const double *x, int correction) {
  long double sum = 0, squares = 0;
  double most = x[0];
  for (size_t i = 0; i < n; i++) {
    sum += x[i];
    if (x[i] > most) most = x[i];
  }
  for (size_t i = 0; i < n; i++) squares += (x[i] - sum / n) * (x[i] - sum / n);
  return op == SUM    ? (double)sum
         : op == MEAN ? (double)(sum / n)
         : op == MAX  ? most
                      : (double)(squares / (n - (size_t)correction));
}

static void check (op_try *t, sl_tensor *x, unsigned axes, int keep,
                   int correction) {
  static double values[8192];
  const sl_reduce_attr attr = { axes, keep, correction };
  const unsigned real_axes = axes ? axes : (1u << x->ndim) - 1;
  for (int op = 0; op < OPS; op++) {
    sl_tensor *y = op_call (t, names[op], &attr, 1, &x);
    int ndim = 0;
    for (int k = 0; k < x->ndim; k++) {
      if (!(real_axes >> k & 1))
        ck_assert_int_eq (y->dim[ndim++], x->dim[k]);
      else if (keep)
        ck_assert_int_eq (y->dim[ndim++], 1);
    }
    ck_assert_int_eq (y->ndim, ndim);
    for (size_t r = 0; r < op_count (y); r++) {
      const size_t n = group (x, real_axes, r, values);
      CLOSE (op_at (y, r), reference (op, n, values, correction),
             op_ulps (t, 1, 4), op_ulps (t, 4, 16),
             "%s[%zu] of %zu, axes %x, %s, f%d", names[op], r, n, axes, t->isa,
             t->dtype ? 64 : 32);
    }
    sl_tensor_release (y);
  }
}

static void axes_test (op_try *t) {
  sl_error e;
  sl_tensor *x = op_random (t, -1, 2, DIMS (3, 4, 5));
  sl_tensor *wide = op_random (t, -1, 2, DIMS (3, 270));
  sl_tensor *tall = op_random (t, -1, 2, DIMS (270, 3));
  sl_tensor *line = op_random (t, -1, 2, DIMS (1031));
  sl_tensor *scalar = op_random (t, -1, 2, 0, NULL);
  sl_tensor *swapped = sl_tensor_transpose (x, 0, 2, &e);
  sl_tensor *part = sl_tensor_narrow (wide, 1, 5, 261, &e);
  sl_tensor *row = sl_tensor_select (tall, 0, 7, &e);
  const ptrdiff_t dims[] = { 4, 3 };
  sl_tensor *repeated = sl_tensor_broadcast (row, 2, dims, &e);
  sl_tensor *const all[] = { x,       wide, tall, line,    scalar,
                             swapped, part, row,  repeated };
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    for (unsigned axes = 0; axes < 1u << all[i]->ndim; axes++)
      for (int keep = 0; keep < 1 + (op_count (all[i]) < 100); keep++)
        check (t, all[i], axes, keep, 0);
    if (all[i]->ndim > 0) check (t, all[i], 0, 0, 1);
  }
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    sl_tensor_release (all[i]);
}

START_TEST (every_set_of_axes) {
  op_each (axes_test);
}
END_TEST

/* A size of 0: sums are 0, means are not a number, maxima are refused. */
static void empty_test (op_try *t) {
  sl_tensor *x = op_zeros (t, DIMS (0, 3));
  const sl_reduce_attr first = { 1, 0, 0 }, second = { 2, 0, 0 };
  sl_tensor *sum = op_call (t, "sum", &first, 1, &x);
  sl_tensor *mean = op_call (t, "mean", &first, 1, &x);
  sl_tensor *none = op_call (t, "max", &second, 1, &x);
  const sl_axis_attr axis = { 0 };
  ck_assert_uint_eq (op_count (sum), 3);
  ck_assert_uint_eq (op_count (none), 0);
  for (size_t i = 0; i < 3; i++) {
    ck_assert_double_eq (op_at (sum, i), 0);
    ck_assert_double_nan (op_at (mean, i));
  }
  op_refuses (t, "max", &first, 1, &x, "no largest of 0");
  op_refuses (t, "argmax", &axis, 1, &x, "no largest of 0");
  op_refuses (t, "var", &first, 1, &x, "0 elements");
  sl_tensor_release (sum);
  sl_tensor_release (mean);
  sl_tensor_release (none);
  sl_tensor_release (x);
}

START_TEST (nothing_to_reduce) {
  op_each (empty_test);
}
END_TEST

static void refusals_test (op_try *t) {
  sl_tensor *x = op_zeros (t, DIMS (2, 3));
  const sl_reduce_attr far = { 4, 0, 0 }, much = { 2, 0, 3 },
                       less = { 2, 0, -1 };
  const sl_axis_attr axis = { 2 }, before = { -3 };
  op_refuses (t, "sum", &far, 1, &x, "2 axes");
  op_refuses (t, "var", &much, 1, &x, "correction 3");
  op_refuses (t, "var", &less, 1, &x, "correction -1");
  op_refuses (t, "argmax", &axis, 1, &x, "axis 2");
  op_refuses (t, "cumsum", &before, 1, &x, "axis -3");
  sl_tensor_release (x);
}

START_TEST (refusals) {
  op_each (refusals_test);
}
END_TEST

/* 2^20 numbers of size 0.1: a float sum would be off by parts in 10^4. */
static void long_test (op_try *t) {
  const sl_reduce_attr all = { 0 };
  sl_tensor *x = op_random (t, 0, 0.2, DIMS (1 << 20));
  long double sum = 0;
  for (size_t i = 0; i < 1 << 20; i++) sum += op_at (x, i);
  sl_tensor *y = op_call (t, "sum", &all, 1, &x);
  CLOSE (op_at (y, 0), (double)sum, 0, op_ulps (t, 0.5, 64), "%s", t->isa);
  sl_tensor_release (x);
  sl_tensor_release (y);
}

START_TEST (long_sums) {
  op_each (long_test);
}
END_TEST

/* A variance that is small beside the mean squared. */
static void offset_test (op_try *t) {
  const sl_reduce_attr all = { 0 };
  const double base = t->dtype == SL_F32 ? 1000 : 1e7;
  sl_tensor *x = op_random (t, base, base + 1, DIMS (1000));
  static double values[1000];
  for (size_t i = 0; i < 1000; i++) values[i] = op_at (x, i);
  sl_tensor *y = op_call (t, "var", &all, 1, &x);
  CLOSE (op_at (y, 0), reference (VAR, 1000, values, 0), 0, 1e-6, "%s", t->isa);
  sl_tensor_release (x);
  sl_tensor_release (y);
}

START_TEST (variance_of_a_large_mean) {
  op_each (offset_test);
}
END_TEST

static void ties_test (op_try *t) {
  const double v[] = { 1, 3, 3, 0, NAN, 5, NAN, 1, 2, 2, 2, 1 },
               ones[] = { 1, 1, 1 };
  const double best[] = { 3, NAN, 2 }, place[] = { 1, 0, 0 };
  const sl_reduce_attr last = { 2, 0, 0 };
  const sl_axis_attr end = { -1 };
  sl_tensor *x = op_values (t, v, DIMS (3, 4)),
            *dy = op_values (t, ones, DIMS (3));
  sl_tensor *y = op_call (t, "max", &last, 1, &x);
  sl_tensor *at = op_call (t, "argmax", &end, 1, &x);
  sl_tensor *g = op_gradient (t, "max", &last, 1, &x, 0, dy);
  for (size_t i = 0; i < 3; i++) {
    if (isnan (best[i]))
      ck_assert_double_nan (op_at (y, i));
    else
      ck_assert_double_eq (op_at (y, i), best[i]);
    ck_assert_double_eq (op_at (at, i), place[i]);
    for (size_t j = 0; j < 4; j++)
      ck_assert_double_eq (op_at (g, i * 4 + j), (double)j == place[i]);
  }
  sl_tensor *const made[] = { x, dy, y, at, g };
  for (size_t i = 0; i < 5; i++) sl_tensor_release (made[i]);
}

START_TEST (the_first_largest_wins) {
  op_each (ties_test);
}
END_TEST

static void argmax_test (op_try *t) {
  sl_error e;
  sl_tensor *x = op_random (t, -1, 1, DIMS (3, 40, 5));
  sl_tensor *swapped = sl_tensor_transpose (x, 0, 1, &e);
  sl_tensor *const all[] = { x, swapped };
  static double values[64];
  for (int k = 0; k < 2; k++) {
    for (int axis = -3; axis < 3; axis++) {
      const sl_axis_attr attr = { axis };
      sl_tensor *y = op_call (t, "argmax", &attr, 1, &all[k]);
      for (size_t r = 0; r < op_count (y); r++) {
        const unsigned bit = 1u << (axis < 0 ? axis + 3 : axis);
        const size_t n = group (all[k], bit, r, values);
        size_t best = 0;
        for (size_t i = 1; i < n; i++)
          if (values[i] > values[best]) best = i;
        ck_assert_double_eq (op_at (y, r), (double)best);
      }
      sl_tensor_release (y);
    }
    sl_tensor_release (all[k]);
  }
}

START_TEST (argmax_of_every_axis) {
  op_each (argmax_test);
}
END_TEST

static void cumsum_test (op_try *t) {
  sl_error e;
  sl_tensor *x = op_random (t, -1, 1, DIMS (3, 70, 5));
  sl_tensor *swapped = sl_tensor_transpose (x, 0, 2, &e);
  sl_tensor *const all[] = { x, swapped };
  for (int k = 0; k < 2; k++) {
    for (int axis = -3; axis < 3; axis++) {
      const sl_axis_attr attr = { axis };
      const int a = axis < 0 ? axis + 3 : axis;
      sl_tensor *y = op_call (t, "cumsum", &attr, 1, &all[k]);
      size_t inner = 1;
      for (int i = a + 1; i < 3; i++) inner *= (size_t)y->dim[i];
      for (size_t i = 0; i < op_count (y); i++) {
        double sum = 0;
        const size_t place = i / inner % (size_t)y->dim[a];
        for (size_t j = 0; j <= place; j++)
          sum += op_at (all[k], i - j * inner);
        CLOSE (op_at (y, i), sum, op_ulps (t, 1, 32), op_ulps (t, 1, 32),
               "cumsum[%zu] axis %d, %s", i, axis, t->isa);
      }
      sl_tensor_release (y);
    }
    sl_tensor_release (all[k]);
  }
}

START_TEST (cumsum_of_every_axis) {
  op_each (cumsum_test);
}
END_TEST

SUITE_MAIN ("reduce", every_set_of_axes, nothing_to_reduce, refusals, long_sums,
            variance_of_a_large_mean, the_first_largest_wins,
            argmax_of_every_axis, cumsum_of_every_axis)
