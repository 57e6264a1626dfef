/* check_trainer.c - the training loop: its numbers, threads, memory, pieces. */
#include "base/memory_test.h"
#include "support/optimizer.h"
#include "support/suite.h"
#include "support/toy_training.h"
#include <math.h>
#include <string.h>

static const struct {
  long batch, shard;
  int groups;
} cuts[] = { { 24, 24, 1 }, { 24, 3, 8 }, { 24, 1, 2 }, { 24, 2, 4 } };

START_TEST (follows_the_reference) {
  for (size_t k = 0; k < sizeof cuts / sizeof *cuts; k++)
    for (int f32 = 0; f32 < 2; f32++) {
      const toy_problem p = {
        .f32 = f32, .shard = cuts[k].shard, .noise = 1, .some = 1
      };
      toy_bench b =
          toy_bench_new (&toy_op, p, 5, 2, cuts[k].batch, cuts[k].groups);
      sl_trainer *t = toy_trainer_new (&b);
      double w[5] = { 0 }, loss;
      sl_progress progress;
      toy_reference (&p, 5, cuts[k].batch, 20, w, &loss);
      sl_trainer_run (t, 20, 0, &progress);
      ck_assert_int_eq (progress.stopped, SL_RUNNING);
      ck_assert_int_eq (progress.step, 20);
      CLOSE (progress.loss, loss, 0, f32 ? 1e-5 : 1e-13, "loss, cut %zu", k);
      for (size_t j = 0; j < 5; j++)
        CLOSE (toy_weight_at (&b, j), w[j], f32 ? 1e-6 : 1e-14, 0,
               "parameter %zu, cut %zu, seed 7", j, k);
      sl_trainer_free (t);
      toy_bench_free (&b);
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
      const toy_problem p = { .f32 = 1, .shard = 1, .noise = 1, .some = 1 };
      toy_bench b = toy_bench_new (&toy_op, p, sizes[k], threads[i], 7, 7);
      sl_trainer *t;
      sl_progress progress;
      double eval_loss, max_abs_error;
      b.spec.optimizer = optimizer_of ("adamw", "beta2", 0.99, "weight_decay",
                                       0.1, "clip_norm", 0.5, NULL);
      t = toy_trainer_new (&b);
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
      toy_bench_free (&b);
    }
    sl_free (first);
  }
}
END_TEST

START_TEST (steps_allocate_nothing) {
  const toy_problem p = { .shard = 2, .noise = 1 };
  toy_bench b = toy_bench_new (&toy_op, p, 5, 2, 8, 4);
  size_t before;
  sl_progress progress;
  sl_trainer *t;
  b.spec.stop =
      (sl_stop){ .plateau = 1000, .max_abs_error = 1e-9, .seconds = 1e9 };
  t = toy_trainer_new (&b);
  before = sl_alloc_count ();
  sl_trainer_run (t, 200, 0, &progress);
  ck_assert_int_eq (progress.step, 200);
  ck_assert_uint_eq (sl_alloc_count () - before, 0);
  sl_trainer_free (t);
  toy_bench_free (&b);
}
END_TEST

