/* dequantize.c - quantised numbers into reals, block by block.
**
** The layouts are those of GGUF (ggml's block types). A block of 32 has one
** scale d, and a least value m or a fixed offset:
**   Q4_0 d (q - 8)    Q4_1 d q + m    Q5_0 d (q - 16)    Q5_1 d q + m
**   IQ4_NL d v[q], v a table of 16
**   Q8_0 d q          MXFP4 2^(e - 128) times twice a 4-bit float
** A block of 256 has 8 or 16 groups with scales s of their own, integers
** themselves: Q2_K, Q4_K, Q5_K d s q - dmin m; Q3_K d s (q - 4); Q6_K
** d s (q - 32); IQ4_XS d s v[q]. TQ1_0 and TQ2_0 have one scale and q of -1, 0
** and 1.
**
** Products are rounded from left to right, as the formulas stand. */
#include "lm/dequantize.h"
#include "base/half.h"
#include <sinklab/plugin.h>
#include <stdint.h>
#include <string.h>

static inline float f16_at (const uint8_t *p) {
  uint16_t half;
  memcpy (&half, p, sizeof half);
  return sl_f16 (half);
}

static void f32_blocks (const void *from, ptrdiff_t n, void *to) {
  const uint8_t *p = from;
  real *y = to;
  for (ptrdiff_t i = 0; i < n; i++) {
    float x;
    memcpy (&x, p + i * 4, sizeof x);
    y[i] = (real)x;
  }
}

static void f64_blocks (const void *from, ptrdiff_t n, void *to) {
  const uint8_t *p = from;
  real *y = to;
  for (ptrdiff_t i = 0; i < n; i++) {
    double x;
    memcpy (&x, p + i * 8, sizeof x);
    y[i] = (real)x;
  }
}

static void f16_blocks (const void *from, ptrdiff_t n, void *to) {
  const uint8_t *p = from;
  real *y = to;
  for (ptrdiff_t i = 0; i < n; i++) y[i] = (real)f16_at (p + i * 2);
}

/* bf16 is the upper half of an f32. */
static void bf16_blocks (const void *from, ptrdiff_t n, void *to) {
  const uint8_t *p = from;
  real *y = to;
  for (ptrdiff_t i = 0; i < n; i++) {
    uint16_t half;
    uint32_t bits;
    float x;
    memcpy (&half, p + i * 2, sizeof half);
    bits = (uint32_t)half << 16;
    memcpy (&x, &bits, sizeof x);
    y[i] = (real)x;
  }
}

/* d, 16 bytes: number j is the lower half of byte j, j + 16 the upper. */
static void q4_0_blocks (const void *from, ptrdiff_t n, void *to) {
  const uint8_t *p = from;
  real *y = to;
  for (; n > 0; n--, p += 18, y += 32) {
    const real d = (real)f16_at (p);
    for (int j = 0; j < 16; j++) {
      y[j] = (real)((p[2 + j] & 15) - 8) * d;
      y[j + 16] = (real)((p[2 + j] >> 4) - 8) * d;
    }
  }
}

/* d, m, 16 bytes */
static void q4_1_blocks (const void *from, ptrdiff_t n, void *to) {
  const uint8_t *p = from;
  real *y = to;
  for (; n > 0; n--, p += 20, y += 32) {
    const real d = (real)f16_at (p), m = (real)f16_at (p + 2);
    for (int j = 0; j < 16; j++) {
      y[j] = (real)(p[4 + j] & 15) * d + m;
      y[j + 16] = (real)(p[4 + j] >> 4) * d + m;
    }
  }
}

/* d, 32 fifth bits, 16 bytes */
static void q5_0_blocks (const void *from, ptrdiff_t n, void *to) {
  const uint8_t *p = from;
  real *y = to;
  for (; n > 0; n--, p += 22, y += 32) {
    const real d = (real)f16_at (p);
    uint32_t high;
    memcpy (&high, p + 2, sizeof high);
    for (int j = 0; j < 16; j++) {
      const int h0 = (int)(high >> j & 1) << 4;
      const int h1 = (int)(high >> (j + 16) & 1) << 4;
      y[j] = (real)(((p[6 + j] & 15) | h0) - 16) * d;
      y[j + 16] = (real)(((p[6 + j] >> 4) | h1) - 16) * d;
    }
  }
}

