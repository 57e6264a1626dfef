/* attention_blocks.c - attention of one head, a group of blocks at a time, in
** either layout.
**
** Letters as in block.h: R queries and N keys of a block, D and V widths.
**
** Zero times infinity is not zero: where a number is not finite and some queries
** do not see its key, the products take each query by itself, over the keys that
** it sees: the same sums in the same order.
**
** Many keys and values, and their gradients, would be read from memory for every
** 16 queries: there several blocks form a group, which takes each tile of keys
** together. Sums keep their order, so results are bit-identical to one block at a
** time, whatever its size. */
#include "attention/block.h"
#include <string.h>

/* Neighbouring blocks with a query or more; the last one sees most keys. */
typedef struct group {
  int n;
  sl_block block[SL_BLOCKS_PER_GROUP];
} group;

/* The keys that the queries of the block see. */
static void init_visible (const sl_head *h, sl_block *b) {
  const sl_visibility *v = &h->attr->visibility;
  int partial = 0;
  b->contiguous = v->window == 0 && !h->attr->has_first_key;
  b->causal = v->causal != 0;
  b->first = b->causal ? b->row + 1 + h->attr->virtual_keys : h->keys;
  if (b->contiguous) {
    b->lo = 0;
    b->hi = b->queries ? sl_visible_keys (b, b->queries - 1) : 0;
    for (int i = 0; i < h->p->block; i++) {
      b->key_lo[i] = 0;
      b->key_hi[i] = i < b->queries ? sl_visible_keys (b, i) : 0;
    }
    b->partial = b->first < b->hi;
    return;
  }
  b->lo = h->keys;
  b->hi = 0;
  memset (b->key_lo, 0, sizeof b->key_lo);
  memset (b->key_hi, 0, sizeof b->key_hi);
  for (int i = 0; i < b->queries; i++) {
    int *lo = &b->key_lo[i], *hi = &b->key_hi[i];
    SL (sl_host_visible) (&h->host, v, b->row + i, lo, hi);
    partial |= *lo != b->key_lo[0] || *hi != b->key_hi[0];
    if (*lo < *hi && *lo < b->lo) b->lo = *lo;
    if (*hi > b->hi) b->hi = *hi;
  }
  if (b->lo > b->hi) b->lo = b->hi; /* no query sees a key */
  b->partial = partial;
}

/* lanes: key_hi as reals, of block i of a group. */
static const real *lane_keys (sl_head *h, int i, const sl_block *b) {
  sl_lane_keys *s = &h->lane_keys[i];
  if (s->row != b->row || s->n != h->host.tokens)
    for (int l = 0; l < SL_QUERIES; l++) s->keys[l] = (real)b->key_hi[l];
  s->row = b->row;
  s->n = h->host.tokens;
  return s->keys;
}

/* The saved scores of this head; its weights lie behind them. */
static real *saved (const sl_head *h) {
  const size_t index = (size_t)h->host.sequence * (size_t)h->p->call.heads +
                       (size_t)h->host.call.head;
  return (real *)h->run->saved + 2 * index * h->p->saved_scores;
}

/* b = the queries from 'row' on, block i of its group. */
static void init_block (sl_head *h, int row, int i, sl_block *b) {
  const sl_attention_plan *p = h->p;
  const size_t keys = (size_t)p->keys, size = (size_t)p->block * keys;
  const size_t before = (size_t)i * size;
  b->row = row;
  b->queries = sl_clamp_int (0, h->host.tokens - row, p->block);
  init_visible (h, b);
  b->query_step = p->lanes ? 1 : p->keys;
  b->key_step = p->lanes ? SL_QUERIES : 1;
  if (p->lanes) {
    b->visible = lane_keys (h, i, b);
    b->q = sl_scratch (h, p->kt) + i * p->call.d_head * SL_QUERIES;
    b->dout = sl_scratch (h, p->vt) + i * p->d_value * SL_QUERIES;
  }
  if (p->recompute) {
    b->scores = sl_scratch (h, p->scores) + before;
    b->weights = sl_scratch (h, p->weights) + before;
  } else {
    b->scores = saved (h) + (size_t)row * keys;
    b->weights = b->scores + p->saved_scores;
  }
  b->dscores = sl_scratch (h, p->dscores) + before;
  /* where the dscores of the next block will be written */
  b->dweights =
      i + 1 < p->group ? b->dscores + size : sl_scratch (h, p->dweights);
}

