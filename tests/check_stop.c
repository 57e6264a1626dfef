/* check_stop.c - what ends a training: the stop tests, batches without targets,
** numbers that are not finite, signals. */
#include "base/interrupt.h"
#include "support/optimizer.h"
#include "support/suite.h"
#include "support/toy_training.h"
#include <math.h>

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
    const toy_problem p = { .shard = 1 };
    toy_bench b = toy_bench_new (&toy_op, p, 5, 1, 4, 2);
    sl_progress progress;
    sl_trainer *t;
    b.spec.optimizer = optimizer_of ("sgd", NULL);
    b.spec.stop = stops[i].stop;
    t = toy_trainer_new (&b);
    /* a second call finds the same, and does nothing */
    for (int again = 0; again < 2; again++) {
      sl_trainer_run (t, 100, 0, &progress);
      ck_assert_int_eq (progress.stopped, stops[i].stopped);
      ck_assert_int_eq (progress.step, stops[i].step);
      CLOSE (toy_weight_at (&b, 4),
             0.8 * (1 - pow (0.5, (double)stops[i].step)), 1e-15, 0,
             "%s: the parameters are kept", sl_stopped_name (progress.stopped));
    }
    sl_trainer_free (t);
    toy_bench_free (&b);
  }
}
END_TEST

/* A step size of 0: the loss cannot fall, and 100 losses make the first
** mean. */
START_TEST (plateau) {
  static const sl_point zero = { 0, 0, SL_CURVE_HOLD };
  for (int f32 = 0; f32 < 2; f32++) {
    const toy_problem p = { .shard = 1, .f32 = f32 };
    toy_bench b = toy_bench_new (&toy_op, p, 5, 1, 4, 2);
    sl_progress progress;
    sl_trainer *t;
    b.spec.schedule = &zero;
    b.spec.stop = (sl_stop){ .plateau = 30, .plateau_delta = 1e-3 };
    t = toy_trainer_new (&b);
    sl_trainer_run (t, 1000, 0, &progress);
    ck_assert_int_eq (progress.stopped, SL_STOP_PLATEAU);
    ck_assert_int_eq (progress.step, 129); /* batch 130 is the 30th */
    sl_trainer_free (t);
    toy_bench_free (&b);
  }
}
END_TEST

/* Slow but steady progress is no plateau; less than delta of it is. */
START_TEST (plateau_delta) {
  static const sl_point slow = { 0, 1e-4, SL_CURVE_HOLD };
  for (int strict = 0; strict < 2; strict++) {
    const toy_problem p = { .shard = 1 };
    toy_bench b = toy_bench_new (&toy_op, p, 5, 1, 4, 2);
    sl_progress progress;
    sl_trainer *t;
    b.spec.schedule = &slow;
    b.spec.stop.plateau = 30;
    b.spec.stop.plateau_delta = strict ? 0.5 : 1e-6;
    t = toy_trainer_new (&b);
    sl_trainer_run (t, 400, 0, &progress);
    ck_assert_int_eq (progress.stopped, strict ? SL_STOP_PLATEAU : SL_RUNNING);
    sl_trainer_free (t);
    toy_bench_free (&b);
  }
}
END_TEST

/* A batch in which no sample counts is a step with a gradient of zero, and no loss
** for the plateau: with such a batch every second step as without. */
START_TEST (batches_without_targets) {
  static const sl_point zero = { 0, 0, SL_CURVE_HOLD };
  for (int f32 = 0; f32 < 2; f32++) {
    const toy_problem p = {
      .f32 = f32, .shard = 2, .noise = 1, .none_every = 4
    };
    toy_bench b = toy_bench_new (&toy_op, p, 5, 2, 8, 2);
    sl_trainer *t;
    double w[5] = { 0 }, loss;
    sl_progress progress;
    b.spec.stop = (sl_stop){ .loss = 1e-9, .max_abs_error = 1e-9 };
    t = toy_trainer_new (&b);
    toy_reference (&p, 5, 8, 22, w, &loss);
    sl_trainer_run (t, 20, 0, &progress);
    ck_assert_int_eq (progress.stopped, SL_RUNNING);
    ck_assert_double_nan (progress.loss);
    ck_assert_double_nan (progress.max_abs_error);
    ck_assert_double_eq (progress.gradient_norm, 0);
    sl_trainer_run (t, 22, 0, &progress);
    CLOSE (progress.loss, loss, 0, f32 ? 1e-5 : 1e-13, "loss, seed 7");
    for (size_t j = 0; j < 5; j++)
      CLOSE (toy_weight_at (&b, j), w[j], f32 ? 1e-6 : 1e-14, 0,
             "parameter %zu, seed 7", j);
    sl_trainer_free (t);
    toy_bench_free (&b);
  }
  for (int every = 2; every <= 100;
       every += 49) { /* batch 100 is the first mean */
    const toy_problem p = { .shard = 1, .none_every = every };
    toy_bench b = toy_bench_new (&toy_op, p, 5, 1, 4, 2);
    sl_trainer *t;
    sl_progress progress;
    b.spec.schedule = &zero;
    b.spec.stop = (sl_stop){ .plateau = 30, .plateau_delta = 1e-3 };
    t = toy_trainer_new (&b);
    sl_trainer_run (t, 1000, 0, &progress);
    ck_assert_int_eq (progress.stopped, SL_STOP_PLATEAU);
    ck_assert_int_eq (progress.step, 129);
    sl_trainer_free (t);
    toy_bench_free (&b);
  }
}
END_TEST

START_TEST (not_finite_keeps_the_parameters) {
  for (int blows = 1; blows <= 2; blows++) {
    const toy_problem p = { .shard = 1, .blows = blows };
    toy_bench b = toy_bench_new (&toy_op, p, 5, 2, 4, 2);
    sl_trainer *t = toy_trainer_new (&b);
    sl_progress progress;
    sl_tensor_fill (b.w, 0.25);
    sl_trainer_run (t, 10, 0, &progress);
    ck_assert_int_eq (progress.stopped, SL_STOP_NOT_FINITE);
    ck_assert_int_eq (progress.step, 0);
    for (size_t j = 0; j < 5; j++)
      ck_assert_double_eq (toy_weight_at (&b, j), 0.25);
    sl_trainer_free (t);
    toy_bench_free (&b);
  }
}
END_TEST

START_TEST (interrupted) {
  const toy_problem p = { .shard = 1 };
  toy_bench b = toy_bench_new (&toy_op, p, 5, 2, 4, 2);
  sl_trainer *t = toy_trainer_new (&b);
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
  toy_bench_free (&b);
}
END_TEST

SUITE_MAIN ("stop", stop_tests, plateau, plateau_delta, batches_without_targets,
            not_finite_keeps_the_parameters, interrupted)