/* d, m, 32 fifth bits, 16 bytes */
static void q5_1_blocks (const void *from, ptrdiff_t n, void *to) {
  const uint8_t *p = from;
  real *y = to;
  for (; n > 0; n--, p += 24, y += 32) {
    const real d = (real)f16_at (p), m = (real)f16_at (p + 2);
    uint32_t high;
    memcpy (&high, p + 4, sizeof high);
    for (int j = 0; j < 16; j++) {
      const int h0 = (int)(high >> j & 1) << 4;
      const int h1 = (int)(high >> (j + 16) & 1) << 4;
      y[j] = (real)((p[8 + j] & 15) | h0) * d + m;
      y[j + 16] = (real)((p[8 + j] >> 4) | h1) * d + m;
    }
  }
}

/* d, 32 signed bytes */
static void q8_0_blocks (const void *from, ptrdiff_t n, void *to) {
  const uint8_t *p = from;
  real *y = to;
  for (; n > 0; n--, p += 34, y += 32) {
    const real d = (real)f16_at (p);
    for (int j = 0; j < 32; j++) y[j] = (real)(int8_t)p[2 + j] * d;
  }
}

/* The 6-bit scale and least value of group i of 8, out of 12 bytes: the first
** four of each lie in the lower six bits of bytes 0..3 and 4..7, the other
** four in the halves of bytes 8..11 and the bits left over. */
static inline void group (const uint8_t *s, int i, int *scale, int *least) {
  if (i < 4) {
    *scale = s[i] & 63;
    *least = s[i + 4] & 63;
  } else {
    *scale = (s[i + 4] & 15) | (s[i - 4] >> 6) << 4;
    *least = s[i + 4] >> 4 | (s[i] >> 6) << 4;
  }
}

/* d, dmin, 12 bytes of groups, 128 bytes: 32 bytes hold two groups of 32, the
** first in the lower halves. */
static void q4_k_blocks (const void *from, ptrdiff_t n, void *to) {
  const uint8_t *p = from;
  real *y = to;
  for (; n > 0; n--, p += 144) {
    const real d = (real)f16_at (p), dmin = (real)f16_at (p + 2);
    for (int i = 0; i < 8; i++, y += 32) {
      const uint8_t *q = p + 16 + i / 2 * 32;
      const int shift = i % 2 * 4;
      int scale, least;
      group (p + 4, i, &scale, &least);
      const real s = d * (real)scale, m = dmin * (real)least;
      for (int j = 0; j < 32; j++) y[j] = s * (real)(q[j] >> shift & 15) - m;
    }
  }
}

/* As q4_k, with 32 bytes of fifth bits before the 128: bit i of byte j belongs
** to number j of group i. */
static void q5_k_blocks (const void *from, ptrdiff_t n, void *to) {
  const uint8_t *p = from;
  real *y = to;
  for (; n > 0; n--, p += 176) {
    const real d = (real)f16_at (p), dmin = (real)f16_at (p + 2);
    const uint8_t *high = p + 16;
    for (int i = 0; i < 8; i++, y += 32) {
      const uint8_t *q = p + 48 + i / 2 * 32;
      const int shift = i % 2 * 4;
      int scale, least;
      group (p + 4, i, &scale, &least);
      const real s = d * (real)scale, m = dmin * (real)least;
      for (int j = 0; j < 32; j++) {
        const int x = (q[j] >> shift & 15) | (high[j] >> i & 1) << 4;
        y[j] = s * (real)x - m;
      }
    }
  }
}

