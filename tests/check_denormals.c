/* check_denormals.c - denormal numbers: what flushes them, what keeps them, and on
** which threads. */
#include "base/denormals.h"
#include "base/pool.h"
#include "ops/op.h"
#include "support/optimizer.h"
#include "support/suite.h"
#include "train/train.h"
#include <math.h>

/* Products of normal numbers that are denormal. */
static const float small = 1e-30f, factor = 1e-10f;
enum { TASKS = 40, N = 64, MOST_THREADS = 3 };

static int is_denormal (float x) {
  return fpclassify (x) == FP_SUBNORMAL;
}

typedef struct count {
  int result[TASKS], input[TASKS];
} count;

/* Whether a denormal result and a denormal input are more than 0. */
static void note (void *context, int index, int worker) {
  count *c = context;
  const volatile float x = small, y = factor, tiny = 1e-40f, big = 1e10f;
  (void)worker;
  c->result[index] = x * y != 0;
  c->input[index] = tiny * big != 0;
}

START_TEST (tasks_are_treated_as_their_caller) {
  for (int threads = 1; threads <= MOST_THREADS; threads++) {
    sl_pool *pool = sl_pool_new (threads, NULL);
    for (int run = 0; run < 6; run++) { /* by turns */
      count c = { { 0 }, { 0 } };
      const sl_denormals mode =
          run % 2 ? SL_DENORMALS_FLUSH : SL_DENORMALS_KEEP;
      const sl_denormals before = sl_denormals_set (mode);
      ck_assert_int_eq (before, SL_DENORMALS_KEEP);
      sl_pool_run (pool, TASKS, note, &c);
      ck_assert_int_eq (sl_denormals_set (before), mode);
      for (int i = 0; i < TASKS; i++) {
        ck_assert_msg (c.result[i] == !(run % 2),
                       "task %d of run %d, %d threads: result %d", i, run,
                       threads, c.result[i]);
        ck_assert_msg (c.input[i] == !(run % 2),
                       "task %d of run %d, %d threads: input %d", i, run,
                       threads, c.input[i]);
      }
    }
    sl_pool_free (pool);
  }
}
END_TEST

static sl_tensor *filled (double x, int ndim, const ptrdiff_t *dim) {
  sl_tensor *t = sl_tensor_new (SL_F32, ndim, dim, NULL);
  ck_assert_ptr_nonnull (t);
  sl_tensor_fill (t, x);
  return t;
}

/* How many numbers of op (x, y), filled with 'a' and 'b', are denormal; the others
** are 0. */
static int denormals_of (sl_context *c, const char *op, double a, double b) {
  const ptrdiff_t dim[] = { N, N };
  sl_tensor *const in[] = { filled (a, 2, dim), filled (b, 2, dim) };
  sl_error e = { "" };
  sl_tensor *y = sl_apply_named (c, op, NULL, 2, in, &e);
  int n = 0;
  ck_assert_msg (y != NULL, "%s", e.text);
  for (int i = 0; i < N * N; i++) {
    const float x = ((const float *)y->storage->data)[i];
    ck_assert_msg (x == 0 || is_denormal (x), "%s: %g", op, (double)x);
    n += is_denormal (x);
  }
  for (int i = 0; i < 2; i++) sl_tensor_release (in[i]);
  sl_tensor_release (y);
  return n;
}

START_TEST (products_flush_and_others_do_not) {
  for (int threads = 1; threads <= MOST_THREADS; threads++) {
    sl_context c;
    ck_assert_int_eq (sl_context_init (&c, threads, NULL), 0);
    ck_assert_int_eq (denormals_of (&c, "mul", 1e-30, 1e-10), N * N);
    ck_assert_int_eq (denormals_of (&c, "mul", 1e-40, 10), N * N);
    ck_assert_int_eq (denormals_of (&c, "matmul", 1e-30, 1e-10), 0);
    ck_assert_int_eq (denormals_of (&c, "matmul", 1e-42, 1e2), 0);
    ck_assert_int_eq (denormals_of (&c, "linear", 1e-30, 1e-10), 0);
    ck_assert_int_eq (denormals_of (&c, "linear", 1e2, 1e-42), 0);
    ck_assert_int_eq (sl_denormals_current (), SL_DENORMALS_KEEP);
    sl_context_free (&c);
  }
}
END_TEST

/* An op whose loss is how many products with its parameters are not 0. */
static int shapes (sl_shape_query *q, sl_error *e) {
  (void)e;
  q->n_out = 1;
  return 0;
}

static void forward (const sl_run *r) {
  const volatile float y = factor;
  float n = 0;
  for (ptrdiff_t j = 0; j < r->in[0].dim[0]; j++)
    n += ((const float *)r->in[0].data)[j] * y != 0;
  *(float *)r->out[0].data = n;
}

/* The gradient is denormal: kept, it would change the parameters. */
static void backward (const sl_run *r) {
  const volatile float x = small, y = factor;
  for (ptrdiff_t j = 0; j < r->in[0].dim[0]; j++)
    ((float *)r->din[0].data)[j] += x * y;
}

static const sl_op counting = { .name = "counting",
                                .min_in = 1,
                                .max_in = 1,
                                .shapes = shapes,
                                .forward = forward,
                                .backward = backward };

START_TEST (training_flushes) {
  static const sl_point rate = { 0, 1, SL_CURVE_HOLD };
  for (int threads = 1; threads <= MOST_THREADS; threads++) {
    const ptrdiff_t n = N;
    sl_context c;
    sl_error e = { "" };
    sl_program *p;
    sl_tensor *w = filled (1e-30, 1, &n), *loss;
    sl_progress progress;
    double mean, largest;
    ck_assert_int_eq (sl_context_init (&c, threads, NULL), 0);
    p = sl_program_begin (&c, &e);
    ck_assert_int_eq (sl_apply (&c, &counting, NULL, 1, &w, &loss, &e), 0);
    ck_assert_msg (*(float *)loss->storage->data == N, "at once: %g",
                   (double)*(float *)loss->storage->data);
    sl_program_end (&c, p);
    ck_assert_int_eq (sl_program_want (p, w, &e), 0);
    ck_assert_int_eq (sl_program_loss (p, loss, &e), 0);
    const sl_trainer_spec spec = { .program = p,
                                   .parameters = w,
                                   .loss = loss,
                                   .batch = 12,
                                   .shard = 1,
                                   .groups = 12,
                                   .optimizer = optimizer_of ("sgd", NULL),
                                   .schedule = &rate,
                                   .n_points = 1 };
    sl_trainer *t = sl_trainer_new (&c, &spec, &e);
    ck_assert_msg (t != NULL, "%s", e.text);
    sl_trainer_run (t, 5, 0, &progress);
    ck_assert_int_eq (progress.step, 5);
    ck_assert_double_eq (progress.loss, 0);
    ck_assert_double_eq (progress.gradient_norm, 0);
    ck_assert_int_eq (sl_trainer_evaluate (t, 12, &mean, &largest, &e), 0);
    ck_assert_double_eq (mean, 0);
    ck_assert_int_eq (sl_denormals_current (), SL_DENORMALS_KEEP);
    for (int j = 0; j < N; j++)
      ck_assert (((const float *)w->storage->data)[j] == small);
    sl_trainer_free (t);
    sl_program_free (p);
    sl_tensor_release (loss);
    sl_tensor_release (w);
    sl_context_free (&c);
  }
}
END_TEST

SUITE_MAIN ("denormals", tasks_are_treated_as_their_caller,
            products_flush_and_others_do_not, training_flushes)
