/* accuracy.c - the checks "precision", "extreme" and "long". */
#include "base/clock.h"
#include "check/check_case.h"
#include <math.h>

/* f32 has 24 bits; sums over a row, a bisection or a log cost some of them. */
#define CLOSE 1e-4

typedef struct range {
  double worst;
  int cases;
} range;

static double largest_of (size_t n, const double *x, double least) {
  for (size_t i = 0; i < n; i++) least = fmax (least, fabs (x[i]));
  return least;
}

/* What differences in an array are relative to, at least. A backward that takes
** a mean off cotangents rounds at their size however little it leaves; with
** products of inputs, at the size of those. */
static double least_of (const sl_test_inputs *in, int array, double least) {
  double inputs = 1;
  if (array < 0) return least;
  for (int a = 0; a < in->arrays; a++)
    inputs = largest_of (in->size[a], in->value[a], inputs);
  return 30 * least * inputs * largest_of (in->outputs, in->cotangent, 0);
}

/* Numbers that f32 holds exactly, so that both precisions solve one problem. */
static void round_to_single (sl_test_inputs *in) {
  for (int a = 0; a < in->arrays; a++)
    for (size_t i = 0; i < in->size[a]; i++)
      in->value[a][i] = (float)in->value[a][i];
  for (size_t i = 0; i < in->outputs; i++)
    in->cotangent[i] = (float)in->cotangent[i];
}

/* Every number moved by what f32 rounds at the size of the largest of its
** array: sums and differences round there too. */
static void nudge (sl_test_inputs *in) {
  for (int a = 0; a < in->arrays; a++) {
    const double by = 0x1p-23 * largest_of (in->size[a], in->value[a], 0);
    for (size_t i = 0; i < in->size[a]; i++)
      in->value[a][i] +=
          by * (2 * sl_test_uniform (in->seed, 299, (uint32_t)i) - 1);
  }
}

/* One problem in f32, in f64, and in f64 with its numbers nudged: how much an
** exact answer moves then is no fault of f32. */
enum { NUDGED = 2, SOLUTIONS, SLACK = 64 };

/* Seconds that f32 took. */
static double solve (sl_check_case *c, sl_test_inputs *in,
                     sl_harness *h[SOLUTIONS]) {
  double seconds = 0;
  round_to_single (in);
  for (int i = 0; i < SOLUTIONS; i++) {
    const sl_dtype dtype = i == SL_F32 ? SL_F32 : SL_F64;
    double start;
    h[i] = sl_case_harness (c, dtype, in);
    if (i == NUDGED) nudge (in);
    start = sl_now ();
    sl_case_backward (c, dtype, h[i]);
    if (i == SL_F32) seconds = sl_now () - start;
  }
  return seconds;
}

static void close_all (sl_harness *const h[SOLUTIONS]) {
  for (int i = 0; i < SOLUTIONS; i++)
    sl_harness_calls_of (i == SL_F32 ? SL_F32 : SL_F64)->close (h[i]);
}

/* NaN is never right; infinity only where f64 is infinite too. 'least':
** differences are relative to it at least. */
static void agree (sl_check_case *c, const sl_test_inputs *in,
                   sl_harness *const h[SOLUTIONS], double tolerance,
                   double least, range *sum) {
  for (int a = -1; a < in->arrays; a++) {
    const size_t n = a < 0 ? in->outputs : in->size[a];
    const double *f32 = a < 0 ? h[SL_F32]->out : h[SL_F32]->grad[a];
    const double *f64 = a < 0 ? h[SL_F64]->out : h[SL_F64]->grad[a];
    const double *moved = a < 0 ? h[NUDGED]->out : h[NUDGED]->grad[a];
    const char *name = a < 0 ? sl_case_output (c) : in->name[a];
    const char *of = a < 0 ? "" : "the gradient of ";
    const double floor_ = least_of (in, a, least);
    const ptrdiff_t nan64 = sl_first_not_finite (n, f64, 0);
    const ptrdiff_t nan32 = sl_first_not_finite (n, f32, 0);
    size_t at = 0;
    double d, allowed;
    if (nan64 >= 0 || nan32 >= 0) {
      sl_case_figure (c, "NaN");
      sl_case_fail_call (c, in, "%s %s%s[%td] is NaN",
                         nan64 >= 0 ? "f64" : "f32", of, name,
                         nan64 >= 0 ? nan64 : nan32);
      return;
    }
    allowed =
        tolerance + SLACK * sl_largest_difference (n, moved, f64, floor_, &at);
    d = sl_largest_difference (n, f32, f64, floor_, &at);
    if (!(d <= allowed)) {
      sl_case_figure (c, "f32 is off by %.2g, tolerance %.2g", d, allowed);
      sl_case_fail_call (c, in, "%s%s[%zu] is %.9g in f32 and %.9g in f64", of,
                         name, at, f32[at], f64[at]);
      return;
    }
    sum->worst = fmax (sum->worst, d * tolerance / allowed);
  }
  sum->cases++;
}

static void precision (sl_check_case *c, sl_test_inputs *in, void *context) {
  sl_harness *h[SOLUTIONS];
  for (uint32_t draw = 0; draw < 4 && !sl_case_failed (c); draw++) {
    sl_test_inputs_draw (in, 300 + draw, draw < 3 ? 1 : 4);
    solve (c, in, h);
    agree (c, in, h, CLOSE, 1e-2, context);
    close_all (h);
  }
}

void sl_check_precision (sl_check_case *c) {
  range sum = { 0 };
  sl_case_for_each (c, SL_ALL_OPTIONS, precision, &sum);
  if (sl_case_failed (c)) return;
  sl_case_pass (c, "f32 within %.1e of %.0e in %d problems", sum.worst, CLOSE,
                sum.cases);
}

