/* reduce.c - sum, mean, max, var over any set of axes; argmax along one.
**
** Sums run in double in a fixed order. The sum of nothing is 0, its mean NaN.
** max gives its gradient to the first (row-major) of equal maxima; NaN counts
** as the largest number in max and argmax. */
#include "ops/axis.h"
#include "ops/broadcast.h"
#include "ops/ops.h"

/* The set of reduced axes as bits; the whole set for 0. */
static unsigned axes_of (unsigned axes, int ndim) {
  return axes ? axes : (1u << ndim) - 1;
}

/* The result (or its gradient) broadcast to the shape of x: stride 0 on reduced
** axes. */
static sl_view lift (const sl_view *small, const sl_view *x, unsigned axes) {
  sl_view out = { .data = small->data, .ndim = x->ndim };
  ptrdiff_t stride = 1;
  for (int i = x->ndim - 1; i >= 0; i--) {
    out.dim[i] = x->dim[i];
    if (axes >> i & 1) continue;
    out.stride[i] = stride;
    stride *= x->dim[i];
  }
  return out;
}

/* The number of elements of x in one element of the result. */
static ptrdiff_t group (const sl_view *x, unsigned axes) {
  ptrdiff_t n = 1;
  for (int i = 0; i < x->ndim; i++)
    if (axes >> i & 1) n *= x->dim[i];
  return n;
}

static void shape_without (sl_shape_query *q, unsigned axes, int keep) {
  const sl_view *x = &q->in[0];
  sl_view *y = &q->out[0];
  q->n_out = 1;
  y->ndim = 0;
  for (int i = 0; i < x->ndim; i++) {
    if (!(axes >> i & 1))
      y->dim[y->ndim++] = x->dim[i];
    else if (keep)
      y->dim[y->ndim++] = 1;
  }
}

static int reduce_shapes (sl_shape_query *q, sl_error *e) {
  const sl_reduce_attr *attr = q->attr;
  const int ndim = q->in[0].ndim;
  if (attr->axes >> ndim)
    return sl_fail (e, "axes (bits) 0x%x go beyond the %d axes of the tensor",
                    attr->axes, ndim);
  shape_without (q, axes_of (attr->axes, ndim), attr->keep);
  return 0;
}

static void clear (const sl_view *y) {
  memset (y->data, 0, sl_view_count (y) * sizeof (real));
}

static void divide (const sl_view *y, double by) {
  const size_t n = sl_view_count (y);
  real *p = y->data;
  for (size_t i = 0; i < n; i++) p[i] = (real)((double)p[i] / by);
}

/* The number of elements in one result if they are contiguous: if the last axes
** and only those are reduced. Else 0. */
static ptrdiff_t row_of (const sl_view *x, unsigned axes) {
  ptrdiff_t n = 1;
  int i = x->ndim - 1;
  for (; i >= 0 && axes >> i & 1; n *= x->dim[i--])
    if (x->dim[i] != 1 && x->stride[i] != n) return 0;
  return axes & ((1u << (i + 1)) - 1) ? 0 : n;
}

/* y = the sums of rows of n elements. */
static void sum_rows (const sl_view *x, ptrdiff_t n, unsigned axes, real *y) {
  sl_view rows = { .data = x->data };
  const sl_view *const start = &rows;
  sl_walk w;
  for (; !(axes >> rows.ndim & 1) && rows.ndim < x->ndim; rows.ndim++) {
    rows.dim[rows.ndim] = x->dim[rows.ndim];
    rows.stride[rows.ndim] = x->stride[rows.ndim];
  }
  for (sl_walk_start (&w, 1, &start); w.left > 0; sl_walk_next (&w))
    *y++ = (real)sl_sum (n, w.at[0]);
}

/* y = sum of x over the axes */
static void sum_forward (const sl_run *r) {
  const sl_reduce_attr *attr = r->attr;
  const sl_view *x = &r->in[0];
  const unsigned axes = axes_of (attr->axes, x->ndim);
  const ptrdiff_t n = row_of (x, axes);
  const sl_view y = lift (&r->out[0], x, axes);
  if (n > 0) {
    sum_rows (x, n, axes, r->out[0].data);
    return;
  }
  clear (&r->out[0]);
  SL (sl_accumulate) (NULL, 1, &x, &y, x);
}

/* y = sum x: dx += dy */
static void sum_backward (const sl_run *r) {
  const sl_reduce_attr *attr = r->attr;
  const sl_view *x = &r->in[0];
  const sl_view g = lift (&r->dout[0], x, axes_of (attr->axes, x->ndim));
  const sl_view *const operand[] = { &g };
  if (g.data) SL (sl_accumulate) (NULL, 1, operand, &r->din[0], x);
}

/* y = (sum x) / n over the axes, n elements */
static void mean_forward (const sl_run *r) {
  const sl_reduce_attr *attr = r->attr;
  const sl_view *x = &r->in[0];
  sum_forward (r);
  divide (&r->out[0], (double)group (x, axes_of (attr->axes, x->ndim)));
}

