/* register.c - the attention layer's operations made known to sl_op_find. */
#include "attention/attention.h"
#include "base/isa.h"

SL_VARIANTS (const sl_op_list, sl_attention_ops);

static const sl_op_list *pick (sl_dtype dtype) {
  return SL_PICK (sl_attention_ops, dtype == SL_F64);
}

int sl_attention_register (void) {
  return sl_op_add_list (pick);
}
