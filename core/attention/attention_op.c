/* attention_op.c - the attention op: its heads, one after the other, and the
** layout of their inputs and gradients.
**
** q (B, T, NH * D), k (B, N, NKV * D), v (B, N, NKV * V) -> (B, T, NH * V); N is T
** and the virtual keys. */
#include "attention/attention_internal.h"
#include <string.h>

enum { SMALL = 1 << 17 }; /* query-key products that one thread does alone */

/* Head i of (B, T, NH * width). */
static real *head_data (const sl_view *v, int sequence, int i, int width) {
  return (real *)v->data + sequence * v->stride[0] +
         (ptrdiff_t)i * width * v->stride[2];
}

static sl_grid head_of (const sl_view *v, int sequence, int i, int width) {
  return (sl_grid){ head_data (v, sequence, i, width), v->stride[1],
                    v->stride[2] };
}

/* The transpose of the first n rows of m: a copy if every block reads it, else
** the same elements. */
static sl_grid transpose (const sl_attention_plan *p, sl_grid m, int n,
                          int width, real *copy) {
  if (p->block == p->call.t) return (sl_grid){ m.x, m.col, m.row };
  for (ptrdiff_t i = 0; i < n; i += 16) {
    const ptrdiff_t rows = n - i < 16 ? n - i : 16;
    for (ptrdiff_t j = 0; j < width; j++)
      for (ptrdiff_t l = 0; l < rows; l++)
        copy[j * p->ld + i + l] = m.x[(i + l) * m.row + j * m.col];
  }
  return (sl_grid){ copy, p->ld, 1 };
}

/* The first n rows of m, contiguous: rows far apart fall on one another in the
** cache, and every block reads them. */
static sl_grid gather (sl_grid m, int n, int width, real *copy) {
  for (ptrdiff_t i = 0; i < n; i++)
    if (m.col == 1)
      memcpy (copy + i * width, m.x + i * m.row, (size_t)width * sizeof *copy);
    else
      for (ptrdiff_t j = 0; j < width; j++)
        copy[i * width + j] = m.x[i * m.row + j * m.col];
  return (sl_grid){ copy, width, 1 };
}

static int assigns (const sl_run *r, int input) {
  return (int)(r->assigns >> input & 1);
}

/* The gradient of a head of input k: in place if rows are contiguous and apart,
** unless it is to be gathered; else in 'copy', which end_gradient adds. */
static sl_gradient start_gradient (const sl_run *r, int k, int sequence, int i,
                                   int width, int gathered, real *copy) {
  const sl_view *v = &r->din[k];
  const ptrdiff_t row = v->stride[1];
  if (!v->data) return (sl_gradient){ NULL, 0, 0 };
  if (!gathered && (v->stride[2] == 1 || width == 1) &&
      (row >= width || -row >= width))
    return (sl_gradient){ head_data (v, sequence, i, width), row,
                          assigns (r, k) ? 0 : (int)v->dim[1] };
  return (sl_gradient){ copy, width, 0 };
}

/* Add the copy to the input's gradient; set rows without a writer to 0. */
static void end_gradient (const sl_run *r, int k, int sequence, int head,
                          int width, const sl_gradient *g, const real *copy) {
  const sl_view *v = &r->din[k];
  const ptrdiff_t row = v->stride[1], col = v->stride[2];
  const int assign = assigns (r, k);
  real *to;
  if (!g->x || (g->x != copy && (!assign || g->written == v->dim[1]))) return;
  to = head_data (v, sequence, head, width);
  for (ptrdiff_t i = 0; g->x == copy && i < g->written; i++)
    for (ptrdiff_t j = 0; j < width; j++) {
      real *x = to + i * row + j * col;
      *x = copy[i * width + j] + (assign ? 0 : *x);
    }
  for (ptrdiff_t i = g->written; assign && i < v->dim[1]; i++)
    for (ptrdiff_t j = 0; j < width; j++) to[i * row + j * col] = 0;
}

static void start (sl_head *h, const sl_run *r, sl_attention_plan *p) {
  sl_attention_plan_again (r->attr, r->in, p);
  *h = (sl_head){ .run = r, .attr = r->attr, .p = p };
  SL (sl_host_init) (&h->host, r, &p->call);
  h->layout = p->lanes ? &SL (sl_layout_lanes) : &SL (sl_layout_rows);
  h->out_row = (ptrdiff_t)p->call.heads * p->d_value;
}

static void start_kv_head (sl_head *h, int sequence, int g) {
  const sl_attention_plan *p = h->p;
  const sl_run *r = h->run;
  const int d = p->call.d_head, dv = p->d_value;
  SL (sl_host_sequence) (&h->host, sequence);
  h->keys = h->host.tokens + h->attr->virtual_keys;
  h->host.call.length = h->keys;
  h->k = head_of (&r->in[1], sequence, g, d);
  h->v = head_of (&r->in[2], sequence, g, dv);
  if (p->gathered) {
    h->k = gather (h->k, h->keys, d, sl_scratch (h, p->k));
    h->v = gather (h->v, h->keys, dv, sl_scratch (h, p->v));
  }
}

