/* manners.c - the checks of what kernels touch: "outputs", "bounds", "inputs",
** "reads". */
#include "check/trial.h"
#include <math.h>
#include <string.h>

/* All that one problem's kernels compute, side by side. */
typedef struct answers {
  size_t n;
  double *x;
} answers;

static answers answers_of (const sl_stage *s) {
  const sl_problem *p = s->problem;
  answers r = { p->outputs + p->weights, NULL };
  double *to;
  for (int a = 0; a < p->arrays; a++) r.n += p->size[a];
  r.x = to = sl_problem_copy (NULL, r.n);
  if (!to) return r;
  memcpy (to, s->out, p->outputs * sizeof *to);
  memcpy (to + p->outputs, s->weights, p->weights * sizeof *to);
  to += p->outputs + p->weights;
  for (int a = 0; a < p->arrays; a++) {
    memcpy (to, s->grad[a], p->size[a] * sizeof *to);
    to += p->size[a];
  }
  return r;
}

/* Which array element number i of the answers is. */
static const char *answer_name (const sl_problem *p, const sl_trial *t,
                                size_t i, size_t *at, int *gradient) {
  *gradient = 0;
  *at = i;
  if (i < p->outputs) return sl_trial_output (t);
  *at = i -= p->outputs;
  if (i < p->weights) return "weights";
  i -= p->weights;
  *gradient = 1;
  for (int a = 0; a < p->arrays; a++) {
    *at = i;
    if (i < p->size[a]) return p->name[a];
    i -= p->size[a];
  }
  return "?";
}

static void run_all (sl_trial *t, sl_dtype dtype, sl_stage *s) {
  sl_trial_backward (t, dtype, s);
  if (s->problem->weights) sl_trial_weights (t, dtype, s);
}

/* Run with these contents outside the buffers and in outputs and scratch. */
static answers run_with (sl_trial *t, sl_dtype dtype, sl_stage *s, double fence,
                         double blank) {
  s->fence = fence;
  s->blank = blank;
  run_all (t, dtype, s);
  return answers_of (s);
}

typedef struct fault_count {
  size_t elements;
  int calls;
} fault_count;

/* The same problem with other undefined contents gives the same bits. */
static int same (sl_trial *t, const sl_problem *p, sl_dtype dtype,
                 const answers *a, const answers *b, const char *where) {
  if (!a->x || !b->x) return sl_trial_fail (t, "no memory for answers");
  for (size_t i = 0; i < a->n; i++)
    if (memcmp (&a->x[i], &b->x[i], sizeof *a->x) != 0) {
      size_t at;
      int gradient;
      const char *name = answer_name (p, t, i, &at, &gradient);
      return sl_trial_wrong (
          t, p,
          "%s: %s%s[%zu] changes from %.9g to %.9g with the contents of %s",
          sl_dtype_name (dtype), gradient ? "gradient of " : "", name, at,
          a->x[i], b->x[i], where);
    }
  return 0;
}

/* Two runs whose undefined contents differ; 0 when nothing depends on them. */
static int indifferent (sl_trial *t, const sl_problem *p, sl_dtype dtype,
                        sl_stage *s, const double fences[3],
                        const double blanks[3], const char *where) {
  answers first = run_with (t, dtype, s, fences[0], blanks[0]);
  int result = 0;
  for (int k = 1; k < 3 && result == 0; k++) {
    answers other = run_with (t, dtype, s, fences[k], blanks[k]);
    result = same (t, p, dtype, &first, &other, where);
    sl_problem_forget (other.x);
  }
  sl_problem_forget (first.x);
  return result;
}

