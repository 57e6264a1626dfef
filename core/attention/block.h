/* block.h - a block of queries against the keys that they see, and its products.
**
** Letters: R queries and N keys of a block, D width of a query and key, V width
** of a value. The matrices of a block, scores S, weights W and their gradients
** dS and dW, are (R, N) in rows.c, element [query][key], and (N, 16) in lanes.c,
** element [key][query], with a lane for each of 16 queries.
**
** A product leaves out keys that no query of a tile sees: for causal attention a
** third of the work where the keys are those of the queries themselves. Within a
** tile, a key that a query does not see has weight 0. The sums of an element are
** those over all keys in order, without zeros.
**
** Numeric code: include it from files that are compiled per precision. */
#ifndef SL_BLOCK_H
#define SL_BLOCK_H
#include "attention/attention_internal.h"
#include "base/number.h"
#include "ops/tile.h"

enum {
  SL_VECTORS_PER_STRIP =
      (int)SL_QUERIES > (int)SL_LANES ? 2 : 1, /* vectors of a strip */
  /* rows of a tile of one vector: sums that hide the latency of an addition */
  SL_NARROW_TILE_ROWS = 8,
  SL_KEY_TILE = 128 /* keys that stay in the first cache, with their values */
};

/* In a contiguous block: how many keys query i sees. */
static inline int sl_visible_keys (const sl_block *b, int i) {
  return b->first + (b->causal ? i : 0);
}

/* How many keys any of the 'n' lanes from l on sees. */
static inline int sl_visible_to_lanes (const sl_block *b, int l, int n) {
  const int last = sl_min_int (l + n, b->queries) - 1;
  return last < l ? 0 : sl_visible_keys (b, last);
}

/* The first query that sees key j < hi. */
static inline int sl_first_query (const sl_block *b, int j) {
  return j < b->first ? 0 : j - b->first + 1;
}

/* 1 if n columns of x are whole vectors. */
static inline int sl_is_whole (const sl_grid *x, ptrdiff_t n) {
  return x->col == 1 && n % SL_LANES == 0;
}

/* c (m, 1 or 2 vectors) = or += a (m, k) b, out of line: rows that fill no
** tile. */
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

/* The three products of a block. 'vectors' is 1 or 2. */

/* Rows j .. end - 1 of out (N, 16) = a (N, width) x (width, 16), at the lanes from
** l on, 'vectors' wide. */
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

/* c (R, vectors) = or += a (R, n) x (n, vectors) in a contiguous block, for the n
** keys from key 'from' on: column 0 of a, row 0 of x. A query that sees none of
** them must be one to add to. */
SL_INLINE void sl_to_queries (int vectors, const sl_block *b, int from, int n,
                              const real *a, ptrdiff_t a_row, ptrdiff_t a_col,
                              const real *x, ptrdiff_t x_row, int add, real *c,
                              ptrdiff_t c_row) {
  const int rows = vectors == 2 ? SL_TILE_ROWS : SL_NARROW_TILE_ROWS;
  int i = 0;
  for (; i + rows <= b->queries; i += rows) {
    const int k = sl_min_int (n, sl_visible_keys (b, i + rows - 1) - from);
    if (k > 0)
      sl_tile (rows, vectors, k, a + i * a_row, a_row, a_col, x, x_row, add,
               c + i * c_row, c_row);
  }
  if (i < b->queries)
    SL_REST_OF (vectors, b->queries - i, sl_min_int (n, b->hi - from),
                a + i * a_row, a_row, a_col, x, x_row, add, c + i * c_row,
                c_row);
}

/* c (n, vectors) = or += a (n, R) x (R, vectors) in a contiguous block: row 0 of a
** and c is key 'from', row 0 of x is query 0. */
SL_INLINE void sl_to_keys (int vectors, const sl_block *b, int from, int n,
                           const real *a, ptrdiff_t a_row, ptrdiff_t a_col,
                           const real *x, ptrdiff_t x_row, int add, real *c,
                           ptrdiff_t c_row) {
  const int rows = vectors == 2 ? SL_TILE_ROWS : SL_NARROW_TILE_ROWS;
  int j = 0;
  for (; j + rows <= n; j += rows) {
    const int i = sl_first_query (b, from + j);
    sl_tile (rows, vectors, b->queries - i, a + j * a_row + i * a_col, a_row,
             a_col, x + i * x_row, x_row, add, c + j * c_row, c_row);
  }
  if (j < n) {
    const int i = sl_first_query (b, from + j);
    SL_REST_OF (vectors, n - j, b->queries - i, a + j * a_row + i * a_col,
                a_row, a_col, x + i * x_row, x_row, add, c + j * c_row, c_row);
  }
}
#endif
