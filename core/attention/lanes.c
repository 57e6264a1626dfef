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
** itself: the same sums in the same order, without what is not seen.
**
** Many keys and values, and their gradients, would come from far away for every
** 16 queries: there several blocks are a team, which takes each tile of keys
** together. Every sum keeps its order, so the team shows in no bit. */
#include "attention/attention_internal.h"
#include "attention/block.h"
#include <string.h>

/* Neighbours, each with a query or more; the last sees most keys. */
typedef struct sl_team {
  int n;
  sl_lane_block block[SL_BLOCKS_PER_GROUP];
} sl_team;

/* What the lanes of the block see, which is number 'i' of its team. */
static const real *see (sl_head *h, int i, const sl_lane_block *b) {
  sl_lanes_seen *s = &h->seen[i];
  if (s->row != b->row || s->n != h->n)
    for (int l = 0; l < SL_QUERIES; l++)
      s->keys[l] = (real)(l < b->queries ? sl_visible_keys (b, l) : 0);
  s->row = b->row;
  s->n = h->n;
  return s->keys;
}

/* The part of block 'i' of a buffer of 'rows' x 16 for each of a team. */
static real *part (const sl_head *h, size_t buffer, int rows, int i) {
  return sl_scratch (h, buffer) + (ptrdiff_t)i * rows * SL_QUERIES;
}

/* b = the queries from 'row' on, number 'i' of their team. */
static void place (sl_head *h, int row, int i, sl_lane_block *b) {
  const sl_attention_plan *p = h->p;
  const int left = h->n - row;
  b->row = row;
  b->queries = left > 0 ? sl_min_int (left, SL_QUERIES) : 0;
  b->causal = h->attr->visibility.causal != 0;
  b->first = b->causal ? row + 1 + h->attr->virtual_keys : h->keys;
  b->seen = see (h, i, b);
  b->keys = b->queries ? sl_visible_keys (b, b->queries - 1) : 0;
  b->q = part (h, p->kt, p->d, i);
  b->dout = part (h, p->vt, p->dv, i);
  /* the dweights of the block before have been read by then */
  b->dscores = part (h, p->dscores, p->keys, i);
  b->dweights = part (h, p->dscores, p->keys, i + 1);
  if (p->recompute) {
    b->scores = part (h, p->scores, p->keys, i);
    b->weights = part (h, p->weights, p->keys, i);
  } else {
    b->scores = sl_saved (h) + (size_t)row * (size_t)p->keys;
    b->weights = b->scores + p->saved_scores;
  }
}

static void place_team (sl_head *h, int row, sl_team *g) {
  g->n = 0;
  for (; g->n < h->p->together && row < h->n; row += SL_QUERIES, g->n++)
    place (h, row, g->n, &g->block[g->n]);
}

/* Work on the keys j .. end - 1 of a block. */
typedef void (*sl_work) (sl_head *h, const sl_lane_block *b, int j, int end);

/* Every tile of keys while it is near: all n neighbours, in their order. */
SL_INLINE void each_tile (sl_head *h, const sl_lane_block *b, int n,
                          sl_work work) {
  for (int j = 0; j < b[n - 1].keys; j += SL_KEY_TILE)
    for (int i = 0; i < n; i++) {
      const int end = sl_min_int (b[i].keys, j + SL_KEY_TILE);
      if (j < end) work (h, &b[i], j, end);
    }
}

#define OUT_OF_LINE static __attribute__ ((noinline))
/* out (width x 16) = scale times the transpose of the queries' rows of m; 0 in
** lanes that are no queries. */
OUT_OF_LINE void transpose (const sl_lane_block *b, int width, double scale,
                            sl_grid m, real *out) {
  const real *x = m.x + b->row * m.row;
  if (m.col != 1 || width % SL_SQUARE != 0 || b->queries < SL_QUERIES)
    sl_pack (SL_QUERIES, b->queries, width, (real)scale, x, m.row, m.col, out);
  else if (scale == 1)
    sl_transpose_queries (width, 1, x, m.row, out);
  else
    sl_transpose_queries (width, (real)scale, x, m.row, out);
}