static void start_head (sl_head *h, int i) {
  const sl_attention_plan *p = h->p;
  SL (sl_host_head) (&h->host, i);
  h->q = head_of (&h->run->in[0], h->host.sequence, i, p->call.d_head);
  if (h->attr->alibi) h->slope = (real)sl_alibi_slope (p->call.heads, i);
}

static void forward (const sl_run *r) {
  sl_attention_plan p;
  sl_head h;
  int group, to;
  start (&h, r, &p);
  group = p.call.heads / p.kv_heads;
  to = r->to ? r->to : p.call.heads;
  for (int s = 0; s < p.call.batch; s++)
    for (int g = r->from / group; g * group < to; g++) {
      const int first = g * group > r->from ? g * group : r->from;
      const int last = (g + 1) * group < to ? (g + 1) * group : to;
      start_kv_head (&h, s, g);
      if (!p.lanes)
        h.kt =
            transpose (&p, h.k, h.keys, p.call.d_head, sl_scratch (&h, p.kt));
      for (int i = first; i < last; i++) {
        start_head (&h, i);
        h.out = (real *)r->out[0].data + (ptrdiff_t)s * p.call.t * h.out_row +
                (ptrdiff_t)i * p.d_value;
        SL (sl_attention_forward) (&h);
      }
    }
}

static void backward_head (sl_head *h, int i) {
  const sl_attention_plan *p = h->p;
  const sl_run *r = h->run;
  const int s = h->host.sequence, d = p->call.d_head;
  real *dq = sl_scratch (h, p->dq);
  start_head (h, i);
  h->dout = head_of (&r->dout[0], s, i, p->d_value);
  h->dq = start_gradient (r, 0, s, i, d, 0, dq);
  SL (sl_host_clear_gradient) (&h->host);
  SL (sl_attention_backward) (h);
  end_gradient (r, 0, s, i, d, &h->dq, dq);
  SL (sl_host_add_gradient) (&h->host);
}

static void backward_kv_head (sl_head *h, int s, int g) {
  const sl_attention_plan *p = h->p;
  const sl_run *r = h->run;
  const int group = p->call.heads / p->kv_heads;
  const int d = p->call.d_head, width = p->d_value;
  real *dk = sl_scratch (h, p->dk), *dv = sl_scratch (h, p->dv);
  start_kv_head (h, s, g);
  if (!p->lanes && p->recompute)
    h->kt = transpose (p, h->k, h->keys, d, sl_scratch (h, p->kt));
  if (!p->lanes)
    h->vt = transpose (p, h->v, h->keys, width, sl_scratch (h, p->vt));
  h->dk = start_gradient (r, 1, s, g, d, p->gathered, dk);
  h->dv = start_gradient (r, 2, s, g, width, p->gathered, dv);
  for (int i = g * group; i < (g + 1) * group; i++) backward_head (h, i);
  end_gradient (r, 1, s, g, d, &h->dk, dk);
  end_gradient (r, 2, s, g, width, &h->dv, dv);
}

/* The gradient of parameters is added to; length and first_key have none. */
static void clear_others (const sl_run *r) {
  for (int k = 3; k < r->n_in; k++) {
    const sl_view *v = &r->din[k];
    const size_t n = sl_view_count (v);
    if (!v->data || !assigns (r, k)) continue;
    for (size_t i = 0; i < n; i++) sl_view_set (v, SL_DTYPE, i, 0);
  }
}

static void backward (const sl_run *r) {
  sl_attention_plan p;
  sl_head h;
  if (!r->dout[0].data) return;
  start (&h, r, &p);
  clear_others (r);
  for (int s = 0; s < p.call.batch; s++)
    for (int g = 0; g < p.kv_heads; g++) backward_kv_head (&h, s, g);
}

static int shapes (sl_shape_query *q, sl_error *e) {
  return sl_attention_shapes (q, SL (sl_gemm_scratch), e);
}

/* Heads: an observer sees the sequences of each in order. A small product is
** done before another thread wakes up. */
static int units (const void *attr, const sl_view *in) {
  const sl_attention_attr *a = attr;
  const double pairs =
      (double)in[0].dim[0] * (double)in[0].dim[1] * (double)in[1].dim[1];
  return pairs * a->heads * a->d_head < SMALL ? 1 : a->heads;
}

SL_OP (attention, .min_in = 3, .max_in = 6,
       .flags = SL_OP_ASSIGNS | SL_OP_FLUSHES | SL_OP_OBSERVED,
       .attr_size = sizeof (sl_attention_attr), .shapes = shapes,
       .units = units, .forward = forward, .backward = backward);
