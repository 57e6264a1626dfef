/* axis.h - the one axis along which an op works. */
#ifndef SL_AXIS_H
#define SL_AXIS_H
#include "ops/ops.h"

/* The axis (0..ndim-1) that an sl_axis_attr names in a tensor of ndim axes;
** out of that range where there is no such axis. */
static inline int sl_axis_of (const void *attr, int ndim) {
  const int axis = ((const sl_axis_attr *)attr)->axis;
  return axis < 0 ? axis + ndim : axis;
}

/* The axis of input 0 that the attributes of q name, or -1 and an error. */
static inline int sl_shape_axis (const sl_shape_query *q, sl_error *e) {
  const int ndim = q->in[0].ndim, axis = sl_axis_of (q->attr, ndim);
  if (axis >= 0 && axis < ndim) return axis;
  return sl_fail (e, "axis %d of a tensor with %d axes",
                  ((const sl_axis_attr *)q->attr)->axis, ndim);
}
#endif
