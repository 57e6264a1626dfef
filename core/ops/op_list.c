/* op_list.c - every operation of this precision and instruction set. */
#include "op_list.h" /* SL_EACH_OP (X): made from the SL_OP lines of core/ */
#include "ops/op.h"

#define DECLARE(name) extern const sl_op SL (sl_op_##name);
#define ADDRESS(name) &SL (sl_op_##name),
SL_EACH_OP (DECLARE)

static const sl_op *const ops[] = { SL_EACH_OP (ADDRESS) NULL };

extern const sl_op_list SL (sl_ops);
const sl_op_list SL (sl_ops) = { ops };
