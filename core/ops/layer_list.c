/* layer_list.c - the layers operations of this precision and instruction set. */
#include "ops/op.h"
#include <sinklab/plugin.h>

static const sl_op *const ops[] = { NULL };

extern const sl_op_list SL (sl_layer_ops);
const sl_op_list SL (sl_layer_ops) = { ops };
