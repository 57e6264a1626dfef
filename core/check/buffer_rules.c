/* buffer_rules.c - the checks of what kernels touch: "outputs", "bounds", "inputs",
** "reads". */
#include "base/memory.h"
#include "check/check_case.h"
#include <math.h>
#include <string.h>

/* All that one problem's kernels compute, side by side. */
typedef struct results {
  size_t n;
  double *x;
} results;

static results results_of (const sl_harness *h) {
  const sl_test_inputs *in = h->inputs;
  results r = { in->outputs + in->weights, NULL };
  double *to;
  for (int a = 0; a < in->arrays; a++) r.n += in->size[a];
  r.x = to = sl_copy_doubles (NULL, r.n);
  if (!to) return r;
  memcpy (to, h->out, in->outputs * sizeof *to);
  memcpy (to + in->outputs, h->weights, in->weights * sizeof *to);
  to += in->outputs + in->weights;
  for (int a = 0; a < in->arrays; a++) {
    memcpy (to, h->grad[a], in->size[a] * sizeof *to);
    to += in->size[a];
  }
  return r;
}

/* Which array element number i of the results is. */
static const char *result_name (const sl_test_inputs *in,
                                const sl_check_case *c, size_t i, size_t *at,
                                int *gradient) {
  *gradient = 0;
  *at = i;
  if (i < in->outputs) return sl_case_output (c);
  *at = i -= in->outputs;
  if (i < in->weights) return "weights";
  i -= in->weights;
  *gradient = 1;
  for (int a = 0; a < in->arrays; a++) {
    *at = i;
    if (i < in->size[a]) return in->name[a];
    i -= in->size[a];
  }
  return "?";
}

static void run_all (sl_check_case *c, sl_dtype dtype, sl_harness *h) {
  sl_case_backward (c, dtype, h);
  if (h->inputs->weights) sl_case_weights (c, dtype, h);
}

/* Run with these contents outside the buffers and in outputs and scratch. */
static results run_with (sl_check_case *c, sl_dtype dtype, sl_harness *h,
                         double fence, double blank) {
  h->fence = fence;
  h->blank = blank;
  run_all (c, dtype, h);
  return results_of (h);
}

typedef struct fault_count {
  size_t elements;
  int calls;
} fault_count;

/* The same problem with other undefined contents gives the same bits. */
static int same (sl_check_case *c, const sl_test_inputs *in, sl_dtype dtype,
                 const results *a, const results *b, const char *where) {
  if (!a->x || !b->x) return sl_case_fail (c, "no memory for results");
  for (size_t i = 0; i < a->n; i++)
    if (memcmp (&a->x[i], &b->x[i], sizeof *a->x) != 0) {
      size_t at;
      int gradient;
      const char *name = result_name (in, c, i, &at, &gradient);
      return sl_case_fail_call (
          c, in,
          "%s: %s%s[%zu] changes from %.9g to %.9g with the contents of %s",
          sl_dtype_name (dtype), gradient ? "gradient of " : "", name, at,
          a->x[i], b->x[i], where);
    }
  return 0;
}

/* Two runs whose undefined contents differ; 0 when nothing depends on them. */
static int indifferent (sl_check_case *c, const sl_test_inputs *in,
                        sl_dtype dtype, sl_harness *h, const double fences[3],
                        const double blanks[3], const char *where) {
  results first = run_with (c, dtype, h, fences[0], blanks[0]);
  int result = 0;
  for (int k = 1; k < 3 && result == 0; k++) {
    results other = run_with (c, dtype, h, fences[k], blanks[k]);
    result = same (c, in, dtype, &first, &other, where);
    sl_free (other.x);
  }
  sl_free (first.x);
  return result;
}

