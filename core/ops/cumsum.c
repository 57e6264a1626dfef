/* cumsum.c - running sums along an axis, in double. */
#include "ops/axis.h"
#include "ops/walk.h"

static int shapes (sl_shape_query *q, sl_error *e) {
  if (sl_shape_axis (q, e) < 0) return -1;
  q->n_out = 1;
  q->out[0] = q->in[0];
  return 0;
}

/* y[t] = x[0] + ... + x[t] along the axis; x and y have one shape */
static void forward (const sl_run *r) {
  const int axis = sl_axis_of (r->attr, r->in[0].ndim);
  const ptrdiff_t n = r->in[0].dim[axis];
  const ptrdiff_t sx = r->in[0].stride[axis], sy = r->out[0].stride[axis];
  const sl_view x = sl_drop_axis (&r->in[0], axis);
  const sl_view y = sl_drop_axis (&r->out[0], axis);
  sl_walk w;
  for (sl_walk_start (&w, 2, (const sl_view *[]){ &x, &y }); w.left > 0;
       sl_walk_next (&w)) {
    double total = 0;
    for (ptrdiff_t t = 0; t < n; t++) {
      total += (double)w.at[0][t * sx];
      w.at[1][t * sy] = (real)total;
    }
  }
}

/* y[t] = x[0] + ... + x[t], so dx[t] += dy[t] + ... + dy[n-1] */
static void backward (const sl_run *r) {
  const int axis = sl_axis_of (r->attr, r->in[0].ndim);
  const ptrdiff_t n = r->in[0].dim[axis];
  const ptrdiff_t sx = r->din[0].stride[axis], sy = r->dout[0].stride[axis];
  if (!r->din[0].data || !r->dout[0].data) return;
  const sl_view dx = sl_drop_axis (&r->din[0], axis);
  const sl_view dy = sl_drop_axis (&r->dout[0], axis);
  sl_walk w;
  for (sl_walk_start (&w, 2, (const sl_view *[]){ &dx, &dy }); w.left > 0;
       sl_walk_next (&w)) {
    double total = 0;
    for (ptrdiff_t t = n - 1; t >= 0; t--) {
      total += (double)w.at[1][t * sy];
      w.at[0][t * sx] += (real)total;
    }
  }
}

SL_OP (cumsum, .min_in = 1, .max_in = 1, .arguments = SL_ARGS_AXIS,
       .attr_size = sizeof (sl_axis_attr), .shapes = shapes, .forward = forward,
       .backward = backward);
