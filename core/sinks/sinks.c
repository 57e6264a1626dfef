/* sinks.c - a labelled batch is run through a program, its weights watched. */
#include "sinks/sinks.h"
#include "base/interrupt.h"
#include "base/memory.h"
#include "base/number.h"
#include "sinks/collect.h"
#include <stdint.h>
#include <string.h>

/* Samples are cut into at most this many parts, whose sums of every head and
** token take at most this many bytes together. Neither depends on the number of
** threads, so the bits do not. */
enum { PARTS = 16 };
static const size_t PART_BYTES = (size_t)256 << 20;

typedef struct job {
  const sl_sinks_spec *spec;
  sl_collector *collector;
  sl_replica **replica;
  int replicas, parts;
  long shards, shard; /* how many, samples in each */
  sl_view *input;     /* [replicas][n_inputs]: the replica's copy */
  sl_view *batch;     /* [n_inputs] */
} job;

static int check_inputs (const sl_sinks_spec *s, long *samples, long *shard,
                         sl_error *e) {
  char a[128], b[128];
  if (s->n_inputs < 1)
    return sl_fail (e, "sinks: there are no inputs to feed the batch to");
  for (int i = 0; i < s->n_inputs; i++)
    if (!sl_program_is_input (s->program, s->inputs[i]))
      return sl_fail (e,
                      "sinks: input %d is no input of the program "
                      "(program:input (tensor) makes it one)",
                      i + 1);
  *shard = s->inputs[0]->ndim ? (long)s->inputs[0]->dim[0] : 0;
  *samples = s->batch[0]->ndim ? (long)s->batch[0]->dim[0] : 0;
  for (int i = 0; i < s->n_inputs; i++) {
    const sl_tensor *in = s->inputs[i], *x = s->batch[i];
    if (in->ndim < 1 || in->ndim != x->ndim || in->dim[0] != *shard ||
        x->dim[0] != *samples ||
        memcmp (in->dim + 1, x->dim + 1,
                (size_t)(in->ndim - 1) * sizeof *in->dim) != 0)
      return sl_fail (
          e,
          "sinks: batch %d has shape %s and its input %s, allowed are %ld "
          "samples and %ld a shard with the same other axes",
          i + 1, sl_shape_text (x->ndim, x->dim, a, sizeof a),
          sl_shape_text (in->ndim, in->dim, b, sizeof b), *samples, *shard);
  }
  if (*samples < 1 || *shard < 1 || *samples % *shard != 0)
    return sl_fail (e, "sinks: %ld samples cannot be cut into shards of %ld",
                    *samples, *shard);
  if (*samples > UINT32_MAX)
    return sl_fail (e, "sinks: %ld samples, allowed is up to 2^32 - 1",
                    *samples);
  return 0;
}

/* Elements first..first+n-1 along axis 0 of 'from' to all of 'to'. */
static void feed (const sl_view *to, const sl_view *from, sl_dtype from_dtype,
                  sl_dtype dtype, ptrdiff_t first) {
  const size_t count = sl_view_count (to);
  const size_t size = sl_dtype_size (dtype);
  sl_view x = *from;
  x.dim[0] = to->dim[0];
  x.data = (char *)x.data +
           first * x.stride[0] * (ptrdiff_t)sl_dtype_size (from_dtype);
  if (from_dtype == dtype && sl_view_contiguous (&x) &&
      sl_view_contiguous (to)) {
    memcpy (to->data, x.data, count * size);
    return;
  }
  for (size_t i = 0; i < count; i++)
    sl_view_set (to, dtype, i, sl_view_get (&x, from_dtype, i));
}

