/* train.h - optimizers, schedules and the training loop.
**
** A step: the batch is cut into 'groups' equal groups, each into shards of the
** size for which the program was recorded; every group has a gradient of its
** own, workers take groups, the gradients are summed in the order of the
** groups. So the bits of a step depend on batch, groups and shard, never on
** the number of threads. */
#ifndef SL_TRAIN_H
#define SL_TRAIN_H
#include "program/program.h"

/* Step sizes as data: from a point the value holds, or moves to the next point
** along a curve. Points are sorted by step; before the first and after the
** last the value is constant. Update number t (from 1) takes the value at step
** t - 1. */
typedef enum sl_curve {
  SL_CURVE_HOLD,
  SL_CURVE_LINEAR,
  SL_CURVE_COSINE,
  SL_CURVE_SQRT
} sl_curve;
typedef struct sl_point {
  double step; /* counted from 0 */
  double value;
  /* From this point to the next. With w the share of the way, this much of the
  ** difference is left: SL_CURVE_LINEAR 1 - w, SL_CURVE_COSINE (1 + cos (pi w))
  ** / 2, SL_CURVE_SQRT 1 - sqrt (w). */
  sl_curve curve;
} sl_point;
/* The curve called "hold", "linear", "cosine" or "sqrt"; -1 for other names. */
int sl_curve_parse (const char *name, sl_curve *curve, sl_error *e);
double sl_schedule_at (const sl_point *points, int n, double step);
/* At least one point, all finite, steps strictly ascending. */
int sl_schedule_check (const sl_point *points, int n, sl_error *e);

/* An option of an optimizer: its default, and low <= x < below (low < x where
** low is excluded). A flag is 0 or 1. */
enum { SL_OPTIMIZER_OPTIONS = 8 };
typedef struct sl_optimizer_option {
  const char *name; /* NULL ends the list */
  double def, low, below;
  int excludes_low, is_flag;
} sl_optimizer_option;
/* Which row of the table in update.c, and its options in the row's order.
** Every optimizer has the option clip_norm: 0, or the gradient g is multiplied
** by min (1, clip_norm / (||g||_2 + 1e-6)). */
typedef struct sl_optimizer {
  int kind;
  double option[SL_OPTIMIZER_OPTIONS];
} sl_optimizer;
/* The name of optimizer number 'kind', from 0; NULL: there are no more. */
const char *sl_optimizer_name (int kind);
const sl_optimizer_option *sl_optimizer_options (int kind);
/* "adam", ...: fills *o with the row and its defaults. -1: no such name. */
int sl_optimizer_parse (const char *name, sl_optimizer *o, sl_error *e);
/* Where *o has the option; NULL when its optimizer has none of that name. */
double *sl_optimizer_find (sl_optimizer *o, const char *option);
/* -1 and a sentence when an option is out of its range. */
int sl_optimizer_check (const sl_optimizer *o, sl_error *e);
/* How many elements of state n parameters have; zero at first. */
size_t sl_optimizer_state (const sl_optimizer *o, size_t n);

/* Ends training when met; 0 turns a test off. */
typedef struct sl_stop {
  double max_abs_error; /* that of the step's batch is below this */
  double loss;          /* loss of the step's batch below this */
  double seconds;       /* in all calls of sl_trainer_run together */
  /* The mean loss of the last 100 steps (of those that have one) has not fallen below (1 -
  ** plateau_delta) of its best for this many steps (at most 2^24); 0 <=
  ** plateau_delta < 1. */
  long plateau;
  double plateau_delta;
} sl_stop;

typedef struct sl_trainer_spec {
  /* Recorded for one shard, its loss set, gradients of the parameters
  ** wanted. */
  const sl_program *program;
  sl_tensor *parameters; /* one flat storage, 1 axis */
  sl_tensor *loss;       /* scalar: mean over the shard */
  /* NULL, or scalar >= 0: the batch's loss is the mean of the shards' losses
  ** with these weights (counted targets). A shard of weight 0 counts for
  ** nothing; a batch of weight 0 has loss NaN and a gradient of zero, meets no
  ** stop test and is a step all the same. */
  sl_tensor *weight;
  sl_tensor *max_abs_error; /* NULL, or scalar: the batch's is the largest */
  long batch;               /* sequences a step */
  long shard;               /* sequences a replay */
  int groups; /* divides batch / shard; each has a gradient in memory */
  sl_optimizer optimizer;
  const sl_point *schedule; /* learning rate; copied */
  int n_points;
  sl_stop stop;
  uint64_t seed;
} sl_trainer_spec;

