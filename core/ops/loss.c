/* loss.c - cross_entropy, mse, max_abs_error. */
#include "ops/broadcast.h"
#include "ops/ops.h"
#include <math.h>
#include <sinklab/reduce.h>
#include <sinklab/vmath.h>

/* cross_entropy. The last axis of the logits counts classes. A target equal to
** 'ignore' has loss 0, gradient 0 and is not counted; when all are ignored the
** mean is 0. A target that is neither ignored nor one of 0..classes-1 makes its
** loss, the mean and its row of the gradient NaN: a wrong label must not pass
** for a right one. */

/* Saved by forward for backward, per row: p = exp (z - shift) factor. */
typedef struct partition {
  real shift, factor;
} partition;

static int cross_entropy_shapes (sl_shape_query *q, sl_error *e) {
  const sl_view *z = &q->in[0], *t = &q->in[1];
  char sz[96], st[96];
  size_t rows = 1;
  int fits = z->ndim == t->ndim + 1 && z->dim[z->ndim - 1] > 0;
  for (int i = 0; fits && i < t->ndim; i++) fits = z->dim[i] == t->dim[i];
  if (!fits)
    return sl_fail (e,
                    "logits have shape %s and targets %s; logits must have the "
                    "targets' axes and one more, for at least one class",
                    sl_shape_text (z->ndim, z->dim, sz, sizeof sz),
                    sl_shape_text (t->ndim, t->dim, st, sizeof st));
  for (int i = 0; i < t->ndim; i++) rows *= (size_t)t->dim[i];
  q->n_out = 3;
  q->out[0].ndim = 0;
  q->out[1] = *t;
  q->out[2].ndim = 0;
  q->saved = 2 * rows;
  q->scratch = 2 * (size_t)z->dim[z->ndim - 1];
  return 0;
}

/* The class that a target names; -1 for none. */
static ptrdiff_t class_of (real target, ptrdiff_t classes) {
  if (!(target >= 0 && target < (real)classes)) return -1;
  const ptrdiff_t c = (ptrdiff_t)target;
  return (real)c == target ? c : -1;
}

static void cross_entropy_start (sl_walk *w, const sl_view *z, const sl_view *t,
                                 const sl_view *loss) {
  const sl_view rows = sl_drop_axis (z, z->ndim - 1);
  sl_walk_start (w, 3, (const sl_view *[]){ &rows, t, loss });
}

/* logits z (..., c), targets t (...): loss (...) = log (sum_j exp z_j) - z_t;
** the outputs are its mean over counted targets, loss, and their count. */
static void cross_entropy_forward (const sl_run *r) {
  const sl_cross_entropy_attr *attr = r->attr;
  const sl_view *z = &r->in[0];
  const ptrdiff_t n = z->dim[z->ndim - 1], step = z->stride[z->ndim - 1];
  real *row = r->scratch, *weight = row + n;
  partition *saved = r->saved;
  double total = 0, count = 0;
  sl_walk w;
  cross_entropy_start (&w, z, &r->in[1], &r->out[1]);
  for (; w.left > 0; sl_walk_next (&w), saved++) {
    const real *restrict x = sl_row_read (n, w.at[0], step, row);
    const real shift = sl_row_max (n, x), target = *w.at[1];
    const ptrdiff_t class = class_of (target, n);
    double loss = (double)NAN;
    for (ptrdiff_t i = 0; i < n; i++) weight[i] = sl_expv (x[i] - shift);
    const real sum = sl_row_sum (n, weight);
    *saved = (partition){ shift, 1 / sum };
    if ((double)target == attr->ignore) {
      *w.at[2] = 0;
      continue;
    }
    if (class >= 0)
      loss = log ((double)sum) + ((double)shift - (double)x[class]);
    *w.at[2] = (real)loss;
    total += loss;
    count++;
  }
  *(real *)r->out[0].data = (real)(count > 0 ? total / count : 0);
  *(real *)r->out[2].data = (real)count;
}

