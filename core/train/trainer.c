/* trainer.c - the training loop: made, run until something ends it, resumed. */
#include "train/trainer.h"
#include "base/clock.h"
#include "base/denormals.h"
#include "base/interrupt.h"
#include "base/memory.h"
#include "base/number.h"
#include <math.h>
#include <string.h>

/* Gradients of groups begin at multiples of this many elements. */
enum { LINE = 64 };

static int check_scalar (const char *name, const sl_tensor *x,
                         const sl_tensor *parameters, sl_error *e) {
  char text[128];
  const sl_view v = sl_tensor_view (x);
  if (sl_view_count (&v) != 1)
    return sl_fail (e, "trainer: %s has shape %s, allowed is one number", name,
                    sl_shape_text (x->ndim, x->dim, text, sizeof text));
  if (x->storage->dtype != parameters->storage->dtype)
    return sl_fail (e, "trainer: %s is %s, the parameters are %s", name,
                    sl_dtype_name (x->storage->dtype),
                    sl_dtype_name (parameters->storage->dtype));
  return 0;
}

static int check_sizes (const sl_trainer_spec *s, sl_error *e) {
  if (s->shard < 1 || s->batch < 1 || s->batch % s->shard != 0)
    return sl_fail (e,
                    "trainer: a batch of %ld cannot be cut into shards of "
                    "%ld",
                    s->batch, s->shard);
  if (s->batch > UINT32_MAX)
    return sl_fail (e, "trainer: a batch of %ld, allowed is up to 2^32 - 1",
                    s->batch);
  if (s->groups < 1 || s->batch / s->shard % s->groups != 0)
    return sl_fail (e, "trainer: %ld shards cannot be cut into %d equal groups",
                    s->batch / s->shard, s->groups);
  return 0;
}

static int check_stop (const sl_trainer_spec *spec, sl_error *e) {
  const sl_stop *s = &spec->stop;
  if (!(s->max_abs_error >= 0) || !(s->loss >= 0) || !(s->seconds >= 0))
    return sl_fail (e,
                    "trainer: stop tests are max_abs_error %g, loss %g, "
                    "seconds %g, allowed are numbers of at least 0",
                    s->max_abs_error, s->loss, s->seconds);
  if (s->max_abs_error > 0 && spec->max_abs_error == NULL)
    return sl_fail (
        e,
        "trainer: stop.max_abs_error is %g, but there is no largest "
        "error to test (max_abs_error is missing)",
        s->max_abs_error);
  if (s->plateau < 0 || s->plateau > 1L << 24 ||
      !(s->plateau_delta >= 0 && s->plateau_delta < 1))
    return sl_fail (e,
                    "trainer: stop.plateau is %ld with plateau_delta %g, "
                    "allowed are 0 to 2^24 steps with 0 <= delta < 1",
                    s->plateau, s->plateau_delta);
  return 0;
}

static int check (const sl_trainer_spec *s, sl_error *e) {
  const sl_view v = sl_tensor_view (s->parameters);
  if (v.ndim != 1 || !sl_view_contiguous (&v))
    return sl_fail (e,
                    "trainer: the parameters must be one flat tensor, got "
                    "%d axes",
                    v.ndim);
  if (check_scalar ("loss", s->loss, s->parameters, e) < 0 ||
      (s->weight && check_scalar ("weight", s->weight, s->parameters, e) < 0) ||
      (s->max_abs_error && check_scalar ("max_abs_error", s->max_abs_error,
                                         s->parameters, e) < 0) ||
      check_sizes (s, e) < 0 || check_stop (s, e) < 0 ||
      sl_optimizer_check (&s->optimizer, e) < 0 ||
      sl_schedule_check (s->schedule, s->n_points, e) < 0)
    return -1;
  return 0;
}

static sl_tensor *new_state (const sl_trainer *t, sl_error *e) {
  size_t n = sl_optimizer_state (&t->spec.optimizer, t->n);
  ptrdiff_t dim;
  if (t->spec.stop.plateau > 0) n += SL_PLATEAU_STATE;
  dim = (ptrdiff_t)n;
  return sl_tensor_new (t->dtype, 1, &dim, e);
}

/* Where the replica has x. */
static const void *place_of (const sl_replica *r, const sl_tensor *x) {
  return x == NULL ? NULL : sl_replica_value (r, x).data;
}

static int make_replicas (sl_trainer *t, sl_error *e) {
  const int workers = sl_program_serial (t->spec.program)
                          ? 1
                          : sl_pool_workers (t->context->pool);
  const int most = sl_min_int (workers, t->spec.groups);
  t->replica = sl_alloc ((size_t)most, sizeof *t->replica);
  t->report = sl_alloc ((size_t)most, sizeof *t->report);
  if (t->replica == NULL || t->report == NULL)
    return sl_fail (e, "trainer: no memory");
  for (; t->replicas < most; t->replicas++) {
    sl_replica *r = sl_replica_new_training (t->spec.program, e);
    if (r == NULL) return -1;
    t->replica[t->replicas] = r;
    t->report[t->replicas] =
        (sl_reports){ place_of (r, t->spec.loss), place_of (r, t->spec.weight),
                      place_of (r, t->spec.max_abs_error) };
  }
  if (sl_replica_bind_gradient (t->replica[0], t->spec.parameters, t->slot,
                                NULL) < 0)
    return sl_fail (e, "trainer: the program computes no gradient of the "
                       "parameters (program:want (parameters) comes first)");
  return 0;
}

static sl_tensor *retain (sl_tensor *t) {
  return t ? sl_tensor_retain (t) : NULL;
}

