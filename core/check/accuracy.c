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

/* The least scale of differences in an array. The rounding error of a backward
** that subtracts a mean from cotangents is relative to the cotangents, not to
** the difference; that of products of inputs, to the inputs. */
static double least_scale (const sl_test_inputs *in, int array, double least) {
  double inputs = 1;
  if (array < 0) return least;
  for (int a = 0; a < in->arrays; a++)
    inputs = largest_of (in->size[a], in->value[a], inputs);
  return 30 * least * inputs * largest_of (in->outputs, in->cotangent, 0);
}

/* Round to f32, so that both precisions get the same numbers. */
static void round_to_single (sl_test_inputs *in) {
  for (int a = 0; a < in->arrays; a++)
    for (size_t i = 0; i < in->size[a]; i++)
      in->value[a][i] = (float)in->value[a][i];
  for (size_t i = 0; i < in->outputs; i++)
    in->cotangent[i] = (float)in->cotangent[i];
}

/* Add to every number a random multiple of the f32 rounding unit of the largest
** number of its array, where sums and differences round, too. */
static void nudge (sl_test_inputs *in) {
  for (int a = 0; a < in->arrays; a++) {
    const double by = 0x1p-23 * largest_of (in->size[a], in->value[a], 0);
    for (size_t i = 0; i < in->size[a]; i++)
      in->value[a][i] +=
          by * (2 * sl_test_uniform (in->seed, 299, (uint32_t)i) - 1);
  }
}

/* Runs in f32, in f64, and in f64 with nudged numbers. The change by nudging is
** due to the conditioning of the formula, not to f32: SLACK times it is
** tolerated. */
enum { NUDGED = 2, SOLUTIONS, SLACK = 64 };

/* h = the three runs; returns the seconds of f32. */
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
    sl_case_backward (c, h[i]);
    if (i == SL_F32) seconds = sl_now () - start;
  }
  return seconds;
}

static void close_all (sl_harness *const h[SOLUTIONS]) {
  for (int i = 0; i < SOLUTIONS; i++) h[i]->calls->close (h[i]);
}

