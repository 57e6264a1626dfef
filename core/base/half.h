/* half.h - IEEE half precision as f32. */
#ifndef SL_HALF_H
#define SL_HALF_H
#include <stdint.h>
#include <string.h>

/* f16 is 1 + 5 + 10 bits, exponent bias 15: shifted into place the number is
** 2^-112 times too small, which also makes its subnormals normal. */
static inline float sl_f16 (uint16_t half) {
  uint32_t bits = (uint32_t)(half & 0x7fff) << 13;
  float x;
  memcpy (&x, &bits, sizeof x);
  x *= 0x1p112f;
  memcpy (&bits, &x, sizeof bits);
  if ((half & 0x7c00) == 0x7c00) /* infinity, NaN */
    bits = 0x7f800000u | (uint32_t)(half & 0x3ff) << 13;
  bits |= (uint32_t)(half & 0x8000) << 16;
  memcpy (&x, &bits, sizeof x);
  return x;
}
#endif
