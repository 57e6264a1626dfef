/* run.c - a kernel runs with its operation's treatment of denormals. */
#include "base/denormals.h"
#include "ops/op.h"

void sl_op_run (const sl_op *op, void (*kernel) (const sl_run *r),
                const sl_run *r) {
  sl_denormals before;
  if (!(op->flags & SL_OP_FLUSHES)) {
    kernel (r);
    return;
  }
  before = sl_denormals_set (op->flags & SL_OP_OBSERVED && r->observer
                                 ? SL_DENORMALS_KEEP
                                 : SL_DENORMALS_FLUSH);
  kernel (r);
  sl_denormals_set (before);
}
