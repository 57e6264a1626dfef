/* attention_op.c - the attention op: its heads, one after the other, and where their
** results go. */
#include "attention/attention_internal.h"
#include "attention/host.h"
#include <string.h>

enum { SMALL = 1 << 17 }; /* query-key products that one thread does alone */

static real *place_of (const sl_view *v, int sequence, int h, int width) {
  return (real *)v->data + sequence * v->stride[0] +
         (ptrdiff_t)h * width * v->stride[2];
}

static sl_grid head_of (const sl_view *v, int sequence, int h, int width) {
  return (sl_grid){ place_of (v, sequence, h, width), v->stride[1],
                    v->stride[2] };
}

/* The transpose of the first n rows of m: a copy when it is read once a block,
** the same elements when once in all. */
static sl_grid transpose (const sl_attention_plan *p, sl_grid m, int n,
                          int width, real *copy) {
  if (p->block == p->t) return (sl_grid){ m.x, m.col, m.row };
  for (ptrdiff_t i = 0; i < n; i += 16) {
    const ptrdiff_t rows = n - i < 16 ? n - i : 16;
    for (ptrdiff_t j = 0; j < width; j++)
      for (ptrdiff_t l = 0; l < rows; l++)
        copy[j * p->ld + i + l] = m.x[(i + l) * m.row + j * m.col];
  }
  return (sl_grid){ copy, p->ld, 1 };
}

/* The first n rows of m side by side: rows far apart fall on one another in the
** cache, and are read once a block. */
static sl_grid gather (sl_grid m, int n, int width, real *copy) {
  for (ptrdiff_t i = 0; i < n; i++)
    if (m.col == 1)
      memcpy (copy + i * width, m.x + i * m.row, (size_t)width * sizeof *copy);
    else
      for (ptrdiff_t j = 0; j < width; j++)
        copy[i * width + j] = m.x[i * m.row + j * m.col];
  return (sl_grid){ copy, width, 1 };
}

/* Where the gradient of a head is summed: in place if its elements are
** adjacent and its rows apart, unless it is to be gathered; else in 'copy',
** which end_sum adds. 'fresh': nothing is there yet. */
static sl_sum sum_of (const sl_view *v, int fresh, int sequence, int h,
                      int width, int gathered, real *copy) {
  const ptrdiff_t row = v->stride[1];
  if (!v->data) return (sl_sum){ NULL, 0, 0 };
  if (!gathered && (v->stride[2] == 1 || width == 1) &&
      (row >= width || -row >= width))
    return (sl_sum){ place_of (v, sequence, h, width), row,
                     fresh ? 0 : (int)v->dim[1] };
  return (sl_sum){ copy, width, 0 };
}

/* Add what is in the copy, and clear the rows that nobody wrote to. */
static __attribute__ ((noinline)) void settle (const sl_view *v, int fresh,
                                               int sequence, int h, int width,
                                               const sl_sum *s,
                                               const real *copy) {
  const ptrdiff_t row = v->stride[1], col = v->stride[2];
  real *to = place_of (v, sequence, h, width);
  for (ptrdiff_t i = 0; s->x == copy && i < s->written; i++)
    for (ptrdiff_t j = 0; j < width; j++) {
      real *x = to + i * row + j * col;
      *x = copy[i * width + j] + (fresh ? 0 : *x);
    }
  for (ptrdiff_t i = s->written; fresh && i < v->dim[1]; i++)
    for (ptrdiff_t j = 0; j < width; j++) to[i * row + j * col] = 0;
}

static void end_sum (const sl_view *v, int fresh, int sequence, int h,
                     int width, const sl_sum *s, const real *copy) {
  if (s->x && (s->x == copy || s->written < v->dim[1]))
    settle (v, fresh, sequence, h, width, s, copy);
}

