/* check_distributions.c - random operations: which words they use, and their
** statistics. */
#include "support/op_try.h"
#include "support/suite.h"
#include <math.h>

enum { STREAM = 11 };

static sl_random_attr attr_of (double a, double b, int ndim,
                               const ptrdiff_t *dim) {
  sl_random_attr attr = { .stream = STREAM, .ndim = ndim, .a = a, .b = b };
  for (int i = 0; i < ndim; i++) attr.dim[i] = dim[i];
  return attr;
}

/* The two words that belong to element i of sample s (distributions.c). */
static void words (const sl_draw *at, uint32_t sample, size_t i, uint32_t *hi,
                   uint32_t *lo) {
  uint32_t counter[4] = { (uint32_t)(i / 4), at->first_sample + sample,
                          at->step, STREAM };
  uint32_t out[4];
  sl_philox (at->seed, counter, out);
  *hi = out[i % 4];
  counter[0] += 0x80000000u;
  sl_philox (at->seed, counter, out);
  *lo = out[i % 4];
}

/* (w + 1/2) / 2^bits in as many bits as the precision uses, in long double. */
static long double fraction (const op_try *t, uint32_t hi, uint32_t lo) {
  return t->dtype == SL_F32
             ? ((long double)hi + 0.5L) * 0x1p-32L
             : (long double)hi * 0x1p-32L + ((long double)lo + 0.5L) * 0x1p-64L;
}

typedef double (*expected) (const op_try *t, const sl_random_attr *attr,
                            uint32_t sample, size_t i);

static double one_uniform (const op_try *t, const sl_random_attr *attr,
                           uint32_t sample, size_t i) {
  uint32_t hi, lo;
  words (&t->context.draw, sample, i, &hi, &lo);
  const double u =
      t->dtype == SL_F32 ? (hi >> 8) * 0x1p-24 : sl_uniform53 (hi, lo);
  return attr->a + (attr->b - attr->a) * u;
}

static double one_normal (const op_try *t, const sl_random_attr *attr,
                          uint32_t sample, size_t i) {
  const long double pi = 3.14159265358979323846264338327950288L;
  uint32_t h[2], l[2];
  words (&t->context.draw, sample, i / 2 * 2, &h[0], &l[0]);
  words (&t->context.draw, sample, i / 2 * 2 + 1, &h[1], &l[1]);
  const long double u = fraction (t, h[0], l[0]);
  const long double angle =
      2 * pi *
      ((long double)h[1] * 0x1p-32L +
       (t->dtype == SL_F32 ? 0 : (long double)l[1] * 0x1p-64L));
  const long double z =
      sqrtl (-2 * logl (u)) * (i % 2 ? sinl (angle) : cosl (angle));
  return attr->a + attr->b * (double)z;
}

static double one_randint (const op_try *t, const sl_random_attr *attr,
                           uint32_t sample, size_t i) {
  uint32_t hi, lo;
  const uint64_t n = (uint64_t)(attr->b - attr->a) + 1;
  words (&t->context.draw, sample, i, &hi, &lo);
  if (n <= 65536) return attr->a + (double)(hi * n >> 32);
  const long double k =
      floorl (((long double)hi * 0x1p-32L + (long double)lo * 0x1p-64L) *
              (long double)n);
  return (double)((long double)attr->a + k);
}

static double one_bernoulli (const op_try *t, const sl_random_attr *attr,
                             uint32_t sample, size_t i) {
  uint32_t hi, lo;
  words (&t->context.draw, sample, i, &hi, &lo);
  return (double)hi < attr->a * 0x1p32;
}

static const ptrdiff_t shapes[][3] = {
  { 1, 1, 1 },
  { 5, 1, 1 },
  { 3, 4, 1 },
  { 7, 3, 1 },
  { 3, 1, 5 },
  { 2, 64, 4 },
  { 5, 16, 16 },
  { 2, 7, 37 },
  { 0, 3, 1 },
  { 3, 0, 1 },
  /* many samples in a block of counters, and about as many as are few */
  { 100, 1, 1 },
  { 9, 17, 4 },
  { 9, 18, 4 },
  { 9, 5, 15 },
  { 9, 71, 1 },
  { 3, 71, 4 },
  { 3, 73, 4 },
  { 1, 96, 9 },
};

