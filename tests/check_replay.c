/* check_replay.c - a small model of real operations: replay is what ran at
** once, gradients are right, bits do not depend on threads, nothing leaks. */
#include "base/memory_test.h"
#include "ops/ops.h"
#include "program/program.h"
#include "support/suite.h"
#include <math.h>
#include <string.h>

enum { B = 3, T = 4, D = 6, PARAMETERS = 3 * D * D + 2 * D };

static sl_error error;

/* Everything that a recording makes; released together. */
typedef struct model {
  sl_dtype dtype;
  int n;
  sl_tensor *made[64];
  sl_tensor *flat, *loss, *weights, *x;
  sl_program *p;
} model;

/* Keep t (NULL stays NULL, and all that follows from it). */
static sl_tensor *keep (model *m, sl_tensor *t) {
  ck_assert_int_lt (m->n, 64);
  if (t != NULL) m->made[m->n++] = t;
  return t;
}

/* An operation of one or two inputs. */
static sl_tensor *call1 (model *m, sl_context *c, const char *name,
                         const void *attr, sl_tensor *a) {
  if (a == NULL) return NULL;
  return keep (m, sl_apply_named (c, name, attr, 1, &a, &error));
}

static sl_tensor *call2 (model *m, sl_context *c, const char *name,
                         const void *attr, sl_tensor *a, sl_tensor *b) {
  sl_tensor *in[] = { a, b };
  if (a == NULL || b == NULL) return NULL;
  return keep (m, sl_apply_named (c, name, attr, 2, in, &error));
}

static sl_tensor *part (model *m, sl_tensor *t, ptrdiff_t from, int ndim,
                        const ptrdiff_t *dim) {
  ptrdiff_t n = 1;
  sl_tensor *v;
  for (int i = 0; i < ndim; i++) n *= dim[i];
  v = t ? keep (m, sl_tensor_narrow (t, 0, from, n, &error)) : NULL;
  return v ? keep (m, sl_tensor_reshape (v, ndim, dim, &error)) : NULL;
}

static sl_tensor *turn (model *m, sl_tensor *t, int a, int b) {
  return t ? keep (m, sl_tensor_transpose (t, a, b, &error)) : NULL;
}

/* One head of attention with a residual and a norm, written out:
**   x = normal (B, T, D); h = rms_norm (x, gamma); q, k, v = h w^T
**   weights = softmax (q k^T); y = concat (x + weights v, h) bias
**   loss = mse (y, x twice) + mean (sin (h)) */
static int record (sl_context *c, model *m, sl_dtype dtype) {
  static const ptrdiff_t square[] = { D, D }, row[] = { D };
  const sl_random_attr draw = {
    .stream = 3, .ndim = 3, .dim = { B, T, D }, .a = 0, .b = 1
  };
  const sl_norm_attr eps = { 1e-5 };
  const sl_axis_attr last = { -1 };
  const sl_reduce_attr all = { 0 };
  sl_tensor *w[3], *gamma, *bias, *h, *q, *k, *v, *y, *twice, *a;
  const sl_op *normal = sl_op_find (dtype, "normal", &error);
  ptrdiff_t count = PARAMETERS;
  *m = (model){ .dtype = dtype };
  m->flat = keep (m, sl_tensor_new (dtype, 1, &count, &error));
  if (m->flat == NULL) return -1;
  for (int i = 0; i < PARAMETERS; i++) {
    sl_view all_of_it = sl_tensor_view (m->flat);
    sl_view_set (&all_of_it, dtype, (size_t)i, cos (3.0 * i) * 0.6);
  }
  m->p = sl_program_begin (c, &error);
  if (m->p == NULL) return -1;
  for (int i = 0; i < 3; i++) w[i] = part (m, m->flat, i * D * D, 2, square);
  gamma = part (m, m->flat, 3 * D * D, 1, row);
  bias = part (m, m->flat, 3 * D * D + D, 1, row);
  if (gamma == NULL || bias == NULL || w[0] == NULL || w[1] == NULL ||
      w[2] == NULL || sl_apply (c, normal, &draw, 0, NULL, &m->x, &error) < 0)
    goto failed;
  keep (m, m->x);
  h = call2 (m, c, "rms_norm", &eps, m->x, gamma);
  q = call2 (m, c, "linear", NULL, h, w[0]);
  k = turn (m, call2 (m, c, "linear", NULL, h, w[1]), 1, 2);
  v = call2 (m, c, "linear", NULL, h, w[2]);
  if (k == NULL || v == NULL) goto failed;
  m->weights =
      call1 (m, c, "softmax", &last, call2 (m, c, "matmul", NULL, q, k));
  if (m->weights == NULL) goto failed;
  y = call2 (m, c, "matmul", NULL, m->weights, v);
  y = call2 (m, c, "add", NULL, m->x, y);
  y = y ? call2 (m, c, "concat", &last, y, h) : NULL;
  if (y == NULL) goto failed;
  /* (B, T, 2D) as (B, T, 2, D): the bias is broadcast over all but the last */
  y = keep (m, sl_tensor_reshape (y, 4, (ptrdiff_t[]){ B, T, 2, -1 }, &error));
  y = call2 (m, c, "mul", NULL, y, bias);
  twice = keep (
      m, sl_tensor_reshape (m->x, 4, (ptrdiff_t[]){ B, T, 1, D }, &error));
  twice = twice ? keep (m, sl_tensor_broadcast (
                               twice, 4, (ptrdiff_t[]){ B, T, 2, D }, &error))
                : NULL;
  if (y == NULL || twice == NULL) goto failed;
  a = call1 (m, c, "mean", &all, call1 (m, c, "sin", NULL, h));
  if (a == NULL) goto failed;
  m->loss = call2 (m, c, "add", NULL, call2 (m, c, "mse", NULL, y, twice), a);
  sl_program_end (c, m->p);
  if (m->loss == NULL || sl_program_want (m->p, m->flat, &error) < 0 ||
      sl_program_loss (m->p, m->loss, &error) < 0)
    return -1;
  return 0;
failed:
  sl_program_end (c, m->p);
  return -1;
}