void SL (sl_observe) (const sl_head *h, int row, int rows, const real *weights,
                      const real *scores, const int *lo, const int *hi) {
  const sl_observer *o = h->run->observer;
  const sl_attention_plan *p = h->p;
  const sl_draw *draw = h->run->draw;
  const sl_weight_rows seen = {
    .layer = h->run->ordinal,
    .sample = (long)(draw ? draw->first_sample : 0) + h->sequence,
    .head = h->head,
    .kv_head = h->head / (p->heads / p->kv_heads),
    .t = p->t,
    .length = h->n,
    .row = row,
    .rows = rows,
    .virtual_keys = h->attr->virtual_keys,
    .dtype = sizeof (real) == 4 ? SL_F32 : SL_F64,
    .stride = p->keys,
    .weights = weights,
    .scores = scores,
    .lo = lo,
    .hi = hi,
    .value = sl_from (h->v, h->attr->virtual_keys).x,
    .value_stride = h->v.row,
    .value_step = h->v.col,
    .d_value = p->dv,
    .key = sl_from (h->k, h->attr->virtual_keys).x,
    .key_stride = h->k.row,
    .key_step = h->k.col,
    .d_key = p->d
  };
  o->rows (o->context, &seen);
}

static int valid (const sl_run *r, const sl_attention_attr *a, int sequence,
                  int t) {
  const sl_view *length = &r->in[3 + (a->has_param != 0)];
  if (!a->has_length) return t;
  return sl_valid_tokens (
      ((const real *)length->data)[sequence * length->stride[0]], t);
}

/* This head's parameters, side by side. */
static void load_params (sl_head *h) {
  const sl_view *v = &h->run->in[3];
  real *to = sl_scratch (h, h->p->param);
  for (int i = 0; i < h->p->params; i++)
    to[i] = ((const real *)v->data)[h->head * v->stride[0] + i * v->stride[1]];
  h->call.param = to;
}

/* Add the gradient of this head's parameters to that of the input. */
static void add_params (const sl_head *h) {
  const sl_view *v = &h->run->din[3];
  const real *x = sl_scratch (h, h->p->dparam);
  if (h->p->params == 0 || !v->data) return;
  for (int i = 0; i < h->p->params; i++)
    ((real *)v->data)[h->head * v->stride[0] + i * v->stride[1]] += x[i];
}

static void start (sl_head *h, const sl_run *r, sl_attention_plan *p) {
  const sl_attention_attr *a = r->attr;
  const sl_dtype dtype = sizeof (real) == 4 ? SL_F32 : SL_F64;
  sl_attention_plan_again (a, r->in, p);
  *h = (sl_head){ .run = r, .attr = a, .p = p };
  h->row = a->mechanism->loaded->plugin[dtype]->row;
  h->block = a->mechanism->loaded->plugin[dtype]->block;
  h->call.host = &SL (sl_host_services);
  h->call.config = a->mechanism->config;
  h->call.scratch = sl_scratch (h, p->row);
  h->call.heads = p->heads;
  h->call.layer = a->layer;
  h->call.d_head = p->d;
  h->call.scale = a->scale;
  h->out_row = (ptrdiff_t)p->heads * p->dv;
}

static void start_kv_head (sl_head *h, int sequence, int g) {
  const sl_attention_plan *p = h->p;
  const sl_run *r = h->run;
  h->sequence = sequence;
  h->n = valid (r, h->attr, sequence, p->t);
  h->keys = h->n + h->attr->virtual_keys;
  h->call.length = h->keys;
  if (h->attr->has_first_key) {
    const sl_view *first_key = &r->in[r->n_in - 1];
    h->first_key =
        (const real *)first_key->data + sequence * first_key->stride[0];
    h->first_key_step = first_key->stride[1];
  }
  h->k = head_of (&r->in[1], sequence, g, p->d);
  h->v = head_of (&r->in[2], sequence, g, p->dv);
  if (p->gathered) {
    h->k = gather (h->k, h->keys, p->d, sl_scratch (h, p->k));
    h->v = gather (h->v, h->keys, p->dv, sl_scratch (h, p->v));
  }
}

static void start_head (sl_head *h, int i) {
  const sl_attention_plan *p = h->p;
  h->head = i;
  h->call.head = i;
  h->q = head_of (&h->run->in[0], h->sequence, i, p->d);
  if (p->params) load_params (h);
  if (h->attr->alibi) h->slope = (real)sl_alibi_slope (p->heads, i);
}

