/* sinklab/vmath.h - exp, exp - 1, log, tanh, the logistic function and softplus
** for vector loops.
**
** Scalar functions of 'real' without a branch or a call, so that a plain loop
**
**     for (int j = 0; j < n; j++) w[j] = sl_expv (s[j] - max);
**
** becomes vector code with gcc and clang at -O3 (except f64 with gcc for plain
** x86-64, which has no 64-bit comparison). Never compile with -ffast-math: it
** removes the rounding trick and the special values below.
**
** Largest error, in units in the last place of the result, over the whole range
** (tests/check_vmath.c measures it against long double):
**
**                 f32     f64     special values
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

/* Inlined whatever the size: a loop with a call in it is not vectorised. */
#define SL_VMATH static inline __attribute__ ((always_inline, unused))

/* How a real is laid out: mantissa bits, exponent bias, and the number whose
** addition rounds to an integer and leaves it in the lowest bits. */
#ifdef SL_SINGLE
typedef uint32_t sl_bits;
enum { SL_MANTISSA = 23, SL_BIAS = 127 };
#define SL_ROUND 12582912.0f
#define SL_TWO_P 8388608.0f /* 2^SL_MANTISSA */
#define SL_MIN_NORMAL 0x1p-126f
#define SL_MAX_REAL 0x1.fffffep127f
#else
typedef uint64_t sl_bits;
enum { SL_MANTISSA = 52, SL_BIAS = 1023 };
#define SL_ROUND 6755399441055744.0
#define SL_TWO_P 4503599627370496.0
#define SL_MIN_NORMAL 0x1p-1022
#define SL_MAX_REAL 0x1.fffffffffffffp1023
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

/* condition ? a : b, in bits: the compiler cannot make a branch of it. */
SL_VMATH real sl_choose (int condition, real a, real b) {
  const sl_bits mask = 0 - (sl_bits)condition;
  return sl_from_bits ((sl_to_bits (a) & mask) | (sl_to_bits (b) & ~mask));
}

SL_VMATH real sl_abs (real x) {
  return sl_from_bits (sl_to_bits (x) & ~SL_SIGN);
}

/* 2^k for the integer k that was rounded as t = k + SL_ROUND. */
SL_VMATH real sl_pow2_rounded (real t) {
  return sl_from_bits ((sl_to_bits (t) + SL_BIAS) << SL_MANTISSA);
}

/* exp (x) = 2^n (1 + p): returns p = exp (x - n ln 2) - 1 and *n, an integer.
** |x - n ln 2| <= ln 2 / 2. The two parts of ln 2 make n times the first exact;
** the polynomial is the minimax one for (exp (r) - 1 - r) / r^2. */
SL_VMATH real sl_exp_reduce (real x, real *n) {
  const real k = (x * (real)1.44269504088896340736 + SL_ROUND) - SL_ROUND;
#ifdef SL_SINGLE
  const real r = (x - k * 0.693145751953125f) - k * 1.42860682030941723e-6f;
  real q = 1.3814579517e-3f;
  q = q * r + 8.3687161609e-3f;
  q = q * r + 4.1668388308e-2f;
  q = q * r + 1.6666520638e-1f;
  q = q * r + 4.9999993447e-1f;
#else
  const real r =
      (x - k * 0.693147180369123816490) - k * 1.90821492927058770002e-10;
  real q = 2.0826614005732153974e-9;
  q = q * r + 2.5112036397605574278e-8;
  q = q * r + 2.7557581884487136043e-7;
  q = q * r + 2.7557234863184486743e-6;
  q = q * r + 2.4801586926601336225e-5;
  q = q * r + 1.9841269896382572621e-4;
  q = q * r + 1.3888888889115636397e-3;
  q = q * r + 8.3333333333170347376e-3;
  q = q * r + 4.1666666666666094282e-2;
  q = q * r + 1.6666666666666683419e-1;
  q = q * r + 5.0000000000000000439e-1;
#endif
  *n = k;
  return r + r * r * q;
}

/* e^x. The scale is applied in two halves, so that the product leaves the range
** of normal numbers only in the last multiplication. */
SL_VMATH real sl_expv (real x) {
#ifdef SL_SINGLE
  const real low = -104, high = 89;
#else
  const real low = -746, high = 710;
#endif
  real n, p, half;
  x = sl_choose (x < low, low, x); /* NaN passes both */
  x = sl_choose (x > high, high, x);
  p = sl_exp_reduce (x, &n);
  half = n * (real)0.5 + SL_ROUND;
  return (1 + p) * sl_pow2_rounded (half) *
         sl_pow2_rounded ((n - (half - SL_ROUND)) + SL_ROUND);
}

