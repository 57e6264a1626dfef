/* check_trainer.c - the training loop on a problem with a known solution.
**
** One operation makes the whole problem: parameters w, and for sample s of a
** step targets y(s, j) = j / n + noise from the counter-based generator; the
** loss is the mean of (w - y)^2 / 2 over the samples that count. */
#include "base/interrupt.h"
#include "base/memory_test.h"
#include "support/optimizer.h"
#include "support/suite.h"
#include "train/train.h"
#include <math.h>
#include <pthread.h>
#include <string.h>

typedef struct problem {
  int f32;
  long shard;
  double noise;
  int some;         /* 1: about a third of the samples do not count */
  int blows;        /* 1: loss NaN, 2: gradient infinite */
  int none_every;   /* in each step that this divides no sample counts */
  pthread_t thread; /* of the test, for the serial twin */
} problem;

static double target (const sl_draw *d, long s, size_t j, size_t n,
                      double noise) {
  uint32_t counter[4] = { (uint32_t)j, d->first_sample + (uint32_t)s, d->step,
                          1 },
           word[4];
  sl_philox (d->seed, counter, word);
  return (double)j / (double)n +
         noise * (sl_uniform53 (word[0], word[1]) - 0.5);
}

static int counts (const sl_draw *d, long s, const problem *p) {
  uint32_t counter[4] = { 0, d->first_sample + (uint32_t)s, d->step, 2 };
  uint32_t word[4];
  if (p->none_every && d->step % (uint32_t)p->none_every == 0) return 0;
  if (!p->some) return 1;
  sl_philox (d->seed, counter, word);
  return word[0] % 3 != 0;
}

static int shapes (sl_shape_query *q, sl_error *e) {
  (void)e;
  q->n_out = 3; /* loss, weight, max_abs_error */
  return 0;
}

static sl_dtype dtype_of (const problem *p) {
  return p->f32 ? SL_F32 : SL_F64;
}

static void forward (const sl_run *r) {
  const problem *p = r->attr;
  const size_t n = (size_t)r->in[0].dim[0];
  double loss = 0, max_abs_error = 0;
  long count = 0;
  for (long s = 0; s < p->shard; s++) {
    if (!counts (r->draw, s, p)) continue;
    count++;
    for (size_t j = 0; j < n; j++) {
      double d = sl_view_get (&r->in[0], dtype_of (p), j) -
                 target (r->draw, s, j, n, p->noise);
      loss += d * d / 2;
      max_abs_error = fmax (max_abs_error, fabs (d));
    }
  }
  if (p->blows == 1) loss = NAN;
  sl_view_set (&r->out[0], dtype_of (p), 0, count ? loss / (double)count : 0);
  sl_view_set (&r->out[1], dtype_of (p), 0, (double)count);
  sl_view_set (&r->out[2], dtype_of (p), 0, max_abs_error);
}

static void backward (const sl_run *r) {
  const problem *p = r->attr;
  const size_t n = (size_t)r->in[0].dim[0];
  const double seed = sl_view_get (&r->dout[0], dtype_of (p), 0);
  long count = 0;
  for (long s = 0; s < p->shard; s++) count += counts (r->draw, s, p);
  for (size_t j = 0; j < n; j++) {
    double g = sl_view_get (&r->din[0], dtype_of (p), j);
    for (long s = 0; s < p->shard; s++)
      if (counts (r->draw, s, p))
        g += seed / (double)count *
             (sl_view_get (&r->in[0], dtype_of (p), j) -
              target (r->draw, s, j, n, p->noise));
    if (p->blows == 2) g = HUGE_VAL;
    sl_view_set (&r->din[0], dtype_of (p), j, g);
  }
}

static void forward_here (const sl_run *r) {
  const problem *p = r->attr;
  ck_assert_msg (pthread_equal (p->thread, pthread_self ()),
                 "a serial program ran on another thread");
  forward (r);
}

static const sl_op toy = { .name = "toy",
                           .min_in = 1,
                           .max_in = 1,
                           .attr_size = sizeof (problem),
                           .shapes = shapes,
                           .forward = forward,
                           .backward = backward };
static const sl_op serial_toy = { .name = "serial_toy",
                                  .min_in = 1,
                                  .max_in = 1,
                                  .flags = SL_OP_SERIAL,
                                  .attr_size = sizeof (problem),
                                  .shapes = shapes,
                                  .forward = forward_here,
                                  .backward = backward };

