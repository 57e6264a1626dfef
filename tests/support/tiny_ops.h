/* tiny_ops.h - operations in f64 that exist only in tests of programs. */
#ifndef TINY_OPS_H
#define TINY_OPS_H
#include "ops/op.h"
#include <stdatomic.h>

/* blend (a, b) -> p = a * b broadcast, h = sum of p^2 / 2
** total (a)    -> sum of sin (a) * scale
** wrong (a)    -> the same with a gradient that is 0.1 % off
** noise ()     -> uniform numbers; attr: two sizes; SL_OP_SERIAL; no gradient
** order (a)    -> 100 * op_index + the observer's number; no gradient
** refuse ()    -> never; its shapes names itself */
extern const sl_op tiny_blend, tiny_total, tiny_wrong, tiny_noise, tiny_order,
    tiny_refuse;

typedef struct tiny_total_attr {
  double scale;
} tiny_total_attr;

/* What noise gives for number i of a sample. */
double tiny_noise_at (const sl_draw *draw, uint32_t sample, uint32_t i);

/* How many backward kernels have run, so that a test sees which were. */
extern atomic_int tiny_backward_calls;

/* Make sl_op_find know them; as sl_op_add_list. */
int tiny_ops_register (void);
#endif
