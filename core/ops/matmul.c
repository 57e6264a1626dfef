/* matmul.c - a (..., m, k) times b (..., k, n), batch axes broadcasting. */
#include "ops/gemm_strided.h"
#include "ops/walk.h"

/* v without its last two axes. */
static sl_view batch_of (const sl_view *v) {
  sl_view out = *v;
  out.ndim -= 2;
  return out;
}

static sl_matrix matrix_at (const sl_view *v, real *at) {
  return (sl_matrix){ at, v->stride[v->ndim - 2], v->stride[v->ndim - 1] };
}

static int shapes (sl_shape_query *q, sl_error *e) {
  const sl_view *a = &q->in[0], *b = &q->in[1];
  char sa[96], sb[96];
  sl_shape_text (a->ndim, a->dim, sa, sizeof sa);
  sl_shape_text (b->ndim, b->dim, sb, sizeof sb);
  if (a->ndim < 2 || b->ndim < 2)
    return sl_fail (e, "shapes %s and %s; both need at least 2 axes", sa, sb);
  const ptrdiff_t m = a->dim[a->ndim - 2], k = a->dim[a->ndim - 1];
  const ptrdiff_t n = b->dim[b->ndim - 1];
  if (b->dim[b->ndim - 2] != k)
    return sl_fail (e,
                    "shapes %s and %s; the last axis of the first must be "
                    "the last but one of the second",
                    sa, sb);
  const sl_view ba = batch_of (a), bb = batch_of (b);
  sl_view *out = &q->out[0];
  if (sl_broadcast_shape (&ba, &bb, out, e) < 0)
    return sl_fail (e,
                    "shapes %s and %s; the axes before the last two do "
                    "not broadcast",
                    sa, sb);
  q->n_out = 1;
  out->dim[out->ndim++] = m;
  out->dim[out->ndim++] = n;
  const size_t sizes[] = { SL (sl_gemm_scratch) (m, n, k),
                           sl_gemm_strided_scratch (m, k, n),
                           sl_gemm_strided_scratch (k, n, m) };
  for (int i = 0; i < 3; i++)
    if (sizes[i] > q->scratch) q->scratch = sizes[i];
  return 0;
}

/* Over all batches: at[0], at[1], at[2] are the matrices of x, y and z. */
static void batches_start (sl_walk *w, const sl_view *x, const sl_view *y,
                           const sl_view *z, const sl_view *out) {
  const sl_view *views[] = { x, y, z };
  sl_view batch[3];
  for (int i = 0; i < 3; i++) {
    const sl_view one = batch_of (views[i]);
    batch[i] = sl_broadcast_to (&one, out->ndim - 2, out->dim);
  }
  sl_walk_start (w, 3, (const sl_view *[]){ &batch[0], &batch[1], &batch[2] });
}

/* c (..., m, n) = a (..., m, k) b (..., k, n) */
static void forward (const sl_run *r) {
  const sl_view *a = &r->in[0], *b = &r->in[1], *c = &r->out[0];
  const ptrdiff_t m = c->dim[c->ndim - 2], n = c->dim[c->ndim - 1];
  const ptrdiff_t k = a->dim[a->ndim - 1];
  sl_walk w;
  for (batches_start (&w, a, b, c, c); w.left > 0; sl_walk_next (&w)) {
    const sl_matrix x = matrix_at (a, w.at[0]), y = matrix_at (b, w.at[1]);
    SL_GEMM (m, n, k, 1, x.at, x.row, x.col, y.at, y.row, y.col, 0, w.at[2], n,
             r->scratch);
  }
}

/* c = a b:
**   da (..., m, k) += dc (..., m, n) b^T,  db (..., k, n) += a^T dc;
** where an input broadcasts over a batch axis, its gradient is the sum. */
static void backward (const sl_run *r) {
  const sl_view *a = &r->in[0], *b = &r->in[1], *dc = &r->dout[0];
  const ptrdiff_t m = dc->dim[dc->ndim - 2], n = dc->dim[dc->ndim - 1];
  const ptrdiff_t k = a->dim[a->ndim - 1];
  const sl_view *da = &r->din[0], *db = &r->din[1];
  sl_walk w;
  if (!dc->data) return;
  if (da->data)
    for (batches_start (&w, dc, b, da, dc); w.left > 0; sl_walk_next (&w))
      sl_gemm_strided (m, k, n, matrix_at (dc, w.at[0]),
                       sl_transposed (matrix_at (b, w.at[1])), 1,
                       matrix_at (da, w.at[2]), r->scratch);
  if (db->data)
    for (batches_start (&w, a, dc, db, dc); w.left > 0; sl_walk_next (&w))
      sl_gemm_strided (k, n, m, sl_transposed (matrix_at (a, w.at[0])),
                       matrix_at (dc, w.at[1]), 1, matrix_at (db, w.at[2]),
                       r->scratch);
}

SL_OP (matmul, .min_in = 2, .max_in = 2, .flags = SL_OP_FLUSHES,
       .arguments = SL_ARGS_INPUTS, .shapes = shapes, .forward = forward,
       .backward = backward);