static void forward (const sl_run *r) {
  sl_attention_plan p;
  sl_head h;
  int group, to;
  start (&h, r, &p);
  group = p.heads / p.kv_heads;
  to = r->to ? r->to : p.heads;
  for (int s = 0; s < p.batch; s++)
    for (int g = r->from / group; g * group < to; g++) {
      const int first = g * group > r->from ? g * group : r->from;
      const int last = (g + 1) * group < to ? (g + 1) * group : to;
      start_kv_head (&h, s, g);
      if (!p.lanes)
        h.kt = transpose (&p, h.k, h.keys, p.d, sl_scratch (&h, p.kt));
      for (int i = first; i < last; i++) {
        start_head (&h, i);
        h.out = (real *)r->out[0].data + (ptrdiff_t)s * p.t * h.out_row +
                (ptrdiff_t)i * p.dv;
        (p.lanes ? SL (sl_lanes_forward) : SL (sl_rows_forward)) (&h);
      }
    }
}

static int is_fresh (const sl_run *r, int input) {
  return (int)(r->assigns >> input & 1);
}

static void backward_head (sl_head *h, int i) {
  const sl_attention_plan *p = h->p;
  const sl_run *r = h->run;
  const sl_view *to = &r->din[0];
  real *dq = sl_scratch (h, p->dq);
  start_head (h, i);
  h->dout = head_of (&r->dout[0], h->sequence, i, p->dv);
  h->dq = sum_of (to, is_fresh (r, 0), h->sequence, i, p->d, 0, dq);
  if (p->params)
    memset (sl_scratch (h, p->dparam), 0, (size_t)p->params * sizeof (real));
  (p->lanes ? SL (sl_lanes_backward) : SL (sl_rows_backward)) (h);
  end_sum (to, is_fresh (r, 0), h->sequence, i, p->d, &h->dq, dq);
  add_params (h);
}

static void backward_kv_head (sl_head *h, int sequence, int g) {
  const sl_attention_plan *p = h->p;
  const sl_run *r = h->run;
  const int group = p->heads / p->kv_heads;
  real *dk = sl_scratch (h, p->dk), *dv = sl_scratch (h, p->dv_sum);
  start_kv_head (h, sequence, g);
  if (!p->lanes && p->recompute)
    h->kt = transpose (p, h->k, h->keys, p->d, sl_scratch (h, p->kt));
  if (!p->lanes)
    h->vt = transpose (p, h->v, h->keys, p->dv, sl_scratch (h, p->vt));
  h->dk =
      sum_of (&r->din[1], is_fresh (r, 1), sequence, g, p->d, p->gathered, dk);
  h->dv =
      sum_of (&r->din[2], is_fresh (r, 2), sequence, g, p->dv, p->gathered, dv);
  for (int i = g * group; i < (g + 1) * group; i++) backward_head (h, i);
  end_sum (&r->din[1], is_fresh (r, 1), sequence, g, p->d, &h->dk, dk);
  end_sum (&r->din[2], is_fresh (r, 2), sequence, g, p->dv, &h->dv, dv);
}

/* Parameters are added to, and what else there is has no gradient. */
static void clear_others (const sl_run *r) {
  for (int k = 3; k < r->n_in; k++) {
    const sl_view *v = &r->din[k];
    const size_t n = sl_view_count (v);
    if (!v->data || !is_fresh (r, k)) continue;
    for (size_t i = 0; i < n; i++)
      sl_view_set (v, sizeof (real) == 4 ? SL_F32 : SL_F64, i, 0);
  }
}

static void backward (const sl_run *r) {
  sl_attention_plan p;
  sl_head h;
  if (!r->dout[0].data) return;
  start (&h, r, &p);
  clear_others (r);
  for (int s = 0; s < p.batch; s++)
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

SL_OP (attention, .min_in = 3, .max_in = 6, .flags = SL_OP_ASSIGNS,
       .attr_size = sizeof (sl_attention_attr), .shapes = shapes,
       .units = units, .forward = forward, .backward = backward);
