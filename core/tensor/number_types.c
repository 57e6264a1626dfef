/* number_types.c - the types of numbers in .npy and safetensors files. */
#include "tensor/number_types.h"
#include "base/half.h"
#include <math.h>
#include <stdint.h>
#include <string.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "files are read and written as memory has them: little-endian only"
#endif

#define READ(name, type)                        \
  static double name (const unsigned char *p) { \
    type x;                                     \
    memcpy (&x, p, sizeof x);                   \
    return (double)x;                           \
  }
READ (read_f32, float)
READ (read_f64, double)
READ (read_i8, int8_t)
READ (read_u8, uint8_t)
READ (read_i16, int16_t)
READ (read_u16, uint16_t)
READ (read_i32, int32_t)
READ (read_u32, uint32_t)
READ (read_i64, int64_t)
READ (read_u64, uint64_t)

static double read_f16 (const unsigned char *p) {
  return (double)sl_f16 ((uint16_t)(p[0] | p[1] << 8));
}

/* bf16 is the upper half of an f32. */
static double read_bf16 (const unsigned char *p) {
  const unsigned char f32[4] = { 0, 0, p[0], p[1] };
  return read_f32 (f32);
}

/* 1 + 5 + 2 bits: the upper half of an f16. */
static double read_f8_e5m2 (const unsigned char *p) {
  return (double)sl_f16 ((uint16_t)(p[0] << 8));
}

/* 1 + 4 + 3 bits, exponent bias 7, without infinities; all ones is NaN (Micikevicius
** et al. 2022, arXiv 2209.05433, table 1). */
static double read_f8_e4m3 (const unsigned char *p) {
  const int exponent = *p >> 3 & 15, fraction = *p & 7;
  double x =
      exponent > 0 ? ldexp (8 + fraction, exponent - 10) : ldexp (fraction, -9);
  if ((*p & 127) == 127) x = (double)NAN;
  return *p & 128 ? -x : x;
}

/* A power of two, exponent bias 127; all ones is NaN (OCP microscaling formats 1.0,
** section 5.4.1). */
static double read_f8_e8m0 (const unsigned char *p) {
  return *p == 255 ? (double)NAN : ldexp (1, *p - 127);
}

static const sl_number_type types[] = {
  { "f4", "F32", 4, SL_F32, read_f32 },
  { "f8", "F64", 8, SL_F64, read_f64 },
  { "f2", "F16", 2, SL_F32, read_f16 },
  { "", "BF16", 2, SL_F32, read_bf16 },
  { "i1", "I8", 1, SL_F64, read_i8 },
  { "i2", "I16", 2, SL_F64, read_i16 },
  { "i4", "I32", 4, SL_F64, read_i32 },
  { "i8", "I64", 8, SL_F64, read_i64 },
  { "u1", "U8", 1, SL_F64, read_u8 },
  { "u2", "U16", 2, SL_F64, read_u16 },
  { "u4", "U32", 4, SL_F64, read_u32 },
  { "u8", "U64", 8, SL_F64, read_u64 },
  { "b1", "BOOL", 1, SL_F64, read_u8 },
  { "", "F8_E4M3", 1, SL_F32, read_f8_e4m3 },
  { "", "F8_E5M2", 1, SL_F32, read_f8_e5m2 },
  { "", "F8_E8M0", 1, SL_F32, read_f8_e8m0 },
};
enum { TYPES = sizeof types / sizeof *types };

const sl_number_type *sl_npy_type (const char *name) {
  for (int i = 0; i < TYPES; i++)
    if (*name && strcmp (types[i].npy, name) == 0) return &types[i];
  return NULL;
}

const sl_number_type *sl_safetensors_type (const char *name) {
  for (int i = 0; i < TYPES; i++)
    if (*name && strcmp (types[i].safetensors, name) == 0) return &types[i];
  return NULL;
}

/* Whether every integer of the type is an f64. */
static int is_exact (const sl_number_type *type) {
  return type->read != read_i64 && type->read != read_u64;
}

static double read_swapped (const sl_number_type *type,
                            const unsigned char *p) {
  unsigned char turned[8];
  for (size_t i = 0; i < type->bytes; i++) turned[i] = p[type->bytes - 1 - i];
  return type->read (turned);
}

sl_tensor *sl_numbers_read (const sl_number_type *type, int big_endian,
                            int ndim, const ptrdiff_t *dim, const char *data,
                            sl_error *e) {
  const unsigned char *p = (const unsigned char *)data;
  sl_tensor *t = sl_tensor_new (type->dtype, ndim, dim, e);
  sl_view v;
  size_t count;
  if (t == NULL) return NULL;
  v = sl_tensor_view (t);
  count = sl_view_count (&v);
  if (!big_endian && (type->read == read_f32 || type->read == read_f64)) {
    if (count > 0) memcpy (v.data, data, count * type->bytes);
    return t;
  }
  for (size_t i = 0; i < count; i++, p += type->bytes) {
    const double x = big_endian ? read_swapped (type, p) : type->read (p);
    if (!is_exact (type) && (x >= 0x1p53 || x <= -0x1p53)) {
      sl_fail (e, "holds an integer of 2^53 or more, which f64 cannot hold");
      sl_tensor_release (t);
      return NULL;
    }
    if (type->dtype == SL_F32)
      ((float *)v.data)[i] = (float)x;
    else
      ((double *)v.data)[i] = x;
  }
  return t;
}