/* e^x - 1 without cancellation near 0: 2^n (1 + p) - 1 with 2^n = a b, so that
** 2^n may be past the largest number. */
SL_VMATH real sl_expm1v (real x) {
#ifdef SL_SINGLE
  const real low = -104, high = 89;
#else
  const real low = -746, high = 710;
#endif
  real n, p, half, a, rest, y;
  y = sl_choose (x < low, low, x);
  y = sl_choose (y > high, high, y);
  p = sl_exp_reduce (y, &n);
  half = n * (real)0.5 + SL_ROUND;
  rest = n - (half - SL_ROUND);
  a = sl_pow2_rounded (half);
  y = (p * a + (a - sl_pow2_rounded (SL_ROUND - rest))) *
      sl_pow2_rounded (rest + SL_ROUND);
  return sl_from_bits (sl_to_bits (y) | (sl_to_bits (x) & SL_SIGN));
}

/* Natural logarithm. x = 2^e m with m in [sqrt 1/2, sqrt 2), f = m - 1,
** s = f / (2 + f): log m = 2 atanh s = f - (f^2/2 - s (f^2/2 + tail (s^2))). */
SL_VMATH real sl_logv (real x) {
  const real tiny =
      sl_choose (x < SL_MIN_NORMAL, SL_TWO_P, 1); /* denormals scaled up */
  const sl_bits offset = sl_to_bits ((real)0.70710678118654752440);
  const sl_bits shifted =
      sl_to_bits (x * tiny) - offset + ((sl_bits)SL_BIAS << SL_MANTISSA);
  const sl_bits mantissa = ((sl_bits)1 << SL_MANTISSA) - 1;
  /* the integer e + SL_BIAS as a real: set it under the exponent of 2^p */
  const real biased =
      sl_from_bits ((shifted >> SL_MANTISSA) | sl_to_bits (SL_TWO_P)) -
      SL_TWO_P;
  const real e =
      biased - SL_BIAS - sl_choose (x < SL_MIN_NORMAL, SL_MANTISSA, 0);
  const real f = sl_from_bits ((shifted & mantissa) + offset) - 1;
  const real s = f / (2 + f), z = s * s, h = (real)0.5 * f * f;
  real y;
#ifdef SL_SINGLE
  const real ln2 = 0.693145751953125f, ln2_low = 1.42860682030941723e-6f;
  real tail = 0.29873045781f;
  tail = tail * z + 0.39977496688f;
  tail = tail * z + 0.66666776707f;
#else
  const real ln2 = 0.693147180369123816490,
             ln2_low = 1.90821492927058770002e-10;
  real tail = 0.14797507669045394135;
  tail = tail * z + 0.15313903242587365003;
  tail = tail * z + 0.18183569739930920325;
  tail = tail * z + 0.22222198475993994010;
  tail = tail * z + 0.28571428743262404873;
  tail = tail * z + 0.39999999999411094338;
  tail = tail * z + 0.66666666666667348959;
#endif
  y = e * ln2 - ((h - (s * (h + z * tail) + e * ln2_low)) - f);
  y = sl_choose (x > SL_MAX_REAL, x, y);
  y = sl_choose (x > 0, y, sl_from_bits (~(sl_bits)0)); /* NaN */
  return sl_choose (x == 0, -(real)__builtin_inf (), y);
}

/* tanh x = m / (m + 2) with m = exp (2 |x|) - 1, and the sign of x: no
** cancellation near 0. Past the limit the result is 1 in the precision. */
SL_VMATH real sl_tanhv (real x) {
  const real limit = 44, a = sl_abs (x);
  const real y = sl_choose (2 * a > limit, limit, 2 * a);
  real n, m, scale;
  m = sl_exp_reduce (y, &n);
  scale = sl_pow2_rounded (n + SL_ROUND);
  m = scale * m + (scale - 1);
  m = m / (m + 2);
  return sl_from_bits (sl_to_bits (m) | (sl_to_bits (x) & SL_SIGN));
}

/* 1 / (1 + e^-x), from e^-|x| so that small values keep their precision. */
SL_VMATH real sl_sigmoidv (real x) {
  const real e = sl_expv (-sl_abs (x));
  return sl_choose (x < 0, e, 1) / (1 + e);
}

/* log (1 + e^x) = max (x, 0) + log (1 + y) with y = e^-|x|. log u / (u - 1)
** hardly changes near u = 1 + y, so the rounding of u does no harm. */
SL_VMATH real sl_softplusv (real x) {
  const real y = sl_expv (-sl_abs (x)), u = 1 + y, rest = u - 1;
  const real log_u = sl_logv (u) * (y / sl_choose (rest == 0, 1, rest));
  return sl_choose (x > 0, x, 0) + sl_choose (rest == 0, y, log_u);
}
#endif
