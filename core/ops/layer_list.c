/* layer_list.c - the layer operations of this precision and instruction set. */
#include "ops/op.h"
#include <sinklab/plugin.h>

/* clang-format off */
#define LAYER_OPS(X)                                       \
  X (linear) X (matmul) X (softmax) X (log_softmax)        \
  X (layer_norm) X (rms_norm) X (gelu) X (silu)            \
  X (cross_entropy) X (mse) X (max_abs_error)
/* clang-format on */

#define DECLARE(name) extern const sl_op SL (sl_op_##name);
#define ADDRESS(name) &SL (sl_op_##name),
LAYER_OPS (DECLARE)

static const sl_op *const ops[] = { LAYER_OPS (ADDRESS) NULL };

extern const sl_op_list SL (sl_layer_ops);
const sl_op_list SL (sl_layer_ops) = { ops };
