/* lanes.c - attention 16 queries at a time, scores [key][query].
**
** One vector holds a number of several queries, so a plugin needs no sums
** across a vector, and every product reads its one factor by broadcast: only
** queries and output gradients are transposed, once a block. Letters in
** comments: N keys of a block, D width of a query and key, V width of a value.
**
** Keys that a query does not see: their scores are replaced by the lowest
** finite number before the plugin gets them, their weights and gradients by 0
** after it. Zero times infinity is not zero, so where a number is not finite
** and queries see different keys the products take each query or key by
** itself: the same sums in the same order, without what is not seen. */
#include "attention/attend.h"
#include "ops/tile.h"
#include <string.h>

/* 16 queries against the first N keys. Lane i < queries sees the first seen[i]
** of them; the others are no queries and see none. The matrices are N x 16. */
typedef struct block {
  int row, queries, keys;
  real seen[SL_QUERIES];
  int most[SL_QUERIES / SL_LANES]; /* keys that a lane of this vector sees */
  real *scores, *weights, *dscores, *dweights;
} block;

enum {
  WIDE = (int)SL_QUERIES > (int)SL_LANES ? 2 : 1
};                           /* vectors of a strip */
enum { KEYS_AT_ONCE = 128 }; /* with their values, in the first cache */

static int least (int a, int b) {
  return a < b ? a : b;
}

static void place (const sl_head *h, int row, block *b) {
  const sl_attention_plan *p = h->p;
  const int causal = h->attr->visibility.causal, left = h->n - row;
  const int first = causal ? row + 1 + h->attr->prefix : h->keys;
  b->row = row;
  b->queries = left > 0 ? least (left, SL_QUERIES) : 0;
  for (int i = 0; i < SL_QUERIES; i++)
    b->seen[i] = (real)(i < b->queries ? first + (causal ? i : 0) : 0);
  for (int l = 0; l < SL_QUERIES; l += SL_LANES) {
    const int last = least (l + SL_LANES, b->queries) - 1;
    b->most[l / SL_LANES] = last < l ? 0 : (int)b->seen[last];
  }
  b->keys = b->queries ? (int)b->seen[b->queries - 1] : 0;
  b->dscores = sl_scratch (h, p->dscores);
  b->dweights = sl_scratch (h, p->dweights);
  if (p->recompute) {
    b->scores = sl_scratch (h, p->scores);
    b->weights = sl_scratch (h, p->weights);
  } else {
    b->scores = sl_saved (h) + (size_t)row * (size_t)p->keys;
    b->weights = b->scores + p->saved_scores;
  }
}

/* out (width x 16) = scale times the transpose of the queries' rows of m; 0 in
** lanes that are no queries. */
static __attribute__ ((noinline)) void
transpose (const block *b, int width, double scale, sl_grid m, real *out) {
  const real *x = m.x + b->row * m.row;
  if (scale == 1)
    sl_pack (SL_QUERIES, b->queries, width, 1, x, m.row, m.col, out);
  else
    sl_pack (SL_QUERIES, b->queries, width, (real)scale, x, m.row, m.col, out);
}

/* out (n x 16) = a (n x width) b (width x 16) */
static __attribute__ ((noinline)) void
times_queries (int n, int width, sl_grid a, const real *b, real *out) {
  for (int l = 0; l < SL_QUERIES; l += WIDE * SL_LANES)
    sl_strip (0, WIDE, n, width, a.x, a.row, a.col, b + l, SL_QUERIES, 0,
              out + l, SL_QUERIES);
}

/* c (m x n) = or += a (m x k) b (k x n), where a is a part of a block, or of
** its transpose. */
SL_INLINE void product (const sl_head *h, ptrdiff_t m, ptrdiff_t n, ptrdiff_t k,
                        const real *a, ptrdiff_t a_row, ptrdiff_t a_col,
                        sl_grid b, int add, real *c, ptrdiff_t c_row) {
  ptrdiff_t j = 0;
  if (b.col != 1 || n % SL_LANES != 0) {
    SL (sl_gemm)
    (m, n, k, 1, a, a_row, a_col, b.x, b.row, b.col, (real)add, c, c_row,
     sl_scratch (h, h->p->product));
    return;
  }
  for (; j + 2 * SL_LANES <= n; j += 2 * SL_LANES)
    sl_strip (0, 2, m, k, a, a_row, a_col, b.x + j, b.row, add, c + j, c_row);
  if (j < n)
    sl_strip (0, 1, m, k, a, a_row, a_col, b.x + j, b.row, add, c + j, c_row);
}

/* to (queries x n) = or += a^T b, for k keys */
static __attribute__ ((noinline)) void
to_queries (const sl_head *h, ptrdiff_t queries, ptrdiff_t n, ptrdiff_t k,
            const real *a, sl_grid b, int add, real *c, ptrdiff_t c_row) {
  product (h, queries, n, k, a, 1, SL_QUERIES, b, add, c, c_row);
}

