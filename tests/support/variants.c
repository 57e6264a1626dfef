/* variants.c - numeric tests in every variant. */
#include "support/variants.h"
#include <check.h>
#include <stdlib.h>

int variant_use (sl_isa isa) {
  sl_error e;
  sl_isa chosen;
  if (!sl_isa_available (isa)) return 0;
  setenv ("SINKLAB_ISA", sl_isa_name (isa), 1);
  if (sl_isa_choose (&chosen, &e) != 0) ck_abort_msg ("%s", e.text);
  ck_assert_int_eq (chosen, isa);
  return 1;
}
