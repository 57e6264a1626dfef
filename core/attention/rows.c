/* rows.c - attention a block of query rows at a time, scores [query][key].
**
** Letters in comments: T tokens, D width of a query and key, V width of a
** value, R rows of the block, N keys of the block.
**
** What is masked is not read: scores of invisible keys are computed and left
** alone, and their weights are zero in the products. Zero times infinity is not
** zero, so a block with a number that is not finite where rows see different
** keys is done row by row, where nothing is invisible. Sums run in the same
** order either way, and for every size of block. */
#include "attention/attention_internal.h"
#include "attention/block.h"
#include <string.h>

enum { SHORT = 1024 }; /* numbers that are faster cleared than looked at */

/* R query rows against the keys lo .. lo + N - 1, and what each row sees. The
** four matrices have rows of all keys; column 0 is key 0. */
typedef struct block {
  int row, rows, lo, hi;
  int simple; /* rows see the keys from the first on: 'seen' says how many */
  sl_lane_block seen;
  int row_lo[SL_MOST_ROWS], row_hi[SL_MOST_ROWS];
  real *scores, *weights, *dscores, *dweights;
} block;

/* c (m x n, rows 'row' apart) = alpha a (m x k) b (k x n) + beta c */
static void product (const sl_head *h, ptrdiff_t m, ptrdiff_t n, ptrdiff_t k,
                     double alpha, sl_grid a, sl_grid b, real beta, real *c,
                     ptrdiff_t row) {
  SL (sl_gemm)
  (m, n, k, (real)alpha, a.x, a.row, a.col, b.x, b.row, b.col, beta, c, row,
   sl_scratch (h, h->p->product));
}

/* 1 if the two products below may leave out what no row of a tile sees. */
static int may_skip (const block *b, const sl_grid *x, int width) {
  return b->simple && b->hi <= SL_KEY_TILE && sl_is_whole (x, width) &&
         width % (2 * SL_LANES) == 0;
}

/* c (rows x width) = or += a (rows x all keys) x, over the keys of the block */
static void to_queries (const sl_head *h, const block *b, int width,
                        const real *a, sl_grid x, int add, real *c,
                        ptrdiff_t row) {
  const ptrdiff_t keys = h->p->keys;
  if (may_skip (b, &x, width))
    for (int j = 0; j < width; j += 2 * SL_LANES)
      sl_to_queries (2, &b->seen, 0, b->hi, a, keys, 1, x.x + j, x.row, add,
                     c + j, row);
  else
    product (h, b->rows, width, b->hi - b->lo, 1,
             (sl_grid){ a + b->lo, keys, 1 }, sl_from (x, b->lo), (real)add, c,
             row);
}

/* Before something goes to rows lo .. hi - 1 of a gradient: 0 if it is to be
** assigned, else 1, and the rows hold something to add to. */
static int begin (sl_sum *s, int lo, int hi, int width) {
  if (s->written == lo) {
    s->written = hi;
    return 0;
  }
  for (; s->written < hi; s->written++)
    memset (s->x + s->written * s->row, 0, (size_t)width * sizeof *s->x);
  return 1;
}

/* to (keys x width) = or += a^T x, for the keys of the block; a: rows x all
** keys */
static void to_keys (const sl_head *h, const block *b, int width, const real *a,
                     sl_grid x, sl_sum *to) {
  const ptrdiff_t keys = h->p->keys, row = to->row;
  const int add = begin (to, b->lo, b->hi, width);
  real *c = to->x;
  if (may_skip (b, &x, width))
    for (int j = 0; j < width; j += 2 * SL_LANES)
      sl_to_keys (2, &b->seen, 0, b->hi, a, 1, keys, x.x + j, x.row, add, c + j,
                  row);
  else
    product (h, b->hi - b->lo, width, b->rows, 1,
             (sl_grid){ a + b->lo, 1, keys }, x, (real)add, c + b->lo * row,
             row);
}