/* A recorded problem and a trainer spec for it. */
typedef struct bench {
  sl_context context;
  sl_program *program;
  sl_tensor *w, *out[3];
  sl_trainer_spec spec;
} bench;

static const sl_point half = { 0, 0.5, SL_CURVE_HOLD };

static bench bench_new (const sl_op *op, problem p, ptrdiff_t n, int threads,
                        long batch, int groups) {
  bench b = { 0 };
  sl_error e;
  const sl_dtype dtype = dtype_of (&p);
  p.thread = pthread_self ();
  ck_assert_msg (sl_context_init (&b.context, threads, &e) == 0, "%s", e.text);
  b.w = sl_tensor_new (dtype, 1, &n, &e);
  ck_assert_msg (b.w != NULL, "%s", e.text);
  b.program = sl_program_begin (&b.context, &e);
  ck_assert_msg (b.program != NULL, "%s", e.text);
  ck_assert_msg (sl_apply (&b.context, op, &p, 1, &b.w, b.out, &e) == 0, "%s",
                 e.text);
  sl_program_end (&b.context, b.program);
  ck_assert_int_eq (sl_program_want (b.program, b.w, &e), 0);
  ck_assert_int_eq (sl_program_loss (b.program, b.out[0], &e), 0);
  b.spec = (sl_trainer_spec){ .program = b.program,
                              .parameters = b.w,
                              .loss = b.out[0],
                              .weight = b.out[1],
                              .max_abs_error = b.out[2],
                              .batch = batch,
                              .shard = p.shard,
                              .groups = groups,
                              .optimizer =
                                  optimizer_of ("sgd", "momentum", 0.5, NULL),
                              .schedule = &half,
                              .n_points = 1,
                              .seed = 7 };
  return b;
}

static void bench_free (bench *b) {
  sl_program_free (b->program);
  for (int i = 0; i < 3; i++) sl_tensor_release (b->out[i]);
  sl_tensor_release (b->w);
  sl_context_free (&b->context);
}

static sl_trainer *trainer_new (bench *b) {
  sl_error e = { "" };
  sl_trainer *t = sl_trainer_new (&b->context, &b->spec, &e);
  ck_assert_msg (t != NULL, "%s", e.text);
  return t;
}

static double weight_at (const bench *b, size_t j) {
  const sl_view v = sl_tensor_view (b->w);
  return sl_view_get (&v, b->w->storage->dtype, j);
}

/* The same training in plain loops over the whole batch. */
static void reference (const problem *p, size_t n, long batch, long steps,
                       double *w, double *loss) {
  double velocity[16] = { 0 };
  for (long step = 1; step <= steps; step++) {
    const sl_draw d = { 7, (uint32_t)step, 0 };
    double g[16] = { 0 };
    long count = 0;
    *loss = 0;
    for (long s = 0; s < batch; s++) {
      if (!counts (&d, s, p)) continue;
      count++;
      for (size_t j = 0; j < n; j++) {
        double x = w[j] - target (&d, s, j, n, p->noise);
        g[j] += x;
        *loss += x * x / 2;
      }
    }
    *loss /= (double)count;
    for (size_t j = 0; j < n; j++) {
      velocity[j] = 0.5 * velocity[j] + (count ? g[j] / (double)count : 0);
      w[j] -= 0.5 * velocity[j];
    }
  }
}

static const struct {
  long batch, shard;
  int groups;
} cuts[] = { { 24, 24, 1 }, { 24, 3, 8 }, { 24, 1, 2 }, { 24, 2, 4 } };

START_TEST (follows_the_reference) {
  for (size_t k = 0; k < sizeof cuts / sizeof *cuts; k++)
    for (int f32 = 0; f32 < 2; f32++) {
      const problem p = {
        .f32 = f32, .shard = cuts[k].shard, .noise = 1, .some = 1
      };
      bench b = bench_new (&toy, p, 5, 2, cuts[k].batch, cuts[k].groups);
      sl_trainer *t = trainer_new (&b);
      double w[5] = { 0 }, loss;
      sl_progress progress;
      reference (&p, 5, cuts[k].batch, 20, w, &loss);
      sl_trainer_run (t, 20, 0, &progress);
      ck_assert_int_eq (progress.stopped, SL_RUNNING);
      ck_assert_int_eq (progress.step, 20);
      CLOSE (progress.loss, loss, 0, f32 ? 1e-5 : 1e-13, "loss, cut %zu", k);
      for (size_t j = 0; j < 5; j++)
        CLOSE (weight_at (&b, j), w[j], f32 ? 1e-6 : 1e-14, 0,
               "parameter %zu, cut %zu, seed 7", j, k);
      sl_trainer_free (t);
      bench_free (&b);
    }
}
END_TEST

