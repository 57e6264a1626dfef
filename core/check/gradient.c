/* gradient.c - the checks "gradient", "kinks" and "dparam".
**
** The loss is the dot product of the outputs with a random cotangent: with a
** plain sum, the gradient of weights that sum to 1 would be 0, and errors in it
** hidden. */
#include "base/memory.h"
#include "check/check_case.h"
#include <math.h>
#include <string.h>

#define TOLERANCE 1e-6
enum { DRAWS = 2, STEPS = 5 };

/* Steps of the differences, the best for smooth kernels first: a wrong gradient
** differs at all of them, a strongly curved or a noisy kernel at some. */
static const double steps[STEPS] = { 1e-3, 1e-2, 1e-4, 1e-5, 1e-6 };

typedef struct tally {
  double worst;
  long count, around; /* derivatives compared; not compared near a kink */
} tally;

static double loss (sl_harness *h) {
  const sl_test_inputs *in = h->inputs;
  double sum = 0;
  h->calls->forward (h);
  for (size_t i = 0; i < in->outputs; i++) sum += in->cotangent[i] * h->out[i];
  return sum;
}

/* (8 (f(h/2) - f(-h/2)) - (f(h) - f(-h))) / 6h: error O(h^4). */
static double difference (sl_harness *h, double *x, double step) {
  static const double at[4] = { 1, -1, 0.5, -0.5 };
  const double x0 = *x;
  double f[4];
  for (int k = 0; k < 4; k++) {
    *x = x0 + at[k] * step;
    f[k] = loss (h);
  }
  *x = x0;
  return (8 * (f[2] - f[3]) - (f[0] - f[1])) / (6 * step);
}

/* 1 if the plugin's own gradient changes by more than a tenth of the error
** within +-step of x: a kink, across which no difference is a derivative. */
static int near_kink (sl_harness *h, int a, size_t i, double step,
                      double error) {
  double *x = &h->inputs->value[a][i], x0 = *x, g[2];
  for (int k = 0; k < 2; k++) {
    *x = x0 + (k ? step : -step);
    h->calls->forward (h);
    h->calls->backward (h);
    g[k] = h->grad[a][i];
  }
  *x = x0;
  return fabs (g[1] - g[0]) > 0.1 * error;
}

/* One derivative: 0, or -1 when it is wrong. */
static int compare (sl_check_case *c, sl_harness *h, int a, size_t i,
                    double analytic, double floor_, tally *sum) {
  const sl_test_inputs *in = h->inputs;
  const int kinked = (sl_case_plugin (c)->properties & SL_KINKED) != 0;
  double best = INFINITY, numeric = NAN, error = NAN;
  char place[96];
  for (int k = 0; k < STEPS && !(best <= 1e-2 * TOLERANCE); k++) {
    const double d = difference (h, &in->value[a][i], steps[k]);
    const double scale = fmax (fmax (fabs (d), fabs (analytic)), floor_);
    const double relative = fabs (d - analytic) / scale;
    if (k == 0 || relative < best) {
      numeric = d;
      error = fabs (d - analytic);
      best = isnan (relative) ? INFINITY : relative;
    }
    /* The other steps are only for derivatives that fail. */
    if (best <= TOLERANCE) break;
  }
  sum->count++;
  if (best <= TOLERANCE) {
    sum->worst = fmax (sum->worst, best);
    return 0;
  }
  if (kinked && near_kink (h, a, i, steps[0], error)) {
    sum->around++;
    return 0;
  }
  sl_test_inputs_element (in, a, i, place, sizeof place);
  sl_case_figure (c, "relative error %.2g, tolerance %.0e", best, TOLERANCE);
  return sl_case_fail_call (
      c, in,
      "backward gives %.9g for the gradient of %s, differences give %.9g",
      analytic, place, numeric);
}

static void compare_all (sl_check_case *c, sl_test_inputs *in, void *context) {
  sl_harness *h = sl_case_harness (c, SL_F64, in);
  tally *sum = context;
  for (uint32_t draw = 1; draw <= DRAWS && !sl_case_failed (c); draw++) {
    double largest = 0, terms = 0, *analytic, *g;
    size_t n;
    sl_test_inputs_draw (in, draw, 1.5);
    sl_case_backward (c, h);
    for (size_t i = 0; i < in->outputs; i++)
      terms += fabs (in->cotangent[i] * h->out[i]);
    analytic = sl_case_results (c, h, &n);
    g = analytic + in->outputs;
    for (int a = 0; a < in->arrays; a++)
      for (size_t i = 0; i < in->size[a]; i++)
        largest = fmax (largest, fabs (h->grad[a][i]));
    /* A floor, so that rounding of the loss is no error of a tiny
    ** derivative. */
    for (int a = 0; a < in->arrays; g += in->size[a++])
      for (size_t i = 0; i < in->size[a]; i++)
        if (compare (c, h, a, i, g[i], 1e-3 * largest + 1e-6 * terms + 1e-12,
                     sum))
          break;
    sl_free (analytic);
  }
  h->calls->close (h);
}