/* loss = log (sum_j exp z_j) - z_t, p = softmax (z):
**   dz_j += (p_j - [j = t]) (dmean / count + dloss) */
static void cross_entropy_backward (const sl_run *r) {
  const sl_cross_entropy_attr *attr = r->attr;
  const sl_view *z = &r->in[0], *dz = &r->din[0];
  const int last = z->ndim - 1;
  const ptrdiff_t n = z->dim[last], step = z->stride[last];
  const real count = *(const real *)r->out[2].data;
  const real *dmean = r->dout[0].data, *dloss = r->dout[1].data;
  const real share = dmean && count > 0 ? *dmean / count : 0;
  const partition *saved = r->saved;
  real *row = r->scratch;
  sl_walk w, to;
  if (!dz->data || (!dmean && !dloss)) return;
  cross_entropy_start (&w, z, &r->in[1], &r->dout[1]);
  cross_entropy_start (&to, dz, &r->in[1], &r->dout[1]);
  for (; w.left > 0; sl_walk_next (&w), sl_walk_next (&to), saved++) {
    const real *restrict x = sl_row_read (n, w.at[0], step, row);
    const real target = *w.at[1];
    const ptrdiff_t class = class_of (target, n), dz_step = dz->stride[last];
    real g = share + (dloss ? *w.at[2] : 0);
    if ((double)target == attr->ignore) continue;
    if (class < 0) g = (real)NAN;
    const real factor = saved->factor * g, shift = saved->shift;
    for (ptrdiff_t i = 0; i < n; i++)
      to.at[0][i * dz_step] += sl_expv (x[i] - shift) * factor;
    if (class >= 0) to.at[0][class * dz_step] -= g;
  }
}

static const sl_option cross_entropy_options[] = {
  { .name = "ignore",
    .type = SL_REAL,
    .offset = offsetof (sl_cross_entropy_attr, ignore),
    .def = -100 },
  { .name = NULL }
};
SL_OP (cross_entropy, .min_in = 2, .max_in = 2, .flags = SL_OP_FUNCTION,
       .arguments = SL_ARGS_INPUTS, .options = cross_entropy_options,
       .attr_size = sizeof (sl_cross_entropy_attr),
       .shapes = cross_entropy_shapes, .forward = cross_entropy_forward,
       .backward = cross_entropy_backward);

/* mse and max_abs_error: two tensors of one shape. Shapes do not broadcast
** here: a loss between (n) and (n, 1) is nearly always a mistake. */
static int error_shapes (sl_shape_query *q, sl_error *e) {
  const sl_view *a = &q->in[0], *b = &q->in[1];
  char sa[96], sb[96];
  int same = a->ndim == b->ndim;
  for (int i = 0; same && i < a->ndim; i++) same = a->dim[i] == b->dim[i];
  sl_shape_text (a->ndim, a->dim, sa, sizeof sa);
  if (!same)
    return sl_fail (e, "shapes %s and %s; they must be equal", sa,
                    sl_shape_text (b->ndim, b->dim, sb, sizeof sb));
  if (sl_view_count (a) == 0)
    return sl_fail (e, "shape %s has no elements to compare", sa);
  q->n_out = 1;
  q->out[0].ndim = 0;
  q->scratch = 1;
  return 0;
}

/* Both inputs in runs of contiguous elements; a single run if both are
** contiguous. */
typedef struct pairs {
  int whole;
  ptrdiff_t left, n; /* still to come; in this run */
  const real *x, *y;
  sl_cursor a, b;
  real room[2][SL_WALK_CHUNK];
} pairs;

static void pairs_start (pairs *p, const sl_run *r) {
  p->left = (ptrdiff_t)sl_view_count (&r->in[0]);
  p->whole = sl_view_contiguous (&r->in[0]) && sl_view_contiguous (&r->in[1]);
  p->x = r->in[0].data;
  p->y = r->in[1].data;
  if (p->whole) return;
  sl_cursor_start (&p->a, &r->in[0]);
  sl_cursor_start (&p->b, &r->in[1]);
}

static int pairs_next (pairs *p) {
  if (p->left == 0) return 0;
  p->n = p->whole || p->left < SL_WALK_CHUNK ? p->left : SL_WALK_CHUNK;
  p->left -= p->n;
  if (p->whole) return 1;
  p->x = sl_cursor_read (&p->a, p->n, p->room[0]);
  p->y = sl_cursor_read (&p->b, p->n, p->room[1]);
  return 1;
}

