/* check_dequantize.c - packed numbers against numbers that llama.cpp unpacked, against
** its library where that is installed, and against each layout's definition, one
** number at a time in double. */
#include "base/random.h"
#include "lm/dequantize.h"
#include "lm/weights.h"
#include "support/suite.h"
#include "support/variants.h"
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

SL_VARIANTS (const sl_dequantize_table, sl_dequantizers);

static sl_error error;

/* Byte i of a random string. */
static uint8_t random_byte (uint32_t string, uint32_t i) {
  uint32_t out[4];
  sl_philox (7, (const uint32_t[]){ i, string, 0, 0 }, out);
  return (uint8_t)out[0];
}

#define EACH_VARIANT                           \
  for (int isa = 0; isa < SL_ISA_COUNT; isa++) \
    if (variant_use ((sl_isa)isa))

/* By definition, without a bit trick: sign, exponent, fraction. */
static double half (unsigned h) {
  const int exponent = h >> 10 & 31, fraction = h & 1023;
  const double sign = h >> 15 ? -1 : 1;
  if (exponent == 31) return fraction ? NAN : sign * INFINITY;
  return sign * (exponent ? ldexp (1024 + fraction, exponent - 25)
                          : ldexp (fraction, -24));
}

static double half_at (const uint8_t *p) {
  return half (p[0] | (unsigned)p[1] << 8);
}

/* Bit 'i' of little-endian bytes. */
static int bit (const uint8_t *p, int i) {
  return p[i / 8] >> i % 8 & 1;
}

/* 4-bit number i of a block of 32: the lower halves first. */
static int nibble (const uint8_t *p, int i) {
  return p[i % 16] >> (i < 16 ? 0 : 4) & 15;
}

static double q4_0 (const uint8_t *p, int i) {
  return half_at (p) * (nibble (p + 2, i) - 8);
}
static double q4_1 (const uint8_t *p, int i) {
  return half_at (p) * nibble (p + 4, i) + half_at (p + 2);
}
static double q5_0 (const uint8_t *p, int i) {
  return half_at (p) * (nibble (p + 6, i) + 16 * bit (p + 2, i) - 16);
}
static double q5_1 (const uint8_t *p, int i) {
  return half_at (p) * (nibble (p + 8, i) + 16 * bit (p + 4, i)) +
         half_at (p + 2);
}
static double q8_0 (const uint8_t *p, int i) {
  return half_at (p) * (p[2 + i] < 128 ? p[2 + i] : p[2 + i] - 256);
}

/* Six bits: scale (which 0) or least value (1) of group g, by the picture
**   byte 0..3: s0..s3, byte 4..7: m0..m3 (low six bits),
**   byte 8..11: low halves s4..s7, high halves m4..m7,
**   the top two bits of bytes 0..3 go to s4..s7, of bytes 4..7 to m4..m7. */
static int six (const uint8_t *s, int g, int which) {
  if (g < 4) return s[4 * which + g] % 64;
  return s[4 + g] / (which ? 16 : 1) % 16 + s[4 * which + g - 4] / 64 * 16;
}

/* Bytes of 32 hold groups 2b (lower halves) and 2b + 1. */
static int k_nibble (const uint8_t *p, int i) {
  return p[i / 64 * 32 + i % 32] >> (i % 64 < 32 ? 0 : 4) & 15;
}
static double q4_k (const uint8_t *p, int i) {
  return half_at (p) * six (p + 4, i / 32, 0) * k_nibble (p + 16, i) -
         half_at (p + 2) * six (p + 4, i / 32, 1);
}
static double q5_k (const uint8_t *p, int i) {
  const int high = p[16 + i % 32] >> i / 32 & 1;
  return half_at (p) * six (p + 4, i / 32, 0) *
             (k_nibble (p + 48, i) + 16 * high) -
         half_at (p + 2) * six (p + 4, i / 32, 1);
}
static double q6_k (const uint8_t *p, int i) {
  const int n = i / 128, r = i % 128; /* half of the block, place in it */
  const int low = p[n * 64 + r % 64] >> (r < 64 ? 0 : 4) & 15;
  const int high = p[128 + n * 32 + r % 32] >> r / 32 * 2 & 3;
  const int scale = (int8_t)p[192 + i / 16];
  return half_at (p + 208) * scale * (low + 16 * high - 32);
}
static double mxfp4 (const uint8_t *p, int i) {
  static const double values[] = { 0, 0.5, 1, 1.5, 2, 3, 4, 6 };
  const int x = nibble (p + 1, i);
  return ldexp (values[x % 8], p[0] - 127) * (x < 8 ? 1 : -1);
}

