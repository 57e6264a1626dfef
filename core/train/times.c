/* times.c - where the time of a training step goes. */
#include "base/memory.h"
#include "train/trainer.h"

static int all_replicas (sl_trainer *t, int on, sl_error *e) {
  for (int i = 0; i < t->replicas; i++)
    if (sl_replica_profile (t->replica[i], on, e) < 0) return -1;
  return 0;
}

int sl_trainer_profile (sl_trainer *t, int on, sl_error *e) {
  sl_free (t->busy);
  t->busy = NULL;
  t->times = (sl_step_times){ .workers = on ? t->replicas : 0 };
  if (all_replicas (t, on, e) < 0) {
    all_replicas (t, 0, NULL);
    return -1;
  }
  if (!on) return 0;
  t->busy = sl_alloc ((size_t)t->replicas, sizeof *t->busy);
  if (t->busy != NULL) return 0;
  all_replicas (t, 0, NULL);
  return sl_fail (e, "profile: no memory for %d workers", t->replicas);
}

sl_step_times sl_trainer_times (const sl_trainer *t) {
  sl_step_times times = t->times;
  for (int i = 0; t->busy != NULL && i < t->replicas; i++)
    times.busy += t->busy[i];
  return times;
}

void sl_trainer_node_times (const sl_trainer *t, size_t node, double *forward,
                            double *backward) {
  *forward = *backward = 0;
  for (int i = 0; i < t->replicas; i++) {
    double f, b;
    sl_replica_times (t->replica[i], node, &f, &b);
    *forward += f;
    *backward += b;
  }
}
