/* numbers.c - the checks "precision", "extreme" and "long". */
#include "base/clock.h"
#include "check/trial.h"
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
static double least_of (const sl_problem *p, int array, double least) {
  double inputs = 1;
  if (array < 0) return least;
  for (int a = 0; a < p->arrays; a++)
    inputs = largest_of (p->size[a], p->in[a], inputs);
  return 30 * least * inputs * largest_of (p->outputs, p->cotangent, 0);
}

/* Numbers that f32 holds exactly, so that both precisions solve one problem. */
static void round_to_single (sl_problem *p) {
  for (int a = 0; a < p->arrays; a++)
    for (size_t i = 0; i < p->size[a]; i++) p->in[a][i] = (float)p->in[a][i];
  for (size_t i = 0; i < p->outputs; i++)
    p->cotangent[i] = (float)p->cotangent[i];
}

/* Every number moved by what f32 rounds at the size of the largest of its
** array: sums and differences round there too. */
static void nudge (sl_problem *p) {
  for (int a = 0; a < p->arrays; a++) {
    const double by = 0x1p-23 * largest_of (p->size[a], p->in[a], 0);
    for (size_t i = 0; i < p->size[a]; i++)
      p->in[a][i] +=
          by * (2 * sl_problem_uniform (p->seed, 299, (uint32_t)i) - 1);
  }
}

/* One problem in f32, in f64, and in f64 with its numbers nudged: how much an
** exact answer moves then is no fault of f32. */
enum { NUDGED = 2, SOLUTIONS, SLACK = 64 };

/* Seconds that f32 took. */
static double solve (sl_trial *t, sl_problem *p, sl_stage *s[SOLUTIONS]) {
  double seconds = 0;
  round_to_single (p);
  for (int i = 0; i < SOLUTIONS; i++) {
    const sl_dtype dtype = i == SL_F32 ? SL_F32 : SL_F64;
    double start;
    s[i] = sl_trial_stage (t, dtype, p);
    if (i == NUDGED) nudge (p);
    start = sl_now ();
    sl_trial_backward (t, dtype, s[i]);
    if (i == SL_F32) seconds = sl_now () - start;
  }
  return seconds;
}

static void close_all (sl_stage *const s[SOLUTIONS]) {
  for (int i = 0; i < SOLUTIONS; i++)
    sl_stager_of (i == SL_F32 ? SL_F32 : SL_F64)->close (s[i]);
}

/* NaN is never right; infinity only where f64 is infinite too. 'least':
** differences are relative to it at least. */
static void agree (sl_trial *t, const sl_problem *p,
                   sl_stage *const s[SOLUTIONS], double tolerance, double least,
                   range *sum) {
  for (int a = -1; a < p->arrays; a++) {
    const size_t n = a < 0 ? p->outputs : p->size[a];
    const double *f32 = a < 0 ? s[SL_F32]->out : s[SL_F32]->grad[a];
    const double *f64 = a < 0 ? s[SL_F64]->out : s[SL_F64]->grad[a];
    const double *moved = a < 0 ? s[NUDGED]->out : s[NUDGED]->grad[a];
    const char *name = a < 0 ? sl_trial_output (t) : p->name[a];
    const char *of = a < 0 ? "" : "the gradient of ";
    const double floor_ = least_of (p, a, least);
    const ptrdiff_t nan64 = sl_trial_not_finite (n, f64, 0);
    const ptrdiff_t nan32 = sl_trial_not_finite (n, f32, 0);
    size_t at = 0;
    double d, allowed;
    if (nan64 >= 0 || nan32 >= 0) {
      sl_trial_figure (t, "NaN");
      sl_trial_wrong (t, p, "%s %s%s[%td] is NaN", nan64 >= 0 ? "f64" : "f32",
                      of, name, nan64 >= 0 ? nan64 : nan32);
      return;
    }
    allowed =
        tolerance + SLACK * sl_trial_distance (n, moved, f64, floor_, &at);
    d = sl_trial_distance (n, f32, f64, floor_, &at);
    if (!(d <= allowed)) {
      sl_trial_figure (t, "f32 is off by %.2g, tolerance %.2g", d, allowed);
      sl_trial_wrong (t, p, "%s%s[%zu] is %.9g in f32 and %.9g in f64", of,
                      name, at, f32[at], f64[at]);
      return;
    }
    sum->worst = fmax (sum->worst, d * tolerance / allowed);
  }
  sum->cases++;
}