static double q2_k (const uint8_t *p, int i) {
  const int q = p[16 + i / 128 * 32 + i % 32] >> i % 128 / 32 * 2 & 3;
  return half_at (p + 80) * (p[i / 16] % 16) * q -
         half_at (p + 82) * (p[i / 16] / 16);
}
static double q3_k (const uint8_t *p, int i) {
  /* scales, six bits each: the low four of 0..7 and 8..15 are the halves of 8
  ** bytes; byte 8 + k has the top two of k, k + 4, k + 8, k + 12 */
  const uint8_t *s = p + 96;
  const int k = i / 16, q = p[32 + i / 128 * 32 + i % 32] >> i % 128 / 32 * 2;
  const int low = k < 8 ? s[k] % 16 : s[k - 8] / 16;
  const int top = s[8 + k % 4] >> 2 * (k / 4) & 3;
  const int third = p[i % 32] >> i / 32 & 1;
  return half_at (p + 108) * (low + 16 * top - 32) * ((q & 3) + 4 * third - 4);
}
static double iq4 (int q) {
  static const int values[] = { -127, -104, -83, -65, -49, -35, -22, -10,
                                1,    13,   25,  38,  53,  69,  89,  113 };
  return values[q];
}
static double iq4_nl (const uint8_t *p, int i) {
  return half_at (p) * iq4 (nibble (p + 2, i));
}
static double iq4_xs (const uint8_t *p, int i) {
  const int g = i / 32;
  const int low = p[4 + g / 2] >> (g % 2 ? 4 : 0) & 15;
  const int top = p[2 + g / 4] >> g % 4 * 2 & 3;
  return half_at (p) * (low + 16 * top - 32) *
         iq4 (nibble (p + 8 + g * 16, i % 32));
}
/* Digit r of a byte that is a fraction in base 3. */
static double tq1_0 (const uint8_t *p, int i) {
  const int at = i < 160 ? i % 32 : i < 240 ? 32 + i % 16 : 48 + i % 4;
  const int digit = i < 160 ? i / 32 : i < 240 ? (i - 160) / 16 : (i - 240) / 4;
  double x = p[at] / 256.0;
  for (int k = 0; k < digit; k++) x = 3 * x - floor (3 * x);
  return half_at (p + 52) * (floor (3 * x) - 1);
}
static double tq2_0 (const uint8_t *p, int i) {
  const int q = p[i / 128 * 32 + i % 32] >> i % 128 / 32 * 2 & 3;
  return half_at (p + 64) * (q - 1);
}

static const struct {
  const char *name;
  double (*number) (const uint8_t *block, int i);
  int halves[2]; /* where scales are; -1: none */
} layouts[] = {
  { "Q4_0", q4_0, { 0, -1 } },     { "Q4_1", q4_1, { 0, 2 } },
  { "Q5_0", q5_0, { 0, -1 } },     { "Q5_1", q5_1, { 0, 2 } },
  { "Q8_0", q8_0, { 0, -1 } },     { "Q4_K", q4_k, { 0, 2 } },
  { "Q5_K", q5_k, { 0, 2 } },      { "Q6_K", q6_k, { 208, -1 } },
  { "MXFP4", mxfp4, { -1, -1 } },  { "Q2_K", q2_k, { 80, 82 } },
  { "Q3_K", q3_k, { 108, -1 } },   { "IQ4_NL", iq4_nl, { 0, -1 } },
  { "IQ4_XS", iq4_xs, { 0, -1 } }, { "TQ1_0", tq1_0, { 52, -1 } },
  { "TQ2_0", tq2_0, { 64, -1 } },
};

static void every_half_here (void) {
  for (unsigned h = 0; h < 65536; h++) {
    const uint16_t bits = (uint16_t)h;
    const uint32_t wide = (uint32_t)h << 16;
    double want = half (h), d;
    float f, b;
    SL_PICK (sl_dequantizers, 0)->of[SL_KIND_F16](&bits, 1, &f);
    SL_PICK (sl_dequantizers, 1)->of[SL_KIND_F16](&bits, 1, &d);
    ck_assert_msg (
        isnan (want) ? isnan (f) && isnan (d) : (double)f == want && d == want,
        "f16 %04x: got %.9g and %.17g, want %.17g", h, (double)f, d, want);
    SL_PICK (sl_dequantizers, 0)->of[SL_KIND_BF16](&bits, 1, &f);
    memcpy (&b, &wide, sizeof b);
    if (memcmp (&f, &b, sizeof f) != 0)
      ck_abort_msg ("bf16 %04x: got %.9g", h, (double)f);
  }
}

START_TEST (every_half) {
  EACH_VARIANT every_half_here ();
}
END_TEST

