/* concat.c - 1 to 8 tensors joined along an axis. */
#include "ops/axis.h"
#include "ops/broadcast.h"

static int shapes (sl_shape_query *q, sl_error *e) {
  const int ndim = q->in[0].ndim, axis = sl_shape_axis (q, e);
  char first[128], other[128];
  if (axis < 0) return -1;
  q->n_out = 1;
  q->out[0] = q->in[0];
  for (int k = 1; k < q->n_in; k++) {
    int fits = q->in[k].ndim == ndim;
    for (int i = 0; i < ndim && fits; i++)
      fits = i == axis || q->in[k].dim[i] == q->in[0].dim[i];
    if (!fits)
      return sl_fail (
          e, "input %d has shape %s, which differs from %s beyond axis %d",
          k + 1,
          sl_shape_text (q->in[k].ndim, q->in[k].dim, other, sizeof other),
          sl_shape_text (ndim, q->in[0].dim, first, sizeof first), axis);
    if (q->in[k].dim[axis] > PTRDIFF_MAX - q->out[0].dim[axis])
      return sl_fail (e, "the joined axis is longer than a size can say");
    q->out[0].dim[axis] += q->in[k].dim[axis];
  }
  return 0;
}

/* The part of the gradient that belongs to input k. */
static sl_view part (const sl_run *r, int k) {
  const int axis = sl_axis_of (r->attr, r->in[0].ndim);
  sl_view out = r->dout[0];
  out.dim[axis] = r->in[k].dim[axis];
  for (int i = 0; i < k && out.data; i++)
    out.data = (real *)out.data + r->in[i].dim[axis] * out.stride[axis];
  return out;
}

/* x_k (outer, n_k, inner): y (outer, sum n_k, inner). For each outer index the
** result has one run of n_k inner elements of each input. Short runs are read
** many at a time (all of them if the input is contiguous), long ones in
** pieces. */
static void forward (const sl_run *r) {
  const int axis = sl_axis_of (r->attr, r->in[0].ndim);
  ptrdiff_t outer = 1, inner = 1;
  for (int i = 0; i < axis; i++) outer *= r->out[0].dim[i];
  for (int i = axis + 1; i < r->out[0].ndim; i++) inner *= r->out[0].dim[i];
  const ptrdiff_t row = r->out[0].dim[axis] * inner;
  real *start = r->out[0].data;
  for (int k = 0; k < r->n_in; k++) {
    const ptrdiff_t run = r->in[k].dim[axis] * inner;
    ptrdiff_t most = run > 0 && run < SL_WALK_CHUNK ? SL_WALK_CHUNK / run : 1;
    real buffer[SL_WALK_CHUNK];
    sl_cursor from;
    sl_cursor_start (&from, &r->in[k]);
    if (sl_cursor_contiguous (&from) && run < SL_WALK_CHUNK) most = outer;
    for (ptrdiff_t o = 0, rows; o < outer; o += rows) {
      rows = outer - o < most ? outer - o : most;
      for (ptrdiff_t i = 0, n; i < run; i += n) {
        n = run - i < SL_WALK_CHUNK ? run - i : SL_WALK_CHUNK;
        sl_copy_rows (rows, n, sl_cursor_read (&from, rows * n, buffer), n, 1,
                      start + o * row + i, row);
      }
    }
    start += run;
  }
}

/* y = concat (x_k): dx_k += the part of dy that x_k filled */
static void backward (const sl_run *r) {
  for (int k = 0; k < r->n_in; k++) {
    const sl_view g = part (r, k), *from = &g;
    if (g.data) SL (sl_accumulate) (NULL, 1, &from, &r->din[k], &r->in[k]);
  }
}

SL_OP (concat, .min_in = 1, .max_in = SL_MAX_IN, .flags = SL_OP_FUNCTION,
       .arguments = SL_ARGS_LIST, .attr_size = sizeof (sl_axis_attr),
       .shapes = shapes, .forward = forward, .backward = backward);