/* The products of block.h, each out of line: their registers are their own. */

/* Rows j .. end - 1 of out (keys x 16) = a (keys x width) x (width x 16): the
** vectors of which a lane sees the key */
OUT_OF_LINE void times_lanes (const sl_lane_block *b, int j, int end, int width,
                              const sl_grid *a, const real *x, real *out) {
  for (int l = 0; l < SL_QUERIES; l += SL_VECTORS_PER_STRIP * SL_LANES) {
    const int near =
        sl_clamp_int (j, sl_visible_to_lanes (b, l, SL_LANES), end);
    const int far =
        SL_VECTORS_PER_STRIP == 1
            ? j
            : sl_clamp_int (j, sl_visible_to_lanes (b, l + SL_LANES, SL_LANES),
                            end);
    const int both = SL_VECTORS_PER_STRIP == 1 ? j : sl_min_int (near, far);
    const int more = near > both ? l : l + SL_LANES;
    if (a->col != 1) {
      for (int v = l; v < l + SL_VECTORS_PER_STRIP * SL_LANES; v += SL_LANES)
        sl_rest_1 (sl_clamp_int (j, sl_visible_to_lanes (b, v, SL_LANES), end) -
                       j,
                   width, a->x + j * a->row, a->row, a->col, x + v, SL_QUERIES,
                   0, out + sl_at (j, v), SL_QUERIES);
      continue;
    }
    if (SL_VECTORS_PER_STRIP == 2)
      sl_times_lanes (2, l, j, both, width, a->x, a->row, x, out);
    sl_times_lanes (1, more, both, near > far ? near : far, width, a->x, a->row,
                    x, out);
  }
}

/* c (m x n) = or += a (m x k) b (k x n): what the products of a block cannot do,
** or may not. */
OUT_OF_LINE void product (const sl_head *h, ptrdiff_t m, ptrdiff_t n,
                          ptrdiff_t k, const real *a, ptrdiff_t a_row,
                          ptrdiff_t a_col, sl_grid b, int add, real *c,
                          ptrdiff_t c_row) {
  SL (sl_gemm)
  (m, n, k, 1, a, a_row, a_col, b.x, b.row, b.col, (real)add, c, c_row,
   sl_scratch (h, h->p->product));
}

/* c (queries x n) = or += a^T x, for 'keys' keys from key 'from' on, which is row
** 0 of a */
OUT_OF_LINE void to_queries (const sl_head *h, const sl_lane_block *b, int from,
                             int keys, ptrdiff_t n, const real *a,
                             const sl_grid *x, int add, real *c,
                             ptrdiff_t c_row) {
  const real *rows = x->x + from * x->row;
  ptrdiff_t j = 0;
  if (!sl_is_whole (x, n)) {
    product (h, b->queries, n, keys, a, 1, SL_QUERIES, sl_from (*x, from), add,
             c, c_row);
    return;
  }
  for (; j + 2 * SL_LANES <= n; j += 2 * SL_LANES)
    sl_to_queries (2, b, from, keys, a, 1, SL_QUERIES, rows + j, x->row, add,
                   c + j, c_row);
  if (j < n)
    sl_to_queries (1, b, from, keys, a, 1, SL_QUERIES, rows + j, x->row, add,
                   c + j, c_row);
}

