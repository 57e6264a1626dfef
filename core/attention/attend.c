/* attend.c - the attention op: scores, plugin, weighted sum, and its backward.
**
** One head at a time, a block of query rows at a time, against the keys that
** some row of the block sees. Letters in comments: T tokens, D width of a query
** and key, V width of a value, R rows of the block, N keys of the block. Keys
** count from the first of the prefix: that of token j is prefix + j.
**
** What is masked is not read: scores of invisible keys are computed and left
** alone, and their weights are zero in the products. Zero times infinity is not
** zero, so a block with a number that is not finite where rows see different
** keys is done row by row, where nothing is invisible. Sums run in the same
** order either way, and for every size of block. */
#include "attention/host.h"
#include "attention/kernels.h"
#include "ops/gemm.h"
#include <string.h>

/* One head of (B, T, heads * width), T x width. */
typedef struct matrix {
  const real *x;
  ptrdiff_t row, col; /* strides */
} matrix;

/* A gradient to add to: rows of adjacent elements. */
typedef struct sum {
  real *x; /* NULL: not wanted */
  ptrdiff_t row;
} sum;

/* One sequence and head, and everything that its blocks need. */
typedef struct head {
  const sl_run *run;
  const sl_attention_attr *attr;
  const sl_attention_plan *p;
  const sl_row *row;
  sl_call call;
  int sequence, head, n; /* n: valid tokens */
  int keys;              /* n and the prefix */
  const real *begin; /* first visible key of query i at i * begin_step; NULL:
                         ** no limit */
  ptrdiff_t begin_step;
  matrix q, k, v, kt, vt;
  matrix dout; /* backward */
  sum dq, dk, dv;
  real slope; /* ALiBi; 0: none */
  real *out;  /* T x V, rows 'out_row' apart */
  ptrdiff_t out_row;
} head;

/* R query rows against the keys lo .. lo + N - 1, and what each row sees. The
** four matrices have rows of all keys; column 0 is key 0. */
typedef struct block {
  int row, rows, lo, hi;
  int row_lo[SL_MOST_ROWS], row_hi[SL_MOST_ROWS];
  real *scores, *weights, *dscores, *dweights;
} block;

static real *at (const sl_run *r, size_t offset) {
  return (real *)r->scratch + offset;
}

static matrix head_of (const sl_view *v, int sequence, int h, int width) {
  const real *x = (const real *)v->data + sequence * v->stride[0] +
                  (ptrdiff_t)h * width * v->stride[2];
  return (matrix){ x, v->stride[1], v->stride[2] };
}

static matrix from (matrix m, ptrdiff_t row) {
  m.x += row * m.row;
  return m;
}

/* The transpose of the first n rows of m: a copy when it is read once a block,
** the same elements when once in all. */
static matrix transpose (const sl_attention_plan *p, matrix m, int n, int width,
                         real *copy) {
  if (p->block == p->t) return (matrix){ m.x, m.col, m.row };
  for (ptrdiff_t i = 0; i < n; i += 16) {
    const ptrdiff_t rows = n - i < 16 ? n - i : 16;
    for (ptrdiff_t j = 0; j < width; j++)
      for (ptrdiff_t l = 0; l < rows; l++)
        copy[j * p->ld + i + l] = m.x[(i + l) * m.row + j * m.col];
  }
  return (matrix){ copy, p->ld, 1 };
}

/* Where the gradient of a head is summed: in place if its elements are adjacent
** and its rows apart, else in 'copy', which add_sum adds. */
static sum sum_of (const sl_view *v, int sequence, int h, int width, int n,
                   real *copy) {
  const ptrdiff_t row = v->stride[1];
  if (!v->data) return (sum){ NULL, 0 };
  if ((v->stride[2] == 1 || width == 1) && (row >= width || -row >= width))
    return (sum){ (real *)v->data + sequence * v->stride[0] +
                      (ptrdiff_t)h * width * v->stride[2],
                  row };
  memset (copy, 0, (size_t)n * (size_t)width * sizeof *copy);
  return (sum){ copy, width };
}

