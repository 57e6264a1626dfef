/* check_case.h - one check of one plugin: its verdict and its calls. For the
** files of core/check only. */
#ifndef SL_CHECK_CASE_H
#define SL_CHECK_CASE_H
#include "check/check.h"
#include "check/harness.h"

/* One check in its child process. 'result' and 'doing' lie in memory that the
** parent reads: they outlive a crash. */
typedef struct sl_check_case {
  const char *plugin;      /* as the user named it */
  const sl_loaded *loaded; /* NULL in the check "load" */
  uint64_t seed;
  sl_check_result *result;
  char *doing; /* SL_DOING bytes: the call in progress, for a crash report */
} sl_check_case;
enum { SL_DOING = 400 };

/* Set the verdict; a check without one has failed. The first failure stays,
** also if the check passes or fails again later. The fail functions return -1;
** sl_case_fail_call adds the arguments of the call to the sentence. */
void sl_case_pass (sl_check_case *c, const char *figure, ...) SL_PRINTF (2, 3);
void sl_case_skip (sl_check_case *c, const char *figure, ...) SL_PRINTF (2, 3);
int sl_case_fail (sl_check_case *c, const char *why, ...) SL_PRINTF (2, 3);
int sl_case_fail_call (sl_check_case *c, const sl_test_inputs *in,
                       const char *why, ...) SL_PRINTF (3, 4);
int sl_case_failed (const sl_check_case *c);
/* The figure beside a failure. */
void sl_case_figure (sl_check_case *c, const char *figure, ...)
    SL_PRINTF (2, 3);

/* The name of the plugin's output in messages: "weights", "y" or "out". */
const char *sl_case_output (const sl_check_case *c);

/* The plugin in the check's double precision. */
const sl_plugin *sl_case_plugin (const sl_check_case *c);

/* A harness for the inputs; without memory it fails the check and ends the
** child. */
sl_harness *sl_case_harness (sl_check_case *c, sl_dtype dtype,
                             sl_test_inputs *in);

/* Call the kernels: forward; forward, then backward; weights. Notes the call in
** 'doing'. */
void sl_case_forward (sl_check_case *c, sl_harness *h);
void sl_case_backward (sl_check_case *c, sl_harness *h);
void sl_case_weights (sl_check_case *c, sl_harness *h);

/* Call visit for every shape with every combination of options, or with the
** default options only, until the check has failed. Combinations and shapes
** that the plugin refuses are passed over. Returns the number of visits. */
enum { SL_DEFAULTS, SL_ALL_OPTIONS };
int sl_case_for_each (sl_check_case *c, int options,
                      void (*visit) (sl_check_case *c, sl_test_inputs *in,
                                     void *context),
                      void *context);
/* Call visit with a new harness for the inputs, in f32 and in f64. */
typedef void (*sl_visit_harness) (sl_check_case *c, sl_harness *h,
                                  void *context);
void sl_case_both_precisions (sl_check_case *c, sl_test_inputs *in,
                              sl_visit_harness visit, void *context);
/* Both precisions of what sl_case_for_each visits. */
int sl_case_for_each_harness (sl_check_case *c, int options,
                              sl_visit_harness visit, void *context);

/* One array of results: the output (a = -1), the gradient of array a of the
** inputs, or the weights of a mixer (a = arrays). In messages it is called
** "<of><name>". */
typedef struct sl_result {
  size_t n;
  const double *x; /* in the harness */
  const char *of, *name;
} sl_result;
sl_result sl_case_result (const sl_check_case *c, const sl_harness *h, int a);

/* A copy of n numbers (from NULL: zeros), for sl_free; ends the child without
** memory. */
double *sl_case_copy (sl_check_case *c, const double *from, size_t n);

/* Copies of all results side by side, *n numbers, for sl_free; ends the child
** without memory. Element i of them is the result at index *at. */
double *sl_case_results (sl_check_case *c, const sl_harness *h, size_t *n);
sl_result sl_case_find (const sl_check_case *c, const sl_harness *h, size_t i,
                        size_t *at);

/* The mechanism with its default options; NULL after a failure. */
const sl_mechanism *sl_case_mechanism (sl_check_case *c);

/* max_i |a_i - b_i| / max (least, max_j |b_j|) over n elements, and its index;
** NaN where one of a_i, b_i is NaN and the other is not. */
double sl_largest_difference (size_t n, const double *a, const double *b,
                              double least, size_t *where);

/* The index of the first NaN (with 'or_infinite' 1: or infinity), or -1. */
ptrdiff_t sl_first_not_finite (size_t n, const double *a, int or_infinite);

/* Every check: its name and its subject. The body is sl_check_<name>. */
#define SL_CHECK_LIST(X)                                                 \
  X (load, "loads: ABI, name, lists, both precisions")                   \
  X (runs, "its kernels return")                                         \
  X (options, "accepted options work, refused ones get a sentence")      \
  X (gradient, "backward against four-point differences of forward")     \
  X (kinks, "no jump of the gradient unless SL_KINKED is declared")      \
  X (dparam, "parameter gradients are added to")                         \
  X (outputs, "writes every output, does not read undefined contents")   \
  X (bounds, "writes nothing outside its buffers")                       \
  X (inputs, "does not change its inputs")                               \
  X (reads, "results do not depend on memory outside its inputs")        \
  X (repeat, "same bits again and in another order")                     \
  X (threads, "same bits on many threads at once")                       \
  X (precision, "f32 agrees with f64")                                   \
  X (extreme, "one key, ties, huge scores: no NaN")                      \
  X (long, "long rows")                                                  \
  X (block, "block and row kernels agree")                               \
  X (nonnegative, "declared: weights are never negative")                \
  X (sums_to_one, "declared: rows sum to 1")                             \
  X (null_mass, "declared: rows sum to at most 1")                       \
  X (shift_invariant, "declared: a shift of the scores changes nothing") \
  X (causal, "masked keys do not matter")

typedef void (*sl_check_body) (sl_check_case *c);
#define SL_CHECK_BODY(name, doc) void sl_check_##name (sl_check_case *c);
SL_CHECK_LIST (SL_CHECK_BODY)

/* Run body in a forked child that must end within s->seconds. Fills r, whose
** name is set. -1 and a sentence if it cannot be forked, or if this process is
** interrupted (the child is killed). */
int sl_child_run (sl_check_body body, const char *plugin,
                  const sl_loaded *loaded, const sl_check_settings *s,
                  sl_check_result *r, sl_error *e);
#endif
