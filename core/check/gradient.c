/* gradient.c - the checks "gradient", "kinks" and "dparam".
**
** The backward is contracted with a random cotangent: with a plain sum of the
** outputs, a row of weights that sums to one hides any error along it. */
#include "check/trial.h"
#include <math.h>
#include <string.h>

#define TOLERANCE 1e-6
enum { DRAWS = 2, STEPS = 5 };

/* Steps of the differences, the best for smooth kernels first: a wrong gradient
** is wrong at all of them, a curved or a noisy one at some. */
static const double steps[STEPS] = { 1e-3, 1e-2, 1e-4, 1e-5, 1e-6 };

typedef struct tally {
  double worst;
  long count, around; /* derivatives compared; left out beside a kink */
} tally;

static double loss (sl_stage *s) {
  const sl_problem *p = s->problem;
  double sum = 0;
  sl_stager_of (SL_F64)->forward (s);
  for (size_t i = 0; i < p->outputs; i++) sum += p->cotangent[i] * s->out[i];
  return sum;
}

/* (8 (f(h/2) - f(-h/2)) - (f(h) - f(-h))) / 6h: error O(h^4). */
static double difference (sl_stage *s, double *x, double h) {
  static const double at[4] = { 1, -1, 0.5, -0.5 };
  const double x0 = *x;
  double f[4];
  for (int k = 0; k < 4; k++) {
    *x = x0 + at[k] * h;
    f[k] = loss (s);
  }
  *x = x0;
  return (8 * (f[2] - f[3]) - (f[0] - f[1])) / (6 * h);
}

/* Does the plugin's own gradient jump within h of x? Then no difference across
** x is a derivative. A gradient that is merely wrong does not. */
static int beside_kink (sl_stage *s, int a, size_t i, double h, double error) {
  double *x = &s->problem->in[a][i], x0 = *x, g[2];
  for (int k = 0; k < 2; k++) {
    *x = x0 + (k ? h : -h);
    sl_stager_of (SL_F64)->forward (s);
    sl_stager_of (SL_F64)->backward (s);
    g[k] = s->grad[a][i];
  }
  *x = x0;
  return fabs (g[1] - g[0]) > 0.1 * error;
}

/* One derivative: 0, or -1 when it is wrong. */
static int compare (sl_trial *t, sl_stage *s, int a, size_t i, double analytic,
                    double floor_, tally *sum) {
  const sl_problem *p = s->problem;
  const int kinked = (t->loaded->plugin[SL_F64]->flags & SL_KINKED) != 0;
  double best = INFINITY, numeric = NAN, error = NAN;
  char place[96];
  for (int k = 0; k < STEPS && !(best <= 1e-2 * TOLERANCE); k++) {
    const double d = difference (s, &p->in[a][i], steps[k]);
    const double scale = fmax (fmax (fabs (d), fabs (analytic)), floor_);
    const double relative = fabs (d - analytic) / scale;
    if (k == 0 || relative < best) {
      numeric = d;
      error = fabs (d - analytic);
      best = isnan (relative) ? INFINITY : relative;
    }
    /* Good enough: the other steps are for what fails. */
    if (best <= TOLERANCE) break;
  }
  sum->count++;
  if (best <= TOLERANCE) {
    sum->worst = fmax (sum->worst, best);
    return 0;
  }
  if (kinked && beside_kink (s, a, i, steps[0], error)) {
    sum->around++;
    return 0;
  }
  sl_problem_place (p, a, i, place, sizeof place);
  sl_trial_figure (t, "relative error %.2g, tolerance %.0e", best, TOLERANCE);
  return sl_trial_wrong (
      t, p, "backward gives %.9g for the gradient of %s, differences give %.9g",
      analytic, place, numeric);
}