static const struct {
  const char *op;
  expected f;
  double a, b, ulps;
} kinds[] = {
  { "uniform", one_uniform, 0, 1, 0 },
  { "uniform", one_uniform, -3, 2, 4 },
  { "normal", one_normal, 0, 1, 4 },
  { "normal", one_normal, -2, 0.5, 8 },
  { "randint", one_randint, 0, 1, 0 },
  { "randint", one_randint, 2, 15, 0 },
  { "randint", one_randint, -7, -7, 0 },
  { "randint", one_randint, -300000, 5000000, 0 },
  { "bernoulli", one_bernoulli, 0.3, 0, 0 },
  { "bernoulli", one_bernoulli, 0, 0, 0 },
  { "bernoulli", one_bernoulli, 1, 0, 0 },
};

/* Every element is what its own counter says. */
static void words_test (op_try *t) {
  t->context.draw = (sl_draw){ 0x123456789abcdef0u, 17, 0xfffffffeu };
  for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
      const sl_random_attr attr =
          attr_of (kinds[k].a, kinds[k].b, 3, shapes[s]);
      sl_tensor *y = op_call (t, kinds[k].op, &attr, 0, NULL);
      const size_t each = (size_t)(shapes[s][1] * shapes[s][2]);
      for (size_t i = 0; i < op_count (y); i++)
        CLOSE (op_at (y, i),
               kinds[k].f (t, &attr, (uint32_t)(i / each), i % each),
               op_ulps (t, kinds[k].ulps, kinds[k].ulps),
               op_ulps (t, kinds[k].ulps, kinds[k].ulps),
               "%s (%g, %g)[%zu] of shape %zu, %s, f%d", kinds[k].op,
               kinds[k].a, kinds[k].b, i, s, t->isa, t->dtype ? 64 : 32);
      sl_tensor_release (y);
    }
  const sl_random_attr scalar = attr_of (0, 1, 0, NULL);
  sl_tensor *y = op_call (t, "uniform", &scalar, 0, NULL);
  ck_assert_int_eq (y->ndim, 0);
  ck_assert_double_eq (op_at (y, 0), one_uniform (t, &scalar, 0, 0));
  sl_tensor_release (y);
}

START_TEST (each_element_has_its_counter) {
  op_each (words_test);
}
END_TEST

/* Samples first .. first + n - 1 are the same numbers in a batch and alone. */
static void shards_test (op_try *t) {
  static const char *const ops[] = { "uniform", "normal", "randint",
                                     "bernoulli", "categorical" };
  const double p[] = { 1, 2, 3 };
  sl_tensor *weights = op_values (t, p, DIMS (3));
  for (int k = 0; k < 5; k++) {
    sl_random_attr attr = attr_of (0, 1, 2, (ptrdiff_t[]){ 12, 7 });
    t->context.draw = (sl_draw){ 99, 3, 0 };
    sl_tensor *whole = op_call (t, ops[k], &attr, k == 4, &weights);
    for (int shard = 0; shard < 3; shard++) {
      attr.dim[0] = 4;
      t->context.draw.first_sample = (uint32_t)shard * 4;
      sl_tensor *part = op_call (t, ops[k], &attr, k == 4, &weights);
      for (size_t i = 0; i < 28; i++)
        ck_assert_double_eq (op_at (part, i),
                             op_at (whole, (size_t)shard * 28 + i));
      sl_tensor_release (part);
    }
    /* another step, stream or seed: other numbers */
    attr.dim[0] = 12;
    for (int change = 0; change < 3 && k < 2; change++) {
      t->context.draw =
          (sl_draw){ change == 0 ? 98 : 99, change == 1 ? 4 : 3, 0 };
      attr.stream = change == 2 ? STREAM + 1 : STREAM;
      sl_tensor *other = op_call (t, ops[k], &attr, 0, NULL);
      int equal = 0;
      for (size_t i = 0; i < 84; i++)
        equal += op_at (other, i) == op_at (whole, i);
      ck_assert_int_le (equal, 1);
      sl_tensor_release (other);
    }
    sl_tensor_release (whole);
  }
  sl_tensor_release (weights);
}