/* 128 bytes of lower halves, 64 of upper quarters, 16 signed scales, d. Each
** half of the block (128 numbers) is four rows of 32: rows 0 and 1 take the
** lower halves of 64 bytes, rows 2 and 3 the upper; row r has bits 2r of the
** quarters; a scale is for 16 numbers. */
static void q6_k_blocks (const void *from, ptrdiff_t n, void *to) {
  const uint8_t *p = from;
  real *y = to;
  for (; n > 0; n--, p += 210) {
    const real d = (real)f16_at (p + 208);
    for (int i = 0; i < 8; i++, y += 32) {
      const int half = i / 4, row = i % 4;
      const uint8_t *low = p + half * 64 + row % 2 * 32;
      const uint8_t *high = p + 128 + half * 32;
      const int8_t *scale = (const int8_t *)p + 192 + i * 2;
      for (int j = 0; j < 32; j++) {
        const int x = (low[j] >> row / 2 * 4 & 15) | (high[j] >> row * 2 & 3)
                                                         << 4;
        y[j] = d * (real)scale[j / 16] * (real)(x - 32);
      }
    }
  }
}

/* An exponent, 16 bytes of 4-bit floats (sign, two bits of exponent, one of
** fraction); the table has them doubled, as whole numbers. */
static void mxfp4_blocks (const void *from, ptrdiff_t n, void *to) {
  static const int8_t doubled[16] = { 0, 1,  2,  3,  4,  6,  8,  12,
                                      0, -1, -2, -3, -4, -6, -8, -12 };
  const uint8_t *p = from;
  real *y = to;
  for (; n > 0; n--, p += 17, y += 32) {
    /* 2^(e - 128); at e 0 and 1 a subnormal */
    uint32_t bits = p[0] < 2 ? 0x200000u << p[0] : (uint32_t)(p[0] - 1) << 23;
    float d;
    memcpy (&d, &bits, sizeof d);
    for (int j = 0; j < 16; j++) {
      y[j] = (real)doubled[p[1 + j] & 15] * (real)d;
      y[j + 16] = (real)doubled[p[1 + j] >> 4] * (real)d;
    }
  }
}

/* 16 bytes (scale of 4 bits, least value of 4), 64 bytes of quarters, d, dmin.
** 32 bytes of quarters hold four rows of 32 numbers, row r in bits 2r; a scale
** is for 16 numbers. */
static void q2_k_blocks (const void *from, ptrdiff_t n, void *to) {
  const uint8_t *p = from;
  real *y = to;
  for (; n > 0; n--, p += 84) {
    const real d = (real)f16_at (p + 80), dmin = (real)f16_at (p + 82);
    for (int i = 0; i < 16; i++, y += 16) {
      const uint8_t *q = p + 16 + i / 8 * 32 + i % 2 * 16;
      const int shift = i % 8 / 2 * 2;
      const real s = d * (real)(p[i] & 15), m = dmin * (real)(p[i] >> 4);
      for (int j = 0; j < 16; j++) y[j] = s * (real)(q[j] >> shift & 3) - m;
    }
  }
}

/* 32 bytes of third bits, 64 of quarters, 12 of scales, d. Quarters as in q2_k;
** bit r of byte j of the third bits is of number j of row r (of 8). Scale k of
** 16 has four bits in a half of byte k % 8 and two in byte 8 + k % 4. */
static void q3_k_blocks (const void *from, ptrdiff_t n, void *to) {
  const uint8_t *p = from;
  real *y = to;
  for (; n > 0; n--, p += 110) {
    const real d = (real)f16_at (p + 108);
    const uint8_t *scales = p + 96;
    for (int k = 0; k < 16; k++, y += 16) {
      const uint8_t *q = p + 32 + k / 8 * 32 + k % 2 * 16;
      const uint8_t *high = p + k % 2 * 16;
      const int row = k / 2, shift = row % 4 * 2;
      const int scale = (scales[k % 8] >> k / 8 * 4 & 15) |
                        (scales[8 + k % 4] >> k / 4 * 2 & 3) << 4;
      const real s = d * (real)(scale - 32);
      for (int j = 0; j < 16; j++)
        y[j] = s * (real)((q[j] >> shift & 3) - (high[j] >> row & 1 ? 0 : 4));
    }
  }
}

/* The values of IQ4, which lie closer around 0. */
static const int8_t iq4[16] = { -127, -104, -83, -65, -49, -35, -22, -10,
                                1,    13,   25,  38,  53,  69,  89,  113 };

