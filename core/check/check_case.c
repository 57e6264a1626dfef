/* check_case.c - verdicts, calls and comparisons for all checks. */
#include "check/check_case.h"
#include "base/isa.h"
#include "base/memory.h"
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

SL_VARIANTS (const sl_harness_calls, sl_harness_calls);

sl_harness *sl_harness_open (sl_dtype dtype, sl_test_inputs *in) {
  const sl_harness_calls *calls = SL_PICK (sl_harness_calls, dtype == SL_F64);
  sl_harness *h = calls->open (in);
  if (h) h->calls = calls;
  return h;
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

const sl_plugin *sl_case_plugin (const sl_check_case *c) {
  return c->loaded->plugin[SL_F64];
}

const char *sl_case_output (const sl_check_case *c) {
  const sl_plugin *p = sl_case_plugin (c);
  return p->row ? "weights" : p->gate ? "y" : "out";
}

sl_harness *sl_case_harness (sl_check_case *c, sl_dtype dtype,
                             sl_test_inputs *in) {
  sl_harness *h = sl_harness_open (dtype, in);
  if (h) return h;
  sl_case_fail (c, "no memory for buffers of n = %d", in->n);
  _exit (0);
}

static void note_call (sl_check_case *c, const sl_harness *h,
                       const char *call) {
  char text[SL_DOING - 32];
  sl_test_inputs_text (h->inputs, text, sizeof text);
  snprintf (c->doing, SL_DOING, "%s %s (%s)", sl_dtype_name (h->dtype), call,
            text);
}

void sl_case_forward (sl_check_case *c, sl_harness *h) {
  note_call (c, h, "forward");
  h->calls->forward (h);
}

void sl_case_backward (sl_check_case *c, sl_harness *h) {
  sl_case_forward (c, h);
  note_call (c, h, "backward");
  h->calls->backward (h);
}

void sl_case_weights (sl_check_case *c, sl_harness *h) {
  note_call (c, h, "weights");
  h->calls->weights (h);
}

sl_result sl_case_result (const sl_check_case *c, const sl_harness *h, int a) {
  const sl_test_inputs *in = h->inputs;
  if (a < 0) return (sl_result){ in->outputs, h->out, "", sl_case_output (c) };
  if (a == in->arrays)
    return (sl_result){ in->weights, h->weights, "", "weights" };
  return (sl_result){ in->size[a], h->grad[a], "gradient of ", in->name[a] };
}

double *sl_case_copy (sl_check_case *c, const double *from, size_t n) {
  double *to = sl_alloc (n, sizeof *to);
  if (!to) {
    sl_case_fail (c, "no memory for %zu numbers", n);
    _exit (0);
  }
  if (from) memcpy (to, from, n * sizeof *to);
  return to;
}

double *sl_case_results (sl_check_case *c, const sl_harness *h, size_t *n) {
  double *copy, *to;
  *n = 0;
  for (int a = -1; a <= h->inputs->arrays; a++)
    *n += sl_case_result (c, h, a).n;
  copy = to = sl_case_copy (c, NULL, *n);
  for (int a = -1; a <= h->inputs->arrays; a++) {
    const sl_result r = sl_case_result (c, h, a);
    memcpy (to, r.x, r.n * sizeof *to);
    to += r.n;
  }
  return copy;
}

sl_result sl_case_find (const sl_check_case *c, const sl_harness *h, size_t i,
                        size_t *at) {
  int a = -1;
  while (i >= sl_case_result (c, h, a).n) i -= sl_case_result (c, h, a++).n;
  *at = i;
  return sl_case_result (c, h, a);
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
  const sl_test_shape *shapes = sl_test_shapes (sl_case_plugin (c));
  sl_combination *list;
  int count = sl_combinations (c->loaded, &list), visits = 0;
  if (count < 0) return sl_case_fail (c, "no memory for combinations");
  if (options == SL_DEFAULTS) count = 1;
  for (int i = 0; i < count; i++) {
    sl_error e;
    const sl_mechanism *m =
        sl_mechanism_new (c->loaded, list[i].n, list[i].settings, &e);
    if (!m) continue;
    for (const sl_test_shape *z = shapes; z->n; z++) {
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

void sl_case_both_precisions (sl_check_case *c, sl_test_inputs *in,
                              sl_visit_harness visit, void *context) {
  for (int i = 0; i < 2 && !sl_case_failed (c); i++) {
    sl_harness *h = sl_case_harness (c, (sl_dtype)i, in);
    visit (c, h, context);
    h->calls->close (h);
  }
}

typedef struct harness_visit {
  sl_visit_harness visit;
  void *context;
} harness_visit;

static void both_precisions (sl_check_case *c, sl_test_inputs *in,
                             void *context) {
  const harness_visit *v = context;
  sl_case_both_precisions (c, in, v->visit, v->context);
}

int sl_case_for_each_harness (sl_check_case *c, int options,
                              sl_visit_harness visit, void *context) {
  harness_visit v = { visit, context };
  return sl_case_for_each (c, options, both_precisions, &v);
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

ptrdiff_t sl_first_not_finite (size_t n, const double *a, int or_infinite) {
  for (size_t i = 0; i < n; i++)
    if (isnan (a[i]) || (or_infinite && isinf (a[i]))) return (ptrdiff_t)i;
  return -1;
}