/* 70,000 parameters are summed and updated by the pool, 11 by one thread. */
START_TEST (bits_do_not_depend_on_threads) {
  static const int threads[] = { 1, 2, 5 };
  static const ptrdiff_t sizes[] = { 11, 70000 };
  for (int k = 0; k < 2; k++) {
    const size_t bytes = (size_t)sizes[k] * sizeof (float);
    float *first = sl_alloc ((size_t)sizes[k], sizeof *first);
    double loss = 0, norm = 0, eval = 0;
    ck_assert_ptr_nonnull (first);
    for (int i = 0; i < 3; i++) {
      const problem p = { .f32 = 1, .shard = 1, .noise = 1, .some = 1 };
      bench b = bench_new (&toy, p, sizes[k], threads[i], 7, 7);
      sl_trainer *t;
      sl_progress progress;
      double eval_loss, max_abs_error;
      b.spec.optimizer = optimizer_of ("adamw", "beta2", 0.99, "weight_decay",
                                       0.1, "clip_norm", 0.5, NULL);
      t = trainer_new (&b);
      sl_trainer_run (t, 2, 0, &progress);
      ck_assert_int_eq (
          sl_trainer_evaluate (t, 3, &eval_loss, &max_abs_error, NULL), 0);
      if (i == 0) {
        memcpy (first, sl_tensor_view (b.w).data, bytes);
        loss = progress.loss;
        norm = progress.gradient_norm;
        eval = eval_loss;
      }
      ck_assert_msg (memcmp (first, sl_tensor_view (b.w).data, bytes) == 0,
                     "%td parameters: other bits with %d threads", sizes[k],
                     threads[i]);
      ck_assert_double_eq (progress.loss, loss);
      ck_assert_double_eq (progress.gradient_norm, norm);
      ck_assert_double_eq (eval_loss, eval);
      sl_trainer_free (t);
      bench_free (&b);
    }
    sl_free (first);
  }
}
END_TEST

START_TEST (steps_allocate_nothing) {
  const problem p = { .shard = 2, .noise = 1 };
  bench b = bench_new (&toy, p, 5, 2, 8, 4);
  size_t before;
  sl_progress progress;
  sl_trainer *t;
  b.spec.stop =
      (sl_stop){ .plateau = 1000, .max_abs_error = 1e-9, .seconds = 1e9 };
  t = trainer_new (&b);
  before = sl_alloc_count ();
  sl_trainer_run (t, 200, 0, &progress);
  ck_assert_int_eq (progress.step, 200);
  ck_assert_uint_eq (sl_alloc_count () - before, 0);
  sl_trainer_free (t);
  bench_free (&b);
}
END_TEST

/* Without noise the error halves in a known way: lr 1/2, no momentum, from
** 0. */
static const struct {
  sl_stop stop;
  long step; /* updates done when it holds */
  sl_stopped stopped;
} stops[] = {
  { { .max_abs_error = 0.8 * 0.1251 }, 3, SL_STOP_MAX_ABS_ERROR },
  { { .loss = 0.6 * 0.016 }, 3, SL_STOP_LOSS },
  { { .seconds = 1e-9 }, 1, SL_STOP_SECONDS },
};

START_TEST (stop_tests) {
  for (size_t i = 0; i < sizeof stops / sizeof *stops; i++) {
    const problem p = { .shard = 1 };
    bench b = bench_new (&toy, p, 5, 1, 4, 2);
    sl_progress progress;
    sl_trainer *t;
    b.spec.optimizer = optimizer_of ("sgd", NULL);
    b.spec.stop = stops[i].stop;
    t = trainer_new (&b);
    /* a second call finds the same, and does nothing */
    for (int again = 0; again < 2; again++) {
      sl_trainer_run (t, 100, 0, &progress);
      ck_assert_int_eq (progress.stopped, stops[i].stopped);
      ck_assert_int_eq (progress.step, stops[i].step);
      CLOSE (weight_at (&b, 4), 0.8 * (1 - pow (0.5, (double)stops[i].step)),
             1e-15, 0, "%s: the parameters are kept",
             sl_stopped_name (progress.stopped));
    }
    sl_trainer_free (t);
    bench_free (&b);
  }
}
END_TEST

