/* array_list.c - the array operations of this precision and instruction set. */
#include "ops/op.h"
#include <sinklab/plugin.h>

static const sl_op *const ops[] = { NULL };

extern const sl_op_list SL (sl_array_ops);
const sl_op_list SL (sl_array_ops) = { ops };
