/* sinklab/vmath.h - exp, exp - 1, log, tanh, the logistic function and softplus
** for vector loops.
**
** Scalar functions of 'real', inlined and without a branch, so that a plain
** loop
**
**     for (int j = 0; j < n; j++) w[j] = sl_expv (s[j] - max);
**
** is vectorised by gcc and clang at -O3 (except f64 by gcc for baseline x86-64,
** which has no 64-bit comparison). Never compile with -ffast-math: it removes
** the rounding by SL_ROUND and the special values below.
**
** Largest error over the whole range, in units in the last place (ulp) of the
** result (tests/check_vmath.c measures it against long double):
**
**                 f32     f64     special values
**                 ulp     ulp
**   sl_expv       1.0     1.0     exp (-inf) 0, overflow inf, underflow through
**                                 the denormals to 0
**   sl_expm1v     2.0     2.0     expm1 (-0) -0, expm1 (-inf) -1, overflow inf
**   sl_logv       1.0     1.0     log (0) -inf, log (below 0) NaN
**   sl_tanhv      2.6     2.6     tanh (-0) -0, tanh (+-inf) +-1
**   sl_sigmoidv   2.6     2.6     sigmoid (-inf) 0, sigmoid (inf) 1
**   sl_softplusv  3.0     3.0     softplus (-inf) 0, softplus (inf) inf
**
** NaN gives NaN. */
#ifndef SINKLAB_VMATH_H
#define SINKLAB_VMATH_H
#include <sinklab/plugin.h>
#include <string.h>

/* Always inlined: a loop with a call in it is not vectorised. */
#define SL_VMATH static inline __attribute__ ((always_inline, unused))

/* Layout of a real: mantissa bits, exponent bias. x + SL_ROUND rounds x to an
** integer and leaves it in the lowest bits. */
#ifdef SL_SINGLE
typedef uint32_t sl_bits;
enum { SL_MANTISSA = 23, SL_BIAS = 127 };
#define SL_ROUND 12582912.0f
#define SL_TWO_P 8388608.0f /* 2^SL_MANTISSA */
#define SL_MIN_NORMAL 0x1p-126f
#define SL_MAX_REAL 0x1.fffffep127f
#define SL_EXP_LOW -104.0f /* exp (x) is 0 for smaller x */
#define SL_EXP_HIGH 89.0f  /* exp (x) is inf for larger x */
#else
typedef uint64_t sl_bits;
enum { SL_MANTISSA = 52, SL_BIAS = 1023 };
#define SL_ROUND 6755399441055744.0
#define SL_TWO_P 4503599627370496.0
#define SL_MIN_NORMAL 0x1p-1022
#define SL_MAX_REAL 0x1.fffffffffffffp1023
#define SL_EXP_LOW -746.0
#define SL_EXP_HIGH 710.0
#endif

#define SL_SIGN ((sl_bits)1 << (8 * sizeof (real) - 1))

SL_VMATH sl_bits sl_to_bits (real x) {
  sl_bits b;
  memcpy (&b, &x, sizeof b);
  return b;
}

SL_VMATH real sl_from_bits (sl_bits b) {
  real x;
  memcpy (&x, &b, sizeof x);
  return x;
}

/* condition (0 or 1) ? a : b, by bit masks so that there is no branch. */
SL_VMATH real sl_choose (int condition, real a, real b) {
  const sl_bits mask = 0 - (sl_bits)condition;
  return sl_from_bits ((sl_to_bits (a) & mask) | (sl_to_bits (b) & ~mask));
}

SL_VMATH real sl_abs (real x) {
  return sl_from_bits (sl_to_bits (x) & ~SL_SIGN);
}

#define SL_T real
#define SL_B sl_bits
#define SL_F(name) sl_##name##v
#define SL_BITS(x) sl_to_bits (x)
#define SL_REAL(b) sl_from_bits (b)
#define SL_ABS(x) sl_abs (x)
#define SL_K(c) ((real)(c))
#define SL_CHOOSE(condition, a, b) sl_choose ((condition), (a), (b))
#include <sinklab/functions.h>
#undef SL_T
#undef SL_B
#undef SL_F
#undef SL_BITS
#undef SL_REAL
#undef SL_ABS
#undef SL_K
#undef SL_CHOOSE
#endif
