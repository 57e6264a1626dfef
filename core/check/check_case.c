/* check_case.c - verdicts, calls and distances that all checks use. */
#include "check/check_case.h"
#include "base/isa.h"
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

SL_VARIANTS (const sl_harness_calls, sl_harness_calls);

const sl_harness_calls *sl_harness_calls_of (sl_dtype dtype) {
  return SL_PICK (sl_harness_calls, dtype == SL_F64);
}

int sl_case_failed (const sl_check_case *c) {
  return c->result->why[0] != '\0';
}

#define FORMAT(to, format)                         \
  do {                                             \
    va_list args;                                  \
    va_start (args, format);                       \
    vsnprintf ((to), sizeof (to), (format), args); \
    va_end (args);                                 \
  } while (0)

void sl_case_pass (sl_check_case *c, const char *figure, ...) {
  if (sl_case_failed (c)) return;
  FORMAT (c->result->figure, figure);
  c->result->state = SL_CHECK_OK;
}

void sl_case_skip (sl_check_case *c, const char *figure, ...) {
  FORMAT (c->result->figure, figure);
  c->result->state = SL_CHECK_NONE;
}

void sl_case_figure (sl_check_case *c, const char *figure, ...) {
  FORMAT (c->result->figure, figure);
}

int sl_case_fail (sl_check_case *c, const char *why, ...) {
  c->result->state = SL_CHECK_FAILED;
  if (!sl_case_failed (c)) FORMAT (c->result->why, why);
  return -1;
}

int sl_case_fail_call (sl_check_case *c, const sl_test_inputs *in,
                       const char *why, ...) {
  char *to = c->result->why;
  const size_t size = sizeof c->result->why;
  size_t used;
  c->result->state = SL_CHECK_FAILED;
  if (sl_case_failed (c)) return -1;
  FORMAT (c->result->why, why);
  used = strlen (to);
  if (used + 4 < size) {
    strcpy (to + used, " (");
    sl_test_inputs_text (in, to + used + 2, size - used - 3);
    strcat (to, ")");
  }
  return -1;
}

const char *sl_case_output (const sl_check_case *c) {
  const sl_plugin *p = c->loaded->plugin[SL_F64];
  return p->row ? "weights" : p->gate ? "y" : "out";
}

sl_harness *sl_case_harness (sl_check_case *c, sl_dtype dtype,
                             const sl_test_inputs *in) {
  sl_harness *h = sl_harness_calls_of (dtype)->open (in);
  if (h) return h;
  sl_case_fail (c, "no memory for buffers of n = %d", in->n);
  _exit (0);
}

static void doing (sl_check_case *c, sl_dtype dtype, const char *call,
                   const sl_test_inputs *in) {
  char text[SL_DOING - 32];
  sl_test_inputs_text (in, text, sizeof text);
  snprintf (c->doing, SL_DOING, "%s %s (%s)", sl_dtype_name (dtype), call,
            text);
}

void sl_case_forward (sl_check_case *c, sl_dtype dtype, sl_harness *h) {
  doing (c, dtype, "forward", h->inputs);
  sl_harness_calls_of (dtype)->forward (h);
}

void sl_case_backward (sl_check_case *c, sl_dtype dtype, sl_harness *h) {
  sl_case_forward (c, dtype, h);
  doing (c, dtype, "backward", h->inputs);
  sl_harness_calls_of (dtype)->backward (h);
}

void sl_case_weights (sl_check_case *c, sl_dtype dtype, sl_harness *h) {
  doing (c, dtype, "weights", h->inputs);
  sl_harness_calls_of (dtype)->weights (h);
}

const sl_mechanism *sl_case_mechanism (sl_check_case *c) {
  sl_error e;
  const sl_mechanism *m = sl_mechanism_new (c->loaded, 0, NULL, &e);
  if (!m) sl_case_fail (c, "its default options are refused: %s", e.text);
  return m;
}

int sl_case_for_each (sl_check_case *c, int options,
                      void (*visit) (sl_check_case *c, sl_test_inputs *in,
                                     void *context),
                      void *context) {
  const sl_test_shape *sizes = sl_test_shapes (c->loaded->plugin[SL_F64]);
  sl_combination *list;
  int count = sl_combinations (c->loaded, &list), visits = 0;
  if (count < 0) return sl_case_fail (c, "no memory for combinations");
  if (options == SL_DEFAULTS) count = 1;
  for (int i = 0; i < count; i++) {
    sl_error e;
    const sl_mechanism *m =
        sl_mechanism_new (c->loaded, list[i].n, list[i].settings, &e);
    if (!m) continue;
    for (const sl_test_shape *z = sizes; z->n; z++) {
      sl_test_inputs *in;
      const int refused = sl_test_inputs_new (m, z, c->seed, &in, &e);
      if (refused > 0) continue;
      if (refused < 0) return sl_case_fail (c, "%s", e.text);
      visit (c, in, context);
      if (sl_case_failed (c)) return visits;
      visits++;
    }
  }
  if (visits == 0)
    sl_case_fail (c, "it refuses its default options in every shape tried");
  return visits;
}

double sl_largest_difference (size_t n, const double *a, const double *b,
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

ptrdiff_t sl_first_not_finite (size_t n, const double *a, int also) {
  for (size_t i = 0; i < n; i++)
    if (isnan (a[i]) || (also && isinf (a[i]))) return (ptrdiff_t)i;
  return -1;
}
