/* index.c - one_hot, embedding, gather, scatter_add: rows chosen by number.
**
** Indices are whole numbers from 0 stored as reals. Kernels cannot fail, so an
** index that selects nothing (outside the table, a fraction, NaN) gives NaN in
** its part of the result, which stops a training run, and has no gradient.
** one_hot alone gives a row of zeros for a whole number outside its classes.
** Sums into one row run in the order of the indices. */
#include "ops/axis.h"
#include "ops/broadcast.h"
#include <math.h>

static int whole (real x) {
  return x == (real)floor ((double)x);
}

/* The index as a number, or -1 if it is none of 0..n-1. */
static ptrdiff_t chosen (real x, ptrdiff_t n) {
  return x >= 0 && x < (real)n && whole (x) ? (ptrdiff_t)x : -1;
}

/* one_hot: ids (...) -> (..., classes) */
static int one_hot_shapes (sl_shape_query *q, sl_error *e) {
  const sl_one_hot_attr *attr = q->attr;
  if (attr->classes < 1)
    return sl_fail (e, "classes is %td, at least 1 is needed", attr->classes);
  if (q->in[0].ndim == SL_MAX_DIMS)
    return sl_fail (e, "the indices have %d axes, at most %d are allowed",
                    SL_MAX_DIMS, SL_MAX_DIMS - 1);
  q->n_out = 1;
  q->out[0] = q->in[0];
  q->out[0].dim[q->out[0].ndim++] = attr->classes;
  return 0;
}

/* y[..., c] = 1 if ids[...] = c, else 0; NaN for a fraction */
static void one_hot_forward (const sl_run *r) {
  const ptrdiff_t classes = ((const sl_one_hot_attr *)r->attr)->classes;
  const sl_view *ids = &r->in[0];
  real *y = r->out[0].data;
  sl_walk w;
  for (sl_walk_start (&w, 1, &ids); w.left > 0; sl_walk_next (&w)) {
    const real id = *w.at[0];
    const ptrdiff_t one = chosen (id, classes);
    const real other = whole (id) ? 0 : (real)NAN;
    for (ptrdiff_t c = 0; c < classes; c++) y[c] = other;
    if (one >= 0) y[one] = 1;
    y += classes;
  }
}

/* embedding: table (n, d), ids (...) -> (..., d) */
static int embedding_shapes (sl_shape_query *q, sl_error *e) {
  if (q->in[0].ndim != 2)
    return sl_fail (e, "the table has %d axes, 2 (rows, width) are needed",
                    q->in[0].ndim);
  if (q->in[1].ndim == SL_MAX_DIMS)
    return sl_fail (e, "the indices have %d axes, at most %d are allowed",
                    SL_MAX_DIMS, SL_MAX_DIMS - 1);
  q->n_out = 1;
  q->out[0] = q->in[1];
  q->out[0].dim[q->out[0].ndim++] = q->in[0].dim[1];
  return 0;
}

/* y[i, :] = table[ids[i], :] */
/* y[i, :] = table[ids[i], :], table (n, d), ids (...), y (..., d) */
static void embedding_forward (const sl_run *r) {
  const sl_view *table = &r->in[0], *ids = &r->in[1];
  const ptrdiff_t d = table->dim[1], step = table->stride[1];
  real *y = r->out[0].data;
  sl_walk w;
  for (sl_walk_start (&w, 1, &ids); w.left > 0; sl_walk_next (&w), y += d) {
    const ptrdiff_t id = chosen (*w.at[0], table->dim[0]);
    const real *row =
        (const real *)table->data + (id < 0 ? 0 : id * table->stride[0]);
    if (id < 0)
      for (ptrdiff_t j = 0; j < d; j++) y[j] = (real)NAN;
    else if (step == 1)
      memcpy (y, row, (size_t)d * sizeof *y);
    else
      for (ptrdiff_t j = 0; j < d; j++) y[j] = row[j * step];
  }
}

/* y[i, :] = table[ids[i], :], so dtable[ids[i], :] += dy[i, :] */
static void embedding_backward (const sl_run *r) {
  const sl_view *table = &r->din[0], *ids = &r->in[1];
  const ptrdiff_t d = r->in[0].dim[1], step = table->stride[1];
  const real *dy = r->dout[0].data;
  sl_walk w;
  if (!table->data || !dy) return;
  for (sl_walk_start (&w, 1, &ids); w.left > 0; sl_walk_next (&w), dy += d) {
    const ptrdiff_t id = chosen (*w.at[0], r->in[0].dim[0]);
    if (id < 0) continue;
    real *row = (real *)table->data + id * table->stride[0];
    for (ptrdiff_t j = 0; j < d; j++) row[j * step] += dy[j];
  }
}