/* -1: the weights do not fit the spec, or the forward failed. */
static int run_part (const job *j, int replica, int part) {
  const sl_sinks_spec *s = j->spec;
  const sl_view *input = j->input + (size_t)replica * (size_t)s->n_inputs;
  const long begin = j->shards * part / j->parts;
  const long end = j->shards * (part + 1) / j->parts;
  for (long i = begin; i < end && !sl_interrupted; i++) {
    const sl_draw draw = { 0, 0, (uint32_t)(i * j->shard) };
    for (int k = 0; k < s->n_inputs; k++)
      feed (&input[k], &j->batch[k], s->batch[k]->storage->dtype,
            s->inputs[k]->storage->dtype, i * j->shard);
    sl_collect_begin (j->collector, part, i * j->shard, j->shard);
    if (sl_replica_forward (j->replica[replica], &draw,
                            (void *)sl_collect_observer (j->collector, part)) <
            0 ||
        sl_collect_end (j->collector, part) < 0)
      return -1;
  }
  return 0;
}

/* Task: a part on the worker's replica. */
static void run_one (void *context, int index, int worker) {
  const job *j = context;
  run_part (j, worker, index);
}

static void run_all (job *j, sl_pool *pool) {
  if (j->replicas == 1)
    for (int p = 0; p < j->parts && run_part (j, 0, p) == 0; p++) continue;
  else
    sl_pool_run (pool, j->parts, run_one, j);
}

static int make_collector (job *j, long samples, sl_error *e) {
  sl_collect_spec spec = { .measuring = j->spec->measuring,
                           .shard = j->shard,
                           .samples = samples };
  const size_t bytes = sl_collect_bytes (&spec.measuring, j->shard);
  j->parts = j->shards < PARTS ? (int)j->shards : PARTS;
  while (j->parts > 1 && bytes > PART_BYTES / (size_t)j->parts) j->parts--;
  spec.parts = j->parts;
  j->collector = sl_collect_new (&spec, e);
  return j->collector ? 0 : -1;
}

static int make_replicas (job *j, int workers, sl_error *e) {
  const sl_sinks_spec *s = j->spec;
  const int most = sl_min_int (workers, j->parts);
  size_t inputs;
  if (sl_size_mul ((size_t)most, (size_t)s->n_inputs, &inputs) < 0)
    return sl_fail (e, "sinks: too many inputs");
  j->replica = sl_alloc ((size_t)most, sizeof *j->replica);
  j->input = sl_alloc (inputs, sizeof *j->input);
  j->batch = sl_alloc ((size_t)s->n_inputs, sizeof *j->batch);
  if (!j->replica || !j->input || !j->batch)
    return sl_fail (e, "sinks: no memory");
  for (int k = 0; k < s->n_inputs; k++)
    j->batch[k] = sl_tensor_view (s->batch[k]);
  for (; j->replicas < most; j->replicas++) {
    sl_replica *r = sl_replica_new (s->program, e);
    if (r == NULL) return -1;
    j->replica[j->replicas] = r;
    for (int k = 0; k < s->n_inputs; k++)
      j->input[j->replicas * s->n_inputs + k] =
          sl_replica_value (r, s->inputs[k]);
  }
  return 0;
}

sl_sinks *sl_sinks_measure (sl_context *c, const sl_sinks_spec *spec,
                            sl_error *e) {
  job j = { .spec = spec };
  sl_sinks *sinks = NULL;
  long samples = 0;
  const int serial = sl_program_serial (spec->program);
  const int workers = serial ? 1 : sl_pool_workers (c->pool);
  if (check_inputs (spec, &samples, &j.shard, e) < 0 ||
      sl_measuring_check (&spec->measuring, samples, e) < 0)
    return NULL;
  j.shards = samples / j.shard;
  if (make_collector (&j, samples, e) == 0 &&
      make_replicas (&j, workers, e) == 0) {
    run_all (&j, c->pool);
    if (sl_interrupted)
      sl_fail (e, "interrupted");
    else if (serial && *sl_replica_error (j.replica[0])->text)
      sl_fail (e, "sinks: %s", sl_replica_error (j.replica[0])->text);
    else
      sinks = sl_collect_finish (j.collector, e);
  }
  for (int i = 0; i < j.replicas; i++) sl_replica_free (j.replica[i]);
  sl_free (j.replica);
  sl_free (j.input);
  sl_free (j.batch);
  sl_collect_free (j.collector);
  return sinks;
}
