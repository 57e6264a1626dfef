/* check_program.c - record, replay, gradients, threads, failing allocations,
** with the small operations of tiny_ops.h. */
#include "base/memory_test.h"
#include "program/program.h"
#include "support/suite.h"
#include "support/tiny_ops.h"
#include <math.h>
#include <string.h>

#define DIMS(...)       \
  (const ptrdiff_t[]) { \
    __VA_ARGS__         \
  }

static sl_error error;

/* Support. */

static sl_context start (int threads) {
  sl_context c;
  ck_assert_int_eq (tiny_ops_register (), 0);
  ck_assert_msg (sl_context_init (&c, threads, &error) == 0, "%s", error.text);
  return c;
}

static sl_tensor *numbers (int ndim, const ptrdiff_t *dim, double first,
                           double step) {
  sl_tensor *t = sl_tensor_new (SL_F64, ndim, dim, &error);
  double *x;
  if (t == NULL) return NULL;
  x = t->storage->data;
  for (size_t i = 0; i < t->storage->count; i++)
    x[i] = first + step * (double)i;
  return t;
}

static sl_tensor *apply1 (sl_context *c, const sl_op *op, const void *attr,
                          sl_tensor *a) {
  sl_tensor *out;
  if (a == NULL || sl_apply (c, op, attr, 1, &a, &out, &error) < 0) return NULL;
  return out;
}

static double number (sl_view v) {
  ck_assert_ptr_nonnull (v.data);
  return *(double *)v.data;
}

/* What a recording can meet: parameters as views of views of one flat storage,
** an input x (2, 3), noise (2, 3), broadcasting, a tensor used twice, both
** outputs of an operation used, branches that need no gradient.
**   h = x * w[1..2]; again = h * bias;
**   loss = total (again * noise) * sum (again^2) / 2 */
typedef struct model {
  sl_tensor *flat, *x, *h, *unused, *half, *noise, *loss;
  sl_program *p;
} model;

enum { FLAT = 14 };

static void release (sl_tensor **t) {
  sl_tensor_release (*t);
  *t = NULL;
}

static void model_free (model *m) {
  sl_tensor **all[] = { &m->flat, &m->x,     &m->h,   &m->unused,
                        &m->half, &m->noise, &m->loss };
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) release (all[i]);
  sl_program_free (m->p);
  m->p = NULL;
}

static int model_record (sl_context *c, model *m) {
  static const ptrdiff_t noise_shape[] = { 2, 3 };
  const tiny_total_attr scale = { 0.5 };
  sl_tensor *w = NULL, *part = NULL, *turned = NULL, *bias = NULL, *q = NULL,
            *out[2] = { NULL }, *again[2] = { NULL }, *last[2] = { NULL };
  int status = -1;
  *m = (model){ 0 };
  m->flat = numbers (1, DIMS (FLAT), -0.7, 0.1);
  m->x = numbers (2, DIMS (2, 3), 0.3, 0.2);
  if (m->flat == NULL || m->x == NULL) return -1;
  m->p = sl_program_begin (c, &error);
  if (m->p == NULL) return -1;
  /* part: rows 1 and 2 of numbers 0..11 as w (4, 3), turned and turned back */
  part = sl_tensor_narrow (m->flat, 0, 0, 12, &error);
  w = part ? sl_tensor_reshape (part, 2, DIMS (4, -1), &error) : NULL;
  release (&part);
  part = w ? sl_tensor_narrow (w, 0, 1, 2, &error) : NULL;
  turned = part ? sl_tensor_transpose (part, 0, 1, &error) : NULL;
  release (&part);
  part = turned ? sl_tensor_transpose (turned, 0, 1, &error) : NULL;
  bias = part ? sl_tensor_select (m->flat, 0, 13, &error) : NULL;
  if (bias == NULL) goto done;
  if (sl_apply (c, &tiny_noise, noise_shape, 0, NULL, &m->noise, &error) < 0)
    goto done;
  if (sl_apply (c, &tiny_blend, NULL, 2, (sl_tensor *[]){ m->x, part }, out,
                &error) < 0)
    goto done;
  m->h = sl_tensor_retain (out[0]);
  if (sl_apply (c, &tiny_blend, NULL, 2, (sl_tensor *[]){ out[0], bias }, again,
                &error) < 0) /* bias is broadcast from () */
    goto done;
  if (sl_apply (c, &tiny_blend, NULL, 2, (sl_tensor *[]){ again[0], m->noise },
                last, &error) < 0)
    goto done;
  m->unused = apply1 (c, &tiny_order, NULL, out[0]);
  m->half = sl_tensor_retain (out[1]);
  /* again[0] and again[1] both count */
  q = apply1 (c, &tiny_total, &scale, last[0]);
  if (m->unused == NULL || q == NULL) goto done;
  release (&last[0]);
  release (&last[1]);
  if (sl_apply (c, &tiny_blend, NULL, 2, (sl_tensor *[]){ q, again[1] }, last,
                &error) < 0)
    goto done;
  m->loss = sl_tensor_retain (last[0]);
  if (sl_program_want (m->p, m->flat, &error) < 0 ||
      sl_program_input (m->p, m->x, &error) < 0 ||
      sl_program_loss (m->p, m->loss, &error) < 0)
    goto done;
  status = 0;
done:
  sl_program_end (c, m->p);
  release (&w);
  release (&part);
  release (&turned);
  release (&bias);
  release (&q);
  for (int i = 0; i < 2; i++) {
    release (&out[i]);
    release (&again[i]);
    release (&last[i]);
  }
  return status;
}

