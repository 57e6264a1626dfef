/* buffer_rules.c - the checks "outputs", "bounds", "inputs" and "reads": which
** memory kernels read and write. */
#include "base/memory.h"
#include "check/check_case.h"
#include <math.h>
#include <string.h>

typedef struct tally {
  size_t elements;
  int calls;
} tally;

static void run_all (sl_check_case *c, sl_harness *h) {
  sl_case_backward (c, h);
  if (h->inputs->weights) sl_case_weights (c, h);
}

/* All results, *n numbers, of a run with these contents outside the buffers and
** in outputs and scratch. */
static double *results_with (sl_check_case *c, sl_harness *h, double fence,
                             double blank, size_t *n) {
  h->fence = fence;
  h->blank = blank;
  run_all (c, h);
  return sl_case_results (c, h, n);
}

/* Runs with three different undefined contents give the same bits: 0 or -1. */
static int same_bits (sl_check_case *c, sl_harness *h, const double fences[3],
                      const double blanks[3], const char *where) {
  size_t n, at;
  double *first = results_with (c, h, fences[0], blanks[0], &n);
  int status = 0;
  for (int k = 1; k < 3 && status == 0; k++) {
    double *other = results_with (c, h, fences[k], blanks[k], &n);
    for (size_t i = 0; i < n && status == 0; i++)
      if (memcmp (&first[i], &other[i], sizeof *first) != 0) {
        const sl_result r = sl_case_find (c, h, i, &at);
        status = sl_case_fail_call (
            c, h->inputs,
            "%s: %s%s[%zu] changes from %.9g to %.9g with the contents of %s",
            sl_dtype_name (h->dtype), r.of, r.name, at, first[i], other[i],
            where);
      }
    sl_free (other);
  }
  sl_free (first);
  return status;
}

static void outputs (sl_check_case *c, sl_harness *h, void *context) {
  static const double fences[3] = { 0, 0, 0 }, blanks[3] = { 0, 3e5, -2e5 };
  tally *sum = context;
  size_t n, at;
  double *x = results_with (c, h, NAN, NAN, &n);
  const ptrdiff_t nan = sl_first_not_finite (n, x, 0);
  if (h->faults.blank[0])
    sl_case_fail_call (c, h->inputs, "%s %s", sl_dtype_name (h->dtype),
                       h->faults.blank);
  else if (nan >= 0) {
    const sl_result r = sl_case_find (c, h, (size_t)nan, &at);
    sl_case_fail_call (c, h->inputs,
                       "%s: %s%s[%zu] is NaN when scratch and outputs hold NaN "
                       "before the call",
                       sl_dtype_name (h->dtype), r.of, r.name, at);
  } else
    same_bits (c, h, fences, blanks, "outputs and scratch");
  sum->elements += n;
  sl_free (x);
}

void sl_check_outputs (sl_check_case *c) {
  tally sum = { 0 };
  sl_case_for_each_harness (c, SL_ALL_OPTIONS, outputs, &sum);
  sl_case_pass (c, "all of %zu elements written, whatever they held",
                sum.elements);
}

static void reads (sl_check_case *c, sl_harness *h, void *context) {
  static const double fences[3] = { 0, 3e5, -2e5 }, blanks[3] = { 0, 0, 0 };
  static const double with_nan[3] = { 0, NAN, 1 };
  tally *sum = context;
  if (same_bits (c, h, fences, blanks, "memory outside its buffers") == 0)
    same_bits (c, h, with_nan, blanks, "memory outside its buffers");
  sum->calls += 6;
}

void sl_check_reads (sl_check_case *c) {
  tally sum = { 0 };
  sl_case_for_each_harness (c, SL_ALL_OPTIONS, reads, &sum);
  sl_case_pass (c, "same bits whatever lies outside, %d runs", sum.calls);
}

/* Run the kernels; 'fault' is the sentence of h->faults for this check. */
static void watch (sl_check_case *c, sl_harness *h, tally *sum,
                   const char *fault) {
  h->blank = 0;
  run_all (c, h);
  if (*fault)
    sl_case_fail_call (c, h->inputs, "%s %s", sl_dtype_name (h->dtype), fault);
  sum->calls += h->inputs->weights ? 3 : 2;
}

static void bounds (sl_check_case *c, sl_harness *h, void *context) {
  watch (c, h, context, h->faults.fence);
}

void sl_check_bounds (sl_check_case *c) {
  tally sum = { 0 };
  sl_case_for_each_harness (c, SL_ALL_OPTIONS, bounds, &sum);
  sl_case_pass (c, "64 guard words around every buffer intact, %d calls",
                sum.calls);
}

static void inputs (sl_check_case *c, sl_harness *h, void *context) {
  watch (c, h, context, h->faults.input);
}

void sl_check_inputs (sl_check_case *c) {
  tally sum = { 0 };
  sl_case_for_each_harness (c, SL_ALL_OPTIONS, inputs, &sum);
  sl_case_pass (c, "all inputs as before, %d calls", sum.calls);
}