START_TEST (shards_change_nothing) {
  op_each (shards_test);
}
END_TEST

/* f32 draws are f64 draws with fewer bits. */
START_TEST (precisions_agree) {
  sl_context c;
  sl_error e;
  static const char *const ops[] = { "uniform", "normal", "randint",
                                     "bernoulli" };
  static const double most[] = { 0x1p-24, 2e-5, 0, 0 };
  ck_assert_int_eq (sl_context_init (&c, 1, &e), 0);
  c.draw.seed = 5;
  for (int k = 0; k < 4; k++) {
    const sl_random_attr attr = attr_of (0, 1, 2, (ptrdiff_t[]){ 50, 333 });
    sl_tensor *y[2];
    for (int d = 0; d < 2; d++) {
      const sl_op *op = sl_op_find ((sl_dtype)d, ops[k], &e);
      ck_assert_int_eq (sl_apply (&c, op, &attr, 0, NULL, &y[d], &e), 0);
    }
    for (size_t i = 0; i < op_count (y[0]); i++)
      CLOSE (op_at (y[0], i), op_at (y[1], i), most[k], 0, "%s[%zu]", ops[k],
             i);
    sl_tensor_release (y[0]);
    sl_tensor_release (y[1]);
  }
  sl_context_free (&c);
}
END_TEST

enum { MANY = 1 << 18 };

/* Mean, variance, third and fourth moment within six standard errors,
** neighbours and samples without correlation. */
static void moments_test (op_try *t) {
  static const struct {
    const char *op;
    double a, b, mean, variance, third, fourth;
  } law[] = { { "uniform", 0, 1, 0.5, 1 / 12., 0, 1 / 80. },
              { "normal", 0, 1, 0, 1, 0, 3 } };
  t->context.draw = (sl_draw){ 2024, 0, 0 };
  for (int k = 0; k < 2; k++) {
    const sl_random_attr attr =
        attr_of (law[k].a, law[k].b, 2, (ptrdiff_t[]){ MANY / 512, 512 });
    sl_tensor *y = op_call (t, law[k].op, &attr, 0, NULL);
    const double bound = 6 / sqrt (MANY);
    double m[5] = { 0 }, next = 0, below = 0;
    for (size_t i = 0; i < MANY; i++) {
      const double x = op_at (y, i) - law[k].mean;
      m[1] += x / MANY;
      m[2] += x * x / MANY;
      m[3] += x * x * x / MANY;
      m[4] += x * x * x * x / MANY;
      if (i + 1 < MANY) next += x * (op_at (y, i + 1) - law[k].mean) / MANY;
      if (i + 512 < MANY)
        below += x * (op_at (y, i + 512) - law[k].mean) / MANY;
    }
    const double v = law[k].variance, spread = k ? 10 : 1;
    CLOSE (m[1], 0, bound * sqrt (v), 0, "%s: mean", law[k].op);
    CLOSE (m[2], v, bound * sqrt (law[k].fourth - v * v), 0, "%s: variance",
           law[k].op);
    CLOSE (m[3], law[k].third, bound * (k ? 4 : 0.1), 0, "%s: third",
           law[k].op);
    CLOSE (m[4], law[k].fourth, bound * spread, 0, "%s: fourth", law[k].op);
    CLOSE (next, 0, bound * v, 0, "%s: neighbours", law[k].op);
    CLOSE (below, 0, bound * v, 0, "%s: samples", law[k].op);
    sl_tensor_release (y);
  }
}