/* A step size of 0: the loss cannot fall, and 100 losses make the first
** mean. */
START_TEST (plateau) {
  static const sl_point zero = { 0, 0, SL_CURVE_HOLD };
  for (int f32 = 0; f32 < 2; f32++) {
    const problem p = { .shard = 1, .f32 = f32 };
    bench b = bench_new (&toy, p, 5, 1, 4, 2);
    sl_progress progress;
    sl_trainer *t;
    b.spec.schedule = &zero;
    b.spec.stop = (sl_stop){ .plateau = 30, .plateau_delta = 1e-3 };
    t = trainer_new (&b);
    sl_trainer_run (t, 1000, 0, &progress);
    ck_assert_int_eq (progress.stopped, SL_STOP_PLATEAU);
    ck_assert_int_eq (progress.step, 129); /* batch 130 is the 30th */
    sl_trainer_free (t);
    bench_free (&b);
  }
}
END_TEST

/* Slow but steady progress is no plateau; less than delta of it is. */
START_TEST (plateau_delta) {
  static const sl_point slow = { 0, 1e-4, SL_CURVE_HOLD };
  for (int strict = 0; strict < 2; strict++) {
    const problem p = { .shard = 1 };
    bench b = bench_new (&toy, p, 5, 1, 4, 2);
    sl_progress progress;
    sl_trainer *t;
    b.spec.schedule = &slow;
    b.spec.stop.plateau = 30;
    b.spec.stop.plateau_delta = strict ? 0.5 : 1e-6;
    t = trainer_new (&b);
    sl_trainer_run (t, 400, 0, &progress);
    ck_assert_int_eq (progress.stopped, strict ? SL_STOP_PLATEAU : SL_RUNNING);
    sl_trainer_free (t);
    bench_free (&b);
  }
}
END_TEST

/* A batch in which no sample counts is a step with a gradient of zero, and no loss
** for the plateau: with such a batch every second step as without. */
START_TEST (batches_without_targets) {
  static const sl_point zero = { 0, 0, SL_CURVE_HOLD };
  for (int f32 = 0; f32 < 2; f32++) {
    const problem p = { .f32 = f32, .shard = 2, .noise = 1, .none_every = 4 };
    bench b = bench_new (&toy, p, 5, 2, 8, 2);
    sl_trainer *t;
    double w[5] = { 0 }, loss;
    sl_progress progress;
    b.spec.stop = (sl_stop){ .loss = 1e-9, .max_abs_error = 1e-9 };
    t = trainer_new (&b);
    reference (&p, 5, 8, 22, w, &loss);
    sl_trainer_run (t, 20, 0, &progress);
    ck_assert_int_eq (progress.stopped, SL_RUNNING);
    ck_assert_double_nan (progress.loss);
    ck_assert_double_nan (progress.max_abs_error);
    ck_assert_double_eq (progress.gradient_norm, 0);
    sl_trainer_run (t, 22, 0, &progress);
    CLOSE (progress.loss, loss, 0, f32 ? 1e-5 : 1e-13, "loss, seed 7");
    for (size_t j = 0; j < 5; j++)
      CLOSE (weight_at (&b, j), w[j], f32 ? 1e-6 : 1e-14, 0,
             "parameter %zu, seed 7", j);
    sl_trainer_free (t);
    bench_free (&b);
  }
  for (int every = 2; every <= 100;
       every += 49) { /* batch 100 is the first mean */
    const problem p = { .shard = 1, .none_every = every };
    bench b = bench_new (&toy, p, 5, 1, 4, 2);
    sl_trainer *t;
    sl_progress progress;
    b.spec.schedule = &zero;
    b.spec.stop = (sl_stop){ .plateau = 30, .plateau_delta = 1e-3 };
    t = trainer_new (&b);
    sl_trainer_run (t, 1000, 0, &progress);
    ck_assert_int_eq (progress.stopped, SL_STOP_PLATEAU);
    ck_assert_int_eq (progress.step, 129);
    sl_trainer_free (t);
    bench_free (&b);
  }
}
END_TEST

START_TEST (not_finite_keeps_the_parameters) {
  for (int blows = 1; blows <= 2; blows++) {
    const problem p = { .shard = 1, .blows = blows };
    bench b = bench_new (&toy, p, 5, 2, 4, 2);
    sl_trainer *t = trainer_new (&b);
    sl_progress progress;
    sl_tensor_fill (b.w, 0.25);
    sl_trainer_run (t, 10, 0, &progress);
    ck_assert_int_eq (progress.stopped, SL_STOP_NOT_FINITE);
    ck_assert_int_eq (progress.step, 0);
    for (size_t j = 0; j < 5; j++)
      ck_assert_double_eq (weight_at (&b, j), 0.25);
    sl_trainer_free (t);
    bench_free (&b);
  }
}
END_TEST