static void outputs (sl_trial *t, sl_problem *p, void *context) {
  static const double fences[3] = { 0, 0, 0 }, blanks[3] = { 0, 3e5, -2e5 };
  fault_count *sum = context;
  for (int i = 0; i < 2 && !sl_trial_failed (t); i++) {
    sl_stage *s = sl_trial_stage (t, (sl_dtype)i, p);
    answers a = run_with (t, (sl_dtype)i, s, NAN, NAN);
    ptrdiff_t bad = a.x ? sl_trial_not_finite (a.n, a.x, 0) : -1;
    if (s->faults.blank[0])
      sl_trial_wrong (t, p, "%s %s", sl_dtype_name ((sl_dtype)i),
                      s->faults.blank);
    else if (bad >= 0) {
      size_t at;
      int gradient;
      const char *name = answer_name (p, t, (size_t)bad, &at, &gradient);
      sl_trial_wrong (t, p,
                      "%s: %s%s[%zu] is NaN when scratch and outputs hold NaN "
                      "before the call",
                      sl_dtype_name ((sl_dtype)i),
                      gradient ? "gradient of " : "", name, at);
    } else
      indifferent (t, p, (sl_dtype)i, s, fences, blanks, "outputs and scratch");
    sum->elements += a.n;
    sl_problem_forget (a.x);
    sl_stager_of ((sl_dtype)i)->close (s);
  }
}

void sl_check_outputs (sl_trial *t) {
  fault_count sum = { 0 };
  sl_trial_each (t, SL_ALL_OPTIONS, outputs, &sum);
  sl_trial_ok (t, "all of %zu elements written, whatever they held",
               sum.elements);
}

static void reads (sl_trial *t, sl_problem *p, void *context) {
  static const double fences[3] = { 0, 3e5, -2e5 }, blanks[3] = { 0, 0, 0 };
  static const double with_nan[3] = { 0, NAN, 1 };
  fault_count *sum = context;
  for (int i = 0; i < 2 && !sl_trial_failed (t); i++) {
    sl_stage *s = sl_trial_stage (t, (sl_dtype)i, p);
    if (indifferent (t, p, (sl_dtype)i, s, fences, blanks,
                     "what lies outside its buffers") == 0)
      indifferent (t, p, (sl_dtype)i, s, with_nan, blanks,
                   "what lies outside its buffers");
    sum->calls += 6;
    sl_stager_of ((sl_dtype)i)->close (s);
  }
}

void sl_check_reads (sl_trial *t) {
  fault_count sum = { 0 };
  sl_trial_each (t, SL_ALL_OPTIONS, reads, &sum);
  sl_trial_ok (t, "same bits whatever lies outside, %d runs", sum.calls);
}

static void watch (sl_trial *t, sl_problem *p, fault_count *sum,
                   size_t offset) {
  for (int i = 0; i < 2 && !sl_trial_failed (t); i++) {
    sl_stage *s = sl_trial_stage (t, (sl_dtype)i, p);
    const char *fault = (const char *)&s->faults + offset;
    s->blank = 0;
    run_all (t, (sl_dtype)i, s);
    if (*fault)
      sl_trial_wrong (t, p, "%s %s", sl_dtype_name ((sl_dtype)i), fault);
    sum->calls += p->weights ? 3 : 2;
    sl_stager_of ((sl_dtype)i)->close (s);
  }
}

static void bounds (sl_trial *t, sl_problem *p, void *context) {
  watch (t, p, context, offsetof (sl_faults, fence));
}

void sl_check_bounds (sl_trial *t) {
  fault_count sum = { 0 };
  sl_trial_each (t, SL_ALL_OPTIONS, bounds, &sum);
  sl_trial_ok (t, "64 guard words around every buffer intact, %d calls",
               sum.calls);
}

static void inputs (sl_trial *t, sl_problem *p, void *context) {
  watch (t, p, context, offsetof (sl_faults, input));
}

void sl_check_inputs (sl_trial *t) {
  fault_count sum = { 0 };
  sl_trial_each (t, SL_ALL_OPTIONS, inputs, &sum);
  sl_trial_ok (t, "all inputs as before, %d calls", sum.calls);
}
