/* sinklab/functions.h - bodies of the functions of vmath.h and lanes.h.
**
** Included by these two headers, which define
**   SL_T                  the type: real, or a vector of reals
**   SL_B                  the unsigned integer type of the same size
**   SL_F (name)           the name of a function
**   SL_BITS (x)           x reinterpreted as SL_B
**   SL_REAL (b)           b reinterpreted as SL_T
**   SL_ABS (x)            |x|
**   SL_K (c)              the constant c as SL_T
**   SL_CHOOSE (p, a, b)   p ? a : b, without a branch
** Largest errors in ulp stand in vmath.h. */

/* 2^k, with the integer k in the lowest bits of b. */
SL_VMATH SL_T SL_F (pow2) (SL_B b) {
  return SL_REAL ((b + SL_BIAS) << SL_MANTISSA);
}

/* exp (x) = 2^k (1 + p): returns p = exp (x - k ln 2) - 1 and *k, an integer,
** as the lowest bits of k + SL_ROUND. |x - k ln 2| <= ln 2 / 2. The two parts
** of ln 2 make k times the first exact; the polynomial is the minimax one for
** (exp (r) - 1 - r) / r^2. */
SL_VMATH SL_T SL_F (exp_reduce) (SL_T x, SL_B *k) {
  const SL_T rounded = x * (real)1.44269504088896340736 + SL_ROUND;
  const SL_T n = rounded - SL_ROUND;
#ifdef SL_SINGLE
  const SL_T r = (x - n * 0.693145751953125f) - n * 1.42860682030941723e-6f;
  SL_T q = r * 1.3814579517e-3f + 8.3687161609e-3f;
  q = q * r + 4.1668388308e-2f;
  q = q * r + 1.6666520638e-1f;
  q = q * r + 4.9999993447e-1f;
#else
  const SL_T r =
      (x - n * 0.693147180369123816490) - n * 1.90821492927058770002e-10;
  SL_T q = r * 2.0826614005732153974e-9 + 2.5112036397605574278e-8;
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
  *k = SL_BITS (rounded);
  return r + r * r * q;
}

/* x within the range where exp (x) is finite and not 0; NaN passes. */
SL_VMATH SL_T SL_F (exp_range) (SL_T x) {
  x = SL_CHOOSE (x < SL_EXP_LOW, SL_K (SL_EXP_LOW), x);
  return SL_CHOOSE (x > SL_EXP_HIGH, SL_K (SL_EXP_HIGH), x);
}

/* e^x. 2^k is applied as two factors, so that only the last multiplication can
** leave the range of normal numbers. Shifting the bits of k + SL_ROUND right by
** one leaves k / 2 in the lowest bits. Where the result is 0, exp (0) is
** computed instead and discarded: underflow is slow on most processors. */
SL_VMATH SL_T SL_F (exp) (SL_T x) {
  SL_B k, half;
  const SL_T y = SL_CHOOSE (x < SL_EXP_LOW, SL_K (0), x);
  const SL_T p = SL_F (exp_reduce) (
      SL_CHOOSE (y > SL_EXP_HIGH, SL_K (SL_EXP_HIGH), y), &k);
  half = k >> 1;
  return SL_CHOOSE (x < SL_EXP_LOW, SL_K (0),
                    ((real)1 + p) * SL_F (pow2) (half) *
                        SL_F (pow2) (k - half));
}

/* e^x - 1 without cancellation near 0: 2^k (1 + p) - 1 with 2^k = a b, because
** 2^k alone can overflow. */
SL_VMATH SL_T SL_F (expm1) (SL_T x) {
  SL_B k, half, sign = SL_BITS (x) & SL_SIGN;
  const SL_T p = SL_F (exp_reduce) (SL_F (exp_range) (x), &k);
  SL_T a, y;
  half = k >> 1;
  a = SL_F (pow2) (half);
  y = (p * a + (a - SL_F (pow2) (half - k))) * SL_F (pow2) (k - half);
  return SL_REAL (SL_BITS (y) | sign);
}

