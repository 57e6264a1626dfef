/* linear.h - products with weights that stay quantised. */
#ifndef SL_LM_LINEAR_H
#define SL_LM_LINEAR_H
#include "base/pool.h"
#include "lm/weights.h"

/* y = x w^T + bias: x (..., in), w (out, in), bias (out) or NULL, y (..., out).
** w is dequantised a strip at a time, so memory does not grow with it. Groups of
** rows of w are spread over the pool; the bits do not depend on how. x, bias
** and the result have one precision. A new tensor, or NULL and a sentence with
** the shapes or the type that is not read. */
sl_tensor *sl_weight_linear (sl_pool *pool, sl_tensor *x, const sl_weight *w,
                             const sl_tensor *bias, sl_error *e);

/* The rows of w (n, d) that ids (any shape) choose: ids.shape + (d). An id that
** is no whole number from 0 to n - 1 is refused. */
sl_tensor *sl_weight_embedding (const sl_weight *w, const sl_tensor *ids,
                                sl_dtype dtype, sl_error *e);
#endif
