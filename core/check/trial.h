/* trial.h - what the files of plugin check share; not for other layers. */
#ifndef SL_TRIAL_H
#define SL_TRIAL_H
#include "check/check.h"
#include "check/problem.h"

/* One check of one plugin, in its child. 'result' and 'doing' lie in memory
** that the parent reads: they outlive a crash. */
typedef struct sl_trial {
  const char *plugin;      /* as the user named it */
  const sl_loaded *loaded; /* NULL in the check that loads it */
  uint64_t seed;
  sl_check_result *result;
  char *doing; /* SL_DOING bytes: the call that is being made */
} sl_trial;
enum { SL_DOING = 400 };

/* The verdict; without one a check has failed. The first failure stays, also
** when 'ok' is said after it; the functions for it return -1. 'wrong' adds the
** arguments of the call. */
void sl_trial_ok (sl_trial *t, const char *figure, ...) SL_PRINTF (2, 3);
void sl_trial_none (sl_trial *t, const char *figure, ...) SL_PRINTF (2, 3);
int sl_trial_fail (sl_trial *t, const char *why, ...) SL_PRINTF (2, 3);
int sl_trial_wrong (sl_trial *t, const sl_problem *p, const char *why, ...)
    SL_PRINTF (3, 4);
int sl_trial_failed (const sl_trial *t);
/* The figure beside a failure. */
void sl_trial_figure (sl_trial *t, const char *figure, ...) SL_PRINTF (2, 3);

/* "weights", "y", "out": what the plugin's output is called. */
const char *sl_trial_output (const sl_trial *t);

/* A stage that is there, or the end of the child with a failure: no memory. */
sl_stage *sl_trial_stage (sl_trial *t, sl_dtype dtype, const sl_problem *p);

/* Forward, and backward after it, with a note of what is being done. */
void sl_trial_forward (sl_trial *t, sl_dtype dtype, sl_stage *s);
void sl_trial_backward (sl_trial *t, sl_dtype dtype, sl_stage *s);
void sl_trial_weights (sl_trial *t, sl_dtype dtype, sl_stage *s);

/* Visit every shape with all combinations of options, or with the defaults
** only, until the trial has failed. What the plugin refuses is passed over; the
** number of visits. */
enum { SL_DEFAULTS, SL_ALL_OPTIONS };
int sl_trial_each (sl_trial *t, int options,
                   void (*visit) (sl_trial *t, sl_problem *p, void *context),
                   void *context);

/* The mechanism with its default options; NULL after a failure. */
const sl_mechanism *sl_trial_mechanism (sl_trial *t);

/* |a - b| over the largest |element| of b, or over 'least' if that is larger:
** the largest over n elements; NaN if one has a NaN that the other has not. */
double sl_trial_distance (size_t n, const double *a, const double *b,
                          double least, size_t *where);

/* The index of an element that is NaN (or, if 'also' is 1, infinite), or -1. */
ptrdiff_t sl_trial_not_finite (size_t n, const double *a, int also);

/* The checks. */
typedef void (*sl_check_body) (sl_trial *t);
void sl_check_load (sl_trial *t);
void sl_check_runs (sl_trial *t);
void sl_check_options (sl_trial *t);
void sl_check_gradient (sl_trial *t);
void sl_check_kinks (sl_trial *t);
void sl_check_dparam (sl_trial *t);
void sl_check_outputs (sl_trial *t);
void sl_check_bounds (sl_trial *t);
void sl_check_inputs (sl_trial *t);
void sl_check_reads (sl_trial *t);
void sl_check_repeat (sl_trial *t);
void sl_check_threads (sl_trial *t);
void sl_check_precision (sl_trial *t);
void sl_check_extreme (sl_trial *t);
void sl_check_long (sl_trial *t);
void sl_check_block (sl_trial *t);
void sl_check_nonnegative (sl_trial *t);
void sl_check_sums (sl_trial *t);
void sl_check_null_mass (sl_trial *t);
void sl_check_shift (sl_trial *t);
void sl_check_causal (sl_trial *t);

/* Run body in a forked child that must end within 'seconds'. Fills r, whose
** name is set. -1 and a sentence if it cannot be forked, or if this process is
** told to stop (the child is killed). */
int sl_child_run (sl_check_body body, const char *plugin,
                  const sl_loaded *loaded, const sl_check_settings *s,
                  sl_check_result *r, sl_error *e);
#endif