/* c (keys x n) = or += a x, for 'keys' keys from key 'from' on, which is row 0 of
** a and c */
OUT_OF_LINE void to_keys (const sl_head *h, const sl_lane_block *b, int from,
                          int keys, ptrdiff_t n, const real *a,
                          const sl_grid *x, int add, real *c, ptrdiff_t c_row) {
  const real *rows = x->x + b->row * x->row;
  ptrdiff_t j = 0;
  if (!sl_is_whole (x, n)) {
    product (h, keys, n, b->queries, a, SL_QUERIES, 1, sl_from (*x, b->row),
             add, c, c_row);
    return;
  }
  for (; j + 2 * SL_LANES <= n; j += 2 * SL_LANES)
    sl_to_keys (2, b, from, keys, a, SL_QUERIES, 1, rows + j, x->row, add,
                c + j, c_row);
  if (j < n)
    sl_to_keys (1, b, from, keys, a, SL_QUERIES, 1, rows + j, x->row, add,
                c + j, c_row);
}

/* 1 if the lanes of every vector are finite: 0 x is 0 then, else NaN. */
static int are_finite (sl_lanes x) {
  const sl_mask bad = (sl_mask)(0 * x != 0);
  uint64_t words[sizeof bad / sizeof (uint64_t)], found = 0;
  memcpy (words, &bad, sizeof bad);
  for (size_t i = 0; i < sizeof words / sizeof *words; i++) found |= words[i];
  return !found;
}

/* 1 if n numbers are finite. */
static int all_finite (ptrdiff_t n, const real *x) {
  sl_lanes sum = { 0 };
  real rest = 0;
  ptrdiff_t i = 0;
  for (; i + SL_LANES <= n; i += SL_LANES) sum += 0 * sl_load (x + i);
  for (; i < n; i++) rest += 0 * x[i];
  return rest == 0 && are_finite (sum);
}

/* scores -= slope |i - j|, except for virtual keys */
static void tilt (const sl_head *h, const sl_lane_block *b) {
  const int virtual_keys = h->attr->virtual_keys;
  for (int j = virtual_keys; j < b->keys; j++)
    for (int i = 0; i < SL_QUERIES; i++) {
      const int away = b->row + i - (j - virtual_keys);
      b->scores[sl_at (j, i)] -= h->slope * (real)(away < 0 ? -away : away);
    }
}

static void tell (sl_head *h, const sl_lane_block *b) {
  h->call.pos = b->row + h->attr->virtual_keys;
  h->call.first = 0;
  h->call.seen = b->seen;
}

/* S^T = scale K Q^T */
static void score (sl_head *h, const sl_lane_block *b, int j, int end) {
  times_lanes (b, j, end, h->p->d, &h->k, b->q, b->scores);
}

/* S -= slope |i - j|, and W = plugin (S). */
static void weigh (sl_head *h, const sl_team *g) {
  for (int i = 0; i < g->n; i++)
    transpose (&g->block[i], h->p->d, h->attr->scale, h->q, g->block[i].q);
  each_tile (h, g->block, g->n, score);
  for (int i = 0; i < g->n; i++) {
    const sl_lane_block *b = &g->block[i];
    if (h->slope != 0) tilt (h, b);
    sl_hide (b, -SL_MAX_REAL, b->scores);
    tell (h, b);
    h->block->forward (&h->call, b->keys, b->scores, b->weights);
    sl_hide (b, 0, b->weights);
  }
}

/* Weights and scores of the block as rows, for the observer. */
static void observe (const sl_head *h, const sl_lane_block *b, int rows) {
  const ptrdiff_t keys = h->p->keys;
  real *scores = b->dscores, *weights = b->dweights; /* not in use: forward */
  int lo[SL_QUERIES] = { 0 }, hi[SL_QUERIES];
  memset (weights, 0, (size_t)(SL_QUERIES * keys) * sizeof *weights);
  for (int i = 0; i < SL_QUERIES; i++) hi[i] = (int)b->seen[i];
  for (int from = 0; from < b->keys; from += SL_QUERIES) {
    const int to = sl_min_int (from + SL_QUERIES, b->keys); /* a cache line */
    for (int i = 0; i < b->queries; i++)
      for (int j = from; j < to; j++) {
        scores[i * keys + j] = b->scores[sl_at (j, i)];
        weights[i * keys + j] = b->weights[sl_at (j, i)];
      }
  }
  SL (sl_observe) (h, b->row, rows, weights, scores, lo, hi);
}