/* How a batch is cut where *shard or *groups is 0: 8 groups, fewer for models
** so large that another gradient costs more than a group's products; shards
** whose values (bytes_per_token, with gradients) stay in the second-level
** cache. The numbers depend on no thread and no machine, so neither do the
** bits. -1 and a sentence when a given number does not divide. */
int sl_trainer_cut (long batch, long seq_len, size_t parameters,
                    double bytes_per_token, long *shard, long *groups,
                    sl_error *e);

typedef enum sl_stopped {
  SL_RUNNING,
  SL_STOP_MAX_ABS_ERROR,
  SL_STOP_LOSS,
  SL_STOP_PLATEAU,
  SL_STOP_SECONDS,
  SL_STOP_INTERRUPTED,
  SL_STOP_NOT_FINITE,
  SL_STOP_FAILED /* an op of the script: sl_trainer_error says what */
} sl_stopped;
/* "max_abs_error", ... as in run.json. */
const char *sl_stopped_name (sl_stopped s);

typedef struct sl_progress {
  long step; /* updates done */
  /* Of the last batch; NaN before the first, and max_abs_error in programs
  ** without one. */
  double loss, max_abs_error;
  double lr; /* of the last update; of the next one before the first */
  /* 2-norm of the last gradient before clipping; NaN before the first. */
  double gradient_norm;
  double seconds; /* spent in sl_trainer_run so far */
  sl_stopped stopped;
} sl_progress;

/* The trainer keeps references to the tensors; the program and the context's
** pool must outlive it. NULL and a sentence on sizes, shapes or settings that
** do not fit. */
typedef struct sl_trainer sl_trainer;
sl_trainer *sl_trainer_new (sl_context *c, const sl_trainer_spec *spec,
                            sl_error *e);
void sl_trainer_free (sl_trainer *t); /* NULL is allowed */
/* Run until 'until_step' updates are done or 'seconds' (0: no limit) have
** passed in this call (SL_RUNNING), a stop test holds, sl_interrupted is set,
** the loss or the gradient is not finite, or an op of the script fails (*p
** then shows the last whole batch). When a stop test on the batch holds,
** something is not finite or fails, that step's update is not applied: as in
** the paper's code the model that passed the test is the model that is kept.
** Update number s (from 1) draws with { seed, s, index of the sequence }. No
** allocation, no Lua unless the program calls it. Denormal numbers are zero
** (base/denormals.h). */
void sl_trainer_run (sl_trainer *t, long until_step, double seconds,
                     sl_progress *p);
const sl_error *sl_trainer_error (const sl_trainer *t); /* SL_STOP_FAILED */
/* Checkpoints. A training's state is its parameters, this flat tensor (state
** of the optimizer, then that of the plateau test), and two numbers of
** sl_progress: step and seconds. A new trainer of the same spec whose
** parameters and state are overwritten with saved ones, after
** sl_trainer_resume, gives the bits of the training that was never
** interrupted, on any number of threads. The tensor belongs to the trainer;
** read and write it between calls of sl_trainer_run. */
sl_tensor *sl_trainer_state (sl_trainer *t);
/* Sets step and seconds: the next update is number step + 1. -1: a count below
** 0 or above 2^32 - 2. */
int sl_trainer_resume (sl_trainer *t, long step, double seconds, sl_error *e);

/* Where the time of steps goes, in seconds summed since the profile began. */
typedef struct sl_step_times {
  long steps;
  int workers;
  double replay; /* of the calling thread: all shards, and its waiting for
                 ** other threads */
  double busy;   /* of all workers: shards, without the waiting */
  double gather; /* the sum of the groups' gradients */
  double update; /* the optimizer */
} sl_step_times;
/* 1: start a profile at zero; 0: end it. Costs nothing when off. */
int sl_trainer_profile (sl_trainer *t, int on, sl_error *e);
/* All zero without a profile. */
sl_step_times sl_trainer_times (const sl_trainer *t);
/* Of node number 'node' (from 0) of the program, summed over workers. */
void sl_trainer_node_times (const sl_trainer *t, size_t node, double *forward,
                            double *backward);

/* Forward only on 'samples' fresh sequences (a multiple of shard), drawn from
** the stream of evaluation (step 0; training steps count from 1): mean loss
** and largest error (NaN without one). */
int sl_trainer_evaluate (sl_trainer *t, long samples, double *loss,
                         double *max_abs_error, sl_error *e);
#endif
