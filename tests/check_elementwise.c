/* check_elementwise.c - arithmetic, functions and comparisons, element by
** element. */
#include "support/op_try.h"
#include "support/suite.h"
#include <math.h>

static double f_add (double a, double b) {
  return a + b;
}
static double f_sub (double a, double b) {
  return a - b;
}
static double f_mul (double a, double b) {
  return a * b;
}
static double f_div (double a, double b) {
  return a / b;
}
static double f_eq (double a, double b) {
  return a == b;
}
static double f_ne (double a, double b) {
  return a != b;
}
static double f_lt (double a, double b) {
  return a < b;
}
static double f_le (double a, double b) {
  return a <= b;
}
static double f_gt (double a, double b) {
  return a > b;
}
static double f_ge (double a, double b) {
  return a >= b;
}
static double f_neg (double a) {
  return -a;
}
static double f_sigmoid (double a) {
  return 1 / (1 + exp (-a));
}
static double f_relu (double a) {
  return a > 0 ? a : 0;
}
static double f_square (double a) {
  return a * a;
}
static double f_copy (double a) {
  return a;
}

static const struct {
  const char *op;
  double (*f) (double, double);
  double low, high, ulps;
} two[] = {
  { "add", f_add, -2, 2, 1 },    { "sub", f_sub, -2, 2, 1 },
  { "mul", f_mul, -2, 2, 1 },    { "div", f_div, 0.5, 2, 1 },
  { "pow", pow, 0.5, 3, 2 },     { "maximum", fmax, -2, 2, 0 },
  { "minimum", fmin, -2, 2, 0 }, { "eq", f_eq, -2, 2, 0 },
  { "ne", f_ne, -2, 2, 0 },      { "lt", f_lt, -2, 2, 0 },
  { "le", f_le, -2, 2, 0 },      { "gt", f_gt, -2, 2, 0 },
  { "ge", f_ge, -2, 2, 0 },
};

static const struct {
  const char *op;
  double (*f) (double);
  double low, high, ulps;
} one[] = {
  { "neg", f_neg, -2, 2, 0 },         { "exp", exp, -20, 20, 2 },
  { "log", log, 1e-3, 20, 2 },        { "tanh", tanh, -5, 5, 4 },
  { "sigmoid", f_sigmoid, -9, 9, 4 }, { "relu", f_relu, -2, 2, 0 },
  { "abs", fabs, -2, 2, 0 },          { "sqrt", sqrt, 0, 9, 1 },
  { "square", f_square, -2, 2, 1 },   { "sin", sin, -9, 9, 2 },
  { "cos", cos, -9, 9, 2 },           { "copy", f_copy, -2, 2, 0 },
};

enum { N_TWO = sizeof two / sizeof *two, N_ONE = sizeof one / sizeof *one };

/* Lengths around the widths of vectors and of a block. */
static const ptrdiff_t lengths[] = {
  0, 1, 3, 7, 8, 9, 31, 255, 256, 257, 1000
};

static void check_two (op_try *t, int k, sl_tensor *a, sl_tensor *b) {
  sl_tensor *const in[] = { a, b };
  sl_tensor *y = op_call (t, two[k].op, NULL, 2, in);
  sl_error e;
  sl_tensor *wide_a = sl_tensor_broadcast (a, y->ndim, y->dim, &e);
  sl_tensor *wide_b = sl_tensor_broadcast (b, y->ndim, y->dim, &e);
  ck_assert (wide_a && wide_b);
  for (size_t i = 0; i < op_count (y); i++)
    CLOSE (op_at (y, i), two[k].f (op_at (wide_a, i), op_at (wide_b, i)),
           op_ulps (t, 1e-2, 1e-2), op_ulps (t, two[k].ulps, two[k].ulps),
           "%s[%zu], %s, f%d", two[k].op, i, t->isa, t->dtype ? 64 : 32);
  sl_tensor_release (wide_a);
  sl_tensor_release (wide_b);
  sl_tensor_release (y);
}

