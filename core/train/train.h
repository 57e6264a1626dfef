/* train.h - optimisers, schedules and the training loop.
**
** A step: the batch is cut into 'groups' equal groups, each into shards of the size
** for which the program was recorded; every group has a gradient of its own, workers
** take groups, the gradients are summed in the order of the groups. So the bits of a
** step depend on batch, groups and shard, never on the number of threads. */
#ifndef SL_TRAIN_H
#define SL_TRAIN_H
#include "program/program.h"

/* Step sizes as data: the value holds, or moves to the next point in a straight line
** or half a cosine, ... Points are sorted by step; before the first and after the last
** the value is constant. */
typedef enum sl_curve { SL_HOLD, SL_LINEAR, SL_COSINE, SL_SQRT } sl_curve;
typedef struct sl_point {
  double step; /* counted from 0 */
  double value;
  sl_curve curve; /* from this point to the next; SL_SQRT: end + (start - end)
                  ** (1 - sqrt (share of the way)), the cooldown of WSD */
} sl_point;
double sl_schedule_at (const sl_point *points, int n, double step);
/* Make the points of the named schedules; return how many (at most max) or -1. */
int sl_schedule_points (const char *kind, const double *args, int n_args,
                        sl_point *points, int max, sl_error *e);

typedef enum sl_optimizer_kind { SL_SGD, SL_ADAM, SL_ADAMW } sl_optimizer_kind;
typedef struct sl_optimizer {
  sl_optimizer_kind kind;
  double beta1, beta2, eps; /* Adam: 0.9, 0.999, 1e-8 */
  double momentum;          /* SGD: 0 */
  int nesterov;             /* SGD */
  double weight_decay; /* SGD, Adam: added to the gradient; AdamW: decoupled */
  double
      clip_norm; /* 0: off; else gradients times min (1, clip / (norm + 1e-6)) */
} sl_optimizer;
/* One update of n parameters in place. state: sl_optimizer_state reals, zero at first.
** step counts from 1. gradient may be scaled in place (clipping). Returns the gradient's
** 2-norm (0 when clip_norm is 0). */
double sl_optimizer_update (const sl_optimizer *o, sl_dtype dtype, size_t n,
                            void *parameters, void *gradient, void *state,
                            double lr, long step);
size_t sl_optimizer_state (const sl_optimizer *o, size_t n);

/* Ends training when met; 0 turns a test off. */
typedef struct sl_stop {
  double linf; /* largest absolute error of the step's batch below this */
  double loss; /* loss of the step's batch below this */
  double seconds;
  long
      plateau; /* no loss lower by plateau_delta (relative) for this many steps, by a
                ** running mean over 100 steps */
  double plateau_delta;
} sl_stop;

typedef struct sl_trainer_spec {
  const sl_program
      *program; /* recorded for one shard; loss set; parameters wanted */
  sl_tensor *parameters; /* one flat storage, 1 axis */
  sl_tensor *loss;       /* scalar: mean over the shard */
  sl_tensor *weight; /* NULL, or scalar: the batch's loss is the mean of shard
                             ** losses with these weights (counted targets) */
  sl_tensor *linf;   /* NULL, or scalar: the batch's is the largest */
  long batch;        /* sequences a step */
  long shard;        /* sequences a replay */
  int groups;        /* divides batch / shard */
  sl_optimizer optimizer;
  const sl_point *schedule; /* learning rate; copied */
  int n_points;
  sl_stop stop;
  uint64_t seed;
} sl_trainer_spec;

typedef enum sl_stopped {
  SL_RUNNING,
  SL_STOP_LINF,
  SL_STOP_LOSS,
  SL_STOP_PLATEAU,
  SL_STOP_STEPS,
  SL_STOP_SECONDS,
  SL_STOP_INTERRUPTED,
  SL_STOP_NOT_FINITE
} sl_stopped;
const char *sl_stopped_name (sl_stopped s); /* "linf", ... as in run.json */

typedef struct sl_progress {
  long step; /* updates done */
  double loss, linf, lr, gradient_norm;
  double seconds; /* spent in sl_trainer_run so far */
  sl_stopped stopped;
} sl_progress;

typedef struct sl_trainer sl_trainer;
sl_trainer *sl_trainer_new (sl_context *c, const sl_trainer_spec *spec,
                            sl_error *e);
void sl_trainer_free (sl_trainer *t);
/* Run until 'until_step' updates are done, 'seconds' (0: no limit) have passed in this call,
** a stop test holds, sl_interrupted is set, or the loss is not finite (the update is then
** not applied). When a stop test on the batch holds, that step's update is not applied: as in
** the paper's code the model that passed the test is the model that is kept. */
void sl_trainer_run (sl_trainer *t, long until_step, double seconds,
                     sl_progress *p);
/* Optimiser state and counters as tensors (owned by the trainer), for checkpoints. */
sl_tensor *sl_trainer_state (sl_trainer *t);
void sl_trainer_resume (sl_trainer *t, long step, double seconds);

/* Forward only on 'samples' fresh sequences (a multiple of shard), drawn from the stream of
** evaluation (step 0; training steps count from 1): mean loss and largest error. */
int sl_trainer_evaluate (sl_trainer *t, long samples, double *loss,
                         double *linf, sl_error *e);
#endif