static void model_free (model *m) {
  while (m->n > 0) sl_tensor_release (m->made[--m->n]);
  sl_program_free (m->p);
  m->p = NULL;
}

static sl_context start (int threads) {
  sl_context c;
  ck_assert_msg (sl_context_init (&c, threads, &error) == 0, "%s", error.text);
  c.draw = (sl_draw){ 11, 1, 0 };
  return c;
}

static model recorded (sl_context *c, sl_dtype dtype) {
  model m;
  ck_assert_msg (record (c, &m, dtype) == 0, "%s", error.text);
  return m;
}

static sl_replica *replica (const model *m) {
  sl_replica *r = sl_replica_new (m->p, &error);
  ck_assert_msg (r != NULL, "%s", error.text);
  return r;
}

static double at (sl_view v, sl_dtype dtype, size_t i) {
  ck_assert_ptr_nonnull (v.data);
  return sl_view_get (&v, dtype, i);
}

START_TEST (replay_is_what_ran_at_once) {
  for (int d = SL_F32; d <= SL_F64; d++) {
    sl_context c = start (1);
    const sl_draw other = { 11, 2, 0 };
    model m = recorded (&c, (sl_dtype)d);
    sl_replica *r = replica (&m);
    size_t made = sl_alloc_count ();
    double first = at (sl_tensor_view (m.loss), m.dtype, 0);
    sl_replica_forward (r, &other, NULL);
    ck_assert_msg (at (sl_replica_value (r, m.loss), m.dtype, 0) != first,
                   "another step draws other numbers");
    sl_replica_forward (r, &c.draw, NULL);
    CLOSE (at (sl_replica_value (r, m.loss), m.dtype, 0), first, 0, 0,
           "the loss again");
    for (size_t i = 0; i < B * T * T; i++)
      CLOSE (at (sl_replica_value (r, m.weights), m.dtype, i),
             at (sl_tensor_view (m.weights), m.dtype, i), 0, 0, "weight %zu",
             i);
    sl_replica_backward (r, 1);
    ck_assert_uint_eq (sl_alloc_count (), made);
    sl_replica_free (r);
    model_free (&m);
    sl_context_free (&c);
  }
}
END_TEST

START_TEST (gradients_agree_with_differences) {
  sl_context c = start (1);
  model m = recorded (&c, SL_F64);
  double worst = -1;
  ck_assert_msg (sl_program_check (m.p, 0, 5, &worst, &error) == 0, "%s",
                 error.text);
  CLOSE (worst, 0, 1e-9, 0, "all %d parameters, seed 5", PARAMETERS);
  model_free (&m);
  sl_context_free (&c);
}
END_TEST