static void init_group (sl_head *h, int row, group *g) {
  g->n = 0;
  for (; g->n < h->p->group && row < h->host.tokens; row += h->p->block, g->n++)
    init_block (h, row, g->n, &g->block[g->n]);
}

/* Call work for every tile of keys, and in it for all n blocks in order. */
static void each_tile (sl_head *h, const sl_block *b, int n,
                       void (*work) (sl_head *h, const sl_block *b, int j,
                                     int end)) {
  const int step = h->p->lanes ? SL_KEY_TILE : h->p->keys;
  for (int j = b->lo; j < b[n - 1].hi; j += step)
    for (int i = 0; i < n; i++) {
      const int end = sl_min_int (b[i].hi, j + step);
      if (j < end) work (h, &b[i], j, end);
    }
}

/* 1 if products with x (.., n) may use the tiles of block.h. */
static int is_tiled (const sl_head *h, const sl_block *b, const sl_grid *x,
                     ptrdiff_t n) {
  return sl_is_whole (x, n) &&
         (h->p->lanes ||
          (b->contiguous && b->hi <= SL_KEY_TILE && n % (2 * SL_LANES) == 0));
}

/* The columns of a product, two vectors at a time, with the strides of the layout
** as constants where they are. */
#define EACH_STRIP(product, ...)                         \
  do {                                                   \
    ptrdiff_t col = 0;                                   \
    for (; col + 2 * SL_LANES <= n; col += 2 * SL_LANES) \
      product (2, __VA_ARGS__);                          \
    if (col < n) product (1, __VA_ARGS__);               \
  } while (0)

/* c (R, n) = or += a (R, N) x (N, n), for the keys j .. end - 1 of the block's
** matrix a. */
static __attribute__ ((noinline)) void
to_queries (const sl_head *h, const sl_block *b, int j, int end, ptrdiff_t n,
            const real *a, const sl_grid *x, int add, real *c,
            ptrdiff_t c_row) {
  const real *rows = x->x + j * x->row;
  a += j * b->key_step;
  if (!is_tiled (h, b, x, n))
    sl_product (h, b->queries, n, end - j, 1,
                (sl_grid){ a, b->query_step, b->key_step }, sl_from (*x, j),
                add, c, c_row);
  else if (h->p->lanes)
    EACH_STRIP (sl_to_queries, b, j, end - j, a, 1, SL_QUERIES, rows + col,
                x->row, add, c + col, c_row);
  else
    EACH_STRIP (sl_to_queries, b, j, end - j, a, b->query_step, 1, rows + col,
                x->row, add, c + col, c_row);
}

/* Before something goes to rows lo .. hi - 1: returns 0 if they are to be
** assigned, else 1, and they hold something to add to. */
static int prepare_rows (sl_gradient *g, int lo, int hi, int width) {
  if (g->written == lo) {
    g->written = hi;
    return 0;
  }
  for (; g->written < hi; g->written++)
    memset (g->x + g->written * g->row, 0, (size_t)width * sizeof *g->x);
  return 1;
}

/* g (N, n) = or += a^T (N, R) x (R, n), for the keys j .. end - 1 of the block's
** matrix a. */
static __attribute__ ((noinline)) void
to_keys (const sl_head *h, const sl_block *b, int j, int end, int n,
         const real *a, const sl_grid *x, sl_gradient *g) {
  const real *rows = x->x + b->row * x->row;
  const int written = sl_min_int (g->written, end);
  real *c;
  int add;
  if (h->p->lanes && j < written && written < end) { /* no row is cleared */
    to_keys (h, b, j, written, n, a, x, g);
    j = written;
  }
  add = prepare_rows (g, j, end, n);
  c = g->x + j * g->row;
  a += j * b->key_step;
  if (!is_tiled (h, b, x, n))
    sl_product (h, end - j, n, b->queries, 1,
                (sl_grid){ a, b->key_step, b->query_step },
                sl_from (*x, b->row), add, c, g->row);
  else if (h->p->lanes)
    EACH_STRIP (sl_to_keys, b, j, end - j, a, SL_QUERIES, 1, rows + col, x->row,
                add, c + col, g->row);
  else
    EACH_STRIP (sl_to_keys, b, j, end - j, a, 1, b->query_step, rows + col,
                x->row, add, c + col, g->row);
}

