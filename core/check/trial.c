/* trial.c - verdicts, calls and distances that all checks use. */
#include "check/trial.h"
#include "base/isa.h"
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

SL_VARIANTS (const sl_stager, sl_stager);

const sl_stager *sl_stager_of (sl_dtype dtype) {
  return SL_PICK (sl_stager, dtype == SL_F64);
}

int sl_trial_failed (const sl_trial *t) {
  return t->result->why[0] != '\0';
}

#define FORMAT(to, format)                         \
  do {                                             \
    va_list args;                                  \
    va_start (args, format);                       \
    vsnprintf ((to), sizeof (to), (format), args); \
    va_end (args);                                 \
  } while (0)

void sl_trial_ok (sl_trial *t, const char *figure, ...) {
  if (sl_trial_failed (t)) return;
  FORMAT (t->result->figure, figure);
  t->result->state = SL_CHECK_OK;
}

void sl_trial_none (sl_trial *t, const char *figure, ...) {
  FORMAT (t->result->figure, figure);
  t->result->state = SL_CHECK_NONE;
}

void sl_trial_figure (sl_trial *t, const char *figure, ...) {
  FORMAT (t->result->figure, figure);
}

int sl_trial_fail (sl_trial *t, const char *why, ...) {
  t->result->state = SL_CHECK_FAILED;
  if (!sl_trial_failed (t)) FORMAT (t->result->why, why);
  return -1;
}

int sl_trial_wrong (sl_trial *t, const sl_problem *p, const char *why, ...) {
  char *to = t->result->why;
  const size_t size = sizeof t->result->why;
  size_t used;
  t->result->state = SL_CHECK_FAILED;
  if (sl_trial_failed (t)) return -1;
  FORMAT (t->result->why, why);
  used = strlen (to);
  if (used + 4 < size) {
    strcpy (to + used, " (");
    sl_problem_text (p, to + used + 2, size - used - 3);
    strcat (to, ")");
  }
  return -1;
}

const char *sl_trial_output (const sl_trial *t) {
  const sl_plugin *p = t->loaded->plugin[SL_F64];
  return p->row ? "weights" : p->gate ? "y" : "out";
}

sl_stage *sl_trial_stage (sl_trial *t, sl_dtype dtype, const sl_problem *p) {
  sl_stage *s = sl_stager_of (dtype)->open (p);
  if (s) return s;
  sl_trial_fail (t, "no memory for buffers of n = %d", p->n);
  _exit (0);
}

static void doing (sl_trial *t, sl_dtype dtype, const char *call,
                   const sl_problem *p) {
  char text[SL_DOING - 32];
  sl_problem_text (p, text, sizeof text);
  snprintf (t->doing, SL_DOING, "%s %s (%s)", sl_dtype_name (dtype), call,
            text);
}

void sl_trial_forward (sl_trial *t, sl_dtype dtype, sl_stage *s) {
  doing (t, dtype, "forward", s->problem);
  sl_stager_of (dtype)->forward (s);
}

void sl_trial_backward (sl_trial *t, sl_dtype dtype, sl_stage *s) {
  sl_trial_forward (t, dtype, s);
  doing (t, dtype, "backward", s->problem);
  sl_stager_of (dtype)->backward (s);
}

void sl_trial_weights (sl_trial *t, sl_dtype dtype, sl_stage *s) {
  doing (t, dtype, "weights", s->problem);
  sl_stager_of (dtype)->weights (s);
}

const sl_mechanism *sl_trial_mechanism (sl_trial *t) {
  sl_error e;
  const sl_mechanism *m = sl_mechanism_new (t->loaded, 0, NULL, &e);
  if (!m) sl_trial_fail (t, "its default options are refused: %s", e.text);
  return m;
}

int sl_trial_each (sl_trial *t, int options,
                   void (*visit) (sl_trial *t, sl_problem *p, void *context),
                   void *context) {
  const sl_sizes *sizes = sl_sizes_of (t->loaded->plugin[SL_F64]);
  sl_combination *list;
  int count = sl_combinations (t->loaded, &list), visits = 0;
  if (count < 0) return sl_trial_fail (t, "no memory for combinations");
  if (options == SL_DEFAULTS) count = 1;
  for (int i = 0; i < count; i++) {
    sl_error e;
    const sl_mechanism *m =
        sl_mechanism_new (t->loaded, list[i].n, list[i].settings, &e);
    if (!m) continue;
    for (const sl_sizes *z = sizes; z->n; z++) {
      sl_problem *p;
      const int refused = sl_problem_new (m, z, t->seed, &p, &e);
      if (refused > 0) continue;
      if (refused < 0) return sl_trial_fail (t, "%s", e.text);
      visit (t, p, context);
      if (sl_trial_failed (t)) return visits;
      visits++;
    }
  }
  if (visits == 0)
    sl_trial_fail (t, "it refuses its default options in every shape tried");
  return visits;
}

double sl_trial_distance (size_t n, const double *a, const double *b,
                          double least, size_t *where) {
  double largest = least, distance = 0;
  *where = 0;
  for (size_t i = 0; i < n; i++)
    if (isfinite (b[i])) largest = fmax (largest, fabs (b[i]));
  for (size_t i = 0; i < n; i++) {
    double d = a[i] == b[i] || (isnan (a[i]) && isnan (b[i]))
                   ? 0
                   : fabs (a[i] - b[i]) / largest;
    if (!(d <= distance)) {
      distance = d;
      *where = i;
      if (isnan (d)) break;
    }
  }
  return distance;
}

ptrdiff_t sl_trial_not_finite (size_t n, const double *a, int also) {
  for (size_t i = 0; i < n; i++)
    if (isnan (a[i]) || (also && isinf (a[i]))) return (ptrdiff_t)i;
  return -1;
}
