/* schedule.c - step sizes as lists of points. */
#include "train/train.h"
#include <math.h>

double sl_schedule_at (const sl_point *points, int n, double step) {
  const sl_point *a, *b;
  double way, left;
  int low = 0, high = n; /* points[low].step <= step < points[high].step */
  if (n == 0) return 0;
  if (!(step >= points[0].step)) return points[0].value;
  while (high - low > 1) {
    int middle = low + (high - low) / 2;
    if (points[middle].step <= step)
      low = middle;
    else
      high = middle;
  }
  a = &points[low];
  if (high == n || a->curve == SL_CURVE_HOLD) return a->value;
  b = &points[high];
  way = (step - a->step) / (b->step - a->step);
  left = a->curve == SL_CURVE_COSINE ? 0.5 * (1 + cos (M_PI * way))
         : a->curve == SL_CURVE_SQRT ? 1 - sqrt (way)
                                     : 1 - way;
  return b->value + (a->value - b->value) * left;
}

static const char *const curves[] = { "hold", "linear", "cosine", "sqrt" };
enum { CURVES = sizeof curves / sizeof *curves };

const char *sl_curve_name (sl_curve curve) {
  return curves[curve];
}

int sl_curve_parse (const char *name, sl_curve *curve, sl_error *e) {
  const int i = sl_choice ("schedule: no curve", name, CURVES, curves, e);
  if (i >= 0) *curve = (sl_curve)i;
  return i < 0 ? -1 : 0;
}

int sl_schedule_check (const sl_point *points, int n, sl_error *e) {
  if (n < 1) return sl_fail (e, "schedule: it has no points");
  for (int i = 0; i < n; i++) {
    const sl_point *p = &points[i];
    if (!isfinite (p->step) || !isfinite (p->value))
      return sl_fail (e, "schedule: point %d is (%g, %g): not finite", i + 1,
                      p->step, p->value);
    if ((unsigned)p->curve >= CURVES)
      return sl_fail (e,
                      "schedule: point %d has curve number %d, allowed are "
                      "0 to %d",
                      i + 1, (int)p->curve, CURVES - 1);
    if (i > 0 && p[-1].step >= p->step)
      return sl_fail (e,
                      "schedule: point %d is at step %g, not after point %d "
                      "at step %g",
                      i + 1, p->step, i, p[-1].step);
  }
  return 0;
}

/* Where the points of a named schedule go; counts all, keeps the first max. */
typedef struct point_list {
  sl_point *points;
  int n, max;
} point_list;

static void put (point_list *l, double step, double value, sl_curve curve) {
  if (l->n < l->max) l->points[l->n] = (sl_point){ step, value, curve };
  l->n++;
}

/* lr (t + 1) / warmup for t < warmup, and on from there at lr. */
static void put_warmup (point_list *l, double lr, double warmup) {
  if (warmup < 1) return;
  if (warmup > 1) put (l, 0, lr / warmup, SL_CURVE_LINEAR);
  put (l, warmup - 1, lr, SL_CURVE_HOLD);
}

static void make_constant (const double *a, point_list *l) {
  put (l, 0, a[0], SL_CURVE_HOLD);
}

static void make_warmup_cosine (const double *a, point_list *l) {
  put_warmup (l, a[0], a[2]);
  put (l, a[2], a[0], SL_CURVE_COSINE);
  put (l, a[3], a[1], SL_CURVE_HOLD);
}

static void make_linear (const double *a, point_list *l) {
  put (l, 0, a[0], SL_CURVE_LINEAR);
  put (l, a[2], a[1], SL_CURVE_HOLD);
}

static void make_step (const double *a, point_list *l) {
  for (double k = 0; k * a[2] < a[3]; k++)
    put (l, k * a[2], a[0] * pow (a[1], k), SL_CURVE_HOLD);
}

/* The hold between warm-up and decay needs no point of its own. */
static void make_wsd (const double *a, point_list *l) {
  put_warmup (l, a[0], a[2]);
  put (l, a[3], a[0], a[5] == 0 ? SL_CURVE_LINEAR : SL_CURVE_SQRT);
  put (l, a[4] - 1, a[1], SL_CURVE_HOLD);
}

static const char *const shapes[] = { "linear", "sqrt", NULL };

/* An order that must hold between two of a kind's arguments. */
typedef struct order {
  int low, high; /* arguments */
  double gap;    /* low + gap <= high */
} order;