static void check_one (op_try *t, int k, sl_tensor *a) {
  sl_tensor *y = op_call (t, one[k].op, NULL, 1, &a);
  ck_assert_uint_eq (op_count (y), op_count (a));
  for (size_t i = 0; i < op_count (y); i++)
    CLOSE (op_at (y, i), one[k].f (op_at (a, i)), op_ulps (t, 1, 1),
           op_ulps (t, one[k].ulps, one[k].ulps), "%s (%g), %s, f%d", one[k].op,
           op_at (a, i), t->isa, t->dtype ? 64 : 32);
  sl_tensor_release (y);
}

static void lengths_test (op_try *t) {
  for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
    for (int k = 0; k < N_TWO; k++) {
      sl_tensor *a = op_random (t, two[k].low, two[k].high, 1, &lengths[i]);
      sl_tensor *b = op_random (t, two[k].low, two[k].high, 1, &lengths[i]);
      check_two (t, k, a, b);
      check_two (t, k, a, a);
      sl_tensor_release (a);
      sl_tensor_release (b);
    }
    for (int k = 0; k < N_ONE; k++) {
      sl_tensor *a = op_random (t, one[k].low, one[k].high, 1, &lengths[i]);
      check_one (t, k, a);
      sl_tensor_release (a);
    }
  }
}

START_TEST (every_length) {
  op_each (lengths_test);
}
END_TEST

/* Shapes that broadcast, scalars, and views: swapped axes, gaps, repeats. */
static void views_test (op_try *t) {
  sl_error e;
  for (int k = 0; k < N_TWO; k++) {
    const double low = two[k].low, high = two[k].high;
    sl_tensor *x = op_random (t, low, high, DIMS (3, 50, 7));
    sl_tensor *y = op_random (t, low, high, DIMS (7, 50, 3));
    sl_tensor *row = op_random (t, low, high, DIMS (7));
    sl_tensor *column = op_random (t, low, high, DIMS (50, 1));
    sl_tensor *scalar = op_random (t, low, high, 0, NULL);
    sl_tensor *empty = op_random (t, low, high, DIMS (0, 7));
    sl_tensor *swapped = sl_tensor_transpose (y, 0, 2, &e);
    sl_tensor *part = sl_tensor_narrow (x, 1, 5, 11, &e);
    sl_tensor *part2 = sl_tensor_narrow (swapped, 1, 39, 11, &e);
    sl_tensor *big = sl_tensor_broadcast (row, 3, x->dim, &e);
    sl_tensor *const pair[][2] = {
      { x, row },     { row, x },          { x, column },      { column, row },
      { x, scalar },  { scalar, row },     { scalar, scalar }, { x, swapped },
      { swapped, x }, { part, part2 },     { big, x },         { swapped, big },
      { empty, row }, { swapped, column },
    };
    for (size_t i = 0; i < sizeof pair / sizeof *pair; i++)
      check_two (t, k, pair[i][0], pair[i][1]);
    sl_tensor *const all[] = { x,     y,       row,  column, scalar,
                               empty, swapped, part, part2,  big };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
      sl_tensor_release (all[i]);
  }
}

START_TEST (every_view) {
  op_each (views_test);
}
END_TEST

/* The same number, NaN for NaN, and 0 with its sign. */
static void same (const op_try *t, const char *what, double got, double want) {
  ck_assert_msg ((isnan (got) && isnan (want)) ||
                     (got == want && signbit (got) == signbit (want)),
                 "%s is %g, should be %g (%s, f%d)", what, got, want, t->isa,
                 t->dtype ? 64 : 32);
}

static void expect (op_try *t, const char *op, double a, double b,
                    double want) {
  sl_tensor *x = op_values (t, &a, DIMS (1)), *z = op_values (t, &b, DIMS (1));
  sl_tensor *const in[] = { x, z };
  sl_tensor *y = op_call (t, op, NULL, 2, in);
  same (t, op, op_at (y, 0), want);
  sl_tensor_release (x);
  sl_tensor_release (y);
  sl_tensor_release (z);
}