START_TEST (interrupted) {
  const problem p = { .shard = 1 };
  bench b = bench_new (&toy, p, 5, 2, 4, 2);
  sl_trainer *t = trainer_new (&b);
  sl_progress progress;
  sl_trainer_run (t, 3, 0, &progress);
  sl_interrupted = SIGINT;
  sl_trainer_run (t, 10, 0, &progress);
  ck_assert_int_eq (progress.stopped, SL_STOP_INTERRUPTED);
  ck_assert_int_eq (progress.step, 3);
  sl_interrupted = 0;
  sl_trainer_run (t, 10, 0, &progress);
  ck_assert_int_eq (progress.stopped, SL_RUNNING);
  ck_assert_int_eq (progress.step, 10);
  sl_trainer_free (t);
  bench_free (&b);
}
END_TEST

/* Training in one piece, and broken off after 'at' steps. */
static void resumed (long at, long steps) {
  float w[2][5];
  sl_progress progress[2];
  for (int broken = 0; broken < 2; broken++) {
    const problem p = { .f32 = 1, .shard = 1, .noise = 1 };
    bench b = bench_new (&toy, p, 5, 2, 4, 2);
    sl_trainer *t, *next;
    sl_error e;
    b.spec.optimizer = optimizer_of ("adam", "beta2", 0.99, NULL);
    b.spec.stop = (sl_stop){ .plateau = 40, .plateau_delta = 0.01 };
    t = trainer_new (&b);
    if (broken) {
      sl_trainer_run (t, at, 0, &progress[1]);
      next = trainer_new (&b);
      ck_assert_int_eq (
          sl_tensor_copy (sl_trainer_state (next), sl_trainer_state (t), &e),
          0);
      ck_assert_int_eq (sl_trainer_resume (next, at, progress[1].seconds, &e),
                        0);
      sl_trainer_free (t);
      t = next;
    }
    sl_trainer_run (t, steps, 0, &progress[broken]);
    memcpy (w[broken], sl_tensor_view (b.w).data, sizeof w[broken]);
    sl_trainer_free (t);
    bench_free (&b);
  }
  ck_assert_int_eq (progress[1].step, progress[0].step);
  ck_assert_int_eq (progress[1].stopped, progress[0].stopped);
  ck_assert_int_eq (progress[0].stopped, SL_STOP_PLATEAU);
  ck_assert_double_eq (progress[1].loss, progress[0].loss);
  ck_assert_msg (memcmp (w[0], w[1], sizeof w[0]) == 0,
                 "other bits after a break at %ld", at);
}

START_TEST (resume) {
  resumed (30, 100000);
  resumed (110, 100000);
}
END_TEST

START_TEST (evaluation) {
  const problem p = { .shard = 3, .noise = 1, .some = 1 };
  const sl_draw d = { 7, 0, 0 };
  bench b = bench_new (&toy, p, 5, 2, 6, 2);
  sl_trainer *t = trainer_new (&b);
  double loss = 0, max_abs_error = 0, got_loss, got_error;
  long count = 0;
  sl_error e;
  for (long s = 0; s < 30; s++) {
    if (!counts (&d, s, &p)) continue;
    count++;
    for (size_t j = 0; j < 5; j++) {
      double x = target (&d, s, j, 5, 1);
      loss += x * x / 2;
      max_abs_error = fmax (max_abs_error, fabs (x));
    }
  }
  ck_assert_int_eq (sl_trainer_evaluate (t, 30, &got_loss, &got_error, &e), 0);
  CLOSE (got_loss, loss / (double)count, 0, 1e-14, "loss, seed 7");
  ck_assert_double_eq (got_error, max_abs_error);
  ck_assert_double_eq (weight_at (&b, 4), 0);
  ck_assert_int_eq (sl_trainer_evaluate (t, 31, &loss, &max_abs_error, &e), -1);
  ck_assert_str_eq (e.text, "evaluate: 31 samples, allowed is a multiple of "
                            "the shard, 3, up to 2^32 - 1");
  sl_trainer_free (t);
  bench_free (&b);
}
END_TEST