static void check_problem (sl_trial *t, sl_problem *p, void *context) {
  sl_stage *s = sl_trial_stage (t, SL_F64, p);
  tally *sum = context;
  for (uint32_t draw = 1; draw <= DRAWS && !sl_trial_failed (t); draw++) {
    double largest = 0, terms = 0, *analytic[SL_MOST_ARRAYS];
    sl_problem_draw (p, draw, 1.5);
    sl_trial_backward (t, SL_F64, s);
    for (size_t i = 0; i < p->outputs; i++)
      terms += fabs (p->cotangent[i] * s->out[i]);
    for (int a = 0; a < p->arrays; a++) {
      analytic[a] = sl_problem_copy (s->grad[a], p->size[a]);
      for (size_t i = 0; analytic[a] && i < p->size[a]; i++)
        largest = fmax (largest, fabs (analytic[a][i]));
    }
    /* Rounding of the loss must not count as an error of a tiny derivative. */
    for (int a = 0; a < p->arrays; a++)
      for (size_t i = 0; i < p->size[a]; i++)
        if (!analytic[a]) {
          sl_trial_fail (t, "no memory for gradients");
          break;
        } else if (compare (t, s, a, i, analytic[a][i],
                            1e-3 * largest + 1e-6 * terms + 1e-12, sum))
          break;
    for (int a = 0; a < p->arrays; a++) sl_problem_forget (analytic[a]);
  }
  sl_stager_of (SL_F64)->close (s);
}

void sl_check_gradient (sl_trial *t) {
  tally sum = { 0 };
  sl_trial_each (t, SL_ALL_OPTIONS, check_problem, &sum);
  if (sl_trial_failed (t)) return;
  if (sum.around > sum.count / 4) {
    sl_trial_figure (t, "%ld of %ld derivatives lie beside a kink", sum.around,
                     sum.count);
    sl_trial_fail (t,
                   "the gradient jumps around in more than a quarter of all "
                   "derivatives (seed %llu): it is not the forward's",
                   (unsigned long long)t->seed);
  } else if (sum.around)
    sl_trial_ok (t,
                 "largest relative error %.1e of %.0e in %ld derivatives, %ld "
                 "beside a kink",
                 sum.worst, TOLERANCE, sum.count, sum.around);
  else
    sl_trial_ok (t, "largest relative error %.1e of %.0e in %ld derivatives",
                 sum.worst, TOLERANCE, sum.count);
}

/* Lines through the inputs along which the gradient is watched. */
enum { LINES = 12, POINTS = 240, HALVINGS = 45 };
#define SPAN 3.0

typedef struct line {
  sl_stage *s;
  sl_problem *p;
  double *from[SL_MOST_ARRAYS], *along[SL_MOST_ARRAYS];
  double *a, *b, *c; /* gradients at three points */
  size_t total;
} line;

/* The gradient at from + x along, into g. */
static void gradient_at (line *l, double x, double *g) {
  const sl_stager *stager = sl_stager_of (SL_F64);
  for (int a = 0; a < l->p->arrays; a++)
    for (size_t i = 0; i < l->p->size[a]; i++)
      l->p->in[a][i] = l->from[a][i] + x * l->along[a][i];
  stager->forward (l->s);
  stager->backward (l->s);
  for (int a = 0; a < l->p->arrays; a++) {
    memcpy (g, l->s->grad[a], l->p->size[a] * sizeof *g);
    g += l->p->size[a];
  }
}

static double jump (const line *l, const double *g, const double *h) {
  double d = 0;
  for (size_t i = 0; i < l->total; i++) d = fmax (d, fabs (g[i] - h[i]));
  return d;
}