static void expect_one (op_try *t, const char *op, double a, double want) {
  sl_tensor *x = op_values (t, &a, DIMS (1));
  sl_tensor *y = op_call (t, op, NULL, 1, &x);
  same (t, op, op_at (y, 0), want);
  sl_tensor_release (x);
  sl_tensor_release (y);
}

static void special_test (op_try *t) {
  const double inf = INFINITY;
  expect (t, "maximum", NAN, 1, NAN);
  expect (t, "maximum", 1, NAN, NAN);
  expect (t, "minimum", NAN, 1, NAN);
  expect (t, "minimum", 1, NAN, NAN);
  expect (t, "maximum", -inf, -1, -1);
  expect (t, "div", 1, 0, inf);
  expect (t, "div", -1, 0, -inf);
  expect (t, "div", 0, 0, NAN);
  expect (t, "pow", 0, 0, 1);
  expect (t, "pow", -2, 3, -8);
  expect (t, "pow", -3, 2, 9);
  expect (t, "pow", -2, 0.5, NAN);
  expect (t, "eq", NAN, NAN, 0);
  expect (t, "ne", NAN, NAN, 1);
  expect (t, "lt", NAN, 1, 0);
  expect (t, "ge", NAN, 1, 0);
  expect (t, "le", 1, 1, 1);
  expect (t, "lt", 1, 1, 0);
  expect_one (t, "relu", NAN, NAN);
  expect_one (t, "relu", -1, 0);
  expect_one (t, "abs", -inf, inf);
  expect_one (t, "abs", -0.0, 0);
  expect_one (t, "copy", -0.0, -0.0);
  expect_one (t, "neg", 0, -0.0);
  expect_one (t, "log", 0, -inf);
  expect_one (t, "log", -1, NAN);
  expect_one (t, "exp", -inf, 0);
  expect_one (t, "exp", inf, inf);
  expect_one (t, "sqrt", -1, NAN);
  expect_one (t, "tanh", inf, 1);
  expect_one (t, "sigmoid", -inf, 0);
}

START_TEST (special_values) {
  op_each (special_test);
}
END_TEST

static void where_test (op_try *t) {
  const double c[] = { 0, 1, -0.0, NAN, 0.5, 0 };
  sl_tensor *condition = op_values (t, c, DIMS (6, 1));
  sl_tensor *a = op_random (t, 1, 2, DIMS (5));
  sl_tensor *b = op_random (t, -2, -1, 0, NULL);
  sl_tensor *const in[] = { condition, a, b };
  sl_tensor *y = op_call (t, "where", NULL, 3, in);
  ck_assert_int_eq (y->ndim, 2);
  for (size_t i = 0; i < 30; i++) {
    const double want = c[i / 5] != 0 ? op_at (a, i % 5) : op_at (b, 0);
    CLOSE (op_at (y, i), want, 0, 0, "where[%zu]", i);
  }
  sl_tensor_release (condition);
  sl_tensor_release (a);
  sl_tensor_release (b);
  sl_tensor_release (y);
}

START_TEST (where_broadcasts) {
  op_each (where_test);
}
END_TEST

/* What the gradient is where mathematics leaves it open. */
static void gradient_at (op_try *t, const char *op, double a, double b,
                         int n_in, int k, double want) {
  const double one_ = 1;
  sl_tensor *x = op_values (t, &a, DIMS (1)), *z = op_values (t, &b, DIMS (1));
  sl_tensor *dy = op_values (t, &one_, DIMS (1));
  sl_tensor *const in[] = { x, z };
  sl_tensor *g = op_gradient (t, op, NULL, n_in, in, k, dy);
  if (isfinite (want))
    CLOSE (op_at (g, 0), want, 0, op_ulps (t, 4, 4),
           "gradient %d of %s at (%g, %g), %s", k + 1, op, a, b, t->isa);
  else
    same (t, op, op_at (g, 0), want);
  sl_tensor_release (x);
  sl_tensor_release (z);
  sl_tensor_release (dy);
  sl_tensor_release (g);
}

