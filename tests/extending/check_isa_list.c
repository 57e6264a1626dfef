/* check_isa_list.c - the instruction set of docs/extending.md: it has its name, suffix
** and features, and numeric code is compiled for it. */
#include "base/isa.h"
#include "lm/dequantize.h"
#include "support/suite.h"
#include <stdio.h>

extern const sl_dequantize_table sl_dequantizers_f32_bf16;

START_TEST (listed) {
  ck_assert_str_eq (sl_isa_name (SL_ISA_BF16), "x86-64-v4-bf16");
  ck_assert_str_eq (sl_isa_suffix (SL_ISA_BF16), "_bf16");
  ck_assert_int_eq (SL_ISA_BF16, SL_ISA_V4 + 1);
  ck_assert (sl_dequantizers_f32_bf16.of[SL_KIND_Q8_0] != NULL);
}
END_TEST

START_TEST (runs_where_the_machine_has_it) {
  /* a block of Q8_0: the scale 2 as a half, numbers 0 to 31 */
  unsigned char block[34] = { 0x00, 0x40 };
  float got[32];
  if (!sl_isa_available (SL_ISA_BF16)) {
    puts ("this machine has no AVX512_BF16");
    return;
  }
  for (int i = 0; i < 32; i++) block[2 + i] = (unsigned char)i;
  sl_dequantizers_f32_bf16.of[SL_KIND_Q8_0](block, 1, got);
  for (int i = 0; i < 32; i++) ck_assert (got[i] == 2.0f * (float)i);
}
END_TEST

SUITE_MAIN ("isa_list", listed, runs_where_the_machine_has_it)
