/* attention_list.c - the attention layer's operations of this precision and
** instruction set. */
#include "ops/op.h"
#include <sinklab/plugin.h>

extern const sl_op SL (sl_op_attention), SL (sl_op_gate),
    SL (sl_op_row_weights), SL (sl_op_mixer), SL (sl_op_rope);

static const sl_op *const ops[] = { &SL (sl_op_attention),   &SL (sl_op_gate),
                                    &SL (sl_op_row_weights), &SL (sl_op_mixer),
                                    &SL (sl_op_rope),        NULL };

extern const sl_op_list SL (sl_attention_ops);
const sl_op_list SL (sl_attention_ops) = { ops };