static void add_sum (const sl_view *v, int sequence, int h, int width, int n,
                     sum s, const real *copy) {
  real *to = (real *)v->data;
  if (s.x != copy || !to) return;
  to += sequence * v->stride[0] + (ptrdiff_t)h * width * v->stride[2];
  for (ptrdiff_t i = 0; i < n; i++)
    for (ptrdiff_t j = 0; j < width; j++)
      to[i * v->stride[1] + j * v->stride[2]] += copy[i * width + j];
}

/* c (m x n, rows 'row' apart) = alpha a (m x k) b (k x n) + beta c */
static void product (const head *h, ptrdiff_t m, ptrdiff_t n, ptrdiff_t k,
                     double alpha, matrix a, matrix b, real beta, real *c,
                     ptrdiff_t row) {
  SL (sl_gemm)
  (m, n, k, (real)alpha, a.x, a.row, a.col, b.x, b.row, b.col, beta, c, row,
   at (h->run, h->p->product));
}

/* A vector that may stand at any element, and what comparing two gives. */
typedef real vec
    __attribute__ ((vector_size (32), aligned (sizeof (real)), may_alias));
#ifdef SL_SINGLE
typedef int32_t lanes __attribute__ ((vector_size (32)));
#else
typedef int64_t lanes __attribute__ ((vector_size (32)));
#endif

/* 1 if rows first..last-1 of m are finite: 0 x is 0 then, else NaN. */
static int all_finite (matrix m, int first, int last, int width) {
  enum { LANES = sizeof (vec) / sizeof (real) };
  const int whole = m.col == 1 ? width / LANES * LANES : 0;
  lanes bad = { 0 };
  int found = 0;
  for (ptrdiff_t i = first; i < last; i++) {
    const real *x = m.x + i * m.row;
    for (ptrdiff_t j = 0; j < whole; j += LANES)
      bad |= (lanes)(0 * *(const vec *)(x + j) != 0);
  }
  for (ptrdiff_t i = first; i < last && whole < width; i++)
    for (ptrdiff_t j = whole; j < width; j++)
      found |= 0 * m.x[i * m.row + j * m.col] != 0;
  for (int l = 0; l < LANES; l++) found |= bad[l] != 0;
  return !found;
}

/* 1 if the rows of m that only a part of the block sees are finite. */
static int finite_where_partial (const block *b, matrix m, int width) {
  int lo = b->lo, hi = b->hi;
  for (int r = 0; r < b->rows; r++) {
    if (b->row_lo[r] > lo) lo = b->row_lo[r];
    if (b->row_hi[r] < hi) hi = b->row_hi[r];
  }
  if (lo >= hi) return all_finite (m, b->lo, b->hi, width);
  return all_finite (m, b->lo, lo, width) && all_finite (m, hi, b->hi, width);
}

/* 1 if all rows of the block see the same keys. */
static int uniform (const block *b) {
  for (int r = 0; r < b->rows; r++)
    if (b->row_lo[r] != b->lo || b->row_hi[r] != b->hi) return 0;
  return 1;
}

/* The block of 'rows' rows from 'row' on, with its visible ranges. Matrices are
** the saved ones of this head, or those of the scratch. */
static void place (const head *h, int row, int rows, block *b) {
  const sl_attention_plan *p = h->p;
  const size_t t = (size_t)p->t, keys = (size_t)p->keys;
  b->row = row;
  b->rows = rows;
  b->lo = p->keys;
  b->hi = 0;
  for (int r = 0; r < rows; r++) {
    int lo, hi;
    sl_visible (&h->attr->visibility, row + r, h->n, &lo, &hi);
    if (lo < hi) hi += h->attr->prefix; /* lo is 0: there is no window */
    if (h->begin) {
      const int first =
          sl_valid_tokens ((double)h->begin[(row + r) * h->begin_step], p->t);
      if (lo < first) lo = first;
      if (lo >= hi) lo = hi = 0;
    }
    b->row_lo[r] = lo;
    b->row_hi[r] = hi;
    if (lo < hi && lo < b->lo) b->lo = lo;
    if (hi > b->hi) b->hi = hi;
  }
  if (b->lo > b->hi) b->lo = b->hi; /* no row sees anything */
  if (p->recompute) {
    b->scores = at (h->run, p->scores);
    b->weights = at (h->run, p->weights);
  } else {
    size_t index = (size_t)h->sequence * (size_t)p->heads + (size_t)h->head;
    b->scores =
        (real *)h->run->saved + 2 * index * t * keys + (size_t)row * keys;
    b->weights = b->scores + t * keys;
  }
  b->dscores = at (h->run, p->dscores);
  b->dweights = at (h->run, p->dweights);
}

