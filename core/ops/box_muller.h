/* box_muller.h - normal numbers from random words: -log u, and the cosine and
** sine of an angle (Box and Muller 1958).
** Numeric code: include it from files that are compiled per precision. */
#ifndef SL_BOX_MULLER_H
#define SL_BOX_MULLER_H
#include <sinklab/vmath.h>
#include <stdint.h>

/* A 32-bit word as a real. The way through a signed integer vectorises. */
SL_VMATH real sl_word_to_real (uint32_t w) {
  return (real)(int32_t)(w ^ 0x80000000u) + (real)2147483648.0;
}

/* -log (u) for u = (w + 1/2) / 2^bits from a word of 'bits' bits, with full
** precision at both ends of (0, 1). x = u if u < 1/2, else x = 1 - u, which are
** the inverted words. With m 2^k = x, or 1 - x = u,
** log u = k log 2 + 2 atanh (s), s = (m - 1) / (m + 1), or -x / (2 - x). */
SL_VMATH real sl_minus_log (uint32_t hi, uint32_t lo) {
  const uint32_t flip = 0u - (hi >> 31);
  const int near_one = (int)(hi >> 31);
#ifdef SL_SINGLE
  const real x = ((real)(int32_t)(hi ^ flip) + 0.5f) * 0x1p-32f;
  const real ln2 = 0.693147180559945f, root_half = 0.70710678f;
  (void)lo;
#else
  const real x = (real)(int32_t)(hi ^ flip) * 0x1p-32 +
                 (sl_word_to_real (lo ^ flip) + 0.5) * 0x1p-64;
  const real ln2 = 0.693147180559945309, root_half = 0.70710678118654752440;
#endif
  const sl_bits part = sl_to_bits (x) - sl_to_bits (root_half);
  const sl_bits fraction = part & (((sl_bits)1 << SL_MANTISSA) - 1);
  const real m = sl_from_bits (fraction + sl_to_bits (root_half));
  /* part >> SL_MANTISSA is -k modulo a power of two, and -64 <= k <= 0 */
  const real k = (real)(int32_t)(((0 - (part >> SL_MANTISSA))) & 127);
  const real above = sl_choose (near_one, x, 1 - m);
  const real below = sl_choose (near_one, 2 - x, 1 + m);
  const real s = above / below, z = s * s;
#ifdef SL_SINGLE
  real p = 2.4393908084e-1f;
  p = p * z + 2.1398560507e-1f;
  p = p * z + 2.8620207408e-1f;
  p = p * z + 3.9998711247e-1f;
  p = p * z + 6.6666679026e-1f;
  p = p * z + 2;
#else
  real p = 1.77615565495693996311e-1;
  p = p * z + 4.79027468782444557827e-2;
  p = p * z + 1.03527801498623646096e-1;
  p = p * z + 1.04175752029112760973e-1;
  p = p * z + 1.17741369896345502622e-1;
  p = p * z + 1.33327736287930363252e-1;
  p = p * z + 1.53846384806628052282e-1;
  p = p * z + 1.81818175196255880748e-1;
  p = p * z + 2.22222222350666720502e-1;
  p = p * z + 2.85714285712720379587e-1;
  p = p * z + 4.00000000000010150713e-1;
  p = p * z + 6.66666666666666643754e-1;
  p = p * z + 2;
#endif
  return s * p + sl_choose (near_one, 0, k * ln2);
}

/* cos and sin of 2 pi w / 2^bits: the nearest quarter turn, and the rest, |t|
** <= pi / 4, by polynomials that are nearly minimax. */
SL_VMATH void sl_cos_sin (uint32_t hi, uint32_t lo, real *cosine, real *sine) {
  const uint32_t turned = hi + 0x20000000u;
  const uint32_t quarter = turned >> 30;
  const int32_t rest = (int32_t)(turned & 0x3fffffffu) - 0x20000000;
#ifdef SL_SINGLE
  const real t = (real)rest * (real)(1.57079632679489661923 * 0x1p-30);
  const real z = t * t;
  real c = 2.4379831251e-5f, s = -1.9503904251e-4f;
  c = c * z - 1.3886617999e-3f;
  c = c * z + 4.1666616693e-2f;
  c = c * z - 4.9999999615e-1f;
  c = c * z + 1;
  s = s * z + 8.3320357856e-3f;
  s = s * z - 1.6666650674e-1f;
  (void)lo;
#else
  const real t = ((real)rest + sl_word_to_real (lo) * 0x1p-32) *
                 (1.57079632679489661923 * 0x1p-30);
  const real z = t * t;
  real c = -1.13518086733616784448e-11, s = 1.58947706904588804101e-10;
  c = c * z + 2.08755484144404078280e-9;
  c = c * z - 2.75573128196368532457e-7;
  c = c * z + 2.48015872828231924617e-5;
  c = c * z - 1.38888888888593121370e-3;
  c = c * z + 4.16666666666664444741e-2;
  c = c * z - 4.99999999999999994308e-1;
  c = c * z + 1;
  s = s * z - 2.50507176202040340301e-8;
  s = s * z + 2.75573133810158546043e-6;
  s = s * z - 1.98412698286655861277e-4;
  s = s * z + 8.33333333332038564824e-3;
  s = s * z - 1.66666666666666168087e-1;
#endif
  s = s * z * t + t;
  /* quarter turns: (c, s) -> (-s, c) -> (-c, -s) -> (s, -c) */
  const sl_bits swap = 0 - (sl_bits)(quarter & 1);
  const sl_bits cb = sl_to_bits (c), sb = sl_to_bits (s);
  const sl_bits minus_c = (sl_bits)((quarter + 1) >> 1 & 1)
                          << (8 * sizeof (real) - 1);
  const sl_bits minus_s = (sl_bits)(quarter >> 1 & 1)
                          << (8 * sizeof (real) - 1);
  *cosine = sl_from_bits (((cb & ~swap) | (sb & swap)) ^ minus_c);
  *sine = sl_from_bits (((sb & ~swap) | (cb & swap)) ^ minus_s);
}
#endif