/* Training in one piece, and broken off after 'at' steps. */
static void resumed (long at, long steps) {
  float w[2][5];
  sl_progress progress[2];
  for (int broken = 0; broken < 2; broken++) {
    const toy_problem p = { .f32 = 1, .shard = 1, .noise = 1 };
    toy_bench b = toy_bench_new (&toy_op, p, 5, 2, 4, 2);
    sl_trainer *t, *next;
    sl_error e;
    b.spec.optimizer = optimizer_of ("adam", "beta2", 0.99, NULL);
    b.spec.stop = (sl_stop){ .plateau = 40, .plateau_delta = 0.01 };
    t = toy_trainer_new (&b);
    if (broken) {
      sl_trainer_run (t, at, 0, &progress[1]);
      next = toy_trainer_new (&b);
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
    toy_bench_free (&b);
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
  const toy_problem p = { .shard = 3, .noise = 1, .some = 1 };
  const sl_draw d = { 7, 0, 0 };
  toy_bench b = toy_bench_new (&toy_op, p, 5, 2, 6, 2);
  sl_trainer *t = toy_trainer_new (&b);
  double loss = 0, max_abs_error = 0, got_loss, got_error;
  long count = 0;
  sl_error e;
  for (long s = 0; s < 30; s++) {
    if (!toy_counts (&d, s, &p)) continue;
    count++;
    for (size_t j = 0; j < 5; j++) {
      double x = toy_target (&d, s, j, 5, 1);
      loss += x * x / 2;
      max_abs_error = fmax (max_abs_error, fabs (x));
    }
  }
  ck_assert_int_eq (sl_trainer_evaluate (t, 30, &got_loss, &got_error, &e), 0);
  CLOSE (got_loss, loss / (double)count, 0, 1e-14, "loss, seed 7");
  ck_assert_double_eq (got_error, max_abs_error);
  ck_assert_double_eq (toy_weight_at (&b, 4), 0);
  ck_assert_int_eq (sl_trainer_evaluate (t, 31, &loss, &max_abs_error, &e), -1);
  ck_assert_str_eq (e.text, "evaluate: 31 samples, allowed is a multiple of "
                            "the shard, 3, up to 2^32 - 1");
  sl_trainer_free (t);
  toy_bench_free (&b);
}
END_TEST

START_TEST (serial_programs_stay_on_the_thread) {
  const toy_problem p = { .shard = 1, .noise = 1 };
  toy_bench b = toy_bench_new (&toy_serial_op, p, 5, 4, 8, 8);
  sl_trainer *t = toy_trainer_new (&b);
  sl_progress progress;
  double loss, max_abs_error;
  sl_trainer_run (t, 5, 0, &progress);
  ck_assert_int_eq (progress.step, 5);
  ck_assert_int_eq (sl_trainer_evaluate (t, 8, &loss, &max_abs_error, NULL), 0);
  sl_trainer_free (t);
  toy_bench_free (&b);
}
END_TEST

/* Without weight and max_abs_error: plain means, and no largest error. */
START_TEST (optional_outputs) {
  const toy_problem p = { .shard = 2, .noise = 1 };
  toy_bench b = toy_bench_new (&toy_op, p, 5, 2, 8, 2);
  double w[5] = { 0 }, loss;
  sl_progress progress;
  sl_trainer *t;
  b.spec.weight = b.spec.max_abs_error = NULL;
  t = toy_trainer_new (&b);
  toy_reference (&p, 5, 8, 10, w, &loss);
  sl_trainer_run (t, 10, 0, &progress);
  CLOSE (progress.loss, loss, 0, 1e-13, "loss");
  CLOSE (toy_weight_at (&b, 2), w[2], 1e-14, 0, "parameter");
  ck_assert_msg (isnan (progress.max_abs_error), "max_abs_error is %g",
                 progress.max_abs_error);
  sl_trainer_free (t);
  toy_bench_free (&b);
}
END_TEST

START_TEST (no_memory) {
  const toy_problem p = { .shard = 1 };
  toy_bench b = toy_bench_new (&toy_op, p, 5, 2, 4, 2);
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
  toy_bench_free (&b);
}
END_TEST

static void refuse (toy_bench *b, const char *message) {
  sl_error e = { "" };
  sl_trainer *t = sl_trainer_new (&b->context, &b->spec, &e);
  ck_assert_msg (t == NULL, "not refused: %s", message);
  ck_assert_str_eq (e.text, message);
}

START_TEST (refusals) {
  const toy_problem p = { .shard = 2 };
  toy_bench b = toy_bench_new (&toy_op, p, 5, 1, 8, 2);
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
  toy_bench_free (&b);
}
END_TEST

SUITE_MAIN ("trainer", follows_the_reference, bits_do_not_depend_on_threads,
            steps_allocate_nothing, resume, evaluation,
            serial_programs_stay_on_the_thread, optional_outputs, no_memory,
            refusals)