/* gather and scatter_add read or write x at one index along an axis for each
** position of 'shape'. Rows are runs along the last axis of shape. */
typedef struct entry {
  sl_view shape;
  ptrdiff_t n, step; /* of x along the axis */
} entry;

/* x broadcast to the shape of the positions, with stride 0 along the axis. */
static sl_view entered (const entry *en, const sl_view *x, int axis) {
  sl_view still = *x;
  if (!x->data) return still;
  still.dim[axis] = en->shape.dim[axis];
  still.stride[axis] = 0;
  return sl_broadcast_to (&still, en->shape.ndim, en->shape.dim);
}

static int check_axis (const sl_shape_query *q, int n, sl_error *e) {
  const int ndim = q->in[0].ndim, axis = sl_shape_axis (q, e);
  for (int k = 1; axis >= 0 && k < n; k++)
    if (q->in[k].ndim != ndim)
      return sl_fail (e,
                      "input %d has %d axes, input 1 has %d: both need the "
                      "same number",
                      k + 1, q->in[k].ndim, ndim);
  return axis;
}

/* gather: x, index -> x's shape with index's size on the axis; the other axes
** of both broadcast. y[.., i, ..] = x[.., index[.., i, ..], ..] */
static int gather_shapes (sl_shape_query *q, sl_error *e) {
  const int axis = check_axis (q, 2, e);
  sl_view x = q->in[0];
  if (axis < 0) return -1;
  x.dim[axis] = q->in[1].dim[axis];
  q->n_out = 1;
  return sl_broadcast_shape (&x, &q->in[1], &q->out[0], e);
}

/* Called for each row of n positions along the last axis. */
typedef void (*line) (ptrdiff_t n, const entry *en, real *x, ptrdiff_t sx,
                      const real *index, ptrdiff_t si, real *y, ptrdiff_t sy);

/* Call f for all rows of en->shape. x has stride 0 along the axis; index and y
** may broadcast. */
static void visit (line f, const entry *en, const sl_view *x,
                   const sl_view *index, const sl_view *y) {
  const int last = en->shape.ndim - 1;
  const sl_view i = sl_broadcast_to (index, en->shape.ndim, en->shape.dim);
  const sl_view z = sl_broadcast_to (y, en->shape.ndim, en->shape.dim);
  const sl_view xs = sl_drop_axis (x, last), is = sl_drop_axis (&i, last);
  const sl_view zs = sl_drop_axis (&z, last);
  sl_walk w;
  if (en->shape.dim[last] == 0) return;
  for (sl_walk_start (&w, 3, (const sl_view *[]){ &is, &xs, &zs }); w.left > 0;
       sl_walk_next (&w))
    f (en->shape.dim[last], en, w.at[1], x->stride[last], w.at[0],
       i.stride[last], w.at[2], z.stride[last]);
}

static void take (ptrdiff_t n, const entry *en, real *x, ptrdiff_t sx,
                  const real *index, ptrdiff_t si, real *y, ptrdiff_t sy) {
  for (ptrdiff_t j = 0; j < n; j++) {
    const ptrdiff_t at = chosen (index[j * si], en->n);
    y[j * sy] = at < 0 ? (real)NAN : x[j * sx + at * en->step];
  }
}

static void add_at (ptrdiff_t n, const entry *en, real *x, ptrdiff_t sx,
                    const real *index, ptrdiff_t si, real *y, ptrdiff_t sy) {
  for (ptrdiff_t j = 0; j < n; j++) {
    const ptrdiff_t at = chosen (index[j * si], en->n);
    if (at >= 0) x[j * sx + at * en->step] += y[j * sy];
  }
}

/* As add_at, and NaN all along the axis for an index that chooses nothing. */
static void add_or_nan (ptrdiff_t n, const entry *en, real *x, ptrdiff_t sx,
                        const real *index, ptrdiff_t si, real *y,
                        ptrdiff_t sy) {
  add_at (n, en, x, sx, index, si, y, sy);
  for (ptrdiff_t j = 0; j < n; j++)
    if (chosen (index[j * si], en->n) < 0)
      for (ptrdiff_t i = 0; i < en->n; i++)
        x[j * sx + i * en->step] = (real)NAN;
}

static void add_taken (ptrdiff_t n, const entry *en, real *x, ptrdiff_t sx,
                       const real *index, ptrdiff_t si, real *y, ptrdiff_t sy) {
  for (ptrdiff_t j = 0; j < n; j++) {
    const ptrdiff_t at = chosen (index[j * si], en->n);
    if (at >= 0) y[j * sy] += x[j * sx + at * en->step];
  }
}