/* Natural logarithm. x = 2^e m with m in [sqrt 1/2, sqrt 2), f = m - 1,
** s = f / (2 + f): log m = 2 atanh s = f - (f^2/2 - s (f^2/2 + tail (s^2))). */
SL_VMATH SL_T SL_F (log) (SL_T x) {
  const SL_T tiny = SL_CHOOSE (x < SL_MIN_NORMAL, SL_K (SL_TWO_P),
                               SL_K (1)); /* denormals scaled up */
  const sl_bits offset = sl_to_bits ((real)0.70710678118654752440);
  const sl_bits mantissa = ((sl_bits)1 << SL_MANTISSA) - 1;
  const SL_B shifted =
      SL_BITS (x * tiny) - offset + ((sl_bits)SL_BIAS << SL_MANTISSA);
  /* e + SL_BIAS as a real: the integer becomes the mantissa of 2^SL_MANTISSA */
  const SL_T biased =
      SL_REAL ((shifted >> SL_MANTISSA) | sl_to_bits (SL_TWO_P)) - SL_TWO_P;
  const SL_T e = biased - (real)SL_BIAS -
                 SL_CHOOSE (x < SL_MIN_NORMAL, SL_K (SL_MANTISSA), SL_K (0));
  const SL_T f = SL_REAL ((shifted & mantissa) + offset) - (real)1;
  const SL_T s = f / ((real)2 + f), z = s * s, h = (real)0.5 * f * f;
  SL_T y;
#ifdef SL_SINGLE
  const real ln2 = 0.693145751953125f, ln2_low = 1.42860682030941723e-6f;
  SL_T tail = z * 0.29873045781f + 0.39977496688f;
  tail = tail * z + 0.66666776707f;
#else
  const real ln2 = 0.693147180369123816490,
             ln2_low = 1.90821492927058770002e-10;
  SL_T tail = z * 0.14797507669045394135 + 0.15313903242587365003;
  tail = tail * z + 0.18183569739930920325;
  tail = tail * z + 0.22222198475993994010;
  tail = tail * z + 0.28571428743262404873;
  tail = tail * z + 0.39999999999411094338;
  tail = tail * z + 0.66666666666667348959;
#endif
  y = e * ln2 - ((h - (s * (h + z * tail) + e * ln2_low)) - f);
  y = SL_CHOOSE (x > SL_MAX_REAL, x, y);
  y = SL_CHOOSE (x > (real)0, y, SL_K (sl_from_bits (~(sl_bits)0))); /* NaN */
  return SL_CHOOSE (x == (real)0, SL_K (-(real)__builtin_inf ()), y);
}

/* tanh x = m / (m + 2) with m = exp (2 |x|) - 1, and the sign of x: no
** cancellation near 0. For 2 |x| above the limit the result rounds to 1. */
SL_VMATH SL_T SL_F (tanh) (SL_T x) {
  const real limit = 44;
  const SL_T twice = (real)2 * SL_ABS (x);
  SL_B k;
  SL_T m, scale;
  m = SL_F (exp_reduce) (SL_CHOOSE (twice > limit, SL_K (limit), twice), &k);
  scale = SL_F (pow2) (k);
  m = scale * m + (scale - (real)1);
  m = m / (m + (real)2);
  return SL_REAL (SL_BITS (m) | (SL_BITS (x) & SL_SIGN));
}

/* 1 / (1 + e^-x), from e^-|x|: small values keep their precision. */
SL_VMATH SL_T SL_F (sigmoid) (SL_T x) {
  const SL_T e = SL_F (exp) (-SL_ABS (x));
  return SL_CHOOSE (x < (real)0, e, SL_K (1)) / ((real)1 + e);
}

/* log (1 + e^x) = max (x, 0) + log (1 + y) with y = e^-|x|. With u = 1 + y
** rounded, log (1 + y) = y log u / (u - 1): the quotient is flat in u, so the
** rounding of u does not matter. */
SL_VMATH SL_T SL_F (softplus) (SL_T x) {
  const SL_T y = SL_F (exp) (-SL_ABS (x)), u = (real)1 + y, rest = u - (real)1;
  const SL_T log_u =
      SL_F (log) (u) * (y / SL_CHOOSE (rest == (real)0, SL_K (1), rest));
  return SL_CHOOSE (x > (real)0, x, SL_K (0)) +
         SL_CHOOSE (rest == (real)0, y, log_u);
}