static void conventions_test (op_try *t) {
  gradient_at (t, "relu", 0, 0, 1, 0, 0);
  gradient_at (t, "abs", 0, 0, 1, 0, 0);
  gradient_at (t, "maximum", 2, 2, 2, 0, 0.5);
  gradient_at (t, "maximum", 2, 2, 2, 1, 0.5);
  gradient_at (t, "minimum", 2, 2, 2, 0, 0.5);
  gradient_at (t, "minimum", 2, 3, 2, 0, 1);
  gradient_at (t, "minimum", 2, 3, 2, 1, 0);
  gradient_at (t, "pow", -2, 3, 2, 0, 12);
  gradient_at (t, "pow", -2, 3, 2, 1, NAN);
  gradient_at (t, "pow", -1, -2, 2, 1, NAN);
  gradient_at (t, "pow", NAN, 1, 2, 1, NAN);
  gradient_at (t, "pow", 0, -1, 2, 1, -INFINITY);
  gradient_at (t, "pow", 0, 0, 2, 0, 0);
  gradient_at (t, "pow", 0, 2, 2, 1, 0);
  gradient_at (t, "pow", -3, 2, 2, 0, -6);
  gradient_at (t, "pow", 2, 3, 2, 1, 8 * log (2));
}

START_TEST (gradient_conventions) {
  op_each (conventions_test);
}
END_TEST

/* The gradient of a broadcast input is a long sum: exact to the last places. */
static void long_sum_test (op_try *t) {
  sl_tensor *x = op_zeros (t, DIMS (1000, 50)), *b = op_zeros (t, DIMS (50));
  sl_tensor *s = op_zeros (t, 0, NULL);
  sl_tensor *dy = op_random (t, 0, 1, DIMS (1000, 50));
  sl_tensor *const vector[] = { x, b }, *const scalar[] = { x, s };
  sl_tensor *g = op_gradient (t, "add", NULL, 2, vector, 1, dy);
  sl_tensor *h = op_gradient (t, "sub", NULL, 2, scalar, 1, dy);
  long double all = 0;
  for (size_t j = 0; j < 50; j++) {
    long double sum = 0;
    for (size_t i = 0; i < 1000; i++) sum += op_at (dy, i * 50 + j);
    CLOSE (op_at (g, j), (double)sum, 0, op_ulps (t, 1, 64), "column %zu, %s",
           j, t->isa);
    all += sum;
  }
  CLOSE (op_at (h, 0), -(double)all, 0, op_ulps (t, 1, 64), "all, %s", t->isa);
  sl_tensor *const made[] = { x, b, s, dy, g, h };
  for (size_t i = 0; i < sizeof made / sizeof *made; i++)
    sl_tensor_release (made[i]);
}

START_TEST (long_sums_are_exact) {
  op_each (long_sum_test);
}
END_TEST

static void refusals_test (op_try *t) {
  sl_tensor *a = op_zeros (t, DIMS (2, 3)), *b = op_zeros (t, DIMS (4));
  sl_tensor *const in[] = { a, b, a };
  op_refuses (t, "add", NULL, 2, in, "(2, 3)");
  op_refuses (t, "lt", NULL, 2, in, "(4)");
  op_refuses (t, "where", NULL, 3, in, "where");
  sl_tensor_release (a);
  sl_tensor_release (b);
}

START_TEST (shapes_that_do_not_fit) {
  op_each (refusals_test);
}
END_TEST

SUITE_MAIN ("elementwise", every_length, every_view, special_values,
            where_broadcasts, gradient_conventions, long_sums_are_exact,
            shapes_that_do_not_fit)
