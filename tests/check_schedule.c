/* check_schedule.c - named schedules against golden values, points by hand. */
#include "support/golden.h"
#include "support/suite.h"
#include "train/train.h"
#include <math.h>
#include <stdio.h>

static const struct {
  const char *file, *kind;
  double args[6];
  int n;
} cases[] = {
  { "warmup_cosine", "warmup_cosine", { 1e-2, 1e-3, 10, 50 }, 4 },
  { "wsd", "wsd", { 1e-2, 1e-3, 10, 34, 50, 0 }, 6 },
  { "wsd_sqrt", "wsd", { 1e-2, 1e-3, 10, 34, 50, 1 }, 6 },
  { "step", "step", { 1e-2, 0.5, 15, 50 }, 4 },
};

START_TEST (golden_schedules) {
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    double lr[50];
    sl_point p[8];
    sl_error e;
    char file[64];
    int n =
        sl_schedule_points (cases[i].kind, cases[i].args, cases[i].n, p, 8, &e);
    ck_assert_msg (n > 0 && n <= 8, "%s: %d points, %s", cases[i].file, n,
                   n < 0 ? e.text : "at most 8 expected");
    ck_assert_int_eq (sl_schedule_check (p, n, &e), 0);
    for (int t = 0; t < 50; t++) lr[t] = sl_schedule_at (p, n, t);
    snprintf (file, sizeof file, "optim/schedules/%s.npy", cases[i].file);
    golden_close_array (lr, 50, SL_F64, file);
  }
}
END_TEST

static double named_at (const char *kind, const double *args, int n_args,
                        double step) {
  sl_point p[8];
  sl_error e;
  int n = sl_schedule_points (kind, args, n_args, p, 8, &e);
  ck_assert_msg (n > 0, "%s: %s", kind, e.text);
  ck_assert_msg (sl_schedule_check (p, n, &e) == 0, "%s: %s", kind, e.text);
  return sl_schedule_at (p, n, step);
}

START_TEST (constant_linear_and_no_warmup) {
  const double lr = 3e-4, line[3] = { 1, 3, 4 };
  const double cosine[4] = { 1, 0, 0, 10 }, one[4] = { 1, 0, 1, 11 };
  ck_assert_double_eq (named_at ("constant", &lr, 1, 12345), 3e-4);
  ck_assert_double_eq (named_at ("linear", line, 3, 0), 1);
  ck_assert_double_eq (named_at ("linear", line, 3, 1), 1.5);
  ck_assert_double_eq (named_at ("linear", line, 3, 99), 3);
  CLOSE (named_at ("warmup_cosine", cosine, 4, 0), 1, 0, 0, "start");
  CLOSE (named_at ("warmup_cosine", cosine, 4, 5), 0.5, 1e-15, 0, "half");
  CLOSE (named_at ("warmup_cosine", one, 4, 0), 1, 0, 0, "warm-up of 1");
  CLOSE (named_at ("warmup_cosine", one, 4, 6), 0.5, 1e-15, 0, "half");
}
END_TEST

/* wsd without a warm-up, and with decay right behind it. */
START_TEST (wsd_edges) {
  const double none[6] = { 1, 0, 0, 0, 11, 0 }, tight[6] = { 1, 0, 4, 4, 9, 0 };
  CLOSE (named_at ("wsd", none, 6, 5), 0.5, 1e-15, 0, "no warm-up");
  CLOSE (named_at ("wsd", tight, 6, 1), 0.5, 1e-15, 0, "warm-up");
  CLOSE (named_at ("wsd", tight, 6, 4), 1, 0, 0, "top");
  CLOSE (named_at ("wsd", tight, 6, 6), 0.5, 1e-15, 0, "decay");
  CLOSE (named_at ("wsd", tight, 6, 8), 0, 0, 0, "end");
}
END_TEST