/* Random bytes with scales that are sane; odd places in memory. */
static void by_definition (void) {
  enum { BLOCKS = 40 };
  for (size_t k = 0; k < sizeof layouts / sizeof *layouts; k++) {
    const sl_weight_type *type = sl_weight_type_named (layouts[k].name);
    uint8_t bytes[BLOCKS * 256 + 1], *p = bytes + 1;
    float f[BLOCKS * 256];
    double d[BLOCKS * 256];
    ck_assert_ptr_nonnull (type);
    for (int i = 0; i < BLOCKS * type->bytes; i++)
      p[i] = random_byte ((uint32_t)k, (uint32_t)i);
    for (int b = 0; b < BLOCKS; b++)
      for (int s = 0; s < 2; s++)
        if (layouts[k].halves[s] >= 0) /* 2^-4 to 2^-1, either sign */
          p[b * type->bytes + layouts[k].halves[s] + 1] =
              (uint8_t)(0x2c + b % 12 + (b % 5 == 0) * 128);
    SL_PICK (sl_dequantizers, 0)->of[type->kind](p, BLOCKS, f);
    SL_PICK (sl_dequantizers, 1)->of[type->kind](p, BLOCKS, d);
    for (int i = 0; i < BLOCKS * type->block; i++) {
      const uint8_t *block = p + i / type->block * type->bytes;
      const double want = layouts[k].number (block, i % type->block);
      /* a difference of two products of this size */
      const double size = fabs (want) + 64 * 64;
      CLOSE (d[i], want, 1e-15 * size, 0, "%s in f64, number %d, seed 7",
             type->name, i);
      CLOSE ((double)f[i], want, layouts[k].halves[1] < 0 ? 0 : 1e-7 * size,
             2e-7, "%s in f32, number %d, seed 7", type->name, i);
    }
  }
}

START_TEST (layouts_by_definition) {
  EACH_VARIANT by_definition ();
}
END_TEST

static void golden (void) {
  sl_weights *file = sl_weights_open (
      SINKLAB_TEST_SOURCE "/golden/lm/blocks.safetensors", &error);
  int types = 0;
  ck_assert_msg (file != NULL, "%s", error.text);
  for (size_t k = 0; k < sizeof layouts / sizeof *layouts; k++) {
    const sl_weight_type *type = sl_weight_type_named (layouts[k].name);
    const sl_weight *packed, *plain;
    char name[32];
    float f[512], want[512];
    snprintf (name, sizeof name, "%s.packed", type->name);
    packed = sl_weights_find (file, name, &error);
    snprintf (name, sizeof name, "%s.plain", type->name);
    plain = sl_weights_find (file, name, &error);
    if (packed == NULL || plain == NULL) continue;
    types++;
    ck_assert_uint_eq (plain->bytes, sizeof want);
    memcpy (want, plain->data, sizeof want);
    SL_PICK (sl_dequantizers, 0)
        ->of[type->kind](packed->data, 512 / type->block, f);
    for (int i = 0; i < 512; i++)
      CLOSE ((double)f[i], (double)want[i], 0, 1.2e-7, "%s, number %d",
             type->name, i);
  }
  ck_assert_int_eq (types, 5);
  sl_weights_release (file);
}

START_TEST (numbers_of_llama_cpp) {
  EACH_VARIANT golden ();
}
END_TEST

/* Blocks of every byte, with scales of every size: each f32 as ggml has it. */
static void bits_of (void *ggml, size_t k) {
  enum { BLOCKS = 400 };
  const sl_weight_type *type = sl_weight_type_named (layouts[k].name);
  static uint8_t bytes[BLOCKS * 256];
  static float f[BLOCKS * 256], want[BLOCKS * 256];
  void (*unpack) (const void *from, float *to, int64_t n);
  char name[64];
  snprintf (name, sizeof name, "dequantize_row_%s", type->name);
  for (char *c = name; *c; c++)
    if (*c >= 'A' && *c <= 'Z' && *c != 'K') *c += 'a' - 'A';
  *(void **)&unpack = dlsym (ggml, name);
  ck_assert_msg (unpack != NULL, "ggml has no %s", name);
  for (int i = 0; i < BLOCKS * type->bytes; i++)
    bytes[i] = random_byte ((uint32_t)k + 100, (uint32_t)i);
  for (int b = 0; b < BLOCKS; b++)
    for (int s = 0; s < 2; s++) {
      uint8_t *high = &bytes[b * type->bytes + layouts[k].halves[s] + 1];
      /* any half but NaN and the infinities */
      if (layouts[k].halves[s] >= 0 && (*high & 0x7c) == 0x7c) *high ^= 0x40;
    }
  unpack (bytes, want, BLOCKS * type->block);
  SL_PICK (sl_dequantizers, 0)->of[type->kind](bytes, BLOCKS, f);
  for (int i = 0; i < BLOCKS * type->block; i++)
    if (memcmp (&f[i], &want[i], sizeof f[i]) != 0)
      ck_abort_msg ("%s, number %d, seed 7: got %.9g, want %.9g", type->name, i,
                    (double)f[i], (double)want[i]);
}

START_TEST (bits_of_ggml) {
  static const char folder[] = SINKLAB_TEST_BUILD "/npm";
  void *ggml = dlopen (SINKLAB_TEST_BUILD
                       "/npm/node_modules/@node-llama-cpp/linux-x64/bins/"
                       "linux-x64/libggml-base.so",
                       RTLD_NOW);
  if (ggml == NULL) {
    printf ("bits_of_ggml skipped: npm install --prefix '%s' --ignore-scripts "
            "node-llama-cpp@3.22.1\n",
            folder);
    return;
  }
  EACH_VARIANT for (size_t k = 0; k < sizeof layouts / sizeof *layouts; k++)
      bits_of (ggml, k);
}
END_TEST

SUITE_MAIN ("unpack", every_half, layouts_by_definition, numbers_of_llama_cpp,
            bits_of_ggml)