/* Close in on the largest jump of the gradient between x and y; a smooth
** gradient has none left when they have met. Returns the jump that stays. */
static double close_in (line *l, double *x, double *y) {
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

/* Walk one line; the jump that stays at its most suspicious step, relative to
** the largest gradient on the line. */
static double walk (line *l, double *where) {
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
  stays = close_in (l, &x, &y);
  *where = x;
  return largest > 0 ? stays / largest : 0;
}

static int make_line (line *l, sl_problem *p) {
  l->p = p;
  for (int a = 0; a < p->arrays; a++) {
    l->from[a] = sl_problem_copy (p->in[a], p->size[a]);
    l->along[a] = sl_problem_copy (p->in[a], p->size[a]);
    if (!l->from[a] || !l->along[a]) return -1;
    l->total += p->size[a];
  }
  l->a = sl_problem_copy (NULL, l->total);
  l->b = sl_problem_copy (NULL, l->total);
  l->c = sl_problem_copy (NULL, l->total);
  return l->a && l->b && l->c ? 0 : -1;
}

void sl_check_kinks (sl_trial *t) {
  const sl_mechanism *m = sl_trial_mechanism (t);
  const sl_plugin *d = t->loaded->plugin[SL_F64];
  const sl_sizes *z = sl_sizes_of (d) + 2;
  sl_problem *p;
  sl_error e;
  line l = { 0 };
  double worst = 0;
  int refused;
  if (!m) return;
  if (d->flags & SL_KINKED) {
    sl_trial_none (t, "SL_KINKED is claimed: kinks are allowed");
    return;
  }
  refused = sl_problem_new (m, z, t->seed, &p, &e);
  for (; refused > 0 && z[1].n; z++)
    refused = sl_problem_new (m, z + 1, t->seed, &p, &e);
  if (refused || make_line (&l, p)) {
    sl_trial_fail (t, "%s", refused ? e.text : "no memory for a line");
    return;
  }
  l.s = sl_trial_stage (t, SL_F64, p);
  for (uint32_t k = 0; k < LINES; k++) {
    double where, stays;
    /* Even lines pass through 0 in all inputs at once: half of all kinks lie
    ** there. */
    sl_problem_draw (p, 100 + 2 * k, 1);
    for (int a = 0; a < p->arrays; a++)
      memcpy (l.along[a], p->in[a], p->size[a] * sizeof **l.along);
    sl_problem_draw (p, 101 + 2 * k, 1);
    for (int a = 0; a < p->arrays; a++)
      for (size_t i = 0; i < p->size[a]; i++)
        l.from[a][i] = k % 2 ? p->in[a][i] : 0;
    memset (l.along[p->arrays - 1], 0,
            p->size[p->arrays - 1] * sizeof **l.along);
    sl_trial_backward (t, SL_F64, l.s);
    stays = walk (&l, &where);
    worst = fmax (worst, stays);
    if (!(stays <= 1e-3)) {
      gradient_at (&l, where, l.a);
      sl_trial_figure (t, "a jump of %.2g times the largest gradient", stays);
      sl_trial_wrong (
          t, p,
          "the gradient jumps at %s[0] = %.6g, and SL_KINKED is not "
          "claimed",
          p->name[0], p->in[0][0]);
      break;
    }
  }
  if (!sl_trial_failed (t))
    sl_trial_ok (t, "largest jump %.1e of the gradient on %d lines", worst,
                 LINES);
}

typedef struct added {
  double worst;
  size_t parameters;
} added;

static void check_added (sl_trial *t, sl_problem *p, void *context) {
  added *sum = context;
  sl_stage *s = sl_trial_stage (t, SL_F64, p);
  const int last = p->arrays - 1;
  const size_t n = p->size[last];
  double *zero, largest = 1;
  sum->parameters += n;
  sl_trial_backward (t, SL_F64, s);
  zero = sl_problem_copy (s->grad[last], n);
  s->dparam = 7;
  sl_trial_backward (t, SL_F64, s);
  for (size_t i = 0; zero && i < n; i++)
    largest = fmax (largest, fabs (zero[i]));
  for (size_t i = 0; zero && i < n; i++) {
    const double d = fabs (s->grad[last][i] - zero[i] - 7) / largest;
    char place[96];
    if (d <= 1e-9) {
      sum->worst = fmax (sum->worst, d);
      continue;
    }
    sl_problem_place (p, last, i, place, sizeof place);
    sl_trial_figure (t, "%.2g off, tolerance 1e-09", d);
    sl_trial_wrong (t, p,
                    "dparam of %s is %.9g when it starts from 7 and %.9g when "
                    "it starts from 0: it must be added to",
                    place, s->grad[last][i], zero[i]);
    break;
  }
  if (!zero) sl_trial_fail (t, "no memory for gradients");
  sl_problem_forget (zero);
  sl_stager_of (SL_F64)->close (s);
}

void sl_check_dparam (sl_trial *t) {
  added sum = { 0 };
  sl_trial_each (t, SL_ALL_OPTIONS, check_added, &sum);
  if (sl_trial_failed (t)) return;
  if (sum.parameters)
    sl_trial_ok (t, "added to 7 within %.1e of %zu elements", sum.worst,
                 sum.parameters);
  else
    sl_trial_none (t, "no parameters");
}
