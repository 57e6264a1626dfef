/* dequantize.h - quantised numbers into reals, block by block (numeric code). */
#ifndef SL_DEQUANTIZE_H
#define SL_DEQUANTIZE_H
#include <stddef.h>

/* The kinds that are read; sl_weight_type.kind. */
enum {
  SL_KIND_F32,
  SL_KIND_F64,
  SL_KIND_F16,
  SL_KIND_BF16,
  SL_KIND_Q4_0,
  SL_KIND_Q4_1,
  SL_KIND_Q5_0,
  SL_KIND_Q5_1,
  SL_KIND_Q8_0,
  SL_KIND_Q4_K,
  SL_KIND_Q5_K,
  SL_KIND_Q6_K,
  SL_KIND_MXFP4,
  SL_KIND_Q2_K,
  SL_KIND_Q3_K,
  SL_KIND_IQ4_NL,
  SL_KIND_IQ4_XS,
  SL_KIND_TQ1_0,
  SL_KIND_TQ2_0,
  SL_KINDS
};

/* Write the numbers of n blocks at 'from' (any alignment) to 'to', an array of
** n * block reals. A block holds 1 number (F*), 32 (Q4_0 to Q8_0, MXFP4,
** IQ4_NL) or 256 (Q*_K, IQ4_XS, TQ*). Any thread. */
typedef void (*sl_dequantize) (const void *from, ptrdiff_t n, void *to);

/* By kind. One symbol per variant: SL_PICK (sl_dequantizers, wide)->of[kind]. */
typedef struct sl_dequantize_table {
  sl_dequantize of[SL_KINDS];
} sl_dequantize_table;
#endif