START_TEST (moments) {
  op_each (moments_test);
}
END_TEST

/* Chi-square of counts against expected shares: below mean + 6 deviations. */
static void check_counts (const char *what, int n, const double *count,
                          const double *share, double total) {
  double chi = 0;
  int free_ = -1;
  for (int i = 0; i < n; i++) {
    const double want = share[i] * total;
    if (want == 0) {
      ck_assert_double_eq (count[i], 0);
      continue;
    }
    chi += (count[i] - want) * (count[i] - want) / want;
    free_++;
  }
  ck_assert_msg (chi < free_ + 6 * sqrt (2.0 * free_),
                 "%s: chi-square %g with %d degrees of freedom", what, chi,
                 free_);
}

static void counts_test (op_try *t) {
  double share[64], count[64];
  t->context.draw = (sl_draw){ 77, 1, 0 };
  sl_random_attr attr = attr_of (0, 1, 2, (ptrdiff_t[]){ MANY / 64, 64 });
  /* normal: 64 bins of equal probability */
  sl_tensor *y = op_call (t, "normal", &attr, 0, NULL);
  for (int i = 0; i < 64; i++) share[i] = 1 / 64., count[i] = 0;
  for (size_t i = 0; i < MANY; i++) {
    const double p = 0.5 * erfc (-op_at (y, i) / sqrt (2));
    count[(int)fmin (floor (p * 64), 63)]++;
  }
  check_counts ("normal", 64, count, share, MANY);
  sl_tensor_release (y);
  attr.a = -3, attr.b = 9; /* 13 values */
  y = op_call (t, "randint", &attr, 0, NULL);
  for (int i = 0; i < 13; i++) share[i] = 1 / 13., count[i] = 0;
  for (size_t i = 0; i < MANY; i++) count[(int)op_at (y, i) + 3]++;
  check_counts ("randint", 13, count, share, MANY);
  sl_tensor_release (y);
  const double p[] = { 0, 1, 0, 4, 2.5, 0, 0.5, 0 };
  sl_tensor *weights = op_values (t, p, DIMS (8));
  y = op_call (t, "categorical", &attr, 1, &weights);
  for (int i = 0; i < 8; i++) share[i] = p[i] / 8, count[i] = 0;
  for (size_t i = 0; i < MANY; i++) count[(int)op_at (y, i)]++;
  check_counts ("categorical", 8, count, share, MANY);
  sl_tensor_release (y);
  sl_tensor_release (weights);
  attr.a = 0.2;
  y = op_call (t, "bernoulli", &attr, 0, NULL);
  count[0] = count[1] = 0, share[0] = 0.8, share[1] = 0.2;
  for (size_t i = 0; i < MANY; i++) count[(int)op_at (y, i)]++;
  check_counts ("bernoulli", 2, count, share, MANY);
  sl_tensor_release (y);
}

START_TEST (shares) {
  op_each (counts_test);
}
END_TEST

/* uniform stays below b although a + (b - a) u would round to it. */
static void bounds_test (op_try *t) {
  const double a = 1, b = 1 + op_ulps (t, 2, 2);
  const sl_random_attr attr = attr_of (a, b, 1, (ptrdiff_t[]){ 4096 });
  const sl_random_attr point = attr_of (3, 3, 1, (ptrdiff_t[]){ 9 });
  sl_tensor *y = op_call (t, "uniform", &attr, 0, NULL);
  sl_tensor *z = op_call (t, "uniform", &point, 0, NULL);
  for (size_t i = 0; i < 4096; i++)
    ck_assert_msg (op_at (y, i) >= a && op_at (y, i) < b, "%.17g",
                   op_at (y, i));
  for (size_t i = 0; i < 9; i++) ck_assert_double_eq (op_at (z, i), 3);
  sl_tensor_release (y);
  sl_tensor_release (z);
}

START_TEST (uniform_stays_inside) {
  op_each (bounds_test);
}
END_TEST

