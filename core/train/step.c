/* step.c - one training step: replay the shards, sum, update. */
#include "base/clock.h"
#include "base/denormals.h"
#include "base/memory.h"
#include "train/trainer.h"
#include <math.h>
#include <string.h>

/* Updates of fewer parameters than this are done by the calling thread: waking
** the pool would cost more. */
enum { ALONE = 1 << 16 };

/* The number of a replica that lies there; def: nowhere. */
static double scalar (const sl_trainer *t, const void *at, double def) {
  if (at == NULL) return def;
  return t->dtype == SL_F32 ? (double)*(const float *)at : *(const double *)at;
}

static int forward (const sl_trainer *t, int replica, long step, long shard,
                    sl_shard_result *result) {
  const sl_draw draw = { t->spec.seed, (uint32_t)step,
                         (uint32_t)(shard * t->spec.shard) };
  const sl_reports *at = &t->report[replica];
  if (sl_replica_forward (t->replica[replica], &draw, NULL) < 0) return -1;
  *result =
      (sl_shard_result){ scalar (t, at->loss, NAN), scalar (t, at->weight, 1),
                         scalar (t, at->max_abs_error, NAN) };
  return 0;
}

/* Only a serial program, which has one replica, can fail. */
static int failed (const sl_trainer *t) {
  return *sl_replica_error (t->replica[0])->text ? -1 : 0;
}

const sl_error *sl_trainer_error (const sl_trainer *t) {
  return sl_replica_error (t->replica[0]);
}

/* The mean loss and the largest error of n shards, in their order; NaN where
** none counts. NaN in any that counts stays; a negative or NaN weight gives NaN.
** Returns the total weight. */
static double reduce (const sl_shard_result *r, long n, double *loss,
                      double *max_abs_error) {
  double sum = 0, total = 0, most = 0;
  for (long i = 0; i < n; i++) {
    if (r[i].weight == 0) continue;
    total += r[i].weight < 0 ? NAN : r[i].weight;
    sum += r[i].weight * r[i].loss;
    if (!isnan (most) && !(r[i].max_abs_error <= most))
      most = r[i].max_abs_error;
  }
  *loss = sum / total; /* 0 / 0 is NaN */
  *max_abs_error = total == 0 ? NAN : most;
  return total;
}

/* Task: one group's gradient, on the worker's replica; which one leaves no
** trace in the result. */
static void run_group (void *context, int index, int worker) {
  sl_trainer *t = context;
  sl_replica *r = t->replica[worker];
  const long per_group = t->shards / t->spec.groups;
  const size_t bytes = t->stride * sl_dtype_size (t->dtype);
  const double began = t->busy != NULL ? sl_now () : 0;
  char *gradient = (char *)t->slot + (size_t)index * bytes;
  int any = 0;
  sl_replica_bind_gradient (r, t->spec.parameters, gradient, NULL);
  for (long s = index * per_group; s < (index + 1) * per_group; s++) {
    if (forward (t, worker, t->step + 1, s, &t->result[s]) < 0) return;
    if (t->result[s].weight == 0) continue;
    sl_replica_backward (r, t->result[s].weight);
    any = 1;
  }
  if (!any) memset (gradient, 0, bytes);
  if (t->busy != NULL) t->busy[worker] += sl_now () - began;
}

/* A program that calls the script runs on the calling thread, as do single
** tasks. */
static void spread (sl_trainer *t, int n, void (*task) (void *, int, int),
                    void *context) {
  if (n == 1)
    task (context, 0, 0);
  else
    sl_pool_run (t->context->pool, n, task, context);
}

int sl_trainer_batch (sl_trainer *t, sl_progress *p, double *weight) {
  if (t->replicas == 1) {
    int g = 0;
    do run_group (t, g, 0); /* after a failure the script is not called again */
    while (!failed (t) && ++g < t->spec.groups);
  } else
    sl_pool_run (t->context->pool, t->spec.groups, run_group, t);
  if (failed (t)) return -1;
  *weight = reduce (t->result, t->shards, &p->loss, &p->max_abs_error);
  return 0;
}