static const struct {
  sl_schedule_kind kind;
  void (*make) (const double *args, point_list *l);
  order order[2]; /* gap 0 with low == high: none */
} table[] = {
  { { "constant", "lr at every step", { { "lr", 0, 0, NAN, NULL } } },
    make_constant,
    { { 0 } } },
  { { "warmup_cosine",
      "lr (t + 1) / warmup for t < warmup, then half a cosine from lr down to "
      "min at step 'steps'",
      { { "lr", 0, 0, NAN, NULL },
        { "min", 0, 0, 0, NULL },
        { "warmup", 1, 0, 0, NULL },
        { "steps", 1, 1, NAN, NULL } } },
    make_warmup_cosine,
    { { 2, 3, 1 } } },
  { { "linear",
      "a straight line from 'from' at step 0 to 'to' at step 'steps'",
      { { "from", 0, 0, NAN, NULL },
        { "to", 0, 0, NAN, NULL },
        { "steps", 1, 1, NAN, NULL } } },
    make_linear,
    { { 0 } } },
  { { "step",
      "lr factor^floor (t / every) up to step 'steps'",
      { { "lr", 0, 0, NAN, NULL },
        { "factor", 0, 0, NAN, NULL },
        { "every", 1, 1, NAN, NULL },
        { "steps", 1, 1, NAN, NULL } } },
    make_step,
    { { 0 } } },
  { { "wsd",
      "warm-up as in warmup_cosine, lr until decay_start, then down to min at "
      "step 'steps' - 1, the last one: straight, or as 1 - sqrt",
      { { "lr", 0, 0, NAN, NULL },
        { "min", 0, 0, 0, NULL },
        { "warmup", 1, 0, 0, NULL },
        { "decay_start", 1, 0, NAN, NULL },
        { "steps", 1, 1, NAN, NULL },
        { "shape", 0, 0, 0, shapes } } },
    make_wsd,
    { { 2, 3, 0 }, { 3, 4, 2 } } },
};
enum { KINDS = sizeof table / sizeof *table };

static int find (const char *name, sl_error *e) {
  const char *names[KINDS];
  for (int i = 0; i < KINDS; i++) names[i] = table[i].kind.name;
  return sl_choice ("schedule: no kind", name, KINDS, names, e);
}

const sl_schedule_kind *sl_schedule_find (const char *name, sl_error *e) {
  const int i = find (name, e);
  return i < 0 ? NULL : &table[i].kind;
}

static int check_args (const sl_schedule_kind *k, const order *orders,
                       const double *args, sl_error *e) {
  for (int i = 0; i < SL_SCHEDULE_ARGS && k->arg[i].name != NULL; i++) {
    const sl_schedule_arg *a = &k->arg[i];
    /* steps are exact doubles; 1e15 leaves room for adding */
    const double most = a->choices ? 1 : a->whole ? 1e15 : HUGE_VAL;
    const int whole = a->whole || a->choices != NULL;
    if (!(args[i] >= a->least && args[i] <= most) || !isfinite (args[i]) ||
        (whole && args[i] != floor (args[i])))
      return sl_fail (
          e, "schedule %s: %s is %g, allowed is a %s of at least %g", k->name,
          a->name, args[i], whole ? "whole number" : "number", a->least);
  }
  for (int i = 0; i < 2 && orders[i].low != orders[i].high; i++) {
    const order *o = &orders[i];
    if (args[o->low] + o->gap > args[o->high])
      return sl_fail (e,
                      "schedule %s: %s is %g, allowed is at least %s + %g = %g",
                      k->name, k->arg[o->high].name, args[o->high],
                      k->arg[o->low].name, o->gap, args[o->low] + o->gap);
  }
  return 0;
}

int sl_schedule_points (const char *kind, const double *args, int n_args,
                        sl_point *points, int max, sl_error *e) {
  const int i = find (kind, e);
  point_list l = { points, 0, max };
  int n = 0;
  if (i < 0) return -1;
  while (n < SL_SCHEDULE_ARGS && table[i].kind.arg[n].name != NULL) n++;
  if (n_args != n)
    return sl_fail (e, "schedule %s: takes %d arguments, got %d", kind, n,
                    n_args);
  if (check_args (&table[i].kind, table[i].order, args, e) < 0) return -1;
  if (table[i].make == make_step && args[3] / args[2] > SL_SCHEDULE_POINTS)
    return sl_fail (e,
                    "schedule step: every is %g, allowed is at most %d drops "
                    "within 'steps' (%g)",
                    args[2], SL_SCHEDULE_POINTS, args[3]);
  table[i].make (args, &l);
  return l.n;
}
