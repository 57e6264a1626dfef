/* softmax.c - softmax and log_softmax along an axis.
**
** The largest score is subtracted first, so nothing overflows. A row whose
** elements are all -inf holds no distribution: softmax gives zeros there and
** log_softmax -inf; neither ever makes NaN of it. NaN in a row gives a row of
** NaN. */
#include "ops/axis.h"
#include "ops/walk.h"
#include <sinklab/reduce.h>
#include <sinklab/vmath.h>

static int shapes (sl_shape_query *q, sl_error *e) {
  const int axis = sl_shape_axis (q, e);
  if (axis < 0) return -1;
  q->n_out = 1;
  q->out[0] = q->in[0];
  q->scratch = 3 * (size_t)q->in[0].dim[axis];
  return 0;
}

/* y (n) = exp (x - shift), shift = max x, or 0 for a row of -inf; returns the
** sum of y. */
static real exponentials (ptrdiff_t n, const real *x, real *restrict y,
                          real *shift) {
  *shift = sl_row_max (n, x);
  if (*shift == -(real)__builtin_inf ()) *shift = 0;
  const real s = *shift;
  for (ptrdiff_t i = 0; i < n; i++) y[i] = sl_expv (x[i] - s);
  return sl_row_sum (n, y);
}

/* y (n) = exp (x) / sum exp (x) */
static void softmax_row (ptrdiff_t n, const real *x, real *restrict y) {
  real shift;
  const real sum = exponentials (n, x, y, &shift);
  const real factor = sum == 0 ? 0 : 1 / sum;
  for (ptrdiff_t i = 0; i < n; i++) y[i] *= factor;
}

/* y = exp (x) / sum exp (x): dx += y (dy - sum (y dy)) */
static void softmax_row_back (ptrdiff_t n, const real *y, const real *dy,
                              real *restrict dx) {
  const real dot = sl_row_dot (n, y, dy);
  for (ptrdiff_t i = 0; i < n; i++) dx[i] += y[i] * (dy[i] - dot);
}

/* y (n) = x - log (sum exp (x)) */
static void log_softmax_row (ptrdiff_t n, const real *x, real *restrict y) {
  real shift;
  const real sum = exponentials (n, x, y, &shift);
  const real log_sum = sum == 0 ? 0 : sl_logv (sum);
  for (ptrdiff_t i = 0; i < n; i++) y[i] = (x[i] - shift) - log_sum;
}

/* y = x - log (sum exp (x)): dx += dy - exp (y) sum (dy) */
static void log_softmax_row_back (ptrdiff_t n, const real *y, const real *dy,
                                  real *restrict dx) {
  const real sum = sl_row_sum (n, dy);
  for (ptrdiff_t i = 0; i < n; i++) dx[i] += dy[i] - sl_expv (y[i]) * sum;
}

/* y = row (x) for each row along the axis, n elements; rows with a stride other
** than 1 are copied through scratch. */
static void forward (const sl_run *r, void (*row) (ptrdiff_t n, const real *x,
                                                   real *restrict y)) {
  const int axis = sl_axis_of (r->attr, r->in[0].ndim);
  const ptrdiff_t n = r->in[0].dim[axis];
  const ptrdiff_t sx = r->in[0].stride[axis], sy = r->out[0].stride[axis];
  const sl_view x = sl_drop_axis (&r->in[0], axis);
  const sl_view y = sl_drop_axis (&r->out[0], axis);
  real *room = r->scratch;
  sl_walk w;
  if (n == 0) return;
  for (sl_walk_start (&w, 2, (const sl_view *[]){ &x, &y }); w.left > 0;
       sl_walk_next (&w)) {
    real *to = sy == 1 ? w.at[1] : room + n;
    row (n, sl_row_read (n, w.at[0], sx, room), to);
    if (sy == 1) continue;
    for (ptrdiff_t i = 0; i < n; i++) w.at[1][i * sy] = to[i];
  }
}

static void backward (const sl_run *r,
                      void (*row) (ptrdiff_t n, const real *y, const real *dy,
                                   real *restrict dx)) {
  const int axis = sl_axis_of (r->attr, r->in[0].ndim);
  const ptrdiff_t n = r->in[0].dim[axis];
  const ptrdiff_t sy = r->out[0].stride[axis], sx = r->din[0].stride[axis];
  real *room = r->scratch;
  sl_walk w;
  if (n == 0 || !r->din[0].data || !r->dout[0].data) return;
  const sl_view y = sl_drop_axis (&r->out[0], axis);
  const sl_view dy = sl_drop_axis (&r->dout[0], axis);
  const sl_view dx = sl_drop_axis (&r->din[0], axis);
  for (sl_walk_start (&w, 3, (const sl_view *[]){ &y, &dy, &dx }); w.left > 0;
       sl_walk_next (&w)) {
    real *to = sx == 1 ? w.at[2] : room + 2 * n;
    if (sx != 1) memset (to, 0, (size_t)n * sizeof *to);
    row (n, sl_row_read (n, w.at[0], sy, room),
         sl_row_read (n, w.at[1], sy, room + n), to);
    if (sx == 1) continue;
    for (ptrdiff_t i = 0; i < n; i++) w.at[2][i * sx] += to[i];
  }
}

static void softmax_forward (const sl_run *r) {
  forward (r, softmax_row);
}
static void softmax_backward (const sl_run *r) {
  backward (r, softmax_row_back);
}
static void log_softmax_forward (const sl_run *r) {
  forward (r, log_softmax_row);
}
static void log_softmax_backward (const sl_run *r) {
  backward (r, log_softmax_row_back);
}

SL_OP (softmax, .min_in = 1, .max_in = 1, .arguments = SL_ARGS_AXIS,
       .attr_size = sizeof (sl_axis_attr), .shapes = shapes,
       .forward = softmax_forward, .backward = softmax_backward);
SL_OP (log_softmax, .min_in = 1, .max_in = 1, .arguments = SL_ARGS_AXIS,
       .attr_size = sizeof (sl_axis_attr), .shapes = shapes,
       .forward = log_softmax_forward, .backward = log_softmax_backward);