/* to (keys x n) += a b, for k queries */
static __attribute__ ((noinline)) void
to_keys (const sl_head *h, ptrdiff_t keys, ptrdiff_t n, ptrdiff_t k,
         const real *a, sl_grid b, real *c, ptrdiff_t c_row) {
  product (h, keys, n, k, a, SL_QUERIES, 1, b, 1, c, c_row);
}

/* 1 if the lanes of every vector are finite: 0 x is 0 then, else NaN. */
static int are_finite (sl_lanes x) {
  const sl_mask bad = (sl_mask)(0 * x != 0);
  int found = 0;
  for (int i = 0; i < SL_LANES; i++) found |= bad[i] != 0;
  return !found;
}

/* The sum of 0 x over n numbers: 0 if they are finite, else NaN. */
static real nothing (ptrdiff_t n, const real *x) {
  real sum = 0;
  for (ptrdiff_t i = 0; i < n; i++) sum += 0 * x[i];
  return sum;
}

/* Put 'value' where a lane does not see the key. Lanes see ever more keys, but
** for those that are no queries. */
static void mask (const block *b, real value, real *x) {
  const sl_lanes v = sl_every (value);
  for (int l = 0; l < SL_QUERIES; l += SL_LANES) {
    const sl_lanes seen = sl_load (b->seen + l);
    const int most = b->most[l / SL_LANES];
    int j = l + SL_LANES <= b->queries ? (int)b->seen[l] : 0;
    sl_lanes key = sl_every ((real)j);
    real *at = x + sl_at (j, l);
    for (; j < most; j++, at += SL_QUERIES, key += (real)1)
      sl_store (at, sl_select ((sl_mask)(seen > key), sl_load (at), v));
    for (; j < b->keys; j++, at += SL_QUERIES) sl_store (at, v);
  }
}

/* scores -= slope |i - j|, but for the prefix */
static void tilt (const sl_head *h, const block *b) {
  const int prefix = h->attr->prefix;
  for (int j = prefix; j < b->keys; j++)
    for (int i = 0; i < SL_QUERIES; i++) {
      const int away = b->row + i - (j - prefix);
      b->scores[sl_at (j, i)] -= h->slope * (real)(away < 0 ? -away : away);
    }
}

static void tell (sl_head *h, const block *b) {
  h->call.pos = b->row + h->attr->prefix;
  h->call.first = 0;
  h->call.seen = b->seen;
}

/* S^T = scale K Q^T - slope |i - j|, and W = plugin (S). */
static void weigh (sl_head *h, const block *b) {
  real *q = sl_scratch (h, h->p->kt);
  transpose (b, h->p->d, h->attr->scale, h->q, q);
  times_queries (b->keys, h->p->d, h->k, q, b->scores);
  if (h->slope != 0) tilt (h, b);
  mask (b, -SL_MAX_REAL, b->scores);
  tell (h, b);
  h->block->forward (&h->call, b->keys, b->scores, b->weights);
  mask (b, 0, b->weights);
}

/* Weights and scores of the block as rows, for the observer. */
static void observe (const sl_head *h, const block *b, int rows) {
  const ptrdiff_t keys = h->p->keys;
  real *scores = b->dscores, *weights = b->dweights; /* not in use: forward */
  int lo[SL_QUERIES] = { 0 }, hi[SL_QUERIES];
  memset (weights, 0, (size_t)(SL_QUERIES * keys) * sizeof *weights);
  for (int i = 0; i < SL_QUERIES; i++) hi[i] = (int)b->seen[i];
  for (int from = 0; from < b->keys; from += SL_QUERIES) {
    const int to = least (from + SL_QUERIES, b->keys); /* a cache line */
    for (int i = 0; i < b->queries; i++)
      for (int j = from; j < to; j++) {
        scores[i * keys + j] = b->scores[sl_at (j, i)];
        weights[i * keys + j] = b->weights[sl_at (j, i)];
      }
  }
  SL (sl_observe) (h, b->row, rows, weights, scores, lo, hi);
}

