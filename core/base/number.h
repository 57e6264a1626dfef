/* number.h - minimum, maximum, rounding up, and partial sums in a fixed order.
*/
#ifndef SL_NUMBER_H
#define SL_NUMBER_H
#include <stddef.h>

static inline ptrdiff_t sl_min (ptrdiff_t a, ptrdiff_t b) {
  return a < b ? a : b;
}

static inline int sl_min_int (int a, int b) {
  return a < b ? a : b;
}

static inline int sl_max_int (int a, int b) {
  return a > b ? a : b;
}

/* x, but at least low; and at most high where low <= high. */
static inline int sl_clamp_int (int low, int x, int high) {
  return sl_max_int (low, sl_min_int (x, high));
}

/* n / by, rounded up. */
static inline size_t sl_div_up (size_t n, size_t by) {
  return (n + by - 1) / by;
}

/* The smallest multiple of 'to' that is at least n. */
static inline size_t sl_round_up (size_t n, size_t to) {
  return sl_div_up (n, to) * to;
}

/* The larger and the smaller of two numbers, NaN if either is NaN. */
static inline double sl_max_or_nan (double a, double b) {
  return a != a || a >= b ? a : b;
}

static inline double sl_min_or_nan (double a, double b) {
  return a != a || a <= b ? a : b;
}

/* The sum of eight partial sums. The order of the additions is part of the bits
** of a result, so there are two functions: both add the upper half to the lower
** one; the four sums that remain are added as neighbours (0 + 1) + (2 + 3), or
** in halves again (0 + 2) + (1 + 3). */
static inline double sl_fold_neighbours (const double lane[8]) {
  return ((lane[0] + lane[4]) + (lane[1] + lane[5])) +
         ((lane[2] + lane[6]) + (lane[3] + lane[7]));
}

static inline double sl_fold_halves (const double lane[8]) {
  return ((lane[0] + lane[4]) + (lane[2] + lane[6])) +
         ((lane[1] + lane[5]) + (lane[3] + lane[7]));
}
#endif