START_TEST (single_precision_follows_double) {
  sl_context c = start (1);
  model m[2];
  sl_replica *r[2];
  for (int d = SL_F32; d <= SL_F64; d++) {
    m[d] = recorded (&c, (sl_dtype)d);
    r[d] = replica (&m[d]);
    sl_replica_forward (r[d], &c.draw, NULL);
    sl_replica_backward (r[d], 1);
  }
  CLOSE (at (sl_replica_value (r[0], m[0].loss), SL_F32, 0),
         at (sl_replica_value (r[1], m[1].loss), SL_F64, 0), 0, 2e-6, "loss");
  for (size_t i = 0; i < PARAMETERS; i++)
    CLOSE (at (sl_replica_gradient (r[0], m[0].flat), SL_F32, i),
           at (sl_replica_gradient (r[1], m[1].flat), SL_F64, i), 2e-6, 2e-5,
           "gradient %zu", i);
  for (int d = SL_F32; d <= SL_F64; d++) {
    sl_replica_free (r[d]);
    model_free (&m[d]);
  }
  sl_context_free (&c);
}
END_TEST

enum { SHARDS = 7 };
typedef struct shards {
  sl_replica *replica[SHARDS];
} shards;

static void step (void *context, int index, int worker) {
  shards *s = context;
  (void)worker;
  sl_replica_zero (s->replica[index]);
  for (uint32_t i = 1; i <= 20; i++) {
    const sl_draw draw = { 4, i, (uint32_t)(B * index) };
    sl_replica_forward (s->replica[index], &draw, NULL);
    sl_replica_backward (s->replica[index], 1.0 / SHARDS);
  }
}

START_TEST (bits_do_not_depend_on_threads) {
  static const int threads[] = { 1, 2, 5 };
  float first[SHARDS][PARAMETERS];
  for (int k = 0; k < 3; k++) {
    sl_context c = start (threads[k]);
    model m = recorded (&c, SL_F32);
    shards s;
    for (int i = 0; i < SHARDS; i++) s.replica[i] = replica (&m);
    sl_pool_run (c.pool, SHARDS, step, &s);
    for (int i = 0; i < SHARDS; i++) {
      const void *g = sl_replica_gradient (s.replica[i], m.flat).data;
      if (k == 0) memcpy (first[i], g, sizeof first[i]);
      ck_assert_msg (memcmp (first[i], g, sizeof first[i]) == 0,
                     "shard %d differs on %d threads", i, threads[k]);
      sl_replica_free (s.replica[i]);
    }
    ck_assert (memcmp (first[0], first[1], sizeof first[0]) != 0);
    model_free (&m);
    sl_context_free (&c);
  }
}
END_TEST

START_TEST (samples_do_not_depend_on_the_cut) {
  sl_context c = start (1);
  model m = recorded (&c, SL_F64);
  sl_replica *r[2] = { replica (&m), replica (&m) };
  const sl_draw draws[] = { { 4, 1, 0 }, { 4, 1, B - 1 } };
  for (int i = 0; i < 2; i++) sl_replica_forward (r[i], &draws[i], NULL);
  for (size_t i = 0; i < T * D; i++) /* the last sample of one, the first of the
                                     ** other */
    CLOSE (at (sl_replica_value (r[0], m.x), SL_F64, (B - 1) * T * D + i),
           at (sl_replica_value (r[1], m.x), SL_F64, i), 0, 0, "number %zu", i);
  for (int i = 0; i < 2; i++) sl_replica_free (r[i]);
  model_free (&m);
  sl_context_free (&c);
}
END_TEST

/* Both have the same gradients of the parameters, to the bit. */
static void same_gradients (const model *m, const sl_replica *a,
                            const sl_replica *b) {
  for (size_t i = 0; i < PARAMETERS; i++)
    CLOSE (at (sl_replica_gradient (a, m->flat), m->dtype, i),
           at (sl_replica_gradient (b, m->flat), m->dtype, i), 0, 0,
           "parameter %zu", i);
}