sl_trainer *sl_trainer_new (sl_context *c, const sl_trainer_spec *spec,
                            sl_error *e) {
  sl_trainer *t;
  size_t slots;
  if (check (spec, e) < 0) return NULL;
  t = sl_alloc (1, sizeof *t);
  if (t == NULL) {
    sl_fail (e, "trainer: no memory");
    return NULL;
  }
  t->context = c;
  t->spec = *spec;
  retain (spec->parameters);
  retain (spec->loss);
  retain (spec->weight);
  retain (spec->max_abs_error);
  t->dtype = spec->parameters->storage->dtype;
  t->parameters = sl_tensor_view (spec->parameters);
  t->n = sl_view_count (&t->parameters);
  t->shards = spec->batch / spec->shard;
  t->chunks = sl_div_up (t->n, SL_CHUNK);
  t->last =
      (sl_progress){ .loss = NAN, .max_abs_error = NAN, .gradient_norm = NAN };
  t->schedule = sl_alloc ((size_t)spec->n_points, sizeof *t->schedule);
  t->result = sl_alloc ((size_t)t->shards, sizeof *t->result);
  t->squares = sl_alloc (t->chunks, sizeof *t->squares);
  t->offset = (size_t)spec->parameters->offset;
  t->stride = sl_round_up (spec->parameters->storage->count, LINE);
  if (sl_size_mul ((size_t)spec->groups, t->stride, &slots) == 0)
    t->slot = sl_alloc (slots, sl_dtype_size (t->dtype));
  if (!t->schedule || !t->result || !t->squares || !t->slot) {
    sl_fail (e, "trainer: no memory for %d gradients of %zu parameters",
             spec->groups, t->n);
    goto failed;
  }
  memcpy (t->schedule, spec->schedule,
          (size_t)spec->n_points * sizeof *t->schedule);
  t->spec.schedule = t->schedule;
  t->last.lr = sl_schedule_at (t->schedule, spec->n_points, 0);
  t->state = new_state (t, e);
  if (t->state == NULL || make_replicas (t, e) < 0) goto failed;
  return t;
failed:
  sl_trainer_free (t);
  return NULL;
}

void sl_trainer_free (sl_trainer *t) {
  if (t == NULL) return;
  for (int i = 0; i < t->replicas; i++) sl_replica_free (t->replica[i]);
  sl_free (t->replica);
  sl_free (t->report);
  sl_free (t->busy);
  sl_tensor_release (t->state);
  sl_free (t->slot);
  sl_free (t->squares);
  sl_free (t->result);
  sl_free (t->schedule);
  sl_tensor_release (t->spec.max_abs_error);
  sl_tensor_release (t->spec.weight);
  sl_tensor_release (t->spec.loss);
  sl_tensor_release (t->spec.parameters);
  sl_free (t);
}

/* The time, when a profile wants it. */
static double time_of (const sl_trainer *t) {
  return t->busy != NULL ? sl_now () : 0;
}

/* One step; SL_RUNNING when its update was applied. */
static sl_stopped step (sl_trainer *t) {
  sl_progress *p = &t->last;
  sl_plateau plateau = { 0 };
  sl_stopped stopped;
  double weight;
  const double began = time_of (t);
  double replayed, gathered;
  if (sl_trainer_batch (t, p, &weight) < 0) return SL_STOP_FAILED;
  replayed = time_of (t);
  if (weight != 0 && !isfinite (p->loss)) return SL_STOP_NOT_FINITE;
  stopped = sl_trainer_test (t, p, &plateau);
  if (stopped != SL_RUNNING) return stopped;
  p->gradient_norm = sl_trainer_gather (t, weight);
  gathered = time_of (t);
  if (!isfinite (p->gradient_norm)) return SL_STOP_NOT_FINITE;
  p->lr = sl_schedule_at (t->schedule, t->spec.n_points, (double)t->step);
  sl_trainer_update (t, p->gradient_norm, p->lr);
  sl_trainer_keep (t, p, &plateau);
  t->step++;
  t->times.replay += replayed - began;
  t->times.gather += gathered - replayed;
  t->times.update += time_of (t) - gathered;
  t->times.steps += t->busy != NULL;
  return SL_RUNNING;
}

void sl_trainer_run (sl_trainer *t, long until_step, double seconds,
                     sl_progress *p) {
  const sl_stop *stop = &t->spec.stop;
  const double start = sl_now (), before = t->seconds;
  const sl_denormals denormals = sl_denormals_set (SL_DENORMALS_FLUSH);
  sl_stopped stopped = SL_RUNNING;
  while (stopped == SL_RUNNING) {
    if (stop->seconds > 0 && t->seconds >= stop->seconds)
      stopped = SL_STOP_SECONDS;
    else if (sl_interrupted)
      stopped = SL_STOP_INTERRUPTED;
    else if (t->step >= until_step ||
             (seconds > 0 && t->seconds - before >= seconds))
      break;
    else {
      stopped = step (t);
      t->seconds = before + (sl_now () - start);
    }
  }
  sl_denormals_set (denormals);
  *p = t->last;
  p->step = t->step;
  p->seconds = t->seconds;
  p->stopped = stopped;
}

sl_tensor *sl_trainer_state (sl_trainer *t) {
  return t->state;
}

int sl_trainer_resume (sl_trainer *t, long steps, double seconds, sl_error *e) {
  if (steps < 0 || steps >= UINT32_MAX || !(seconds >= 0))
    return sl_fail (e,
                    "trainer: resume after %ld steps and %g seconds, "
                    "allowed are 0 to 2^32 - 2 steps, 0 seconds or more",
                    steps, seconds);
  t->step = steps;
  t->seconds = seconds;
  t->last.lr = sl_schedule_at (t->schedule, t->spec.n_points, (double)steps);
  return 0;
}