/* 1 if rows first..last-1 of m are finite: 0 x is 0 then, else NaN. */
static int all_finite (sl_grid m, ptrdiff_t first, ptrdiff_t last, int width) {
  const real *from = m.x + first * m.row;
  sl_lanes sum[2] = { { 0 }, { 0 } };
  real rest = 0;
  ptrdiff_t j = 0;
  if (m.col == 1)
    for (; j + SL_LANES <= width; j += SL_LANES) {
      const real *x = from + j;
      ptrdiff_t i = first;
      for (; i + 2 <= last; i += 2, x += 2 * m.row) {
        sum[0] += 0 * sl_load (x);
        sum[1] += 0 * sl_load (x + m.row);
      }
      if (i < last) sum[0] += 0 * sl_load (x);
    }
  for (; j < width; j++)
    for (ptrdiff_t i = 0; i < last - first; i++)
      rest += 0 * from[i * m.row + j * m.col];
  return rest == 0 && sl_lanes_sum (sum[0] + sum[1]) == 0;
}

/* 1 if the rows of m that only a part of the block sees are finite. */
static int finite_where_partial (const block *b, sl_grid m, int width) {
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

/* The keys lo .. hi - 1 that query i sees, virtual keys included. */
static void see (const sl_head *h, int i, int *lo, int *hi) {
  sl_visible (&h->attr->visibility, i, h->n, lo, hi);
  if (*lo < *hi) *hi += h->attr->virtual_keys; /* lo is 0: there is no window */
  if (h->first_key) {
    const int first =
        sl_valid_tokens ((double)h->first_key[i * h->first_key_step], h->p->t);
    if (*lo < first) *lo = first;
    if (*lo >= *hi) *lo = *hi = 0;
  }
}

/* What the rows of the block see, and from where to where that reaches. */
static void look (const sl_head *h, block *b) {
  const sl_visibility *v = &h->attr->visibility;
  const int valid = h->n - b->row < b->rows ? h->n - b->row : b->rows;
  if (v->window == 0 && !h->first_key && valid == b->rows) {
    const int step = v->causal != 0;
    const int first = step ? b->row + 1 + h->attr->virtual_keys : h->keys;
    for (int r = 0; r < b->rows; r++) {
      b->row_lo[r] = 0;
      b->row_hi[r] = first + r * step;
    }
    b->lo = 0;
    b->hi = b->row_hi[b->rows - 1];
    b->seen = (sl_lane_block){
      .queries = b->rows, .keys = b->hi, .first = first, .causal = step
    };
    b->simple = 1;
    return;
  }
  b->simple = 0;
  b->lo = h->p->keys;
  b->hi = 0;
  for (int r = 0; r < b->rows; r++) {
    int lo, hi;
    see (h, b->row + r, &lo, &hi);
    b->row_lo[r] = lo;
    b->row_hi[r] = hi;
    if (lo < hi && lo < b->lo) b->lo = lo;
    if (hi > b->hi) b->hi = hi;
  }
  if (b->lo > b->hi) b->lo = b->hi; /* no row sees anything */
}

/* The block of 'rows' rows from 'row' on, with its visible ranges. Matrices are
** the saved ones of this head, or those of the scratch. */
static void place (const sl_head *h, int row, int rows, block *b) {
  const sl_attention_plan *p = h->p;
  const size_t keys = (size_t)p->keys;
  b->row = row;
  b->rows = rows;
  look (h, b);
  if (p->recompute) {
    b->scores = sl_scratch (h, p->scores);
    b->weights = sl_scratch (h, p->weights);
  } else {
    b->scores = sl_saved (h) + (size_t)row * keys;
    b->weights = b->scores + p->saved_scores;
  }
  b->dscores = sl_scratch (h, p->dscores);
  b->dweights = sl_scratch (h, p->dweights);
}

/* Zero rows of a matrix from column 'first' to 'last' where its kernel will not
** write: what the row does not see. Short rows as a whole. */
static void clear_unseen (const sl_head *h, const block *b, int first, int last,
                          real *x) {
  const size_t keys = (size_t)h->p->keys, rows = (size_t)b->rows;
  if (keys * rows <= SHORT) {
    memset (x, 0, keys * rows * sizeof *x);
    return;
  }
  for (size_t r = 0; r < rows; r++, x += keys) {
    const int lo = b->row_lo[r], hi = b->row_hi[r];
    if (lo >= hi) {
      memset (x + first, 0, (size_t)(last - first) * sizeof *x);
      continue;
    }
    if (lo > first) memset (x + first, 0, (size_t)(lo - first) * sizeof *x);
    if (last > hi) memset (x + hi, 0, (size_t)(last - hi) * sizeof *x);
  }
}

/* S = scale q.k - slope |i - j| where visible, and W = plugin (S), 0 elsewhere:
** among the keys of the block, or among all. */
static void weigh (sl_head *h, block *b, int all) {
  const sl_attention_plan *p = h->p;
  const ptrdiff_t keys = p->keys;
  const int virtual_keys = h->attr->virtual_keys;
  const real slope = h->slope;
  sl_grid kt = h->kt;
  kt.x += b->lo * kt.col;
  product (h, b->rows, b->hi - b->lo, p->d, h->attr->scale,
           sl_from (h->q, b->row), kt, 0, b->scores + b->lo, keys);
  clear_unseen (h, b, all ? 0 : b->lo, all ? p->keys : b->hi, b->weights);
  for (int r = 0; r < b->rows; r++) {
    const int i = b->row + r, lo = b->row_lo[r], n = b->row_hi[r] - lo;
    real *s = b->scores + r * keys + lo, *w = b->weights + r * keys + lo;
    if (slope != 0)
      for (int j = virtual_keys; j < n; j++) {
        const int key = lo + j - virtual_keys;
        s[j] -= slope * (real)(i > key ? i - key : key - i);
      }
    if (n > 0) {
      h->call.pos = i + virtual_keys;
      h->call.first = lo;
      h->row->forward (&h->call, n, s, w);
    }
  }
}

/* O = W V. 'alone': one row of a block that backward may do as a whole. */
static void forward_block (sl_head *h, int row, int rows, int alone) {
  const sl_attention_plan *p = h->p;
  block b;
  place (h, row, rows, &b);
  if (rows > 1 && !uniform (&b) && !finite_where_partial (&b, h->v, p->dv)) {
    for (int r = 0; r < rows; r++) forward_block (h, row + r, 1, 1);
    return;
  }
  weigh (h, &b, alone || h->run->observer);
  to_queries (h, &b, p->dv, b.weights, h->v, 0, h->out + row * h->out_row,
              h->out_row);
  if (h->run->observer)
    SL (sl_observe) (h, row, rows, b.weights, b.scores, b.row_lo, b.row_hi);
}

/* dW = dO V^T; dS = scale plugin' (dW); dQ += dS K; dK += dS^T Q; dV += W^T dO */
static void backward_block (sl_head *h, int row, int rows) {
  const sl_attention_plan *p = h->p;
  const ptrdiff_t t = p->keys;
  const sl_grid q = sl_from (h->q, row), dout = sl_from (h->dout, row);
  const real scale = (real)h->attr->scale;
  sl_grid vt = h->vt;
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
  clear_unseen (h, &b, b.lo, b.hi, b.dscores);
  for (int r = 0; r < rows; r++) {
    const int lo = b.row_lo[r], n = b.row_hi[r] - lo;
    const ptrdiff_t first = r * t + lo;
    if (n > 0) {
      h->call.pos = row + r + h->attr->virtual_keys;
      h->call.first = lo;
      h->row->backward (&h->call, n, b.scores + first, b.weights + first,
                        b.dweights + first, b.dscores + first,
                        sl_scratch (h, p->dparam));
    }
  }
  if (scale != 1)
    for (int r = 0; r < rows; r++)
      for (int j = b.lo; j < b.hi; j++) b.dscores[r * t + j] *= scale;
  if (h->dq.x)
    to_queries (h, &b, p->d, b.dscores, h->k,
                begin (&h->dq, row, row + rows, p->d),
                h->dq.x + row * h->dq.row, h->dq.row);
  if (h->dk.x) to_keys (h, &b, p->d, b.dscores, q, &h->dk);
  if (h->dv.x) to_keys (h, &b, p->dv, b.weights, dout, &h->dv);
}

void SL (sl_rows_forward) (sl_head *h) {
  const sl_attention_plan *p = h->p;
  for (int row = 0; row < p->t; row += p->block)
    forward_block (h, row, p->t - row < p->block ? p->t - row : p->block, 0);
}

void SL (sl_rows_backward) (sl_head *h) {
  const int most = h->p->block;
  for (int row = 0; row < h->n; row += most)
    backward_block (h, row, h->n - row < most ? h->n - row : most);
}