/* What the step before left behind in the gradients of locals, or in the memory
** that is aimed at, must not show. */
START_TEST (gradients_begin_anew) {
  for (int d = SL_F32; d <= SL_F64; d++) {
    sl_context c = start (1);
    const sl_draw other = { 11, 2, 0 };
    model m = recorded (&c, (sl_dtype)d);
    sl_replica *used = replica (&m), *plain = replica (&m);
    sl_tensor *groups = sl_tensor_new (
        (sl_dtype)d, 2, (ptrdiff_t[]){ 2, 64 * ((PARAMETERS + 63) / 64) },
        &error);
    char *memory = sl_tensor_view (groups).data;
    const size_t bytes = groups->storage->count / 2 * sl_dtype_size (m.dtype);
    for (int round = 0; round < 3; round++)
      for (size_t g = 0; g < 2; g++) {
        ck_assert_int_eq (
            sl_replica_bind_gradient (used, m.flat, memory + g * bytes, &error),
            0);
        for (int shard = 0; shard < 2; shard++) {
          sl_replica_forward (used, g == 0 ? &c.draw : &other, NULL);
          sl_replica_backward (used, 0.5 + shard);
        }
      }
    sl_replica_forward (plain, &other, NULL);
    sl_replica_backward (plain, 0.5);
    sl_replica_backward (plain, 1.5);
    same_gradients (&m, used, plain);
    for (int k = 0; k < m.n; k++) {
      const sl_view a = sl_replica_gradient (used, m.made[k]);
      const sl_view b = sl_replica_gradient (plain, m.made[k]);
      for (size_t i = 0; b.data && i < sl_view_count (&b); i++)
        CLOSE (at (a, m.dtype, i), at (b, m.dtype, i), 0, 0,
               "tensor %d, element %zu", k, i);
    }
    sl_tensor_release (groups);
    sl_replica_free (used);
    sl_replica_free (plain);
    model_free (&m);
    sl_context_free (&c);
  }
}
END_TEST

/* Gradients that share memory are those that do not, in less of it. */
START_TEST (lean_replicas_have_the_same_bits) {
  for (int d = SL_F32; d <= SL_F64; d++) {
    sl_context c = start (1);
    model m = recorded (&c, (sl_dtype)d);
    sl_replica *plain = replica (&m);
    sl_replica *lean = sl_replica_new_training (m.p, &error);
    int inner = 0;
    ck_assert_msg (lean != NULL, "%s", error.text);
    for (uint32_t i = 1; i <= 3; i++) {
      const sl_draw draw = { 4, i, 0 };
      sl_replica_forward (plain, &draw, NULL);
      sl_replica_forward (lean, &draw, NULL);
      sl_replica_backward (plain, 0.5);
      sl_replica_backward (lean, 0.5);
    }
    same_gradients (&m, lean, plain);
    for (int k = 0; k < m.n; k++)
      if (m.made[k]->storage != m.flat->storage) {
        ck_assert_ptr_null (sl_replica_gradient (lean, m.made[k]).data);
        inner += sl_replica_gradient (plain, m.made[k]).data != NULL;
      }
    ck_assert_int_gt (inner, 8);
    ck_assert_msg (sl_replica_bytes (lean) < sl_replica_bytes (plain),
                   "%zu bytes, %zu without sharing", sl_replica_bytes (lean),
                   sl_replica_bytes (plain));
    sl_replica_free (lean);
    sl_replica_free (plain);
    model_free (&m);
    sl_context_free (&c);
  }
}
END_TEST

/* Only half of a value is read: the gradient of the rest is zero, not what was
** in its memory before. */
START_TEST (unread_elements_have_no_gradient) {
  static const sl_reduce_attr all = { 0 };
  const ptrdiff_t count = PARAMETERS;
  sl_context c = start (1);
  model m = { .dtype = SL_F64 };
  sl_tensor *whole, *half, *other;
  m.flat = keep (&m, sl_tensor_new (SL_F64, 1, &count, &error));
  sl_tensor_fill (m.flat, 0.3);
  m.p = sl_program_begin (&c, &error);
  whole = call1 (&m, &c, "sin", NULL, m.flat);
  half = keep (&m, sl_tensor_narrow (whole, 0, 0, count / 2, &error));
  half = call1 (&m, &c, "mean", &all, call1 (&m, &c, "exp", NULL, half));
  /* backward does this first, and gives its memory back */
  other = call1 (&m, &c, "sin", NULL, call1 (&m, &c, "exp", NULL, m.flat));
  other = call1 (&m, &c, "mean", &all, other);
  m.loss = call2 (&m, &c, "add", NULL, half, other);
  sl_program_end (&c, m.p);
  ck_assert_msg (m.loss && sl_program_want (m.p, m.flat, &error) == 0 &&
                     sl_program_loss (m.p, m.loss, &error) == 0,
                 "%s", error.text);
  sl_replica *lean = sl_replica_new_training (m.p, &error);
  for (int i = 0; i < 2; i++) {
    sl_replica_zero (lean);
    sl_replica_forward (lean, NULL, NULL);
    sl_replica_backward (lean, (double)count);
  }
  for (ptrdiff_t i = 0; i < count; i++)
    CLOSE (at (sl_replica_gradient (lean, m.flat), SL_F64, (size_t)i),
           cos (exp (0.3)) * exp (0.3) +
               (i < count / 2 ? 2 * exp (sin (0.3)) * cos (0.3) : 0),
           1e-12, 0, "parameter %td", i);
  sl_replica_free (lean);
  model_free (&m);
  sl_context_free (&c);
}
END_TEST

