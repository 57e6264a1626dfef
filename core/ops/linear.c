/* linear.c - y = x w^T + bias: (..., in) -> (..., out). */
#include "ops/broadcast.h"
#include "ops/gemm_strided.h"

/* x (..., in) and y (..., out) as matrices of the same number of rows, block by
** block: a single block unless the leading axes of x cannot be joined. */
typedef struct blocks {
  sl_walk walk; /* at[0] and at[1]: the first row of x and of y */
  ptrdiff_t rows, x_row, y_row;
} blocks;

static void blocks_start (blocks *b, const sl_view *x, const sl_view *y) {
  ptrdiff_t dim[SL_MAX_DIMS], stride[2][SL_MAX_DIMS];
  sl_view vx = { .data = x->data }, vy = { .data = y->data };
  memcpy (dim, x->dim, sizeof dim);
  memcpy (stride[0], x->stride, sizeof stride[0]);
  memcpy (stride[1], y->stride, sizeof stride[1]);
  const int ndim = sl_collapse (x->ndim - 1, dim, 2, stride);
  const int last = ndim - 1;
  b->rows = ndim > 0 ? dim[last] : 1;
  b->x_row = ndim > 0 ? stride[0][last] : 0;
  b->y_row = ndim > 0 ? stride[1][last] : 0;
  vx.ndim = vy.ndim = ndim > 0 ? last : 0;
  memcpy (vx.dim, dim, sizeof dim);
  memcpy (vy.dim, dim, sizeof dim);
  memcpy (vx.stride, stride[0], sizeof vx.stride);
  memcpy (vy.stride, stride[1], sizeof vy.stride);
  sl_walk_start (&b->walk, 2, (const sl_view *[]){ &vx, &vy });
}

static int shapes (sl_shape_query *q, sl_error *e) {
  const sl_view *x = &q->in[0], *w = &q->in[1], *bias = &q->in[2];
  const ptrdiff_t in = x->ndim > 0 ? x->dim[x->ndim - 1] : 0;
  char sx[96], sw[96], sb[96];
  sl_shape_text (x->ndim, x->dim, sx, sizeof sx);
  sl_shape_text (w->ndim, w->dim, sw, sizeof sw);
  if (w->ndim != 2)
    return sl_fail (e, "w has shape %s; it must be (out, in)", sw);
  if (x->ndim < 1 || in != w->dim[1])
    return sl_fail (e,
                    "x has shape %s and w (out, in) %s; the last axis of x "
                    "must be %td",
                    sx, sw, w->dim[1]);
  if (q->n_in > 2 && (bias->ndim != 1 || bias->dim[0] != w->dim[0]))
    return sl_fail (e, "bias has shape %s; it must be (%td)",
                    sl_shape_text (bias->ndim, bias->dim, sb, sizeof sb),
                    w->dim[0]);
  q->n_out = 1;
  q->out[0] = *x;
  q->out[0].dim[x->ndim - 1] = w->dim[0];
  ptrdiff_t rows = 1;
  for (int i = 0; i < x->ndim - 1; i++) rows *= x->dim[i];
  const size_t sizes[] = { SL (sl_gemm_scratch) (rows, w->dim[0], in),
                           sl_gemm_strided_scratch (rows, in, w->dim[0]),
                           sl_gemm_strided_scratch (w->dim[0], in, rows) };
  for (int i = 0; i < 3; i++)
    if (sizes[i] > q->scratch) q->scratch = sizes[i];
  return 0;
}

static void repeat (ptrdiff_t n, const real *const *x, real *restrict y) {
  memcpy (y, x[0], (size_t)n * sizeof *y);
}

/* y (..., out) = x (..., in) w^T + bias, w (out, in): the bias first. */
static void forward (const sl_run *r) {
  const sl_view *w = &r->in[1], *y = &r->out[0];
  const ptrdiff_t out = w->dim[0], in = w->dim[1];
  const real beta = r->n_in > 2; /* y holds the bias already */
  blocks b;
  if (r->n_in > 2)
    SL (sl_elementwise) (repeat, 1, (const sl_view *[]){ &r->in[2] }, y);
  for (blocks_start (&b, &r->in[0], y); b.walk.left > 0; sl_walk_next (&b.walk))
    SL_GEMM (b.rows, out, in, 1, b.walk.at[0], b.x_row,
             r->in[0].stride[r->in[0].ndim - 1], w->data, w->stride[1],
             w->stride[0], beta, b.walk.at[1], b.y_row, r->scratch);
}

/* y = x w^T: dw (out, in) += dy^T (out, rows) x (rows, in), block by block.
** With no block dw is still assigned. */
static void add_weights (const sl_run *r) {
  const sl_view *x = &r->in[0], *dw = &r->din[1];
  const sl_matrix sum = { dw->data, dw->stride[0], dw->stride[1] };
  const ptrdiff_t step = x->stride[x->ndim - 1];
  real beta = !(r->assigns & 2);
  blocks b = { 0 };
  for (blocks_start (&b, x, &r->dout[0]); b.walk.left > 0;
       sl_walk_next (&b.walk), beta = 1)
    sl_gemm_strided (
        dw->dim[0], dw->dim[1], b.rows, (sl_matrix){ b.walk.at[1], 1, b.y_row },
        (sl_matrix){ b.walk.at[0], b.x_row, step }, beta, sum, r->scratch);
  if (beta == 0)
    sl_gemm_strided (dw->dim[0], dw->dim[1], 0, sum, sum, 0, sum, r->scratch);
}

/* y = x w^T + bias:
**   dx (..., in) += dy (..., out) w,  dw (out, in) += dy^T x,
**   dbias (out) += the sum of the rows of dy */
static void backward (const sl_run *r) {
  const sl_view *w = &r->in[1], *dy = &r->dout[0];
  const ptrdiff_t out = w->dim[0], in = w->dim[1];
  const int last = r->in[0].ndim - 1;
  blocks b;
  if (!dy->data) return;
  if (r->din[0].data)
    for (blocks_start (&b, &r->din[0], dy); b.walk.left > 0;
         sl_walk_next (&b.walk))
      sl_gemm_strided (
          b.rows, in, out, (sl_matrix){ b.walk.at[1], b.y_row, 1 },
          (sl_matrix){ w->data, w->stride[0], w->stride[1] }, !(r->assigns & 1),
          (sl_matrix){ b.walk.at[0], b.x_row, r->din[0].stride[last] },
          r->scratch);
  if (r->din[1].data) add_weights (r);
  if (r->n_in > 2 && r->assigns & 4)
    for (ptrdiff_t i = 0; i < out; i++)
      ((real *)r->din[2].data)[i * r->din[2].stride[0]] = 0;
  if (r->n_in > 2)
    SL (sl_accumulate) (NULL, 1, (const sl_view *[]){ dy }, &r->din[2], dy);
}

SL_OP (linear, .min_in = 2, .max_in = 3, .arguments = SL_ARGS_INPUTS,
       .flags = SL_OP_ASSIGNS | SL_OP_FLUSHES, .shapes = shapes,
       .forward = forward, .backward = backward);