static void precision (sl_trial *t, sl_problem *p, void *context) {
  sl_stage *s[SOLUTIONS];
  for (uint32_t draw = 0; draw < 4 && !sl_trial_failed (t); draw++) {
    sl_problem_draw (p, 300 + draw, draw < 3 ? 1 : 4);
    solve (t, p, s);
    agree (t, p, s, CLOSE, 1e-2, context);
    close_all (s);
  }
}

void sl_check_precision (sl_trial *t) {
  range sum = { 0 };
  sl_trial_each (t, SL_ALL_OPTIONS, precision, &sum);
  if (sl_trial_failed (t)) return;
  sl_trial_ok (t, "f32 within %.1e of %.0e in %d problems", sum.worst, CLOSE,
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
static void no_nan (sl_trial *t, sl_problem *p, range *sum, const char *what) {
  sl_stage *s[2];
  round_to_single (p);
  for (int i = 0; i < 2; i++) {
    s[i] = sl_trial_stage (t, (sl_dtype)i, p);
    sl_trial_backward (t, (sl_dtype)i, s[i]);
  }
  for (int a = -1; a < p->arrays; a++) {
    const size_t n = a < 0 ? p->outputs : p->size[a];
    const double *f32 = a < 0 ? s[SL_F32]->out : s[SL_F32]->grad[a];
    const double *f64 = a < 0 ? s[SL_F64]->out : s[SL_F64]->grad[a];
    for (size_t i = 0; i < n; i++) {
      const int bad64 = isnan (f64[i]);
      if (!bad64 && (isinf (f64[i]) || isfinite (f32[i]))) continue;
      sl_trial_figure (t, "%g", bad64 ? f64[i] : f32[i]);
      sl_trial_wrong (t, p, "%s %s%s[%zu] is %g%s", bad64 ? "f64" : "f32",
                      a < 0 ? "" : "the gradient of ",
                      a < 0 ? sl_trial_output (t) : p->name[a], i,
                      bad64 ? f64[i] : f32[i], what);
      break;
    }
    if (sl_trial_failed (t)) break;
  }
  sum->cases++;
  for (int i = 0; i < 2; i++) sl_stager_of ((sl_dtype)i)->close (s[i]);
}

static void extreme (sl_trial *t, sl_problem *p, void *context) {
  const sl_plugin *d = t->loaded->plugin[SL_F64];
  /* The scores of a mixer are products of two of its inputs. */
  const double scale = d->mixer ? 100 : 1e4;
  for (size_t k = 0; k < sizeof patterns / sizeof *patterns; k++) {
    sl_problem_draw (p, 400 + (uint32_t)k, 1);
    for (int a = 0; a < p->arrays - 1; a++)
      for (size_t i = 0; i < p->size[a]; i++)
        p->in[a][i] = patterns[k].make (i, p->in[a][i]) *
                      (patterns[k].scaled ? scale : 1);
    no_nan (t, p, context, patterns[k].name);
    if (sl_trial_failed (t)) return;
  }
}

void sl_check_extreme (sl_trial *t) {
  range sum = { 0 };
  sl_trial_each (t, SL_ALL_OPTIONS, extreme, &sum);
  if (sl_trial_failed (t)) return;
  sl_trial_ok (t, "no NaN or inf in %d problems, scores to 1e4", sum.cases);
}

enum { LONG_ROW = 100000, LONG_GATE = 4096, LONG_MIX = 512 };

void sl_check_long (sl_trial *t) {
  const sl_plugin *d = t->loaded->plugin[SL_F64];
  const sl_mechanism *m = sl_trial_mechanism (t);
  const int n = d->row ? LONG_ROW : d->gate ? LONG_GATE : LONG_MIX;
  sl_sizes z = { n, d->gate ? n : 16, n - 1, 0, n, SL_SEE_EARLIER };
  sl_problem *p;
  sl_error e;
  sl_stage *s[SOLUTIONS];
  range sum = { 0 };
  double seconds;
  if (!m) return;
  if (sl_problem_new (m, &z, t->seed, &p, &e)) {
    sl_trial_fail (t, "%d tokens: %s", n, e.text);
    return;
  }
  sl_problem_draw (p, 500, 1);
  seconds = solve (t, p, s);
  /* Rounding of long sums: a bound that grows with their length. */
  agree (t, p, s, 10 * CLOSE, 1e-9, &sum);
  if (sl_trial_failed (t)) return;
  sl_trial_ok (t, "%d %s, f32 within %.1e of %.0e, %.3g ms", n,
               d->row    ? "keys"
               : d->gate ? "numbers"
                         : "tokens",
               sum.worst, 10 * CLOSE, 1e3 * seconds);
}
