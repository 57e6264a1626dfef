/* check_number.c - rounding, bounds and the order of partial sums. */
#include "base/number.h"
#include "support/suite.h"
#include <math.h>

START_TEST (a_size_is_rounded_up) {
  ck_assert_uint_eq (sl_round_up (0, 16), 0);
  ck_assert_uint_eq (sl_round_up (1, 16), 16);
  ck_assert_uint_eq (sl_round_up (16, 16), 16);
  ck_assert_uint_eq (sl_round_up (7, 3), 9);
  ck_assert_uint_eq (sl_div_up (7, 3), 3);
}
END_TEST

START_TEST (a_number_stays_between_its_bounds) {
  ck_assert_int_eq (sl_clamp_int (2, 1, 5), 2);
  ck_assert_int_eq (sl_clamp_int (2, 4, 5), 4);
  ck_assert_int_eq (sl_clamp_int (2, 9, 5), 5);
}
END_TEST

START_TEST (nan_wins_a_comparison) {
  ck_assert_double_nan (sl_max_or_nan (1, NAN));
  ck_assert_double_nan (sl_max_or_nan (NAN, 1));
  ck_assert_double_nan (sl_min_or_nan (1, NAN));
  ck_assert_double_nan (sl_min_or_nan (NAN, 1));
  ck_assert_double_eq (sl_max_or_nan (1, 2), 2);
  ck_assert_double_eq (sl_min_or_nan (1, 2), 1);
}
END_TEST

/* 1 is lost when it is added to 2^53 first. */
START_TEST (partial_sums_keep_their_order) {
  const double lane[8] = { 0x1p53, 1, -0x1p53, 0, 0, 0, 0, 0 };
  ck_assert_double_eq (sl_fold_neighbours (lane), 0);
  ck_assert_double_eq (sl_fold_halves (lane), 1);
}
END_TEST

SUITE_MAIN ("number", a_size_is_rounded_up, a_number_stays_between_its_bounds,
            nan_wins_a_comparison, partial_sums_keep_their_order)