/* d, 16 bytes */
static void iq4_nl_blocks (const void *from, ptrdiff_t n, void *to) {
  const uint8_t *p = from;
  real *y = to;
  for (; n > 0; n--, p += 18, y += 32) {
    const real d = (real)f16_at (p);
    for (int j = 0; j < 16; j++) {
      y[j] = d * (real)iq4[p[2 + j] & 15];
      y[j + 16] = d * (real)iq4[p[2 + j] >> 4];
    }
  }
}

/* d, 2 bytes with the upper two bits of 8 scales, 4 bytes with their lower four,
** 128 bytes: 16 for each group of 32 numbers */
static void iq4_xs_blocks (const void *from, ptrdiff_t n, void *to) {
  const uint8_t *p = from;
  real *y = to;
  for (; n > 0; n--, p += 136) {
    const real d = (real)f16_at (p);
    const int high = p[2] | p[3] << 8;
    for (int i = 0; i < 8; i++, y += 32) {
      const uint8_t *q = p + 8 + i * 16;
      const int scale = (p[4 + i / 2] >> i % 2 * 4 & 15) | (high >> 2 * i & 3)
                                                               << 4;
      const real s = d * (real)(scale - 32);
      for (int j = 0; j < 16; j++) {
        y[j] = s * (real)iq4[q[j] & 15];
        y[j + 16] = s * (real)iq4[q[j] >> 4];
      }
    }
  }
}

/* 'rows' rows of 'width' numbers out of 'width' bytes of base-3 digits. A byte b
** holds five digits as the fraction b / 256: digit r is the whole part of
** 3 frac (3^r b / 256). */
static real *ternary (const uint8_t *q, int width, int rows, real d, real *y) {
  unsigned power = 1;
  for (int r = 0; r < rows; r++, power *= 3, y += width)
    for (int j = 0; j < width; j++) {
      const unsigned rest = (q[j] * power) & 255;
      y[j] = (real)((int)(rest * 3 >> 8) - 1) * d;
    }
  return y;
}

/* 48 bytes of five digits each, 4 of four, d */
static void tq1_0_blocks (const void *from, ptrdiff_t n, void *to) {
  const uint8_t *p = from;
  real *y = to;
  for (; n > 0; n--, p += 54) {
    const real d = (real)f16_at (p + 52);
    y = ternary (p, 32, 5, d, y);
    y = ternary (p + 32, 16, 5, d, y);
    y = ternary (p + 48, 4, 4, d, y);
  }
}

/* 64 bytes of quarters, as in q2_k, d */
static void tq2_0_blocks (const void *from, ptrdiff_t n, void *to) {
  const uint8_t *p = from;
  real *y = to;
  for (; n > 0; n--, p += 66) {
    const real d = (real)f16_at (p + 64);
    for (int i = 0; i < 8; i++, y += 32) {
      const uint8_t *q = p + i / 4 * 32;
      for (int j = 0; j < 32; j++)
        y[j] = (real)((q[j] >> i % 4 * 2 & 3) - 1) * d;
    }
  }
}

const sl_dequantize_table SL (sl_dequantizers) = { {
    [SL_KIND_F32] = f32_blocks,       [SL_KIND_F64] = f64_blocks,
    [SL_KIND_F16] = f16_blocks,       [SL_KIND_BF16] = bf16_blocks,
    [SL_KIND_Q4_0] = q4_0_blocks,     [SL_KIND_Q4_1] = q4_1_blocks,
    [SL_KIND_Q5_0] = q5_0_blocks,     [SL_KIND_Q5_1] = q5_1_blocks,
    [SL_KIND_Q8_0] = q8_0_blocks,     [SL_KIND_Q4_K] = q4_k_blocks,
    [SL_KIND_Q5_K] = q5_k_blocks,     [SL_KIND_Q6_K] = q6_k_blocks,
    [SL_KIND_MXFP4] = mxfp4_blocks,   [SL_KIND_Q2_K] = q2_k_blocks,
    [SL_KIND_Q3_K] = q3_k_blocks,     [SL_KIND_IQ4_NL] = iq4_nl_blocks,
    [SL_KIND_IQ4_XS] = iq4_xs_blocks, [SL_KIND_TQ1_0] = tq1_0_blocks,
    [SL_KIND_TQ2_0] = tq2_0_blocks,
} };