/* The program's loss is another one by the time that backward runs. */
START_TEST (a_replica_keeps_its_loss) {
  static const sl_reduce_attr all = { 0 };
  sl_context c = start (1);
  model m = { .dtype = SL_F64 };
  sl_tensor *other;
  m.flat = keep (&m, sl_tensor_new (SL_F64, 1, (ptrdiff_t[]){ 2 }, &error));
  sl_tensor_fill (m.flat, 0.3);
  m.p = sl_program_begin (&c, &error);
  m.loss = call1 (&m, &c, "sum", &all, call1 (&m, &c, "sin", NULL, m.flat));
  other = call1 (&m, &c, "sum", &all, call1 (&m, &c, "exp", NULL, m.flat));
  sl_program_end (&c, m.p);
  ck_assert_int_eq (sl_program_want (m.p, m.flat, &error), 0);
  ck_assert_int_eq (sl_program_loss (m.p, m.loss, &error), 0);
  sl_replica *r = replica (&m);
  ck_assert_int_eq (sl_program_loss (m.p, other, &error), 0);
  for (int i = 0; i < 2; i++) {
    sl_replica_zero (r);
    sl_replica_forward (r, NULL, NULL);
    sl_replica_backward (r, 1);
    CLOSE (at (sl_replica_gradient (r, m.flat), SL_F64, 1), cos (0.3), 1e-15, 0,
           "round %d", i);
  }
  sl_replica_free (r);
  model_free (&m);
  sl_context_free (&c);
}
END_TEST

START_TEST (only_gradients_of_parameters_can_be_aimed) {
  sl_context c = start (1);
  model m = recorded (&c, SL_F32);
  sl_replica *r = replica (&m);
  ck_assert_int_eq (sl_replica_bind_gradient (r, m.weights, &m, &error), -1);
  ck_assert (strstr (error.text, "or makes the tensor itself"));
  ck_assert_int_eq (sl_replica_bind_gradient (r, m.x, &m, NULL), -1);
  sl_replica_free (r);
  model_free (&m);
  sl_context_free (&c);
}
END_TEST

START_TEST (every_failing_allocation_leaks_nothing) {
  sl_context c = start (1);
  size_t live = sl_alloc_live ();
  int failures = 0, ok = 0;
  for (long n = 0; !ok; n++) {
    sl_replica *r = NULL;
    model m;
    sl_alloc_fail_after (n);
    ok = record (&c, &m, SL_F32) == 0 &&
         (r = sl_replica_new_training (m.p, &error)) != NULL;
    sl_alloc_fail_after (-1);
    sl_replica_free (r);
    model_free (&m);
    ck_assert_ptr_null (c.recording);
    ck_assert_msg (sl_alloc_live () == live,
                   "%zu blocks leak after failure %ld: %s",
                   sl_alloc_live () - live, n, error.text);
    if (!ok)
      ck_assert_msg (strstr (error.text, "out of memory") != NULL, "%ld: '%s'",
                     n, error.text);
    failures += !ok;
  }
  ck_assert_int_gt (failures, 80);
  sl_context_free (&c);
}
END_TEST

SUITE_MAIN ("replay", replay_is_what_ran_at_once,
            gradients_agree_with_differences, single_precision_follows_double,
            bits_do_not_depend_on_threads, samples_do_not_depend_on_the_cut,
            gradients_begin_anew, lean_replicas_have_the_same_bits,
            unread_elements_have_no_gradient, a_replica_keeps_its_loss,
            only_gradients_of_parameters_can_be_aimed,
            every_failing_allocation_leaks_nothing)