static model recorded (sl_context *c) {
  model m;
  ck_assert_msg (model_record (c, &m) == 0, "%s", error.text);
  return m;
}

static sl_replica *replica (const sl_program *p) {
  sl_replica *r = sl_replica_new (p, &error);
  ck_assert_msg (r != NULL, "%s", error.text);
  return r;
}

/* The model's loss in plain C. */
static double model_loss (const double *flat, const double *x,
                          const sl_draw *draw) {
  double half = 0, sum = 0;
  for (int i = 0; i < 2; i++)
    for (int j = 0; j < 3; j++) {
      double again = x[3 * i + j] * flat[3 * (i + 1) + j] * flat[13];
      half += again * again / 2;
      sum += 0.5 * sin (again * tiny_noise_at (draw, (uint32_t)i, (uint32_t)j));
    }
  return sum * half;
}

/* Tests. */

START_TEST (replay_follows_draw_parameters_and_inputs) {
  sl_context c = start (1);
  const sl_draw draws[] = { { 3, 1, 0 }, { 3, 2, 128 }, { 99, 1, 0 } };
  double x[6], *flat;
  model m;
  sl_replica *r;
  c.draw = (sl_draw){ 42, 5, 6 };
  m = recorded (&c);
  flat = m.flat->storage->data;
  sl_tensor_to_doubles (m.x, x);
  CLOSE (number (sl_tensor_view (m.loss)), model_loss (flat, x, &c.draw), 0,
         1e-14, "at once");
  r = replica (m.p);
  for (int i = 0; i < 3; i++) {
    sl_view v = sl_replica_value (r, m.x);
    flat[4] += 0.25;                        /* shared: read where it lies */
    x[5] = ((double *)v.data)[5] = 0.1 * i; /* the replica's own */
    ck_assert_ptr_ne (v.data, m.x->storage->data);
    sl_replica_forward (r, &draws[i], NULL);
    CLOSE (number (sl_replica_value (r, m.loss)),
           model_loss (flat, x, &draws[i]), 0, 1e-14, "draw %d", i);
  }
  ck_assert (sl_replica_value (r, m.flat).data == m.flat->storage->data);
  ck_assert (sl_program_serial (m.p));
  sl_replica_free (r);
  model_free (&m);
  sl_context_free (&c);
}
END_TEST

START_TEST (gradients_match_differences) {
  sl_context c = start (1);
  const sl_draw draw = { 8, 1, 0 };
  model m = recorded (&c);
  sl_replica *r = replica (m.p);
  sl_view g = sl_replica_gradient (r, m.flat);
  double *flat = m.flat->storage->data, x[6], sum = 0;
  sl_tensor_to_doubles (m.x, x);
  sl_replica_forward (r, &draw, NULL);
  tiny_backward_calls = 0;
  sl_replica_backward (r, 1);
  ck_assert_int_eq (tiny_backward_calls, 5);
  for (int i = 0; i < FLAT; i++) {
    double h = 1e-4, keep = flat[i], d;
    flat[i] = keep + h;
    d = model_loss (flat, x, &draw);
    flat[i] = keep - h;
    d = (d - model_loss (flat, x, &draw)) / (2 * h);
    flat[i] = keep;
    CLOSE (((double *)g.data)[i], d, 1e-8, 1e-6, "gradient of number %d", i);
    sum += fabs (d);
  }
  ck_assert_double_gt (sum, 0.01);
  /* added to, scaled by the seed, zeroed */
  sum = ((double *)g.data)[13];
  sl_replica_backward (r, -3);
  CLOSE (((double *)g.data)[13], -2 * sum, 0, 1e-13, "1 - 3 times");
  sl_replica_zero (r);
  for (int i = 0; i < FLAT; i++)
    CLOSE (((double *)g.data)[i], 0, 0, 0, "zeroed %d", i);
  /* only what is needed has a gradient */
  ck_assert_ptr_null (sl_replica_gradient (r, m.x).data);
  ck_assert_ptr_null (sl_replica_gradient (r, m.unused).data);
  ck_assert_ptr_null (sl_replica_gradient (r, m.half).data);
  ck_assert_ptr_null (sl_replica_gradient (r, m.noise).data);
  ck_assert_ptr_nonnull (sl_replica_gradient (r, m.h).data);
  sl_replica_free (r);
  model_free (&m);
  sl_context_free (&c);
}
END_TEST