int SL (sl_all_finite) (ptrdiff_t n, const real *x) {
  sl_lanes sum = { 0 };
  real rest = 0;
  ptrdiff_t i = 0;
  for (; i + SL_LANES <= n; i += SL_LANES) sum += 0 * sl_load (x + i);
  for (; i < n; i++) rest += 0 * x[i];
  return rest == 0 && sl_lanes_sum (sum) == 0;
}

/* S = scale Q K^T; W = plugin (S) */
static void weights (sl_head *h, const group *g) {
  each_tile (h, g->block, g->n, h->layout->scores);
  for (int i = 0; i < g->n; i++) h->layout->weights (h, &g->block[i]);
}

/* O (R, V) = W (R, N) V (N, V) */
static void output (sl_head *h, const sl_block *b, int j, int end) {
  to_queries (h, b, j, end, h->p->d_value, b->weights, &h->v, j > b->lo,
              h->out + b->row * h->out_row, h->out_row);
}

/* O = W V once more, each query over the keys that it sees. */
static void output_singly (sl_head *h, const sl_block *b, real *out) {
  for (int i = 0; i < b->queries; i++) {
    const int lo = b->key_lo[i];
    const real *w = b->weights + i * b->query_step + lo * b->key_step;
    sl_product (h, 1, h->p->d_value, b->key_hi[i] - lo, 1,
                (sl_grid){ w, b->query_step, b->key_step }, sl_from (h->v, lo),
                0, out + i * h->out_row, h->out_row);
  }
}

/* All that is left to do when O is computed: rows without a key or a query are
** 0, and the observer is shown the block. */
static void finish (sl_head *h, const sl_block *b) {
  const sl_attention_plan *p = h->p;
  const int rows = sl_min_int (p->call.t - b->row, p->block);
  real *out = h->out + b->row * h->out_row;
  /* the last query's sums hold every value of the block, with weight 0 or not */
  if (b->partial && b->lo < b->hi &&
      !SL (sl_all_finite) (p->d_value, out + (b->queries - 1) * h->out_row))
    output_singly (h, b, out);
  for (int i = b->lo < b->hi ? b->queries : 0; i < rows; i++)
    memset (out + i * h->out_row, 0, (size_t)p->d_value * sizeof *out);
  if (h->run->observer) h->layout->observe (h, b, rows);
}

void SL (sl_attention_forward) (sl_head *h) {
  int row = 0;
  while (row < h->host.tokens) {
    group g;
    init_group (h, row, &g);
    weights (h, &g);
    each_tile (h, g.block, g.n, output);
    for (int i = 0; i < g.n; i++) finish (h, &g.block[i]);
    row += g.n * h->p->block;
  }
  for (; row < h->p->call.t; row += h->p->block) { /* padding */
    sl_block b;
    init_block (h, row, 0, &b);
    finish (h, &b);
  }
}

/* The plugin's gradient is that of scale q.k; from here on dS is that of q.k. */
static void scale_dscores (const sl_head *h, const sl_block *b, int j,
                           int end) {
  const real scale = (real)h->attr->scale;
  const ptrdiff_t n = (end - j) * b->key_step;
  real *ds = b->dscores + j * b->key_step;
  if (scale == 1) return;
  for (int i = 0; i < (h->p->lanes ? 1 : b->queries); i++, ds += b->query_step)
    for (ptrdiff_t k = 0; k < n; k++) ds[k] *= scale;
}

