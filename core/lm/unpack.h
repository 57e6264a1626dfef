/* unpack.h - packed numbers made plain, block by block (numeric code). */
#ifndef SL_UNPACK_H
#define SL_UNPACK_H
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
  SL_KINDS
};

/* 'to' (reals) receives the numbers of n blocks at 'from', which may lie at any
** byte. Blocks hold 1 number (F*), 32 (Q4_0 to Q8_0, MXFP4) or 256 (Q*_K).
** Any thread. */
typedef void (*sl_unpack) (const void *from, ptrdiff_t n, void *to);

/* By kind. One symbol per variant: SL_PICK (sl_unpacks, wide)->of[kind]. */
typedef struct sl_unpack_table {
  sl_unpack of[SL_KINDS];
} sl_unpack_table;
#endif