/* Zero row r of a matrix from 'first' to 'last' outside what the row sees. */
static void clear_unseen (const block *b, int r, int first, int last, real *x) {
  const int lo = b->row_lo[r], hi = b->row_hi[r];
  if (lo >= hi) {
    memset (x + first, 0, (size_t)(last - first) * sizeof *x);
    return;
  }
  if (lo > first) memset (x + first, 0, (size_t)(lo - first) * sizeof *x);
  if (last > hi) memset (x + hi, 0, (size_t)(last - hi) * sizeof *x);
}

/* S = scale q.k - slope |i - j| where visible, and W = plugin (S), 0 elsewhere:
** among the keys of the block, or among all. */
static void weigh (head *h, block *b, int all) {
  const sl_attention_plan *p = h->p;
  const ptrdiff_t keys = p->keys;
  const int prefix = h->attr->prefix;
  const real slope = h->slope;
  matrix kt = h->kt;
  kt.x += b->lo * kt.col;
  product (h, b->rows, b->hi - b->lo, p->d, h->attr->scale, from (h->q, b->row),
           kt, 0, b->scores + b->lo, keys);
  for (int r = 0; r < b->rows; r++) {
    const int i = b->row + r, lo = b->row_lo[r], n = b->row_hi[r] - lo;
    real *s = b->scores + r * keys + lo, *w = b->weights + r * keys + lo;
    if (slope != 0)
      for (int j = prefix; j < n; j++) {
        const int key = lo + j - prefix;
        s[j] -= slope * (real)(i > key ? i - key : key - i);
      }
    if (n > 0) {
      h->call.pos = i + prefix;
      h->call.first = lo;
      h->row->forward (&h->call, n, s, w);
    }
    clear_unseen (b, r, all ? 0 : b->lo, all ? p->keys : b->hi,
                  b->weights + r * keys);
  }
}

static void observe (const head *h, const block *b) {
  const sl_observer *o = h->run->observer;
  const sl_attention_plan *p = h->p;
  const sl_draw *draw = h->run->draw;
  const sl_rows rows = { .layer = h->run->ordinal,
                         .sample = (long)(draw ? draw->first_sample : 0) +
                                   h->sequence,
                         .head = h->head,
                         .kv_head = h->head / (p->heads / p->kv_heads),
                         .t = p->t,
                         .length = h->n,
                         .row = b->row,
                         .rows = b->rows,
                         .prefix = h->attr->prefix,
                         .dtype = sizeof (real) == 4 ? SL_F32 : SL_F64,
                         .stride = p->keys,
                         .weights = b->weights,
                         .scores = b->scores,
                         .lo = b->row_lo,
                         .hi = b->row_hi,
                         .value = from (h->v, h->attr->prefix).x,
                         .value_stride = h->v.row,
                         .value_step = h->v.col,
                         .d_value = p->dv,
                         .key = from (h->k, h->attr->prefix).x,
                         .key_stride = h->k.row,
                         .key_step = h->k.col,
                         .d_key = p->d };
  o->rows (o->context, &rows);
}

/* O = W V. 'alone': one row of a block that backward may do as a whole. */
static void forward_block (head *h, int row, int rows, int alone) {
  const sl_attention_plan *p = h->p;
  block b;
  place (h, row, rows, &b);
  if (rows > 1 && !uniform (&b) && !finite_where_partial (&b, h->v, p->dv)) {
    for (int r = 0; r < rows; r++) forward_block (h, row + r, 1, 1);
    return;
  }
  weigh (h, &b, alone || h->run->observer);
  product (h, rows, p->dv, b.hi - b.lo, 1,
           (matrix){ b.weights + b.lo, p->keys, 1 }, from (h->v, b.lo), 0,
           h->out + row * h->out_row, h->out_row);
  if (h->run->observer) observe (h, &b);
}