typedef struct gather_job {
  sl_trainer *trainer;
  double scale;
} gather_job;

static void gather_chunk (void *context, int index, int worker) {
  const gather_job *job = context;
  sl_trainer *t = job->trainer;
  const size_t begin = (size_t)index * SL_CHUNK;
  char *at = (char *)t->slot + (t->offset + begin) * sl_dtype_size (t->dtype);
  (void)worker;
  t->squares[index] = sl_update_pick (t->dtype)->gather (
      t->n - begin < SL_CHUNK ? t->n - begin : SL_CHUNK, t->spec.groups,
      t->stride, at, job->scale, at);
}

static void each_chunk (sl_trainer *t, void (*task) (void *, int, int),
                        void *context) {
  if (t->n < ALONE)
    for (size_t i = 0; i < t->chunks; i++) task (context, (int)i, 0);
  else
    spread (t, (int)t->chunks, task, context);
}

double sl_trainer_gather (sl_trainer *t, double weight) {
  gather_job job = { t, weight == 0 ? 1 : 1 / weight };
  double sum = 0;
  each_chunk (t, gather_chunk, &job);
  for (size_t i = 0; i < t->chunks; i++) sum += t->squares[i];
  return sqrt (sum);
}

typedef struct update_job {
  sl_trainer *trainer;
  sl_factors factors;
  void *state;
} update_job;

static void update_chunk (void *context, int index, int worker) {
  const update_job *job = context;
  sl_trainer *t = job->trainer;
  const size_t begin = (size_t)index * SL_CHUNK;
  (void)worker;
  sl_optimizer_range (
      &t->spec.optimizer, &job->factors, t->dtype, t->n, begin,
      t->n - begin < SL_CHUNK ? t->n : begin + SL_CHUNK, t->parameters.data,
      (const char *)t->slot + t->offset * sl_dtype_size (t->dtype), job->state);
}

void sl_trainer_update (sl_trainer *t, double norm, double lr) {
  update_job job = {
    t, sl_optimizer_factors (&t->spec.optimizer, norm, lr, t->step + 1),
    sl_tensor_view (t->state).data
  };
  each_chunk (t, update_chunk, &job);
}

typedef struct evaluate_job {
  sl_trainer *trainer;
  sl_shard_result *result;
  long shards;
} evaluate_job;

static void run_evaluation (void *context, int index, int worker) {
  const evaluate_job *job = context;
  const sl_trainer *t = job->trainer;
  (void)worker;
  for (long s = job->shards * index / t->replicas;
       s < job->shards * (index + 1) / t->replicas; s++)
    if (forward (t, index, 0, s, &job->result[s]) < 0) return;
}

int sl_trainer_evaluate (sl_trainer *t, long samples, double *loss,
                         double *max_abs_error, sl_error *e) {
  evaluate_job job = { t, NULL, samples / t->spec.shard };
  if (samples < 1 || samples % t->spec.shard != 0 || samples > UINT32_MAX)
    return sl_fail (e,
                    "evaluate: %ld samples, allowed is a multiple of the "
                    "shard, %ld, up to 2^32 - 1",
                    samples, t->spec.shard);
  job.result = sl_alloc ((size_t)job.shards, sizeof *job.result);
  if (job.result == NULL) return sl_fail (e, "evaluate: no memory");
  const sl_denormals before = sl_denormals_set (SL_DENORMALS_FLUSH);
  spread (t, t->replicas, run_evaluation, &job);
  sl_denormals_set (before);
  if (!failed (t)) reduce (job.result, job.shards, loss, max_abs_error);
  sl_free (job.result);
  return failed (t) ? sl_fail (e, "evaluate: %s", sl_trainer_error (t)->text)
                    : 0;
}