void sl_check_gradient (sl_check_case *c) {
  tally sum = { 0 };
  sl_case_for_each (c, SL_ALL_OPTIONS, compare_all, &sum);
  if (sl_case_failed (c)) return;
  if (sum.around > sum.count / 4) {
    sl_case_figure (c, "%ld of %ld derivatives are near a kink", sum.around,
                    sum.count);
    sl_case_fail (c,
                  "the gradient jumps around in more than a quarter of all "
                  "derivatives (seed %llu): it is not the forward's",
                  (unsigned long long)c->seed);
  } else if (sum.around)
    sl_case_pass (c,
                  "largest relative error %.1e of %.0e in %ld derivatives, %ld "
                  "near a kink",
                  sum.worst, TOLERANCE, sum.count, sum.around);
  else
    sl_case_pass (c, "largest relative error %.1e of %.0e in %ld derivatives",
                  sum.worst, TOLERANCE, sum.count);
}

/* "kinks": the gradient along straight lines through the inputs. */
enum { LINES = 12, POINTS = 240, HALVINGS = 45 };
#define SPAN 3.0

typedef struct line {
  sl_harness *h;
  sl_test_inputs *in;
  double *from[SL_MOST_ARRAYS], *along[SL_MOST_ARRAYS];
  double *a, *b, *c; /* gradients at three points */
  size_t total;
} line;

/* g = the gradient at from + x along, (total). */
static void gradient_at (line *l, double x, double *g) {
  for (int a = 0; a < l->in->arrays; a++)
    for (size_t i = 0; i < l->in->size[a]; i++)
      l->in->value[a][i] = l->from[a][i] + x * l->along[a][i];
  l->h->calls->forward (l->h);
  l->h->calls->backward (l->h);
  for (int a = 0; a < l->in->arrays; a++) {
    memcpy (g, l->h->grad[a], l->in->size[a] * sizeof *g);
    g += l->in->size[a];
  }
}

static double jump (const line *l, const double *g, const double *h) {
  double d = 0;
  for (size_t i = 0; i < l->total; i++) d = fmax (d, fabs (g[i] - h[i]));
  return d;
}

/* Bisect [x, y] for the largest jump of the gradient. Returns the jump over the
** last interval: near 0 for a continuous gradient. */
static double bisect (line *l, double *x, double *y) {
  gradient_at (l, *x, l->a);
  gradient_at (l, *y, l->b);
  for (int k = 0; k < HALVINGS; k++) {
    const double middle = 0.5 * (*x + *y);
    double *swap;
    if (middle == *x || middle == *y) break;
    gradient_at (l, middle, l->c);
    swap = l->c;
    if (jump (l, l->a, l->c) >= jump (l, l->c, l->b)) {
      *y = middle, l->c = l->b, l->b = swap;
    } else {
      *x = middle, l->c = l->a, l->a = swap;
    }
  }
  return jump (l, l->a, l->b);
}

/* Along one line: the jump at its steepest step after bisection, relative to
** the largest gradient on the line. */
static double largest_jump (line *l, double *where) {
  double largest = 0, steepest = -1, stays;
  double x = -SPAN, y, *swap;
  const double step = 2 * SPAN / POINTS;
  gradient_at (l, -SPAN, l->a);
  for (int k = 1; k <= POINTS; k++) {
    double d;
    gradient_at (l, -SPAN + k * step, l->b);
    d = jump (l, l->a, l->b);
    for (size_t i = 0; i < l->total; i++)
      largest = fmax (largest, fabs (l->b[i]));
    if (d > steepest) {
      steepest = d;
      x = -SPAN + (k - 1) * step;
    }
    swap = l->a, l->a = l->b, l->b = swap;
  }
  y = x + step;
  stays = bisect (l, &x, &y);
  *where = x;
  return largest > 0 ? stays / largest : 0;
}