/* O = W V */
static void forward_block (sl_head *h, int row) {
  const sl_attention_plan *p = h->p;
  const int rows = least (p->t - row, SL_QUERIES);
  real *out = h->out + row * h->out_row;
  block b;
  place (h, row, &b);
  if (b.queries > 0) {
    weigh (h, &b);
    for (int j = 0; j < b.keys; j += KEYS_AT_ONCE) {
      const int n = least (b.keys - j, KEYS_AT_ONCE);
      to_queries (h, b.queries, p->dv, n, b.weights + sl_at (j, 0),
                  sl_from (h->v, j), j > 0, out, h->out_row);
    }
    /* the first query has met every value, with weight 0 or not */
    if (b.seen[0] < (real)b.keys && nothing (p->dv, out) != 0)
      for (int i = 0; i < b.queries; i++)
        to_queries (h, 1, p->dv, (int)b.seen[i], b.weights + i, h->v, 0,
                    out + i * h->out_row, h->out_row);
  }
  for (int i = b.queries; i < rows; i++)
    memset (out + i * h->out_row, 0, (size_t)p->dv * sizeof *out);
  if (h->run->observer) observe (h, &b, rows);
}

/* dQ += dS K; dK += dS^T Q; dV += W^T dO, for n keys from key j on */
static void spread (const sl_head *h, const block *b, int j, int n) {
  const sl_attention_plan *p = h->p;
  const sl_grid q = sl_from (h->q, b->row), dout = sl_from (h->dout, b->row);
  const real *ds = b->dscores + sl_at (j, 0), *w = b->weights + sl_at (j, 0);
  if (h->dq.x)
    to_queries (h, b->queries, p->d, n, ds, sl_from (h->k, j), 1,
                h->dq.x + b->row * h->dq.row, h->dq.row);
  if (h->dk.x)
    to_keys (h, n, p->d, b->queries, ds, q, h->dk.x + j * h->dk.row, h->dk.row);
  if (h->dv.x)
    to_keys (h, n, p->dv, b->queries, w, dout, h->dv.x + j * h->dv.row,
             h->dv.row);
}

/* The same, each query and each key by itself. */
static void spread_singly (const sl_head *h, const block *b) {
  const sl_attention_plan *p = h->p;
  for (int i = 0; h->dq.x && i < b->queries; i++)
    to_queries (h, 1, p->d, (int)b->seen[i], b->dscores + i, h->k, 1,
                h->dq.x + (b->row + i) * h->dq.row, h->dq.row);
  for (int j = 0; j < b->keys; j++) {
    int i = 0; /* the first query that sees the key, as all after it do */
    while (b->seen[i] <= (real)j) i++;
    if (h->dk.x)
      to_keys (h, 1, p->d, b->queries - i, b->dscores + sl_at (j, i),
               sl_from (h->q, b->row + i), h->dk.x + j * h->dk.row, h->dk.row);
    if (h->dv.x)
      to_keys (h, 1, p->dv, b->queries - i, b->weights + sl_at (j, i),
               sl_from (h->dout, b->row + i), h->dv.x + j * h->dv.row,
               h->dv.row);
  }
}

/* 1 if no query, output gradient or partly seen key has a number that is not
** finite: it would be in all its scores. The first key is seen by all queries,
** and the last query sees all keys. */
static int all_finite (const block *b) {
  const int l = (b->queries - 1) / SL_LANES * SL_LANES; /* of the last query */
  sl_lanes sum = { 0 };
  for (int i = 0; i < SL_QUERIES; i += SL_LANES)
    sum += 0 * sl_load (b->scores + i) + 0 * sl_load (b->dweights + i);
  for (int j = (int)b->seen[0]; j < b->keys; j++)
    sum += 0 * sl_load (b->scores + sl_at (j, l));
  return are_finite (sum);
}

/* dW = dO V^T; dS = scale plugin' (dW) */
static void backward_block (sl_head *h, int row) {
  const sl_attention_plan *p = h->p;
  const real scale = (real)h->attr->scale;
  real *dout = sl_scratch (h, p->vt);
  int singly;
  block b;
  place (h, row, &b);
  if (p->recompute) weigh (h, &b);
  transpose (&b, p->dv, 1, h->dout, dout);
  times_queries (b.keys, p->dv, h->v, dout, b.dweights);
  singly = b.seen[0] < (real)b.keys && !all_finite (&b);
  mask (&b, 0, b.dweights);
  tell (h, &b);
  h->block->backward (&h->call, b.keys, b.scores, b.weights, b.dweights,
                      b.dscores, sl_scratch (h, p->dparam));
  mask (&b, 0, b.dscores);
  if (scale != 1)
    for (ptrdiff_t i = 0; i < sl_at (b.keys, 0); i++) b.dscores[i] *= scale;
  if (singly)
    spread_singly (h, &b);
  else
    for (int j = 0; j < b.keys; j += KEYS_AT_ONCE)
      spread (h, &b, j, least (b.keys - j, KEYS_AT_ONCE));
}

void SL (sl_lanes_forward) (sl_head *h) {
  for (int row = 0; row < h->p->t; row += SL_QUERIES) forward_block (h, row);
}

void SL (sl_lanes_backward) (sl_head *h) {
  for (int row = 0; row < h->n; row += SL_QUERIES) backward_block (h, row);
}