START_TEST (serial_programs_stay_on_the_thread) {
  const problem p = { .shard = 1, .noise = 1 };
  bench b = bench_new (&serial_toy, p, 5, 4, 8, 8);
  sl_trainer *t = trainer_new (&b);
  sl_progress progress;
  double loss, max_abs_error;
  sl_trainer_run (t, 5, 0, &progress);
  ck_assert_int_eq (progress.step, 5);
  ck_assert_int_eq (sl_trainer_evaluate (t, 8, &loss, &max_abs_error, NULL), 0);
  sl_trainer_free (t);
  bench_free (&b);
}
END_TEST

/* Without weight and max_abs_error: plain means, and no largest error. */
START_TEST (optional_outputs) {
  const problem p = { .shard = 2, .noise = 1 };
  bench b = bench_new (&toy, p, 5, 2, 8, 2);
  double w[5] = { 0 }, loss;
  sl_progress progress;
  sl_trainer *t;
  b.spec.weight = b.spec.max_abs_error = NULL;
  t = trainer_new (&b);
  reference (&p, 5, 8, 10, w, &loss);
  sl_trainer_run (t, 10, 0, &progress);
  CLOSE (progress.loss, loss, 0, 1e-13, "loss");
  CLOSE (weight_at (&b, 2), w[2], 1e-14, 0, "parameter");
  ck_assert_msg (isnan (progress.max_abs_error), "max_abs_error is %g",
                 progress.max_abs_error);
  sl_trainer_free (t);
  bench_free (&b);
}
END_TEST

START_TEST (no_memory) {
  const problem p = { .shard = 1 };
  bench b = bench_new (&toy, p, 5, 2, 4, 2);
  const size_t live = sl_alloc_live ();
  sl_trainer *t = NULL;
  long n = 0;
  for (; t == NULL && n < 100; n++) {
    sl_error e = { "" };
    sl_alloc_fail_after (n);
    t = sl_trainer_new (&b.context, &b.spec, &e);
    sl_alloc_fail_after (-1);
    if (t != NULL) break;
    ck_assert_msg (e.text[0] != 0, "no sentence after %ld allocations", n);
    ck_assert_uint_eq (sl_alloc_live (), live);
  }
  ck_assert_int_gt (n, 3);
  ck_assert_ptr_nonnull (t);
  sl_trainer_free (t);
  ck_assert_uint_eq (sl_alloc_live (), live);
  bench_free (&b);
}
END_TEST

static void refuse (bench *b, const char *message) {
  sl_error e = { "" };
  sl_trainer *t = sl_trainer_new (&b->context, &b->spec, &e);
  ck_assert_msg (t == NULL, "not refused: %s", message);
  ck_assert_str_eq (e.text, message);
}

START_TEST (refusals) {
  const problem p = { .shard = 2 };
  bench b = bench_new (&toy, p, 5, 1, 8, 2);
  const sl_trainer_spec good = b.spec;
  b.spec.shard = 3;
  refuse (&b, "trainer: a batch of 8 cannot be cut into shards of 3");
  b.spec = good;
  b.spec.groups = 3;
  refuse (&b, "trainer: 4 shards cannot be cut into 3 equal groups");
  b.spec = good;
  b.spec.loss = b.w;
  refuse (&b, "trainer: loss has shape (5), allowed is one number");
  b.spec = good;
  b.spec.parameters = b.out[1];
  refuse (&b, "trainer: the parameters must be one flat tensor, got 0 axes");
  b.spec = good;
  b.spec.n_points = 0;
  refuse (&b, "schedule: it has no points");
  b.spec = good;
  b.spec.optimizer = optimizer_of ("sgd", "momentum", 2.0, NULL);
  refuse (&b, "optimizer: momentum is 2, allowed is 0 <= momentum < 1");
  b.spec = good;
  b.spec.stop.max_abs_error = 0.1;
  b.spec.max_abs_error = NULL;
  refuse (
      &b,
      "trainer: stop.max_abs_error is 0.1, but there is no largest error to "
      "test (max_abs_error is missing)");
  b.spec = good;
  b.spec.stop.plateau = 5;
  b.spec.stop.plateau_delta = 1;
  refuse (&b, "trainer: stop.plateau is 5 with plateau_delta 1, allowed are 0 "
              "to 2^24 steps with 0 <= delta < 1");
  bench_free (&b);
}
END_TEST

SUITE_MAIN ("trainer", follows_the_reference, bits_do_not_depend_on_threads,
            steps_allocate_nothing, stop_tests, plateau, plateau_delta,
            batches_without_targets, not_finite_keeps_the_parameters,
            interrupted, resume, evaluation, serial_programs_stay_on_the_thread,
            optional_outputs, no_memory, refusals)
