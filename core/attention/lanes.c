/* lanes.c - the layout [key][query] of a block: 16 queries, a lane each.
**
** One vector holds a number of several queries, so a plugin needs no sums across
** a vector, and every product reads its one factor by broadcast: only queries and
** output gradients are transposed, once a block.
**
** Where a query does not see a key, the score is replaced by the lowest finite
** number before the plugin gets it, the weight and gradient by 0 after it. */
#include "attention/block.h"
#include <string.h>

#define OUT_OF_LINE static __attribute__ ((noinline))

/* out (width, 16) = scale times the transpose of x (16, width) with contiguous
** rows; width is a multiple of SL_SQUARE. */
SL_INLINE void transpose_queries (ptrdiff_t width, real scale, const real *x,
                                  ptrdiff_t row, real *out) {
  for (ptrdiff_t p = 0; p < width; p += SL_SQUARE)
    for (int l = 0; l < SL_QUERIES; l += SL_SQUARE)
      sl_transpose (x + l * row + p, row, scale, out + sl_at ((int)p, l),
                    SL_QUERIES);
}

/* out (width, 16) = scale times the transpose of the block's rows of m (T, width);
** 0 in lanes past the queries. */
OUT_OF_LINE void transpose (const sl_block *b, int width, double scale,
                            sl_grid m, real *out) {
  const real *x = m.x + b->row * m.row;
  if (m.col != 1 || width % SL_SQUARE != 0 || b->queries < SL_QUERIES)
    sl_pack (SL_QUERIES, b->queries, width, (real)scale, x, m.row, m.col, out);
  else if (scale == 1)
    transpose_queries (width, 1, x, m.row, out);
  else
    transpose_queries (width, (real)scale, x, m.row, out);
}

