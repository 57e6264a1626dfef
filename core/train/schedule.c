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