/* Rows that are unlikely among random ones; parameters stay as drawn. */
typedef double (*pattern) (size_t i, double x);
static double zeros (size_t i, double x) {
  return (void)i, (void)x, 0;
}
static double ones (size_t i, double x) {
  return (void)i, (void)x, 1;
}
static double ties (size_t i, double x) {
  return (void)x, (double)(i / 2 % 3) - 1;
}
static double large (size_t i, double x) {
  return (void)i, (void)x, 1;
}
static double negative (size_t i, double x) {
  return (void)i, (void)x, -1;
}
static double alternating (size_t i, double x) {
  return (void)x, i % 2 ? 1 : -1;
}
static double one_large (size_t i, double x) {
  return i == 0 ? 1 : 1e-4 * x;
}
static double one_negative (size_t i, double x) {
  return i == 0 ? -1 : 1e-4 * x;
}
static const struct {
  const char *name;
  pattern make;
  int scaled; /* times 1e4 in scores, in whatever makes them */
} patterns[] = {
  { " with all inputs 0", zeros, 0 },
  { " with all inputs equal", ones, 0 },
  { " with ties", ties, 0 },
  { " with scores of 1e4", large, 1 },
  { " with scores of -1e4", negative, 1 },
  { " with scores of +-1e4", alternating, 1 },
  { " with one score of 1e4", one_large, 1 },
  { " with one score of -1e4", one_negative, 1 },
};

/* No NaN anywhere, and no infinity where f64 is finite. */
static void no_nan (sl_check_case *c, sl_test_inputs *in, range *sum,
                    const char *what) {
  sl_harness *h[2];
  round_to_single (in);
  for (int i = 0; i < 2; i++) {
    h[i] = sl_case_harness (c, (sl_dtype)i, in);
    sl_case_backward (c, (sl_dtype)i, h[i]);
  }
  for (int a = -1; a < in->arrays; a++) {
    const size_t n = a < 0 ? in->outputs : in->size[a];
    const double *f32 = a < 0 ? h[SL_F32]->out : h[SL_F32]->grad[a];
    const double *f64 = a < 0 ? h[SL_F64]->out : h[SL_F64]->grad[a];
    for (size_t i = 0; i < n; i++) {
      const int bad64 = isnan (f64[i]);
      if (!bad64 && (isinf (f64[i]) || isfinite (f32[i]))) continue;
      sl_case_figure (c, "%g", bad64 ? f64[i] : f32[i]);
      sl_case_fail_call (c, in, "%s %s%s[%zu] is %g%s", bad64 ? "f64" : "f32",
                         a < 0 ? "" : "the gradient of ",
                         a < 0 ? sl_case_output (c) : in->name[a], i,
                         bad64 ? f64[i] : f32[i], what);
      break;
    }
    if (sl_case_failed (c)) break;
  }
  sum->cases++;
  for (int i = 0; i < 2; i++) sl_harness_calls_of ((sl_dtype)i)->close (h[i]);
}

static void extreme (sl_check_case *c, sl_test_inputs *in, void *context) {
  const sl_plugin *d = c->loaded->plugin[SL_F64];
  /* The scores of a mixer are products of two of its inputs. */
  const double scale = d->mixer ? 100 : 1e4;
  for (size_t k = 0; k < sizeof patterns / sizeof *patterns; k++) {
    sl_test_inputs_draw (in, 400 + (uint32_t)k, 1);
    for (int a = 0; a < in->arrays - 1; a++)
      for (size_t i = 0; i < in->size[a]; i++)
        in->value[a][i] = patterns[k].make (i, in->value[a][i]) *
                          (patterns[k].scaled ? scale : 1);
    no_nan (c, in, context, patterns[k].name);
    if (sl_case_failed (c)) return;
  }
}

void sl_check_extreme (sl_check_case *c) {
  range sum = { 0 };
  sl_case_for_each (c, SL_ALL_OPTIONS, extreme, &sum);
  if (sl_case_failed (c)) return;
  sl_case_pass (c, "no NaN or inf in %d problems, scores to 1e4", sum.cases);
}

enum { LONG_ROW = 100000, LONG_GATE = 4096, LONG_MIX = 512 };

void sl_check_long (sl_check_case *c) {
  const sl_plugin *d = c->loaded->plugin[SL_F64];
  const sl_mechanism *m = sl_case_mechanism (c);
  const int n = d->row ? LONG_ROW : d->gate ? LONG_GATE : LONG_MIX;
  sl_test_shape z = { n, d->gate ? n : 16, n - 1, 0, n, SL_MASK_CAUSAL };
  sl_test_inputs *in;
  sl_error e;
  sl_harness *h[SOLUTIONS];
  range sum = { 0 };
  double seconds;
  if (!m) return;
  if (sl_test_inputs_new (m, &z, c->seed, &in, &e)) {
    sl_case_fail (c, "%d tokens: %s", n, e.text);
    return;
  }
  sl_test_inputs_draw (in, 500, 1);
  seconds = solve (c, in, h);
  /* Rounding of long sums: a bound that grows with their length. */
  agree (c, in, h, 10 * CLOSE, 1e-9, &sum);
  if (sl_case_failed (c)) return;
  sl_case_pass (c, "%d %s, f32 within %.1e of %.0e, %.3g ms", n,
                d->row    ? "keys"
                : d->gate ? "numbers"
                          : "tokens",
                sum.worst, 10 * CLOSE, 1e3 * seconds);
}
