/* array_list.c - the array operations of this precision and instruction set. */
#include "ops/op.h"
#include <sinklab/plugin.h>

/* clang-format off */
#define ARRAY_OPS(X)                                                        \
  X (add) X (sub) X (mul) X (div) X (pow) X (maximum) X (minimum)           \
  X (eq) X (ne) X (lt) X (le) X (gt) X (ge) X (where)                       \
  X (neg) X (exp) X (log) X (tanh) X (sigmoid) X (relu) X (abs) X (sqrt)    \
  X (square) X (sin) X (cos) X (copy)                                       \
  X (sum) X (mean) X (max) X (var) X (argmax) X (cumsum) X (concat)         \
  X (one_hot) X (embedding) X (gather) X (scatter_add)                      \
  X (uniform) X (normal) X (randint) X (bernoulli) X (categorical)
/* clang-format on */

#define DECLARE(name) extern const sl_op SL (sl_op_##name);
#define ADDRESS(name) &SL (sl_op_##name),
ARRAY_OPS (DECLARE)

static const sl_op *const ops[] = { ARRAY_OPS (ADDRESS) NULL };

extern const sl_op_list SL (sl_array_ops);
const sl_op_list SL (sl_array_ops) = { ops };