/* O = W V */
static void answer (sl_head *h, const sl_lane_block *b, int j, int end) {
  to_queries (h, b, j, end - j, h->p->dv, b->weights + sl_at (j, 0), &h->v,
              j > 0, h->out + b->row * h->out_row, h->out_row);
}

/* The rows of a block are done but for those of no query. */
static void finish (sl_head *h, const sl_lane_block *b) {
  const sl_attention_plan *p = h->p;
  const int rows = sl_min_int (p->t - b->row, SL_QUERIES);
  real *out = h->out + b->row * h->out_row;
  /* the last query has met every value, with weight 0 or not */
  if (b->first < b->keys &&
      !all_finite (p->dv, out + (b->queries - 1) * h->out_row))
    for (int i = 0; i < b->queries; i++)
      product (h, 1, p->dv, sl_visible_keys (b, i), b->weights + i, 1,
               SL_QUERIES, h->v, 0, out + i * h->out_row, h->out_row);
  for (int i = b->queries; i < rows; i++)
    memset (out + i * h->out_row, 0, (size_t)p->dv * sizeof *out);
  if (h->run->observer) observe (h, b, rows);
}

/* to (keys x n) = or += a x, for the keys j .. end - 1 */
static void add_keys (const sl_head *h, const sl_lane_block *b,
                      const sl_sum *to, int j, int end, ptrdiff_t n,
                      const real *a, const sl_grid *x) {
  const int old = sl_min_int (to->written, end);
  if (j < old)
    to_keys (h, b, j, old - j, n, a + sl_at (j, 0), x, 1, to->x + j * to->row,
             to->row);
  if (old > j) j = old;
  if (j < end)
    to_keys (h, b, j, end - j, n, a + sl_at (j, 0), x, 0, to->x + j * to->row,
             to->row);
}

/* The rows of dq, dk and dv before these have been written. */
static void note (sl_head *h, int queries, int keys) {
  h->dq.written = sl_max_int (h->dq.written, queries);
  h->dk.written = sl_max_int (h->dk.written, keys);
  h->dv.written = sl_max_int (h->dv.written, keys);
}

/* The plugin's gradient is that of scale q.k. */
static void rescale (const sl_head *h, const sl_lane_block *b, int j, int end) {
  const real scale = (real)h->attr->scale;
  if (scale != 1)
    for (ptrdiff_t i = sl_at (j, 0); i < sl_at (end, 0); i++)
      b->dscores[i] *= scale;
}

/* dQ += dS K; dK += dS^T Q; dV += W^T dO */
static void spread (sl_head *h, const sl_lane_block *b, int j, int end) {
  const sl_attention_plan *p = h->p;
  rescale (h, b, j, end);
  if (h->dq.x)
    to_queries (h, b, j, end - j, p->d, b->dscores + sl_at (j, 0), &h->k,
                j > 0 || b->row < h->dq.written, h->dq.x + b->row * h->dq.row,
                h->dq.row);
  if (h->dk.x) add_keys (h, b, &h->dk, j, end, p->d, b->dscores, &h->q);
  if (h->dv.x) add_keys (h, b, &h->dv, j, end, p->dv, b->weights, &h->dout);
  note (h, b->row + b->queries, end);
}

