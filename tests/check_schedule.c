/* check_schedule.c - points by hand, and their mistakes. */
#include "support/suite.h"
#include "train/train.h"
#include <math.h>

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

SUITE_MAIN ("schedule", points_by_hand, bad_points)