START_TEST (gradients_of_inputs_and_of_what_is_not_reached) {
  sl_context c = start (1);
  model m = recorded (&c);
  sl_replica *r;
  const double *g;
  ck_assert_int_eq (sl_program_want (m.p, m.x, &error), 0);
  ck_assert_int_eq (sl_program_want (m.p, m.unused, &error), 0);
  r = replica (m.p);
  for (int i = 0; i < 2; i++) {
    double x[6], h = 1e-5, up, down;
    sl_draw draw = { 8, 1, 0 };
    sl_replica_zero (r);
    sl_replica_forward (r, &draw, NULL);
    sl_replica_backward (r, 1);
    sl_tensor_to_doubles (m.x, x);
    x[2] += h;
    up = model_loss (m.flat->storage->data, x, &draw);
    x[2] -= 2 * h;
    down = model_loss (m.flat->storage->data, x, &draw);
    g = sl_replica_gradient (r, m.x).data;
    CLOSE (g[2], (up - down) / (2 * h), 1e-8, 1e-6, "dx[2], round %d", i);
    g = sl_replica_gradient (r, m.unused).data;
    CLOSE (*g, 0, 0, 0, "no path to the loss");
  }
  sl_replica_free (r);
  model_free (&m);
  sl_context_free (&c);
}
END_TEST

START_TEST (check_tells_right_from_wrong) {
  sl_context c = start (1);
  const tiny_total_attr one = { 1 };
  const sl_op *const ops[] = { &tiny_total, &tiny_wrong };
  double worst = -1, before[FLAT], after[FLAT];
  model m = recorded (&c);
  sl_tensor_to_doubles (m.flat, before);
  ck_assert_int_eq (sl_program_check (m.p, 0, 4, &worst, &error), 0);
  CLOSE (worst, 0, 1e-9, 0, "all elements, seed 4");
  ck_assert_int_eq (sl_program_check (m.p, 5, 9, &worst, &error), 0);
  CLOSE (worst, 0, 1e-9, 0, "5 elements, seed 9");
  sl_tensor_to_doubles (m.flat, after);
  ck_assert_mem_eq (before, after, sizeof before);
  for (int i = 0; i < 2; i++) {
    sl_program *p = sl_program_begin (&c, &error);
    sl_tensor *y = apply1 (&c, ops[i], &one, m.flat);
    sl_program_end (&c, p);
    ck_assert_int_eq (sl_program_check (p, 0, 4, &worst, &error), -1);
    ck_assert_str_eq (error.text, "check: the program has no loss");
    ck_assert_int_eq (sl_program_loss (p, y, &error), 0);
    ck_assert_int_eq (sl_program_check (p, 0, 4, &worst, &error), -1);
    ck_assert_str_eq (error.text, "check: no gradient is wanted");
    ck_assert_int_eq (sl_program_want (p, m.flat, &error), 0);
    ck_assert_int_eq (sl_program_check (p, 3, 4, &worst, &error), 0);
    if (i == 0) CLOSE (worst, 0, 1e-10, 0, "right");
    if (i == 1) CLOSE (worst, 1e-3, 5e-4, 0, "wrong by 0.1 %%");
    sl_tensor_release (y);
    sl_program_free (p);
  }
  model_free (&m);
  sl_context_free (&c);
}
END_TEST

START_TEST (replay_allocates_nothing) {
  sl_context c = start (1);
  const sl_draw draw = { 1, 1, 0 };
  model m = recorded (&c);
  sl_replica *r = replica (m.p);
  size_t made = sl_alloc_count ();
  for (int i = 0; i < 3; i++) {
    sl_replica_zero (r);
    sl_replica_forward (r, &draw, NULL);
    sl_replica_backward (r, 1);
    (void)sl_replica_gradient (r, m.flat);
  }
  ck_assert_uint_eq (sl_alloc_count (), made);
  ck_assert_uint_gt (sl_replica_bytes (r), 8 * (FLAT + 6 * 10));
  sl_replica_free (r);
  model_free (&m);
  sl_context_free (&c);
}
END_TEST