/* Rows j .. end - 1 of out (N, 16) = a (N, width) x (width, 16): the vectors in
** which a lane sees the key. */
OUT_OF_LINE void times_lanes (const sl_block *b, int j, int end, int width,
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

/* S (N, 16) = K (N, D) (scale Q)^T (D, 16) */
static void scores (sl_head *h, const sl_block *b, int j, int end) {
  const int d = h->p->call.d_head;
  if (j == 0) transpose (b, d, h->attr->scale, h->q, b->q);
  times_lanes (b, j, end, d, &h->k, b->q, b->scores);
}

/* forward: O = W V; dW (N, 16) = V (N, V) dO^T (V, 16) */
static void grad_weights (sl_head *h, const sl_block *b, int j, int end) {
  if (j == 0) transpose (b, h->p->d_value, 1, h->dout, b->dout);
  times_lanes (b, j, end, h->p->d_value, &h->v, b->dout, b->dweights);
}

/* x[j][l] = value where lane l does not see key j. Each query sees at least the
** keys of the one before it; lanes past the queries see none. */
SL_INLINE void mask (const sl_block *b, real value, real *x) {
  const sl_lanes v = sl_splat (value);
  for (int l = 0; l < SL_QUERIES; l += SL_LANES) {
    const int full = l + SL_LANES <= b->queries;
    const int most = sl_visible_to_lanes (b, l, SL_LANES);
    int j = full ? sl_visible_keys (b, l) : 0;
    real *at = x + sl_at (j, l);
    if (full && b->causal) { /* the key before j + i is the last of lane i */
      sl_lanes lane;
      SL_UNROLL for (int i = 0; i < SL_LANES; i++) lane[i] = (real)i;
      SL_UNROLL for (int i = 0; i < SL_LANES - 1; i++) {
        real *p = at + i * SL_QUERIES;
        sl_store (p, sl_select ((sl_mask)(lane > sl_splat ((real)i)),
                                sl_load (p), v));
      }
    } else if (!full) {
      const sl_lanes visible = sl_load (b->visible + l);
      sl_lanes key = sl_splat ((real)j);
      for (; j < most; j++, at += SL_QUERIES, key += (real)1)
        sl_store (at, sl_select ((sl_mask)(visible > key), sl_load (at), v));
    }
    for (j = most; j < b->hi; j++) sl_store (x + sl_at (j, l), v);
  }
}
/* S -= slope |i - j|, except for virtual keys */
static void add_alibi (const sl_head *h, const sl_block *b) {
  const int virtual_keys = h->attr->virtual_keys;
  for (int j = virtual_keys; j < b->hi; j++)
    for (int i = 0; i < SL_QUERIES; i++) {
      const int away = b->row + i - (j - virtual_keys);
      b->scores[sl_at (j, i)] -= h->slope * (real)(away < 0 ? -away : away);
    }
}

/* The block is the next of the plugin's calls. */
static void next_block (sl_head *h, const sl_block *b) {
  h->host.call.position = b->row + h->attr->virtual_keys;
  h->host.call.first_key = 0;
  h->host.call.visible_keys = b->visible;
}

static void weights (sl_head *h, const sl_block *b) {
  if (h->slope != 0) add_alibi (h, b);
  mask (b, -SL_MAX_REAL, b->scores);
  next_block (h, b);
  h->host.plugin->block->forward (&h->host.call, b->hi, b->scores, b->weights);
  mask (b, 0, b->weights);
}

/* 1 if the lanes of every vector are finite: 0 x is 0 then, else NaN. */
static int are_finite (sl_lanes x) {
  const sl_mask bad = (sl_mask)(0 * x != 0);
  uint64_t words[sizeof bad / sizeof (uint64_t)], found = 0;
  memcpy (words, &bad, sizeof bad);
  for (size_t i = 0; i < sizeof words / sizeof *words; i++) found |= words[i];
  return !found;
}

/* A query or output gradient that is not finite shows in its score or dW of the
** first key, which all queries see; a key that some do not see, in its score of
** the last query, which sees all keys. */
static int is_finite (const sl_block *b) {
  const int l = (b->queries - 1) / SL_LANES * SL_LANES; /* of the last query */
  sl_lanes sum[2] = { { 0 }, { 0 } }; /* two, for the latency of an addition */
  for (int i = 0; i < SL_QUERIES; i += SL_LANES) {
    sum[0] += 0 * sl_load (b->scores + i);
    sum[1] += 0 * sl_load (b->dweights + i);
  }
  for (int j = b->first; j < b->hi; j += 2) {
    const int next = j + 1 < b->hi ? j + 1 : j;
    sum[0] += 0 * sl_load (b->scores + sl_at (j, l));
    sum[1] += 0 * sl_load (b->scores + sl_at (next, l));
  }
  return are_finite (sum[0] + sum[1]);
}

static int weights_backward (sl_head *h, const sl_block *b) {
  int finite;
  mask (b, 0, b->dweights);
  finite = !b->partial || is_finite (b);
  next_block (h, b);
  h->host.plugin->block->backward (&h->host.call, b->hi, b->scores, b->weights,
                                   b->dweights, b->dscores,
                                   sl_host_dparam (&h->host));
  mask (b, 0, b->dscores);
  return finite;
}

/* Weights and scores are transposed into dscores and dweights, which forward does
** not use, a cache line of keys at a time. */
static void observe (const sl_head *h, const sl_block *b, int rows) {
  const ptrdiff_t keys = h->p->keys;
  real *s = b->dscores, *w = b->dweights;
  memset (w, 0, (size_t)(SL_QUERIES * keys) * sizeof *w);
  for (int from = 0; from < b->hi; from += SL_QUERIES) {
    const int to = sl_min_int (from + SL_QUERIES, b->hi);
    for (int i = 0; i < b->queries; i++)
      for (int j = from; j < to; j++) {
        s[i * keys + j] = b->scores[sl_at (j, i)];
        w[i * keys + j] = b->weights[sl_at (j, i)];
      }
  }
  SL (sl_observe_block) (h, b, rows, w, s);
}

const sl_layout SL (sl_layout_lanes) = { scores, grad_weights, weights,
                                         weights_backward, observe };
