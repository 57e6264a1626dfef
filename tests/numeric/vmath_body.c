/* vmath_body.c - exp, exp - 1, log, tanh, sigmoid, softplus against long
** double, and the same in lanes. */
#include "support/variants.h"
#include <check.h>
#include <math.h>
#include <sinklab/lanes.h>

enum { BLOCK = 1024 };

/* ck_assert_msg writes to a pipe each time, which is slow in a loop. */
#define HOLDS(condition, ...)                     \
  do {                                            \
    if (!(condition)) ck_abort_msg (__VA_ARGS__); \
  } while (0)

static long double sigmoid (long double x) {
  return x < 0 ? expl (x) / (1 + expl (x)) : 1 / (1 + expl (-x));
}

static long double softplus (long double x) {
  return (x > 0 ? x : 0) + log1pl (expl (-fabsl (x)));
}

/* The loop that is tested, the same function on one element, and in lanes. */
#define LOOPS(name)                                            \
  static void name##_loop (int n, const real *x, real *y) {    \
    for (int i = 0; i < n; i++) y[i] = sl_##name##v (x[i]);    \
  }                                                            \
  static real __attribute__ ((noinline)) name##_one (real x) { \
    return sl_##name##v (x);                                   \
  }                                                            \
  static void name##_lanes (const real *x, real *y) {          \
    sl_store (y, sl_lanes_##name (sl_load (x)));               \
  }
LOOPS (exp)
LOOPS (expm1)
LOOPS (log)
LOOPS (tanh)
LOOPS (sigmoid)
LOOPS (softplus)

/* Points: low..high evenly at random, and all magnitudes. */
static const struct function {
  const char *name;
  void (*loop) (int n, const real *x, real *y);
  real (*one) (real x);
  void (*lanes) (const real *x, real *y);
  long double (*want) (long double x);
  double bound; /* the one that vmath.h states */
  double low, high;
} functions[] = {
  { "exp", exp_loop, exp_one, exp_lanes, expl, 1.0, -750, 720 },
  { "expm1", expm1_loop, expm1_one, expm1_lanes, expm1l, 2.0, -3, 3 },
  { "log", log_loop, log_one, log_lanes, logl, 1.0, 0.1, 10 },
  { "tanh", tanh_loop, tanh_one, tanh_lanes, tanhl, 2.6, -3, 3 },
  { "sigmoid", sigmoid_loop, sigmoid_one, sigmoid_lanes, sigmoid, 2.6, -50,
    50 },
  { "softplus", softplus_loop, softplus_one, softplus_lanes, softplus, 3.0, -50,
    50 },
};

/* |got - want| in units of the last place of want (of the smallest denormal
** below the normal numbers). */
static double distance (real got, long double want) {
  int exponent;
  if (isinf (got) && fabsl (want) > SL_MAX_REAL)
    return !signbit (got) == !signbit (want) ? 0 : (double)INFINITY;
  frexpl (want, &exponent);
  exponent -= SL_MANTISSA + 1;
  if (exponent < 1 - SL_BIAS - SL_MANTISSA)
    exponent = 1 - SL_BIAS - SL_MANTISSA;
  return (double)(fabsl ((long double)got - want) / ldexpl (1, exponent));
}

static void check_block (const struct function *f, const real *x) {
  real y[BLOCK], lanes[BLOCK];
  f->loop (BLOCK, x, y);
  for (int i = 0; i < BLOCK; i += SL_LANES) f->lanes (x + i, lanes + i);
  for (int i = 0; i < BLOCK; i++) {
    const long double want = f->want (x[i]);
    const real one = f->one (x[i]);
    HOLDS (lanes[i] == y[i] || (isnan (lanes[i]) && isnan (y[i])),
           "%s: %s (%a) is %a in lanes and %a in a loop", VARIANT, f->name,
           (double)x[i], (double)lanes[i], (double)y[i]);
    if (isnan (want)) {
      HOLDS (isnan (y[i]) && isnan (one), "%s: %s (%a) is %a, not NaN", VARIANT,
             f->name, (double)x[i], (double)y[i]);
      continue;
    }
    if (isinf (want) || want == 0)
      HOLDS (y[i] == (real)want && !signbit (y[i]) == !signbit (want),
             "%s: %s (%a) is %a, want %La", VARIANT, f->name, (double)x[i],
             (double)y[i], want);
    else
      HOLDS (distance (y[i], want) <= f->bound,
             "%s: %s (%a) is %a, want %La: %.3f ulp, at most %.1f", VARIANT,
             f->name, (double)x[i], (double)y[i], want, distance (y[i], want),
             f->bound);
    HOLDS (one == y[i], "%s: %s (%a) is %a in a loop and %a alone", VARIANT,
           f->name, (double)x[i], (double)y[i], (double)one);
  }
}

static void special_values (const struct function *f) {
  static const real values[] = { 0,
                                 (real)-0.0,
                                 (real)INFINITY,
                                 -(real)INFINITY,
                                 (real)NAN,
                                 -(real)NAN,
                                 -1,
                                 1,
                                 SL_MAX_REAL,
                                 -SL_MAX_REAL,
                                 SL_MIN_NORMAL,
                                 SL_MIN_NORMAL / 2,
                                 -SL_MIN_NORMAL / 2,
                                 -SL_MIN_NORMAL };
  enum { COUNT = sizeof values / sizeof *values };
  real x[BLOCK];
  for (int i = 0; i < BLOCK; i++) x[i] = values[i % COUNT];
  check_block (f, x);
}

/* sl_lanes_exp_nonpositive against sl_lanes_exp: the same bits, down to 0. */
static void check_nonpositive (void) {
  const real low = SL_EXP_LOW;
  uint64_t state = 1;
  for (int block = 0; block < 20000; block++) {
    real x[SL_LANES], y[SL_LANES], want[SL_LANES];
    for (int i = 0; i < SL_LANES; i++) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      x[i] = (real)(1.1 * (double)low * (double)(state >> 11) * 0x1p-53);
    }
    if (block == 0) x[0] = 0, x[1] = -(real)INFINITY;
    if (block == 1) x[0] = -(real)NAN, x[1] = (real)NAN;
    if (block == 2) x[0] = low, x[1] = -SL_MAX_REAL;
    sl_store (y, sl_lanes_exp_nonpositive (sl_load (x)));
    sl_store (want, sl_lanes_exp (sl_load (x)));
    for (int i = 0; i < SL_LANES; i++)
      HOLDS (y[i] == want[i] || (isnan (x[i]) && isnan (y[i])),
             "%s: exp_nonpositive (%a) is %a, exp %a", VARIANT, (double)x[i],
             (double)y[i], (double)want[i]);
  }
}

static void run (void) {
  uint64_t state = 1;
  check_nonpositive ();
  for (size_t k = 0; k < sizeof functions / sizeof *functions; k++) {
    const struct function *f = &functions[k];
    special_values (f);
    for (int block = 0; block < 600; block++) {
      real x[BLOCK];
      for (int i = 0; i < BLOCK; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        const double unit = (double)(state >> 11) * 0x1p-53;
        x[i] =
            i % 2 ? (real)(f->low + (f->high - f->low) * unit)
                  : sl_from_bits ((sl_bits)(state >> (64 - 8 * sizeof (real))));
      }
      check_block (f, x);
    }
  }
}

VARIANT_TEST (vmath_body) = { run };