/* dW = dO V^T; dS = plugin' (dW); dQ += scale dS K; dK += scale dS^T Q;
** dV += W^T dO */
static void backward_block (head *h, int row, int rows) {
  const sl_attention_plan *p = h->p;
  const sl_run *run = h->run;
  const ptrdiff_t t = p->keys;
  const matrix q = from (h->q, row), dout = from (h->dout, row);
  matrix vt = h->vt;
  int keys;
  block b;
  place (h, row, rows, &b);
  keys = b.hi - b.lo;
  if (keys == 0) return;
  if (rows > 1 && !uniform (&b) &&
      !(finite_where_partial (&b, h->k, p->d) &&
        all_finite (q, 0, rows, p->d) && all_finite (dout, 0, rows, p->dv))) {
    for (int r = 0; r < rows; r++) backward_block (h, row + r, 1);
    return;
  }
  if (p->recompute) weigh (h, &b, 0);
  vt.x += b.lo * vt.col;
  product (h, rows, keys, p->dv, 1, dout, vt, 0, b.dweights + b.lo, t);
  for (int r = 0; r < rows; r++) {
    const int lo = b.row_lo[r], n = b.row_hi[r] - lo;
    const ptrdiff_t first = r * t + lo;
    if (n > 0) {
      h->call.pos = row + r + h->attr->prefix;
      h->call.first = lo;
      h->row->backward (&h->call, n, b.scores + first, b.weights + first,
                        b.dweights + first, b.dscores + first,
                        at (run, p->dparam));
    }
    clear_unseen (&b, r, b.lo, b.hi, b.dscores + r * t);
  }
  if (h->dq.x)
    product (h, rows, p->d, keys, h->attr->scale,
             (matrix){ b.dscores + b.lo, t, 1 }, from (h->k, b.lo), 1,
             h->dq.x + row * h->dq.row, h->dq.row);
  if (h->dk.x)
    product (h, keys, p->d, rows, h->attr->scale,
             (matrix){ b.dscores + b.lo, 1, t }, q, 1,
             h->dk.x + b.lo * h->dk.row, h->dk.row);
  if (h->dv.x)
    product (h, keys, p->dv, rows, 1, (matrix){ b.weights + b.lo, 1, t }, dout,
             1, h->dv.x + b.lo * h->dv.row, h->dv.row);
}

static int valid (const sl_run *r, const sl_attention_attr *a, int sequence,
                  int t) {
  const sl_view *length = &r->in[3 + (a->has_param != 0)];
  if (!a->has_length) return t;
  return sl_valid_tokens (
      ((const real *)length->data)[sequence * length->stride[0]], t);
}

/* This head's parameters, side by side. */
static void load_params (head *h) {
  const sl_view *v = &h->run->in[3];
  real *to = at (h->run, h->p->param);
  for (int i = 0; i < h->p->params; i++)
    to[i] = ((const real *)v->data)[h->head * v->stride[0] + i * v->stride[1]];
  h->call.param = to;
}

/* Add the gradient of this head's parameters to that of the input. */
static void add_params (const head *h) {
  const sl_view *v = &h->run->din[3];
  const real *x = at (h->run, h->p->dparam);
  if (h->p->params == 0 || !v->data) return;
  for (int i = 0; i < h->p->params; i++)
    ((real *)v->data)[h->head * v->stride[0] + i * v->stride[1]] += x[i];
}

static void start (head *h, const sl_run *r, sl_attention_plan *p) {
  const sl_attention_attr *a = r->attr;
  const sl_dtype dtype = sizeof (real) == 4 ? SL_F32 : SL_F64;
  sl_attention_plan_of (a, r->n_in, r->in, SL (sl_gemm_scratch), p, NULL);
  *h = (head){ .run = r, .attr = a, .p = p };
  h->row = a->mechanism->loaded->plugin[dtype]->row;
  h->call.host = &SL (sl_host_services);
  h->call.config = a->mechanism->config;
  h->call.scratch = at (r, p->row);
  h->call.heads = p->heads;
  h->call.layer = a->layer;
  h->call.d_head = p->d;
  h->call.scale = a->scale;
  h->out_row = (ptrdiff_t)p->heads * p->dv;
}