START_TEST (points_by_hand) {
  const sl_point p[] = { { 2, 1, SL_CURVE_HOLD },
                         { 4, 3, SL_CURVE_LINEAR },
                         { 8, 1, SL_CURVE_COSINE },
                         { 10, 2, SL_CURVE_SQRT },
                         { 14, 6, SL_CURVE_LINEAR } };
  const struct {
    double step, value;
  } want[] = { { -1, 1 },  { 2, 1 },  { 3.5, 1 },
               { 4, 3 },   { 6, 2 },  { 8, 1 },
               { 9, 1.5 }, { 10, 2 }, { 11, 6 + (2 - 6) * 0.5 },
               { 14, 6 },  { 1e9, 6 } };
  for (size_t i = 0; i < sizeof want / sizeof *want; i++)
    CLOSE (sl_schedule_at (p, 5, want[i].step), want[i].value, 1e-14, 0,
           "step %g", want[i].step);
}
END_TEST

static const struct {
  const char *kind;
  double args[6];
  int n;
  const char *message;
} refusals[] = {
  { "cosin",
    { 1 },
    1,
    "schedule: no kind 'cosin' (there are constant, warmup_cosine, linear, "
    "step, "
    "wsd)" },
  { "constant", { 1, 2 }, 2, "schedule constant: takes 1 arguments, got 2" },
  { "constant",
    { -1 },
    1,
    "schedule constant: lr is -1, allowed is a number of at least 0" },
  { "linear",
    { 1, 0, 2.5 },
    3,
    "schedule linear: steps is 2.5, allowed is a whole number of at least 1" },
  { "linear",
    { 1, 0, 0 },
    3,
    "schedule linear: steps is 0, allowed is a whole number of at least 1" },
  { "warmup_cosine",
    { 1, 0, 5, 5 },
    4,
    "schedule warmup_cosine: steps is 5, allowed is at least warmup + 1 = 6" },
  { "wsd",
    { 1, 0, 5, 4, 50, 0 },
    6,
    "schedule wsd: decay_start is 4, allowed is at least warmup + 0 = 5" },
  { "step",
    { 1, 0.5, 1, 1e6 },
    4,
    "schedule step: every is 1, allowed is at most 100000 drops within 'steps' "
    "(1e+06)" },
};

START_TEST (refused) {
  for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
    sl_error e = { "" };
    sl_point p[8];
    ck_assert_int_eq (sl_schedule_points (refusals[i].kind, refusals[i].args,
                                          refusals[i].n, p, 8, &e),
                      -1);
    ck_assert_str_eq (e.text, refusals[i].message);
  }
}
END_TEST

START_TEST (counts_beyond_the_room) {
  const double a[4] = { 1, 0.5, 10, 100 };
  sl_point p[3];
  sl_error e;
  ck_assert_int_eq (sl_schedule_points ("step", a, 4, NULL, 0, &e), 10);
  ck_assert_int_eq (sl_schedule_points ("step", a, 4, p, 3, &e), 10);
  ck_assert_double_eq (p[2].value, 0.25);
}
END_TEST

START_TEST (bad_points) {
  const sl_point back[] = { { 5, 1, SL_CURVE_HOLD }, { 5, 2, SL_CURVE_HOLD } };
  const sl_point nan = { NAN, 1, SL_CURVE_HOLD };
  sl_curve curve;
  sl_error e;
  ck_assert_int_eq (sl_schedule_check (NULL, 0, &e), -1);
  ck_assert_str_eq (e.text, "schedule: it has no points");
  ck_assert_int_eq (sl_schedule_check (back, 2, &e), -1);
  ck_assert_str_eq (
      e.text, "schedule: point 2 is at step 5, not after point 1 at step 5");
  ck_assert_int_eq (sl_schedule_check (&nan, 1, &e), -1);
  ck_assert_int_eq (sl_curve_parse ("sqrt", &curve, &e), 0);
  ck_assert_int_eq (curve, SL_CURVE_SQRT);
  ck_assert_int_eq (sl_curve_parse ("cosinus", &curve, &e), -1);
  ck_assert_str_eq (e.text,
                    "schedule: no curve 'cosinus' (did you mean 'cosine'?)");
}
END_TEST

SUITE_MAIN ("schedule", golden_schedules, constant_linear_and_no_warmup,
            wsd_edges, points_by_hand, refused, counts_beyond_the_room,
            bad_points)