/* dx += g scale */
static void add_scaled (ptrdiff_t n, const real *const *x, real *restrict d) {
  const real *restrict g = x[0], *restrict scale = x[1];
  for (ptrdiff_t i = 0; i < n; i++) d[i] += g[i] * scale[i];
}

/* y = (sum x) / n: dx += dy / n */
static void mean_backward (const sl_run *r) {
  const sl_reduce_attr *attr = r->attr;
  const sl_view *x = &r->in[0];
  const unsigned axes = axes_of (attr->axes, x->ndim);
  real scale = (real)(1 / (double)group (x, axes));
  const sl_view g = lift (&r->dout[0], x, axes), s = { .data = &scale };
  const sl_view *const operand[] = { &g, &s };
  if (g.data) SL (sl_accumulate) (add_scaled, 2, operand, &r->din[0], x);
}

/* Variance: saved holds the means. */
static int var_shapes (sl_shape_query *q, sl_error *e) {
  const sl_reduce_attr *attr = q->attr;
  if (reduce_shapes (q, e)) return -1;
  const unsigned axes = axes_of (attr->axes, q->in[0].ndim);
  const ptrdiff_t n = group (&q->in[0], axes);
  if (attr->correction < 0 || n <= attr->correction)
    return sl_fail (e,
                    "correction %d is not allowed for %td elements: the sum of "
                    "squares is divided by elements - correction",
                    attr->correction, n);
  q->saved = sl_view_count (&q->out[0]);
  return 0;
}

/* y += (x - mean)^2 */
static void add_square (ptrdiff_t n, const real *const *x, real *restrict d) {
  const real *restrict a = x[0], *restrict mean = x[1];
  for (ptrdiff_t i = 0; i < n; i++) d[i] += (a[i] - mean[i]) * (a[i] - mean[i]);
}

/* y = sum ((x - mean)^2) / (n - correction) */
static void var_forward (const sl_run *r) {
  const sl_reduce_attr *attr = r->attr;
  const sl_view *x = &r->in[0];
  const unsigned axes = axes_of (attr->axes, x->ndim);
  const ptrdiff_t n = group (x, axes);
  sl_view mean = r->out[0], y = lift (&r->out[0], x, axes);
  mean.data = r->saved;
  clear (&mean);
  clear (&r->out[0]);
  const sl_view m = lift (&mean, x, axes);
  const sl_view *const operand[] = { x, &m };
  SL (sl_accumulate) (NULL, 1, &x, &m, x);
  divide (&mean, (double)n);
  SL (sl_accumulate) (add_square, 2, operand, &y, x);
  divide (&r->out[0], (double)(n - attr->correction));
}

static void add_deviation (ptrdiff_t n, const real *const *x,
                           real *restrict d) {
  const real *restrict a = x[0], *restrict mean = x[1];
  const real *restrict g = x[2], *restrict scale = x[3];
  for (ptrdiff_t i = 0; i < n; i++) d[i] += g[i] * scale[i] * (a[i] - mean[i]);
}

/* y = sum ((x - mean)^2) / (n - correction):
**   dx += dy 2 / (n - correction) (x - mean) */
static void var_backward (const sl_run *r) {
  const sl_reduce_attr *attr = r->attr;
  const sl_view *x = &r->in[0];
  const unsigned axes = axes_of (attr->axes, x->ndim);
  real scale = (real)(2 / (double)(group (x, axes) - attr->correction));
  const sl_view saved = { .data = r->saved }, s = { .data = &scale };
  const sl_view g = lift (&r->dout[0], x, axes), m = lift (&saved, x, axes);
  const sl_view *const operand[] = { x, &m, &g, &s };
  if (g.data) SL (sl_accumulate) (add_deviation, 4, operand, &r->din[0], x);
}

/* The axes of x that stay; the reduced ones but the last; size and stride of
** the last. For visiting the elements of one result in row-major order. */
typedef struct groups {
  sl_view stay, others;
  ptrdiff_t n, step; /* of the last reduced axis */
} groups;

static groups split (const sl_view *x, unsigned axes) {
  groups s = { .stay.data = x->data, .n = 1 };
  for (int i = 0; i < x->ndim; i++) {
    sl_view *v = axes >> i & 1 ? &s.others : &s.stay;
    v->dim[v->ndim] = x->dim[i];
    v->stride[v->ndim++] = x->stride[i];
  }
  if (s.others.ndim > 0) {
    s.n = s.others.dim[--s.others.ndim];
    s.step = s.others.stride[s.others.ndim];
  }
  return s;
}