static void refusals_test (op_try *t) {
  static const struct {
    const char *op;
    double a, b;
    const char *words;
  } bad[] = {
    { "uniform", 1, 0, "1 to 0" },  { "uniform", 0, INFINITY, "inf" },
    { "uniform", NAN, 1, "nan" },   { "normal", 0, -1, "deviation -1" },
    { "normal", NAN, 1, "nan" },    { "randint", 0.5, 2, "0.5" },
    { "randint", 3, 2, "3 and 2" }, { "randint", 0, 1e17, "1e+17" },
    { "bernoulli", 1.5, 0, "1.5" }, { "bernoulli", NAN, 0, "nan" }
  };
  for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
    const sl_random_attr attr =
        attr_of (bad[k].a, bad[k].b, 1, (ptrdiff_t[]){ 2 });
    op_refuses (t, bad[k].op, &attr, 0, NULL, bad[k].words);
  }
  const sl_random_attr negative = attr_of (0, 1, 1, (ptrdiff_t[]){ -2 });
  op_refuses (t, "uniform", &negative, 0, NULL, "size -2");
  sl_random_attr axes = attr_of (0, 1, 1, (ptrdiff_t[]){ 2 });
  axes.ndim = SL_MAX_DIMS + 1;
  op_refuses (t, "uniform", &axes, 0, NULL, "7 axes");
  const sl_random_attr huge =
      attr_of (0, 1, 3, (ptrdiff_t[]){ 1, 1 << 20, 1 << 20 });
  op_refuses (t, "uniform", &huge, 0, NULL, "2^33");
  sl_tensor *p = op_zeros (t, DIMS (2, 2));
  const sl_random_attr attr = attr_of (0, 0, 1, (ptrdiff_t[]){ 2 });
  op_refuses (t, "categorical", &attr, 1, &p, "(2, 2)");
  sl_tensor_release (p);
  /* what cannot be refused ahead is not a number */
  const double weights[][2] = {
    { 0, 0 }, { -1, 2 }, { NAN, 1 }, { INFINITY, 1 }
  };
  for (int k = 0; k < 4; k++) {
    p = op_values (t, weights[k], DIMS (2));
    sl_tensor *y = op_call (t, "categorical", &attr, 1, &p);
    ck_assert_double_nan (op_at (y, 0));
    ck_assert_double_nan (op_at (y, 1));
    sl_tensor_release (p);
    sl_tensor_release (y);
  }
}

/* Bounds and categories that f32 cannot hold. */
static void single_test (op_try *t) {
  static const struct {
    const char *op;
    double a, b;
    const char *words;
  } bad[] = { { "uniform", 1e39, 1e39, "1e+39" },
              { "uniform", -1e39, -1e39, "-1e+39" },
              { "normal", 1e39, 1, "mean 1e+39" },
              { "normal", 0, 1e39, "deviation 1e+39" } };
  const sl_random_attr attr = attr_of (0, 0, 1, (ptrdiff_t[]){ 2 });
  if (t->dtype != SL_F32) return;
  sl_tensor *p = op_zeros (t, DIMS (1));
  sl_tensor *many =
      sl_tensor_broadcast (p, 1, (ptrdiff_t[]){ (1 << 24) + 1 }, NULL);
  for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
    const sl_random_attr wide =
        attr_of (bad[k].a, bad[k].b, 1, (ptrdiff_t[]){ 2 });
    op_refuses (t, bad[k].op, &wide, 0, NULL, bad[k].words);
  }
  ck_assert_ptr_nonnull (many);
  op_refuses (t, "categorical", &attr, 1, &many, "is not exact in f");
  sl_tensor_release (many);
  sl_tensor_release (p);
}
START_TEST (refusals_of_single_precision) {
  op_each (single_test);
}
END_TEST

START_TEST (refusals) {
  op_each (refusals_test);
}
END_TEST

SUITE_MAIN ("distributions", each_element_has_its_counter,
            shards_change_nothing, precisions_agree, moments, shares,
            uniform_stays_inside, refusals, refusals_of_single_precision)