/* The same, each query and each key by itself. */
static void spread_singly (sl_head *h, const sl_lane_block *b) {
  const sl_attention_plan *p = h->p;
  rescale (h, b, 0, b->keys);
  for (int i = 0; h->dq.x && i < b->queries; i++)
    product (h, 1, p->d, sl_visible_keys (b, i), b->dscores + i, 1, SL_QUERIES,
             h->k, b->row < h->dq.written, h->dq.x + (b->row + i) * h->dq.row,
             h->dq.row);
  for (int j = 0; j < b->keys; j++) {
    const int i = sl_from_query (b, j), n = b->queries - i;
    if (h->dk.x)
      product (h, 1, p->d, n, b->dscores + sl_at (j, i), SL_QUERIES, 1,
               sl_from (h->q, b->row + i), j < h->dk.written,
               h->dk.x + j * h->dk.row, h->dk.row);
    if (h->dv.x)
      product (h, 1, p->dv, n, b->weights + sl_at (j, i), SL_QUERIES, 1,
               sl_from (h->dout, b->row + i), j < h->dv.written,
               h->dv.x + j * h->dv.row, h->dv.row);
  }
  note (h, b->row + b->queries, b->keys);
}

/* 1 if no query, output gradient or partly seen key has a number that is not
** finite: it would be in all its scores. The first key is seen by all queries,
** and the last query sees all keys. */
static int is_clean (const sl_lane_block *b) {
  const int l = (b->queries - 1) / SL_LANES * SL_LANES; /* of the last query */
  sl_lanes sum[2] = { { 0 }, { 0 } }; /* two, for the latency of an addition */
  for (int i = 0; i < SL_QUERIES; i += SL_LANES) {
    sum[0] += 0 * sl_load (b->scores + i);
    sum[1] += 0 * sl_load (b->dweights + i);
  }
  for (int j = b->first; j < b->keys; j += 2) {
    const int next = j + 1 < b->keys ? j + 1 : j;
    sum[0] += 0 * sl_load (b->scores + sl_at (j, l));
    sum[1] += 0 * sl_load (b->scores + sl_at (next, l));
  }
  return are_finite (sum[0] + sum[1]);
}

/* dW = dO V^T */
static void grade (sl_head *h, const sl_lane_block *b, int j, int end) {
  times_lanes (b, j, end, h->p->dv, &h->v, b->dout, b->dweights);
}

/* dS = plugin' (dW); 1 if what the block adds must be added singly. */
static int unweigh (sl_head *h, const sl_lane_block *b) {
  int singly;
  sl_hide (b, 0, b->dweights);
  singly = b->first < b->keys && !is_clean (b);
  tell (h, b);
  h->block->backward (&h->call, b->keys, b->scores, b->weights, b->dweights,
                      b->dscores, sl_scratch (h, h->p->dparam));
  sl_hide (b, 0, b->dscores);
  return singly;
}

static void backward_team (sl_head *h, const sl_team *g) {
  int singly[SL_BLOCKS_PER_GROUP], any = 0;
  if (h->p->recompute) weigh (h, g);
  for (int i = 0; i < g->n; i++)
    transpose (&g->block[i], h->p->dv, 1, h->dout, g->block[i].dout);
  each_tile (h, g->block, g->n, grade);
  for (int i = 0; i < g->n; i++) any |= singly[i] = unweigh (h, &g->block[i]);
  if (!any) each_tile (h, g->block, g->n, spread);
  for (int i = 0; any && i < g->n; i++) /* the sums of a key keep their order */
    if (singly[i])
      spread_singly (h, &g->block[i]);
    else
      each_tile (h, &g->block[i], 1, spread);
}

void SL (sl_lanes_forward) (sl_head *h) {
  int row = 0;
  while (row < h->n) {
    sl_team g;
    place_team (h, row, &g);
    weigh (h, &g);
    each_tile (h, g.block, g.n, answer);
    for (int i = 0; i < g.n; i++) finish (h, &g.block[i]);
    row += g.n * SL_QUERIES;
  }
  for (; row < h->p->t; row += SL_QUERIES) { /* padding */
    sl_lane_block b;
    place (h, row, 0, &b);
    finish (h, &b);
  }
}

void SL (sl_lanes_backward) (sl_head *h) {
  for (int row = 0; row < h->n;) {
    sl_team g;
    place_team (h, row, &g);
    backward_team (h, &g);
    row += g.n * SL_QUERIES;
  }
}