static void make_line (sl_check_case *c, line *l, sl_test_inputs *in) {
  l->in = in;
  for (int a = 0; a < in->arrays; a++) {
    l->from[a] = sl_case_copy (c, in->value[a], in->size[a]);
    l->along[a] = sl_case_copy (c, in->value[a], in->size[a]);
    l->total += in->size[a];
  }
  l->a = sl_case_copy (c, NULL, l->total);
  l->b = sl_case_copy (c, NULL, l->total);
  l->c = sl_case_copy (c, NULL, l->total);
}

void sl_check_kinks (sl_check_case *c) {
  const sl_mechanism *m = sl_case_mechanism (c);
  const sl_plugin *d = sl_case_plugin (c);
  const sl_test_shape *z = sl_test_shapes (d) + 2;
  sl_test_inputs *in;
  sl_error e;
  line l = { 0 };
  double worst = 0;
  int refused;
  if (!m) return;
  if (d->properties & SL_KINKED) {
    sl_case_skip (c, "SL_KINKED is declared: kinks are allowed");
    return;
  }
  refused = sl_test_inputs_new (m, z, c->seed, &in, &e);
  for (; refused > 0 && z[1].n; z++)
    refused = sl_test_inputs_new (m, z + 1, c->seed, &in, &e);
  if (refused) {
    sl_case_fail (c, "%s", e.text);
    return;
  }
  make_line (c, &l, in);
  l.h = sl_case_harness (c, SL_F64, in);
  for (uint32_t k = 0; k < LINES; k++) {
    double where, stays;
    /* Even lines pass through the origin of all inputs, where many kinks
    ** are. */
    sl_test_inputs_draw (in, 100 + 2 * k, 1);
    for (int a = 0; a < in->arrays; a++)
      memcpy (l.along[a], in->value[a], in->size[a] * sizeof **l.along);
    sl_test_inputs_draw (in, 101 + 2 * k, 1);
    for (int a = 0; a < in->arrays; a++)
      for (size_t i = 0; i < in->size[a]; i++)
        l.from[a][i] = k % 2 ? in->value[a][i] : 0;
    memset (l.along[in->arrays - 1], 0,
            in->size[in->arrays - 1] * sizeof **l.along);
    sl_case_backward (c, l.h);
    stays = largest_jump (&l, &where);
    worst = fmax (worst, stays);
    if (!(stays <= 1e-3)) {
      gradient_at (&l, where, l.a);
      sl_case_figure (c, "a jump of %.2g times the largest gradient", stays);
      sl_case_fail_call (
          c, in,
          "the gradient jumps at %s[0] = %.6g, and SL_KINKED is not "
          "declared",
          in->name[0], in->value[0][0]);
      break;
    }
  }
  if (!sl_case_failed (c))
    sl_case_pass (c, "largest jump %.1e of the gradient on %d lines", worst,
                  LINES);
}

typedef struct added {
  double worst;
  size_t parameters;
} added;

static void check_added (sl_check_case *c, sl_test_inputs *in, void *context) {
  added *sum = context;
  sl_harness *h = sl_case_harness (c, SL_F64, in);
  const int last = in->arrays - 1;
  const size_t n = in->size[last];
  double *zero, largest = 1;
  sum->parameters += n;
  sl_case_backward (c, h);
  zero = sl_case_copy (c, h->grad[last], n);
  h->dparam = 7;
  sl_case_backward (c, h);
  for (size_t i = 0; i < n; i++) largest = fmax (largest, fabs (zero[i]));
  for (size_t i = 0; i < n; i++) {
    const double d = fabs (h->grad[last][i] - zero[i] - 7) / largest;
    char place[96];
    if (d <= 1e-9) {
      sum->worst = fmax (sum->worst, d);
      continue;
    }
    sl_test_inputs_element (in, last, i, place, sizeof place);
    sl_case_figure (c, "%.2g off, tolerance 1e-09", d);
    sl_case_fail_call (
        c, in,
        "dparam of %s is %.9g when it starts from 7 and %.9g when "
        "it starts from 0: it must be added to",
        place, h->grad[last][i], zero[i]);
    break;
  }
  sl_free (zero);
  h->calls->close (h);
}

void sl_check_dparam (sl_check_case *c) {
  added sum = { 0 };
  sl_case_for_each (c, SL_ALL_OPTIONS, check_added, &sum);
  if (sl_case_failed (c)) return;
  if (sum.parameters)
    sl_case_pass (c, "added to 7 within %.1e of %zu elements", sum.worst,
                  sum.parameters);
  else
    sl_case_skip (c, "no parameters");
}