/* forward: S = scale Q K^T; dQ += dS K, dK += dS^T Q
** forward: O = W V; dV += W^T dO */
static void add_gradients (sl_head *h, const sl_block *b, int j, int end) {
  const int d = h->p->call.d_head;
  sl_gradient *dq = &h->dq;
  scale_dscores (h, b, j, end);
  if (dq->x)
    to_queries (h, b, j, end, d, b->dscores, &h->k,
                j > b->lo || prepare_rows (dq, b->row, b->row + b->queries, d),
                dq->x + b->row * dq->row, dq->row);
  if (h->dk.x) to_keys (h, b, j, end, d, b->dscores, &h->q, &h->dk);
  if (h->dv.x)
    to_keys (h, b, j, end, h->p->d_value, b->weights, &h->dout, &h->dv);
}

/* The gradient of the keys lo .. lo + n - 1 += a (n, 1) x (1, width) */
static void to_keys_singly (const sl_head *h, const sl_block *b, int lo, int n,
                            int width, const real *a, sl_grid x,
                            sl_gradient *g) {
  if (!g->x) return;
  sl_product (h, n, width, 1, 1, (sl_grid){ a, b->key_step, 1 }, x,
              prepare_rows (g, lo, lo + n, width), g->x + lo * g->row, g->row);
}

/* The same, each query over the keys that it sees. */
static void add_gradients_singly (sl_head *h, const sl_block *b) {
  const int d = h->p->call.d_head;
  sl_gradient *dq = &h->dq;
  scale_dscores (h, b, b->lo, b->hi);
  for (int i = 0; i < b->queries; i++) {
    const int row = b->row + i, lo = b->key_lo[i], n = b->key_hi[i] - lo;
    const ptrdiff_t at = i * b->query_step + lo * b->key_step;
    if (n <= 0) continue;
    if (dq->x)
      sl_product (h, 1, d, n, 1,
                  (sl_grid){ b->dscores + at, b->query_step, b->key_step },
                  sl_from (h->k, lo), prepare_rows (dq, row, row + 1, d),
                  dq->x + row * dq->row, dq->row);
    to_keys_singly (h, b, lo, n, d, b->dscores + at, sl_from (h->q, row),
                    &h->dk);
    to_keys_singly (h, b, lo, n, h->p->d_value, b->weights + at,
                    sl_from (h->dout, row), &h->dv);
  }
}

static void backward_group (sl_head *h, const group *g) {
  int finite[SL_BLOCKS_PER_GROUP], all = 1;
  if (h->p->recompute) weights (h, g);
  each_tile (h, g->block, g->n, h->layout->grad_weights);
  for (int i = 0; i < g->n; i++)
    all &= finite[i] = h->layout->weights_backward (h, &g->block[i]);
  if (all) each_tile (h, g->block, g->n, add_gradients);
  for (int i = 0; !all && i < g->n;
       i++) /* the sums of a key keep their order */
    if (finite[i])
      each_tile (h, &g->block[i], 1, add_gradients);
    else
      add_gradients_singly (h, &g->block[i]);
}

void SL (sl_attention_backward) (sl_head *h) {
  for (int row = 0; row < h->host.tokens;) {
    group g;
    init_group (h, row, &g);
    backward_group (h, &g);
    row += g.n * h->p->block;
  }
}

void SL (sl_observe_block) (const sl_head *h, const sl_block *b, int rows,
                            const real *weights, const real *scores) {
  const sl_attention_plan *p = h->p;
  const sl_grid k = sl_from (h->k, h->attr->virtual_keys);
  const sl_grid v = sl_from (h->v, h->attr->virtual_keys);
  const sl_weight_rows seen = { .length = h->host.tokens,
                                .row = b->row,
                                .rows = rows,
                                .virtual_keys = h->attr->virtual_keys,
                                .stride = p->keys,
                                .weights = weights,
                                .scores = scores,
                                .lo = b->key_lo,
                                .hi = b->key_hi,
                                .value = v.x,
                                .value_stride = v.row,
                                .value_step = v.col,
                                .d_value = p->d_value,
                                .key = k.x,
                                .key_stride = k.row,
                                .key_step = k.col,
                                .d_key = p->call.d_head };
  SL (sl_host_observe)
  (&h->host, h->host.call.head / (p->call.heads / p->kv_heads), seen);
}