typedef struct shards {
  sl_replica *replica[8];
} shards;

static void run_shard (void *context, int index, int worker) {
  shards *s = context;
  sl_draw draw = { 77, 1, (uint32_t)(2 * index) };
  (void)worker;
  sl_replica_zero (s->replica[index]);
  for (int i = 0; i < 50; i++) {
    sl_replica_forward (s->replica[index], &draw, NULL);
    sl_replica_backward (s->replica[index], 1);
    draw.step++;
  }
}

START_TEST (same_bits_on_any_number_of_threads) {
  static const int threads[] = { 1, 2, 5 };
  double first[8][FLAT];
  for (int k = 0; k < 3; k++) {
    sl_context c = start (threads[k]);
    model m = recorded (&c);
    shards s;
    for (int i = 0; i < 8; i++) s.replica[i] = replica (m.p);
    sl_pool_run (c.pool, 8, run_shard, &s);
    for (int i = 0; i < 8; i++) {
      const void *g = sl_replica_gradient (s.replica[i], m.flat).data;
      if (k == 0)
        memcpy (first[i], g, sizeof first[i]);
      else
        ck_assert_msg (memcmp (first[i], g, sizeof first[i]) == 0,
                       "shard %d differs on %d threads", i, threads[k]);
      sl_replica_free (s.replica[i]);
    }
    ck_assert_msg (memcmp (first[0], first[1], sizeof first[0]) != 0,
                   "shards draw different samples");
    model_free (&m);
    sl_context_free (&c);
  }
}
END_TEST