/* The sum of (x - y)^2, in double, in lanes enough that additions need not wait
** for each other. */
static double square_errors (ptrdiff_t n, const real *x, const real *y) {
  enum { LANES = 16 };
  double lane[LANES] = { 0 };
  ptrdiff_t i = 0;
  for (; i + LANES <= n; i += LANES)
    for (int k = 0; k < LANES; k++) {
      const real d = x[i + k] - y[i + k];
      lane[k] += (double)(d * d);
    }
  for (int k = 0; i < n; i++, k++) {
    const real d = x[i] - y[i];
    lane[k] += (double)(d * d);
  }
  for (int half = LANES / 2; half > 0; half /= 2)
    for (int k = 0; k < half; k++) lane[k] += lane[k + half];
  return lane[0];
}

/* y () = the mean of (a - b)^2 over all n elements */
static void mse_forward (const sl_run *r) {
  const double count = (double)sl_view_count (&r->in[0]);
  double total = 0;
  pairs p;
  for (pairs_start (&p, r); pairs_next (&p);)
    total += square_errors (p.n, p.x, p.y);
  *(real *)r->out[0].data = (real)(total / count);
}

/* y = mean (a - b)^2: da = or += (2 / n) dy (a - b), db the same with a and b
** exchanged. x[0] is (2 / n) dy, x[1] and x[2] are the two. */
static void mse_d (ptrdiff_t n, const real *const *x, real *restrict d) {
  for (ptrdiff_t i = 0; i < n; i++) d[i] = x[0][i] * (x[1][i] - x[2][i]);
}
static void mse_add (ptrdiff_t n, const real *const *x, real *restrict d) {
  for (ptrdiff_t i = 0; i < n; i++) d[i] += x[0][i] * (x[1][i] - x[2][i]);
}

/* d = factor (a - b) where all three are contiguous: 1; else 0. */
static int mse_direct (real factor, const sl_view *a, const sl_view *b,
                       const sl_view *to) {
  const ptrdiff_t n = (ptrdiff_t)sl_view_count (to);
  const real *restrict x = a->data, *restrict y = b->data;
  real *restrict d = to->data;
  if (!sl_view_contiguous (a) || !sl_view_contiguous (b) ||
      !sl_view_contiguous (to))
    return 0;
  for (ptrdiff_t i = 0; i < n; i++) d[i] = factor * (x[i] - y[i]);
  return 1;
}

static void mse_backward (const sl_run *r) {
  const sl_view factor = { .data = r->scratch };
  if (!r->dout[0].data) return;
  *(real *)r->scratch = (real)(2 * (double)*(const real *)r->dout[0].data /
                               (double)sl_view_count (&r->in[0]));
  for (int k = 0; k < 2; k++) {
    const sl_view *a = &r->in[k], *b = &r->in[1 - k], *to = &r->din[k];
    const int assigns = (int)(r->assigns >> k & 1);
    if (assigns && mse_direct (*(real *)r->scratch, a, b, to)) continue;
    SL (sl_write_gradient)
    (assigns, mse_d, mse_add, 3, (const sl_view *[]){ &factor, a, b }, to, a);
  }
}

SL_OP (mse, .min_in = 2, .max_in = 2, .arguments = SL_ARGS_INPUTS,
       .flags = SL_OP_ASSIGNS | SL_OP_FUNCTION, .shapes = error_shapes,
       .forward = mse_forward, .backward = mse_backward);

/* The bits of a real without its sign, as a whole number: ordered as the reals
** are, with NaN above all others. */
#ifdef SL_SINGLE
typedef int32_t rank;
#else
typedef int64_t rank;
#endif

static rank largest_error (ptrdiff_t n, const real *x, const real *y) {
  rank most = 0;
  for (ptrdiff_t i = 0; i < n; i++) {
    const rank k = (rank)sl_to_bits (sl_abs (x[i] - y[i]));
    most = k > most ? k : most;
  }
  return most;
}

/* The largest |a - b|; NaN if any difference is NaN. */
static void max_abs_error_forward (const sl_run *r) {
  rank most = 0;
  pairs p;
  for (pairs_start (&p, r); pairs_next (&p);) {
    const rank k = largest_error (p.n, p.x, p.y);
    most = k > most ? k : most;
  }
  *(real *)r->out[0].data = sl_from_bits ((sl_bits)most);
}

SL_OP (max_abs_error, .min_in = 2, .max_in = 2, .arguments = SL_ARGS_INPUTS,
       .flags = SL_OP_NO_GRADIENT | SL_OP_FUNCTION, .shapes = error_shapes,
       .forward = max_abs_error_forward);