/* y[.., i, ..] = x[.., index[.., i, ..], ..] */
static void gather_forward (const sl_run *r) {
  const int axis = sl_axis_of (r->attr, r->in[0].ndim);
  const entry en = { r->out[0], r->in[0].dim[axis], r->in[0].stride[axis] };
  const sl_view x = entered (&en, &r->in[0], axis);
  visit (take, &en, &x, &r->in[1], &r->out[0]);
}

/* y[.., i, ..] = x[.., index[.., i, ..], ..]:
**   dx[.., index[.., i, ..], ..] += dy[.., i, ..] */
static void gather_backward (const sl_run *r) {
  const int axis = sl_axis_of (r->attr, r->in[0].ndim);
  const entry en = { r->out[0], r->in[0].dim[axis], r->din[0].stride[axis] };
  if (!r->din[0].data || !r->dout[0].data) return;
  const sl_view dx = entered (&en, &r->din[0], axis);
  visit (add_at, &en, &dx, &r->in[1], &r->dout[0]);
}

/* scatter_add: x, index, src -> x's shape; index and src broadcast to x's shape
** with their own size on the axis. y = x; y[.., index[.., i, ..], ..] +=
** src. */
static int scatter_shape (const sl_view *in, int axis, sl_view *shape,
                          sl_error *e) {
  sl_view x = in[0];
  char text[3][128];
  if (sl_broadcast_shape (&in[1], &in[2], shape, e)) return -1;
  x.dim[axis] = shape->dim[axis];
  for (int i = 0; i < x.ndim; i++) {
    if (shape->dim[i] != x.dim[i] && shape->dim[i] != 1)
      return sl_fail (e, "index %s and source %s do not fit into %s",
                      sl_shape_text (x.ndim, in[1].dim, text[0], 128),
                      sl_shape_text (x.ndim, in[2].dim, text[1], 128),
                      sl_shape_text (x.ndim, in[0].dim, text[2], 128));
  }
  *shape = x;
  return 0;
}

static int scatter_add_shapes (sl_shape_query *q, sl_error *e) {
  const int axis = check_axis (q, 3, e);
  sl_view shape;
  if (axis < 0 || scatter_shape (q->in, axis, &shape, e)) return -1;
  q->n_out = 1;
  q->out[0] = q->in[0];
  return 0;
}

static entry scatter_entry (const sl_run *r, int axis, const sl_view *y) {
  entry en = { .n = y->dim[axis], .step = y->stride[axis] };
  scatter_shape (r->in, axis, &en.shape, NULL);
  return en;
}

static void copy (ptrdiff_t n, const real *const *x, real *restrict y) {
  memcpy (y, x[0], (size_t)n * sizeof *y);
}

static void scatter_add_forward (const sl_run *r) {
  const int axis = sl_axis_of (r->attr, r->in[0].ndim);
  const entry en = scatter_entry (r, axis, &r->out[0]);
  const sl_view *x = &r->in[0], y = entered (&en, &r->out[0], axis);
  SL (sl_elementwise) (copy, 1, &x, &r->out[0]);
  visit (add_or_nan, &en, &y, &r->in[1], &r->in[2]);
}

/* y = x; y[.., index[.., i, ..], ..] += src[.., i, ..]:
**   dx += dy,  dsrc[.., i, ..] += dy[.., index[.., i, ..], ..] */
static void scatter_add_backward (const sl_run *r) {
  const int axis = sl_axis_of (r->attr, r->in[0].ndim);
  const entry en = scatter_entry (r, axis, &r->dout[0]);
  const sl_view *dy = &r->dout[0], still = entered (&en, dy, axis);
  if (!dy->data) return;
  SL (sl_accumulate) (NULL, 1, &dy, &r->din[0], dy);
  if (r->din[2].data) visit (add_taken, &en, &still, &r->in[1], &r->din[2]);
}

SL_OP (one_hot, .min_in = 1, .max_in = 1, .arguments = SL_ARGS_SIZE,
       .flags = SL_OP_NO_GRADIENT, .attr_size = sizeof (sl_one_hot_attr),
       .shapes = one_hot_shapes, .forward = one_hot_forward);

SL_OP (embedding, .min_in = 2, .max_in = 2, .flags = SL_OP_FUNCTION,
       .arguments = SL_ARGS_INPUTS, .shapes = embedding_shapes,
       .forward = embedding_forward, .backward = embedding_backward);

SL_OP (gather, .min_in = 2, .max_in = 2, .arguments = SL_ARGS_ALONG,
       .attr_size = sizeof (sl_axis_attr), .shapes = gather_shapes,
       .forward = gather_forward, .backward = gather_backward);

SL_OP (scatter_add, .min_in = 3, .max_in = 3, .arguments = SL_ARGS_ALONG,
       .attr_size = sizeof (sl_axis_attr), .shapes = scatter_add_shapes,
       .forward = scatter_add_forward, .backward = scatter_add_backward);