static void outputs (sl_check_case *c, sl_test_inputs *in, void *context) {
  static const double fences[3] = { 0, 0, 0 }, blanks[3] = { 0, 3e5, -2e5 };
  fault_count *sum = context;
  for (int i = 0; i < 2 && !sl_case_failed (c); i++) {
    sl_harness *h = sl_case_harness (c, (sl_dtype)i, in);
    results a = run_with (c, (sl_dtype)i, h, NAN, NAN);
    ptrdiff_t bad = a.x ? sl_first_not_finite (a.n, a.x, 0) : -1;
    if (h->faults.blank[0])
      sl_case_fail_call (c, in, "%s %s", sl_dtype_name ((sl_dtype)i),
                         h->faults.blank);
    else if (bad >= 0) {
      size_t at;
      int gradient;
      const char *name = result_name (in, c, (size_t)bad, &at, &gradient);
      sl_case_fail_call (
          c, in,
          "%s: %s%s[%zu] is NaN when scratch and outputs hold NaN "
          "before the call",
          sl_dtype_name ((sl_dtype)i), gradient ? "gradient of " : "", name,
          at);
    } else
      indifferent (c, in, (sl_dtype)i, h, fences, blanks,
                   "outputs and scratch");
    sum->elements += a.n;
    sl_free (a.x);
    sl_harness_calls_of ((sl_dtype)i)->close (h);
  }
}

void sl_check_outputs (sl_check_case *c) {
  fault_count sum = { 0 };
  sl_case_for_each (c, SL_ALL_OPTIONS, outputs, &sum);
  sl_case_pass (c, "all of %zu elements written, whatever they held",
                sum.elements);
}

static void reads (sl_check_case *c, sl_test_inputs *in, void *context) {
  static const double fences[3] = { 0, 3e5, -2e5 }, blanks[3] = { 0, 0, 0 };
  static const double with_nan[3] = { 0, NAN, 1 };
  fault_count *sum = context;
  for (int i = 0; i < 2 && !sl_case_failed (c); i++) {
    sl_harness *h = sl_case_harness (c, (sl_dtype)i, in);
    if (indifferent (c, in, (sl_dtype)i, h, fences, blanks,
                     "what lies outside its buffers") == 0)
      indifferent (c, in, (sl_dtype)i, h, with_nan, blanks,
                   "what lies outside its buffers");
    sum->calls += 6;
    sl_harness_calls_of ((sl_dtype)i)->close (h);
  }
}

void sl_check_reads (sl_check_case *c) {
  fault_count sum = { 0 };
  sl_case_for_each (c, SL_ALL_OPTIONS, reads, &sum);
  sl_case_pass (c, "same bits whatever lies outside, %d runs", sum.calls);
}

static void watch (sl_check_case *c, sl_test_inputs *in, fault_count *sum,
                   size_t offset) {
  for (int i = 0; i < 2 && !sl_case_failed (c); i++) {
    sl_harness *h = sl_case_harness (c, (sl_dtype)i, in);
    const char *fault = (const char *)&h->faults + offset;
    h->blank = 0;
    run_all (c, (sl_dtype)i, h);
    if (*fault)
      sl_case_fail_call (c, in, "%s %s", sl_dtype_name ((sl_dtype)i), fault);
    sum->calls += in->weights ? 3 : 2;
    sl_harness_calls_of ((sl_dtype)i)->close (h);
  }
}

static void bounds (sl_check_case *c, sl_test_inputs *in, void *context) {
  watch (c, in, context, offsetof (sl_faults, fence));
}

void sl_check_bounds (sl_check_case *c) {
  fault_count sum = { 0 };
  sl_case_for_each (c, SL_ALL_OPTIONS, bounds, &sum);
  sl_case_pass (c, "64 guard words around every buffer intact, %d calls",
                sum.calls);
}

static void inputs (sl_check_case *c, sl_test_inputs *in, void *context) {
  watch (c, in, context, offsetof (sl_faults, input));
}

void sl_check_inputs (sl_check_case *c) {
  fault_count sum = { 0 };
  sl_case_for_each (c, SL_ALL_OPTIONS, inputs, &sum);
  sl_case_pass (c, "all inputs as before, %d calls", sum.calls);
}
