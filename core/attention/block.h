/* block.h - some queries against the keys that they see, and their products.
**
** A product leaves out what no query of a tile sees: for causal attention a
** third of the work where the keys are those of the queries themselves. Within
** a tile, what a query does not see has weight 0. The sums of an element are
** those over all keys in order, without zeros.
**
** Numeric code: include it from files that are compiled per precision. */
#ifndef SL_BLOCK_H
#define SL_BLOCK_H
#include "attention/attention_internal.h"
#include "base/number.h"
#include "ops/tile.h"

/* Query i < queries sees the first keys: 'first' of them, and with 'causal' one
** more from each query to the next. Of lanes.c, which has a lane for each of 16
** (those from 'queries' on are none and see none), also what lane i sees, the
** queries and output gradients [number][lane], and matrices [key][lane]; rows.c
** leaves these out. */
typedef struct sl_lane_block {
  int row, queries, keys; /* keys: of the last query, which sees most */
  int first, causal;
  const real *seen; /* 16 */
  real *q, *dout;
  real *scores, *weights, *dscores, *dweights;
} sl_lane_block;

enum {
  SL_VECTORS_PER_STRIP =
      (int)SL_QUERIES > (int)SL_LANES ? 2 : 1, /* vectors of a strip */
  /* rows of a tile of one vector: sums that hide the latency of an addition */
  SL_NARROW_TILE_ROWS = 8,
  SL_KEY_TILE = 128 /* keys that stay in the first cache, with their values */
};

/* How many keys query i sees. */
static inline int sl_visible_keys (const sl_lane_block *b, int i) {
  return b->first + (b->causal ? i : 0);
}

/* How many keys any of the 'n' lanes from l on sees. */
static inline int sl_visible_to_lanes (const sl_lane_block *b, int l, int n) {
  const int last = sl_min_int (l + n, b->queries) - 1;
  return last < l ? 0 : sl_visible_keys (b, last);
}

/* The first query that sees key j < keys. */
static inline int sl_from_query (const sl_lane_block *b, int j) {
  return j < b->first ? 0 : j - b->first + 1;
}

/* out (width x 16) = scale times the transpose of x (16 x width), whose elements
** of a row are adjacent; width is a multiple of SL_SQUARE. */
SL_INLINE void sl_transpose_queries (ptrdiff_t width, real scale, const real *x,
                                     ptrdiff_t row, real *out) {
  for (ptrdiff_t p = 0; p < width; p += SL_SQUARE)
    for (int l = 0; l < SL_QUERIES; l += SL_SQUARE)
      sl_transpose (x + l * row + p, row, scale, out + sl_at ((int)p, l),
                    SL_QUERIES);
}

/* 1 if n columns of x are whole vectors. */
static inline int sl_is_whole (const sl_grid *x, ptrdiff_t n) {
  return x->col == 1 && n % SL_LANES == 0;
}

/* c (m x 1 or 2 vectors) = or += a (m x k) b, out of line: what fills no tile. */
#define SL_REST(name, vectors)                                             \
  static __attribute__ ((noinline, unused)) void name (                    \
      ptrdiff_t m, ptrdiff_t k, const real *a, ptrdiff_t a_row,            \
      ptrdiff_t a_col, const real *b, ptrdiff_t b_row, int add, real *c,   \
      ptrdiff_t c_row) {                                                   \
    sl_strip (0, vectors, m, k, a, a_row, a_col, b, b_row, add, c, c_row); \
  }
SL_REST (sl_rest_1, 1)
SL_REST (sl_rest_2, 2)
#undef SL_REST
#define SL_REST_OF(vectors, ...) \
  ((vectors) == 2 ? sl_rest_2 (__VA_ARGS__) : sl_rest_1 (__VA_ARGS__))

/* The three products of a block, 'vectors' (1 or 2) of the result wide. */