static void start_kv_head (head *h, int sequence, int g) {
  const sl_attention_plan *p = h->p;
  const sl_run *r = h->run;
  h->sequence = sequence;
  h->n = valid (r, h->attr, sequence, p->t);
  h->keys = h->n + h->attr->prefix;
  h->call.length = h->keys;
  if (h->attr->has_begin) {
    const sl_view *begin = &r->in[r->n_in - 1];
    h->begin = (const real *)begin->data + sequence * begin->stride[0];
    h->begin_step = begin->stride[1];
  }
  h->k = head_of (&r->in[1], sequence, g, p->d);
  h->v = head_of (&r->in[2], sequence, g, p->dv);
}

static void start_head (head *h, int i) {
  const sl_attention_plan *p = h->p;
  h->head = i;
  h->call.head = i;
  h->q = head_of (&h->run->in[0], h->sequence, i, p->d);
  if (p->params) load_params (h);
  if (h->attr->alibi) h->slope = (real)sl_alibi_slope (p->heads, i);
}

static void forward (const sl_run *r) {
  sl_attention_plan p;
  head h;
  start (&h, r, &p);
  for (int s = 0; s < p.batch; s++)
    for (int g = 0; g < p.kv_heads; g++) {
      const int group = p.heads / p.kv_heads;
      start_kv_head (&h, s, g);
      h.kt = transpose (&p, h.k, h.keys, p.d, at (r, p.kt));
      for (int i = g * group; i < (g + 1) * group; i++) {
        start_head (&h, i);
        h.out =
            (real *)r->out[0].data + s * p.t * h.out_row + (ptrdiff_t)i * p.dv;
        for (int row = 0; row < p.t; row += p.block)
          forward_block (&h, row, p.t - row < p.block ? p.t - row : p.block, 0);
      }
    }
}

static void backward_head (head *h, int i) {
  const sl_attention_plan *p = h->p;
  const sl_run *r = h->run;
  real *dq = at (r, p->dq);
  start_head (h, i);
  h->dout = head_of (&r->dout[0], h->sequence, i, p->dv);
  h->dq = sum_of (&r->din[0], h->sequence, i, p->d, h->n, dq);
  memset (at (r, p->dparam), 0, (size_t)p->params * sizeof (real));
  for (int row = 0; row < h->n; row += p->block)
    backward_block (h, row, h->n - row < p->block ? h->n - row : p->block);
  add_sum (&r->din[0], h->sequence, i, p->d, h->n, h->dq, dq);
  add_params (h);
}

static void backward (const sl_run *r) {
  sl_attention_plan p;
  head h;
  real *dk, *dv;
  if (!r->dout[0].data) return;
  start (&h, r, &p);
  dk = at (r, p.dk);
  dv = at (r, p.dv_sum);
  for (int s = 0; s < p.batch; s++)
    for (int g = 0; g < p.kv_heads; g++) {
      const int group = p.heads / p.kv_heads;
      start_kv_head (&h, s, g);
      if (p.recompute) h.kt = transpose (&p, h.k, h.keys, p.d, at (r, p.kt));
      h.vt = transpose (&p, h.v, h.keys, p.dv, at (r, p.vt));
      h.dk = sum_of (&r->din[1], s, g, p.d, h.keys, dk);
      h.dv = sum_of (&r->din[2], s, g, p.dv, h.keys, dv);
      for (int i = g * group; i < (g + 1) * group; i++) backward_head (&h, i);
      add_sum (&r->din[1], s, g, p.d, h.keys, h.dk, dk);
      add_sum (&r->din[2], s, g, p.dv, h.keys, h.dv, dv);
    }
}

static int infer (sl_infer *q, sl_error *e) {
  return sl_attention_infer (q, SL (sl_gemm_scratch), e);
}

extern const sl_op SL (sl_op_attention);
const sl_op SL (sl_op_attention) = { .name = "attention",
                                     .min_in = 3,
                                     .max_in = 6,
                                     .attr_size = sizeof (sl_attention_attr),
                                     .infer = infer,
                                     .forward = forward,
                                     .backward = backward };
