/* trainer.h - a trainer's parts, for the files that make one. */
#ifndef SL_TRAINER_H
#define SL_TRAINER_H
#include "train/train.h"
#include "train/update.h"

/* Results of one replay. */
typedef struct sl_shard_result {
  double loss, weight, max_abs_error;
} sl_shard_result;

/* Addresses of these numbers in a replica; NULL: the program has none. */
typedef struct sl_reports {
  const void *loss, *weight, *max_abs_error;
} sl_reports;

/* A running mean of losses, all in numbers that the state tensor holds
** exactly. */
enum { SL_PLATEAU_WINDOW = 100, SL_PLATEAU_STATE = SL_PLATEAU_WINDOW + 2 };
typedef struct sl_plateau {
  double best; /* lowest mean so far, from the first whole window on */
  long since;  /* updates since then */
} sl_plateau;

struct sl_trainer {
  sl_context *context;
  sl_trainer_spec spec; /* tensors retained, schedule owned */
  sl_point *schedule;
  sl_dtype dtype;
  size_t n; /* parameters */
  sl_view parameters;
  sl_replica **replica; /* one a worker that may run */
  sl_reports *report;   /* one a replica */
  int replicas;
  long shards;             /* a step */
  sl_shard_result *result; /* [shards] */
  /* [groups][stride]: gradients of the parameters' storage, in which they begin
  ** at 'offset'; the sum over groups goes to group 0. */
  void *slot;
  size_t stride, offset;
  double *squares; /* [chunks]: of the summed gradient */
  size_t chunks;
  sl_tensor *state;
  long step; /* updates done */
  double seconds;
  sl_progress last; /* loss and errors of the last batch */
  double *busy;     /* per replica: seconds in shards; NULL: no profile */
  sl_step_times times;
};

/* One batch with the parameters as they are: fills loss and max_abs_error of *p
** and the total weight, and leaves the groups' gradients in t->slot. -1 when
** the program failed: nothing is filled. */
int sl_trainer_batch (sl_trainer *t, sl_progress *p, double *weight);
/* t->slot's sum over 'weight', in slot 0; returns its 2-norm. */
double sl_trainer_gather (sl_trainer *t, double weight);
void sl_trainer_update (sl_trainer *t, double norm, double lr);

/* The stop test that the batch's loss and largest error meet, or SL_RUNNING.
** The plateau's next state goes to *next, to be kept when the update is
** applied. */
sl_stopped sl_trainer_test (const sl_trainer *t, const sl_progress *p,
                            sl_plateau *next);
void sl_trainer_keep (sl_trainer *t, const sl_progress *p,
                      const sl_plateau *next);
#endif