/* Rows of out (keys x 16) = a (keys x width) x (width x 16), from row j to row
** 'end', at the lanes from l on. */
SL_INLINE void sl_times_lanes (int vectors, int l, int j, int end,
                               ptrdiff_t width, const real *a, ptrdiff_t a_row,
                               const real *x, real *out) {
  const int rows = vectors == 2 ? SL_TILE_ROWS : SL_NARROW_TILE_ROWS;
  for (; j + rows <= end; j += rows)
    sl_tile (rows, vectors, width, a + j * a_row, a_row, 1, x + l, SL_QUERIES,
             0, out + sl_at (j, l), SL_QUERIES);
  if (j < end)
    SL_REST_OF (vectors, end - j, width, a + j * a_row, a_row, 1, x + l,
                SL_QUERIES, 0, out + sl_at (j, l), SL_QUERIES);
}

/* Columns of c (queries x ...) = or += a x, for the n keys from key 'from' on:
** column 0 of a (queries x keys), row 0 of x. A query that sees none of them
** must be one to add to. */
SL_INLINE void sl_to_queries (int vectors, const sl_lane_block *b, int from,
                              int n, const real *a, ptrdiff_t a_row,
                              ptrdiff_t a_col, const real *x, ptrdiff_t x_row,
                              int add, real *c, ptrdiff_t c_row) {
  const int rows = vectors == 2 ? SL_TILE_ROWS : SL_NARROW_TILE_ROWS;
  int i = 0;
  for (; i + rows <= b->queries; i += rows) {
    const int k = sl_min_int (n, sl_visible_keys (b, i + rows - 1) - from);
    if (k > 0)
      sl_tile (rows, vectors, k, a + i * a_row, a_row, a_col, x, x_row, add,
               c + i * c_row, c_row);
  }
  if (i < b->queries)
    SL_REST_OF (vectors, b->queries - i, sl_min_int (n, b->keys - from),
                a + i * a_row, a_row, a_col, x, x_row, add, c + i * c_row,
                c_row);
}

/* Columns of c (n keys x ...) = or += a x, over the queries: row 0 of a (keys x
** queries) and c is key 'from', row 0 of x is query 0. */
SL_INLINE void sl_to_keys (int vectors, const sl_lane_block *b, int from, int n,
                           const real *a, ptrdiff_t a_row, ptrdiff_t a_col,
                           const real *x, ptrdiff_t x_row, int add, real *c,
                           ptrdiff_t c_row) {
  const int rows = vectors == 2 ? SL_TILE_ROWS : SL_NARROW_TILE_ROWS;
  int j = 0;
  for (; j + rows <= n; j += rows) {
    const int i = sl_from_query (b, from + j);
    sl_tile (rows, vectors, b->queries - i, a + j * a_row + i * a_col, a_row,
             a_col, x + i * x_row, x_row, add, c + j * c_row, c_row);
  }
  if (j < n) {
    const int i = sl_from_query (b, from + j);
    SL_REST_OF (vectors, n - j, b->queries - i, a + j * a_row + i * a_col,
                a_row, a_col, x + i * x_row, x_row, add, c + j * c_row, c_row);
  }
}

/* Put 'value' where a lane does not see the key. Lanes see ever more keys, but
** for those that are no queries. */
SL_INLINE void sl_hide (const sl_lane_block *b, real value, real *x) {
  const sl_lanes v = sl_every (value);
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
        sl_store (p, sl_select ((sl_mask)(lane > sl_every ((real)i)),
                                sl_load (p), v));
      }
    } else if (!full) {
      const sl_lanes seen = sl_load (b->seen + l);
      sl_lanes key = sl_every ((real)j);
      for (; j < most; j++, at += SL_QUERIES, key += (real)1)
        sl_store (at, sl_select ((sl_mask)(seen > key), sl_load (at), v));
    }
    for (j = most; j < b->keys; j++) sl_store (x + sl_at (j, l), v);
  }
}
#endif