START_TEST (every_failing_allocation_leaks_nothing) {
  sl_context c = start (1);
  size_t live = sl_alloc_live ();
  int failures = 0, ok = 0;
  for (long n = 0; !ok; n++) {
    sl_replica *r = NULL;
    double worst;
    model m;
    error.text[0] = '\0';
    sl_alloc_fail_after (n);
    ok = model_record (&c, &m) == 0 && (r = sl_replica_new (m.p, &error)) &&
         sl_program_check (m.p, 2, 1, &worst, &error) == 0;
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
  ck_assert_int_gt (failures, 40);
  sl_context_free (&c);
}
END_TEST

START_TEST (failures_name_operation_and_shapes) {
  sl_context c = start (1);
  sl_tensor *a = numbers (2, DIMS (2, 3), 0, 1),
            *b = numbers (1, DIMS (4), 0, 1), *out[SL_MAX_OUT] = { NULL };
  sl_tensor *single = sl_tensor_new (SL_F32, 1, DIMS (3), &error);
  sl_program *p = sl_program_begin (&c, &error);
  size_t live = sl_alloc_live ();
  const struct {
    const sl_op *op;
    int n;
    sl_tensor *in[2];
    const char *text;
  } cases[] = {
    { &tiny_blend,
      2,
      { a, b },
      "blend: shapes (2, 3) and (4) do not broadcast" },
    { &tiny_blend, 1, { a }, "blend: got 1 inputs, takes 2 to 2" },
    { &tiny_blend,
      2,
      { a, single },
      "blend: input 1 is f64 but input 2 is f32; convert one of them with to" },
    { &tiny_total, 1, { a }, "total: needs attributes" },
    { &tiny_refuse, 1, { a }, "refuse: never" },
    { &tiny_order, 1, { single }, "order: the f64 operation got a f32 input" },
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    ck_assert_int_eq (
        sl_apply (&c, cases[i].op, NULL, cases[i].n, cases[i].in, out, &error),
        -1);
    ck_assert_str_eq (error.text, cases[i].text);
    ck_assert_uint_eq (sl_program_nodes (p), 0);
    ck_assert_uint_eq (sl_alloc_live (), live);
  }
  ck_assert_ptr_null (sl_program_begin (&c, &error));
  ck_assert_str_eq (error.text, "record: another program is being recorded");
  ck_assert_ptr_null (sl_apply_named (&c, "blond", NULL, 1, &a, &error));
  ck_assert_str_eq (error.text,
                    "no operation is called 'blond' (did you mean 'blend'?)");
  ck_assert_ptr_null (
      sl_apply_named (&c, "noise", DIMS (1, 1), 0, NULL, &error));
  ck_assert_ptr_null (
      sl_apply_named (&c, "blend", NULL, 2, (sl_tensor *[]){ a, a }, &error));
  ck_assert_str_eq (error.text, "blend: makes more than one output");
  ck_assert_int_eq (sl_program_loss (p, a, &error), -1);
  ck_assert_str_eq (error.text, "loss: must be one number, got shape (2, 3)");
  ck_assert_int_eq (sl_program_want (p, b, &error), -1);
  ck_assert_str_eq (error.text,
                    "want: no operation of the program uses this tensor");
  sl_program_end (&c, p);
  sl_program_free (p);
  sl_tensor_release (a);
  sl_tensor_release (b);
  sl_tensor_release (single);
  sl_context_free (&c);
}
END_TEST

START_TEST (op_indices_observers_and_text) {
  sl_context c = start (1);
  double seen = 7;
  sl_tensor *a = numbers (2, DIMS (2, 3), 0, 1), *x[3];
  sl_program *p = sl_program_begin (&c, &error);
  sl_replica *r;
  char *text;
  for (int i = 0; i < 3; i++) x[i] = apply1 (&c, &tiny_order, NULL, a);
  ck_assert_int_eq (sl_program_input (p, x[0], &error), -1);
  ck_assert_str_eq (error.text,
                    "input: an operation of the program made this tensor");
  ck_assert_int_eq (sl_program_loss (p, x[0], &error), 0);
  sl_program_end (&c, p);
  CLOSE (number (sl_tensor_view (x[2])), 200, 0, 0, "at once");
  r = replica (p);
  sl_replica_forward (r, NULL, &seen);
  for (int i = 0; i < 3; i++)
    CLOSE (number (sl_replica_value (r, x[i])), 100 * i + 7, 0, 0, "node %d",
           i);
  sl_replica_forward (r, NULL, NULL);
  CLOSE (number (sl_replica_value (r, x[1])), 100, 0, 0, "no observer");
  sl_replica_backward (r, 1); /* nothing is wanted: nothing happens */
  ck_assert (!sl_program_serial (p));
  text = sl_program_text (p);
  ck_assert_str_eq (text, "   1  order (2, 3) -> ()\n"
                          "   2  order (2, 3) -> ()\n"
                          "   3  order (2, 3) -> ()\n");
  sl_free (text);
  ck_assert (sl_program_uses (p, a));
  sl_replica_free (r);
  sl_program_free (p);
  for (int i = 0; i < 3; i++) sl_tensor_release (x[i]);
  sl_tensor_release (a);
  sl_context_free (&c);
}
END_TEST

/* More storages than the table of slots begins with: it grows and still finds
** all. */
START_TEST (long_programs) {
  enum { N = 500 };
  sl_context c = start (1);
  size_t live = sl_alloc_live ();
  sl_tensor *w[N], *out[2], *x = numbers (0, NULL, 1, 0);
  sl_program *p = sl_program_begin (&c, &error);
  sl_replica *r;
  double product = 1;
  for (int i = 0; i < N; i++) {
    w[i] = numbers (0, NULL, 1 + (i % 7 - 3) * 0.01, 0);
    product *= 1 + (i % 7 - 3) * 0.01;
    ck_assert_int_eq (sl_apply (&c, &tiny_blend, NULL, 2,
                                (sl_tensor *[]){ x, w[i] }, out, &error),
                      0);
    ck_assert_int_eq (sl_program_want (p, w[i], &error), 0);
    sl_tensor_release (x);
    sl_tensor_release (out[1]);
    x = out[0];
  }
  sl_program_end (&c, p);
  ck_assert_uint_eq (sl_program_nodes (p), N);
  ck_assert_int_eq (sl_program_loss (p, x, &error), 0);
  r = replica (p);
  sl_replica_forward (r, NULL, NULL);
  sl_replica_backward (r, 1);
  CLOSE (number (sl_replica_value (r, x)), product, 0, 1e-12, "product");
  for (int i = 0; i < N; i++) {
    CLOSE (number (sl_replica_gradient (r, w[i])),
           product / (1 + (i % 7 - 3) * 0.01), 0, 1e-11, "factor %d", i);
    sl_tensor_release (w[i]);
  }
  sl_tensor_release (x);
  sl_program_free (p); /* the replica still has it */
  sl_replica_forward (r, NULL, NULL);
  sl_replica_free (r);
  ck_assert_uint_eq (sl_alloc_live (), live);
  sl_context_free (&c);
}
END_TEST

SUITE_MAIN ("program", replay_follows_draw_parameters_and_inputs,
            gradients_match_differences,
            gradients_of_inputs_and_of_what_is_not_reached,
            check_tells_right_from_wrong, replay_allocates_nothing,
            same_bits_on_any_number_of_threads,
            every_failing_allocation_leaks_nothing,
            failures_name_operation_and_shapes, op_indices_observers_and_text,
            long_programs)