/* The largest element of the group at 'data' and its row-major index there. */
static real largest (const groups *s, real *data, uint64_t *place) {
  const sl_view *others = &s->others;
  real best = 0;
  uint64_t i = 0;
  sl_walk w;
  sl_view at = *others;
  at.data = data;
  others = &at;
  for (sl_walk_start (&w, 1, &others); w.left > 0; sl_walk_next (&w)) {
    for (ptrdiff_t j = 0; j < s->n; j++, i++) {
      const real v = w.at[0][j * s->step];
      if (i > 0 && !(v > best) && (v == v || best != best)) continue;
      best = v;
      *place = i;
    }
  }
  return best;
}

static int refuse_empty (const sl_view *x, unsigned axes, sl_error *e) {
  if (group (x, axes) > 0) return 0;
  return sl_fail (e, "there is no largest of 0 elements");
}

static int max_shapes (sl_shape_query *q, sl_error *e) {
  const sl_reduce_attr *attr = q->attr;
  if (reduce_shapes (q, e)) return -1;
  q->saved = sl_view_count (&q->out[0]) * (sizeof (uint64_t) / sizeof (real));
  return refuse_empty (&q->in[0], axes_of (attr->axes, q->in[0].ndim), e);
}

/* y = the largest x of each group; saved: its row-major index in the group */
static void max_forward (const sl_run *r) {
  const sl_reduce_attr *attr = r->attr;
  const groups s = split (&r->in[0], axes_of (attr->axes, r->in[0].ndim));
  const sl_view *stay = &s.stay;
  real *y = r->out[0].data;
  uint64_t *place = r->saved;
  sl_walk w;
  for (sl_walk_start (&w, 1, &stay); w.left > 0; sl_walk_next (&w))
    *y++ = largest (&s, w.at[0], place++);
}

/* y = x[index]: dx[index] += dy */
static void max_backward (const sl_run *r) {
  const sl_reduce_attr *attr = r->attr;
  const real *g = r->dout[0].data;
  const uint64_t *place = r->saved;
  if (!g || !r->din[0].data) return;
  const groups s = split (&r->din[0], axes_of (attr->axes, r->in[0].ndim));
  const sl_view *stay = &s.stay;
  sl_walk w;
  for (sl_walk_start (&w, 1, &stay); w.left > 0; sl_walk_next (&w)) {
    ptrdiff_t rest = (ptrdiff_t)*place++;
    ptrdiff_t offset = rest % s.n * s.step;
    rest /= s.n;
    for (int i = s.others.ndim - 1; i >= 0; i--) {
      offset += rest % s.others.dim[i] * s.others.stride[i];
      rest /= s.others.dim[i];
    }
    w.at[0][offset] += *g++;
  }
}

static int argmax_shapes (sl_shape_query *q, sl_error *e) {
  const int axis = sl_shape_axis (q, e);
  if (axis < 0) return -1;
  if (sizeof (real) == 4 && q->in[0].dim[axis] > 1 << 24)
    return sl_fail (e, "an index into %td elements is not exact in f32",
                    q->in[0].dim[axis]);
  shape_without (q, 1u << axis, 0);
  return refuse_empty (&q->in[0], 1u << axis, e);
}

/* y = the index along the axis of the largest x */
static void argmax_forward (const sl_run *r) {
  const int axis = sl_axis_of (r->attr, r->in[0].ndim);
  const groups s = split (&r->in[0], 1u << axis);
  const sl_view *stay = &s.stay;
  real *y = r->out[0].data;
  sl_walk w;
  for (sl_walk_start (&w, 1, &stay); w.left > 0; sl_walk_next (&w)) {
    uint64_t place = 0;
    largest (&s, w.at[0], &place);
    *y++ = (real)place;
  }
}

#define KEEP \
  { .name = "keep", .type = SL_BOOL, .offset = offsetof (sl_reduce_attr, keep) }
static const sl_option keep[] = { KEEP, { .name = NULL } };
static const sl_option keep_and_correction[] = {
  KEEP,
  { .name = "correction",
    .type = SL_INT,
    .offset = offsetof (sl_reduce_attr, correction),
    .max = 1 << 30 },
  { .name = NULL }
};

#define SL_OP_REDUCE(name, shapes_, options_)                                  \
  SL_OP (name, .min_in = 1, .max_in = 1, .attr_size = sizeof (sl_reduce_attr), \
         .arguments = SL_ARGS_AXES, .options = options_, .shapes = shapes_,    \
         .forward = name##_forward, .backward = name##_backward);
SL_OP_REDUCE (sum, reduce_shapes, keep)
SL_OP_REDUCE (mean, reduce_shapes, keep)
SL_OP_REDUCE (var, var_shapes, keep_and_correction)
SL_OP_REDUCE (max, max_shapes, keep)

SL_OP (argmax, .min_in = 1, .max_in = 1, .flags = SL_OP_NO_GRADIENT,
       .arguments = SL_ARGS_AXIS, .attr_size = sizeof (sl_axis_attr),
       .shapes = argmax_shapes, .forward = argmax_forward);
