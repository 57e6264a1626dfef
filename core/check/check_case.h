/* check_case.h - what the files of plugin check share; not for other layers. */
#ifndef SL_CHECK_CASE_H
#define SL_CHECK_CASE_H
#include "check/check.h"
#include "check/test_inputs.h"

/* One check of one plugin, in its child. 'result' and 'doing' lie in memory
** that the parent reads: they outlive a crash. */
typedef struct sl_check_case {
  const char *plugin;      /* as the user named it */
  const sl_loaded *loaded; /* NULL in the check that loads it */
  uint64_t seed;
  sl_check_result *result;
  char *doing; /* SL_DOING bytes: the call that is being made */
} sl_check_case;
enum { SL_DOING = 400 };

/* The verdict; without one a check has failed. The first failure stays, also
** when 'ok' is said after it; the functions for it return -1. 'wrong' adds the
** arguments of the call. */
void sl_case_pass (sl_check_case *c, const char *figure, ...) SL_PRINTF (2, 3);
void sl_case_skip (sl_check_case *c, const char *figure, ...) SL_PRINTF (2, 3);
int sl_case_fail (sl_check_case *c, const char *why, ...) SL_PRINTF (2, 3);
int sl_case_fail_call (sl_check_case *c, const sl_test_inputs *in,
                       const char *why, ...) SL_PRINTF (3, 4);
int sl_case_failed (const sl_check_case *c);
/* The figure beside a failure. */
void sl_case_figure (sl_check_case *c, const char *figure, ...)
    SL_PRINTF (2, 3);

/* "weights", "y", "out": what the plugin's output is called. */
const char *sl_case_output (const sl_check_case *c);

/* A stage that is there, or the end of the child with a failure: no memory. */
sl_harness *sl_case_harness (sl_check_case *c, sl_dtype dtype,
                             const sl_test_inputs *in);

/* Forward, and backward after it, with a note of what is being done. */
void sl_case_forward (sl_check_case *c, sl_dtype dtype, sl_harness *h);
void sl_case_backward (sl_check_case *c, sl_dtype dtype, sl_harness *h);
void sl_case_weights (sl_check_case *c, sl_dtype dtype, sl_harness *h);

/* Visit every shape with all combinations of options, or with the defaults
** only, until the trial has failed. What the plugin refuses is passed over; the
** number of visits. */
enum { SL_DEFAULTS, SL_ALL_OPTIONS };
int sl_case_for_each (sl_check_case *c, int options,
                      void (*visit) (sl_check_case *c, sl_test_inputs *in,
                                     void *context),
                      void *context);

/* The mechanism with its default options; NULL after a failure. */
const sl_mechanism *sl_case_mechanism (sl_check_case *c);

/* |a - b| over the largest |element| of b, or over 'least' if that is larger:
** the largest over n elements; NaN if one has a NaN that the other has not. */
double sl_largest_difference (size_t n, const double *a, const double *b,
                              double least, size_t *where);

/* The index of an element that is NaN (or, if 'also' is 1, infinite), or -1. */
ptrdiff_t sl_first_not_finite (size_t n, const double *a, int also);

/* The checks. */
typedef void (*sl_check_body) (sl_check_case *c);
void sl_check_load (sl_check_case *c);
void sl_check_runs (sl_check_case *c);
void sl_check_options (sl_check_case *c);
void sl_check_gradient (sl_check_case *c);
void sl_check_kinks (sl_check_case *c);
void sl_check_dparam (sl_check_case *c);
void sl_check_outputs (sl_check_case *c);
void sl_check_bounds (sl_check_case *c);
void sl_check_inputs (sl_check_case *c);
void sl_check_reads (sl_check_case *c);
void sl_check_repeat (sl_check_case *c);
void sl_check_threads (sl_check_case *c);
void sl_check_precision (sl_check_case *c);
void sl_check_extreme (sl_check_case *c);
void sl_check_long (sl_check_case *c);
void sl_check_block (sl_check_case *c);
void sl_check_nonnegative (sl_check_case *c);
void sl_check_sums (sl_check_case *c);
void sl_check_null_mass (sl_check_case *c);
void sl_check_shift (sl_check_case *c);
void sl_check_causal (sl_check_case *c);

/* Run body in a forked child that must end within 'seconds'. Fills r, whose
** name is set. -1 and a sentence if it cannot be forked, or if this process is
** told to stop (the child is killed). */
int sl_child_run (sl_check_body body, const char *plugin,
                  const sl_loaded *loaded, const sl_check_settings *s,
                  sl_check_result *r, sl_error *e);
#endif