/* Compare f32 with f64. NaN fails; infinity fails unless f64 is infinite, too.
** Differences are relative to the largest number of an array, at least
** 'least'. */
static void agree (sl_check_case *c, const sl_test_inputs *in,
                   sl_harness *const h[SOLUTIONS], double tolerance,
                   double least, range *sum) {
  for (int a = -1; a < in->arrays; a++) {
    const sl_result r = sl_case_result (c, h[SL_F32], a);
    const size_t n = r.n;
    const double *f32 = r.x, *f64 = sl_case_result (c, h[SL_F64], a).x;
    const double *moved = sl_case_result (c, h[NUDGED], a).x;
    const double floor_ = least_scale (in, a, least);
    const ptrdiff_t nan64 = sl_first_not_finite (n, f64, 0);
    const ptrdiff_t nan32 = sl_first_not_finite (n, f32, 0);
    size_t at = 0;
    double d, allowed;
    if (nan64 >= 0 || nan32 >= 0) {
      sl_case_figure (c, "NaN");
      sl_case_fail_call (c, in, "%s %s%s[%td] is NaN",
                         nan64 >= 0 ? "f64" : "f32", r.of, r.name,
                         nan64 >= 0 ? nan64 : nan32);
      return;
    }
    allowed =
        tolerance + SLACK * sl_largest_difference (n, moved, f64, floor_, &at);
    d = sl_largest_difference (n, f32, f64, floor_, &at);
    if (!(d <= allowed)) {
      sl_case_figure (c, "f32 is off by %.2g, tolerance %.2g", d, allowed);
      sl_case_fail_call (c, in, "%s%s[%zu] is %.9g in f32 and %.9g in f64",
                         r.of, r.name, at, f32[at], f64[at]);
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
  sl_case_pass (c, "f32 within %.1e of %.0e in %d cases", sum.worst, CLOSE,
                sum.cases);
}

/* Inputs that random numbers do not give; parameters stay random. Number i of an
** array is value[i % 6]; with noise, all but number 0 are 1e-4 N(0, 1). */
static const struct {
  const char *name;
  int scaled; /* times 1e4 in scores, 100 in each input of a mixer */
  int noise;
  double value[6];
} patterns[] = {
  { " with all inputs 0", 0, 0, { 0 } },
  { " with all inputs equal", 0, 0, { 1, 1, 1, 1, 1, 1 } },
  { " with ties", 0, 0, { -1, -1, 0, 0, 1, 1 } },
  { " with scores of 1e4", 1, 0, { 1, 1, 1, 1, 1, 1 } },
  { " with scores of -1e4", 1, 0, { -1, -1, -1, -1, -1, -1 } },
  { " with scores of +-1e4", 1, 0, { -1, 1, -1, 1, -1, 1 } },
  { " with one score of 1e4", 1, 1, { 1 } },
  { " with one score of -1e4", 1, 1, { -1 } },
};

/* No NaN anywhere, and no infinity where f64 is finite. */
static void no_nan (sl_check_case *c, sl_test_inputs *in, range *sum,
                    const char *what) {
  sl_harness *h[2];
  round_to_single (in);
  for (int i = 0; i < 2; i++) {
    h[i] = sl_case_harness (c, (sl_dtype)i, in);
    sl_case_backward (c, h[i]);
  }
  for (int a = -1; a < in->arrays && !sl_case_failed (c); a++) {
    const sl_result r = sl_case_result (c, h[SL_F32], a);
    const double *f64 = sl_case_result (c, h[SL_F64], a).x;
    for (size_t i = 0; i < r.n; i++) {
      const int bad64 = isnan (f64[i]);
      const double bad = bad64 ? f64[i] : r.x[i];
      if (!bad64 && (isinf (f64[i]) || isfinite (r.x[i]))) continue;
      sl_case_figure (c, "%g", bad);
      sl_case_fail_call (c, in, "%s %s%s[%zu] is %g%s", bad64 ? "f64" : "f32",
                         r.of, r.name, i, bad, what);
      break;
    }
  }
  sum->cases++;
  for (int i = 0; i < 2; i++) h[i]->calls->close (h[i]);
}

static void extreme (sl_check_case *c, sl_test_inputs *in, void *context) {
  /* The scores of a mixer are products of two of its inputs. */
  const double scale = sl_case_plugin (c)->mixer ? 100 : 1e4;
  for (size_t k = 0; k < sizeof patterns / sizeof *patterns; k++) {
    sl_test_inputs_draw (in, 400 + (uint32_t)k, 1);
    for (int a = 0; a < in->arrays - 1; a++)
      for (size_t i = 0; i < in->size[a]; i++) {
        double *x = &in->value[a][i];
        *x = patterns[k].noise && i > 0 ? 1e-4 * *x : patterns[k].value[i % 6];
        if (patterns[k].scaled) *x *= scale;
      }
    no_nan (c, in, context, patterns[k].name);
    if (sl_case_failed (c)) return;
  }
}

void sl_check_extreme (sl_check_case *c) {
  range sum = { 0 };
  sl_case_for_each (c, SL_ALL_OPTIONS, extreme, &sum);
  if (sl_case_failed (c)) return;
  sl_case_pass (c, "no NaN or inf in %d cases, scores to 1e4", sum.cases);
}

enum { LONG_ROW = 100000, LONG_GATE = 4096, LONG_MIXER = 512 };

void sl_check_long (sl_check_case *c) {
  const sl_plugin *d = sl_case_plugin (c);
  const sl_mechanism *m = sl_case_mechanism (c);
  const int n = d->row ? LONG_ROW : d->gate ? LONG_GATE : LONG_MIXER;
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
  /* A larger tolerance: rounding of sums grows with their length. */
  agree (c, in, h, 10 * CLOSE, 1e-9, &sum);
  if (sl_case_failed (c)) return;
  sl_case_pass (c, "%d %s, f32 within %.1e of %.0e, %.3g ms", n,
                d->row    ? "keys"
                : d->gate ? "numbers"
                          : "tokens",
                sum.worst, 10 * CLOSE, 1e3 * seconds);
}
