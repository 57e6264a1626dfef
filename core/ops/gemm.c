/* gemm.c - the one matrix product: C = alpha A B + beta C.
**
** A tile of ROWS x 2 vectors of C stays in registers while k runs; a step of k
** loads two vectors of B and broadcasts one number of A per row. Around it,
** blocks of B and A are packed when they are read often enough, or when their
** strides do not suit the tile (Goto and van de Geijn, 2008). */
#include "ops/gemm.h"
#include "base/number.h"
#include "ops/tile.h"

enum { VECTOR = SL_LANES, PANEL = 2 * SL_LANES, ROWS = SL_TILE_ROWS };

/* The largest blocks (multiples of the tile) and the buffer of packed copies: a
** panel of B stays in the L1 cache, a block of A in the L2 cache. */
typedef struct blocks {
  ptrdiff_t m, n, k;
  real *scratch;
} blocks;
enum { BLOCK_M = 96, BLOCK_N = 1024, BLOCK_K = 256 };
enum { STACK_M = 48, STACK_N = 2 * PANEL, STACK_K = 64 };
enum { SMALL = 8192 };              /* elements that fit the L1 cache */
enum { LINE = 64 / sizeof (real) }; /* elements of a cache line */

typedef void (*strip_function) (ptrdiff_t m, ptrdiff_t k, const real *a,
                                ptrdiff_t a_row, ptrdiff_t a_col, const real *b,
                                ptrdiff_t b_row, int add, real *c,
                                ptrdiff_t c_row);
#define STRIP(name, packed, vectors, row, col)                                \
  static void name (ptrdiff_t m, ptrdiff_t k, const real *a, ptrdiff_t a_row, \
                    ptrdiff_t a_col, const real *b, ptrdiff_t b_row, int add, \
                    real *c, ptrdiff_t c_row) {                               \
    (void)a_row;                                                              \
    (void)a_col;                                                              \
    sl_strip (packed, vectors, m, k, a, row, col, b, b_row, add, c, c_row);   \
  }
STRIP (any_1, 0, 1, a_row, a_col)
STRIP (any_2, 0, 2, a_row, a_col)
STRIP (rows_1, 0, 1, a_row, 1)
STRIP (rows_2, 0, 2, a_row, 1)
STRIP (columns_1, 0, 1, 1, a_col)
STRIP (columns_2, 0, 2, 1, a_col)
STRIP (packed_1, 1, 1, 0, 0)
STRIP (packed_2, 1, 2, 0, 0)
/* By the strides of A: constant strides make shorter loops. */
static const strip_function strips[4][2] = { { any_1, any_2 },
                                             { rows_1, rows_2 },
                                             { columns_1, columns_2 },
                                             { packed_1, packed_2 } };
static const strip_function *strips_for (int packed, ptrdiff_t a_row,
                                         ptrdiff_t a_col) {
  return strips[packed ? 3 : a_col == 1 ? 1 : a_row == 1 ? 2 : 0];
}

/* Four panels at once, for rows that may be far apart in memory: wider pieces
** of each row, prefetched. */
SL_INLINE void pack_four (int width, ptrdiff_t k, real scale, const real *from,
                          ptrdiff_t k_step, real *out) {
  for (ptrdiff_t p = 0; p < k; p++, from += k_step, out += width) {
    for (int i = 0; i < 4 * width; i += LINE)
      __builtin_prefetch (from + 8 * k_step + i);
    for (int i = 0; i < 4; i++)
      sl_scale (width, scale, from + i * width, out + i * width * k);
  }
}

/* out: panels [k][width] of scale from (lane, p). Not inlined: products that do
** not pack would pay for their registers. */
#define PACK(name, width)                                             \
  static __attribute__ ((noinline)) void name (                       \
      ptrdiff_t lanes, ptrdiff_t k, real scale, const real *from,     \
      ptrdiff_t lane_step, ptrdiff_t k_step, real *out) {             \
    ptrdiff_t i = 0;                                                  \
    if (lane_step == 1)                                               \
      for (; i + 4 * width <= lanes; i += 4 * width)                  \
        pack_four (width, k, scale, from + i, k_step, out + i * k);   \
    for (; i < lanes; i += width)                                     \
      sl_pack (width, sl_min (width, lanes - i), k, scale,            \
               from + i * lane_step, lane_step, k_step, out + i * k); \
  }
PACK (pack_a, SL_PANEL_ROWS)
PACK (pack_other, PANEL)

/* The same for full panels of whole squares, such as of weights: fewer
** registers. */
static __attribute__ ((noinline)) void transpose_b (ptrdiff_t columns,
                                                    ptrdiff_t k, const real *b,
                                                    ptrdiff_t b_col,
                                                    real *out) {
  for (ptrdiff_t j = 0; j < columns; j += PANEL, out += PANEL * k)
    for (int lane = 0; lane < PANEL; lane += SL_SQUARE) {
      const real *from = b + (j + lane) * b_col;
      for (ptrdiff_t p = 0; p < k; p += SL_SQUARE)
        sl_transpose (from + p, b_col, 1, out + p * PANEL + lane, PANEL);
    }
}

static void pack_b (ptrdiff_t columns, ptrdiff_t k, const real *b,
                    ptrdiff_t b_row, ptrdiff_t b_col, real *out) {
  if (b_row == 1 && columns % PANEL == 0 && k % SL_SQUARE == 0)
    transpose_b (columns, k, b, b_col, out);
  else
    pack_other (columns, k, 1, b, b_col, b_row, out);
}

static inline void copy_row (ptrdiff_t n, const real *from, real *to) {
  if (n >= VECTOR) {
    *(sl_lanes *)to = *(const sl_lanes *)from;
    from += VECTOR;
    to += VECTOR;
    n -= VECTOR;
  }
  for (ptrdiff_t j = 0; j < n; j++) to[j] = from[j];
}

/* The last columns of C, which do not fill a vector: through a copy. */
static void edge (strip_function function, ptrdiff_t m, ptrdiff_t columns,
                  ptrdiff_t k, const real *a, ptrdiff_t a_row, ptrdiff_t a_col,
                  ptrdiff_t a_step, const real *b, int add, real *c,
                  ptrdiff_t c_row) {
  enum { LINES = 4 * ROWS };
  real copy[LINES * PANEL];
  for (ptrdiff_t i = 0; i < m; i += LINES) {
    const ptrdiff_t lines = sl_min (LINES, m - i);
    real *to = c + i * c_row;
    if (add)
      for (ptrdiff_t r = 0; r < lines; r++)
        copy_row (columns, to + r * c_row, copy + r * PANEL);
    function (lines, k, a + i * a_step, a_row, a_col, b, PANEL, add, copy,
              PANEL);
    for (ptrdiff_t r = 0; r < lines; r++)
      copy_row (columns, copy + r * PANEL, to + r * c_row);
  }
}

/* A product without blocks: panel by panel of B, packed where that pays, all
** panels at once if they fit the L1 cache. */
static void small (const blocks *most, ptrdiff_t m, ptrdiff_t n, ptrdiff_t k,
                   const real *a, ptrdiff_t a_row, ptrdiff_t a_col,
                   const real *b, ptrdiff_t b_row, ptrdiff_t b_col, int add,
                   real *c, ptrdiff_t c_row) {
  const int badly = b_col != 1 || (m >= 8 * ROWS && k * b_row > SMALL);
  const int all = badly && n <= most->n && 2 * n * k <= SMALL;
  const ptrdiff_t group = all ? most->n : PANEL;
  const strip_function *strip = strips_for (0, a_row, a_col);
  ptrdiff_t packed = 0; /* columns packed so far */
  const real *y = b;
  for (ptrdiff_t j = 0; j < n; j += PANEL) {
    const ptrdiff_t columns = sl_min (PANEL, n - j);
    const strip_function function = strip[columns > VECTOR];
    const int partial = columns % VECTOR != 0;
    if ((badly || partial) && j >= packed) {
      pack_b (sl_min (group, n - j), k, b + j * b_col, b_row, b_col,
              most->scratch);
      packed = j + group;
      y = most->scratch;
    }
    if (partial)
      edge (function, m, columns, k, a, a_row, a_col, a_row, y, add, c + j,
            c_row);
    else
      function (m, k, a, a_row, a_col, y, badly ? PANEL : b_row, add, c + j,
                c_row);
    y += badly ? PANEL * k : PANEL;
  }
}

static void multiply (const blocks *most, ptrdiff_t m, ptrdiff_t n, ptrdiff_t k,
                      real alpha, const real *a, ptrdiff_t a_row,
                      ptrdiff_t a_col, const real *b, ptrdiff_t b_row,
                      ptrdiff_t b_col, int add, real *c, ptrdiff_t c_row) {
  /* packing pays when the copy is read often and the original is strided */
  const int copy_b = b_col != 1 || (m >= 8 * ROWS && k * b_row > SMALL);
  const int copy_a =
      alpha != 1 || (m * k > SMALL && n >= (a_col == 1 ? 8 : 3) * PANEL);
  const ptrdiff_t group = b_col == 1 ? 4 * PANEL : PANEL; /* packed at once */
  const strip_function *strip = strips_for (copy_a, a_row, a_col);
  real *packed_b = most->scratch;
  real *packed_a =
      packed_b + sl_min (most->k, k) * sl_min (most->n, sl_round_up (n, PANEL));
  ptrdiff_t p = 0;
  do { /* k may be 0 */
    const ptrdiff_t pk = sl_min (most->k, k - p);
    const int keep = p > 0 || add;
    for (ptrdiff_t j = 0; j < n; j += most->n) {
      const ptrdiff_t jn = sl_min (most->n, n - j);
      for (ptrdiff_t i = 0; i < m; i += most->m) {
        const ptrdiff_t im = sl_min (most->m, m - i);
        const real *from = a + i * a_row + p * a_col;
        if (copy_a) pack_a (im, pk, alpha, from, a_row, a_col, packed_a);
        for (ptrdiff_t u = 0; u < jn; u += PANEL) {
          const ptrdiff_t columns = sl_min (PANEL, jn - u);
          const strip_function function = strip[columns > VECTOR];
          const real *x = copy_a ? packed_a : from;
          real *y = packed_b + (m > most->m ? u : u % group) * pk;
          real *to = c + i * c_row + j + u;
          /* just before its first use; columns that fill no vector always */
          if (i == 0 && (copy_b ? u % group == 0 : columns % VECTOR != 0))
            pack_b (sl_min (group, jn - u), pk, b + p * b_row + (j + u) * b_col,
                    b_row, b_col, y);
          if (columns % VECTOR != 0)
            edge (function, im, columns, pk, x, a_row, a_col,
                  copy_a ? pk : a_row, y, keep, to, c_row);
          else if (copy_b)
            function (im, pk, x, a_row, a_col, y, PANEL, keep, to, c_row);
          else
            function (im, pk, x, a_row, a_col, b + p * b_row + j + u, b_row,
                      keep, to, c_row);
        }
      }
    }
    p += pk;
  } while (p < k);
}

/* C = beta C. Returns 0 if beta is 0: the product overwrites C. */
static int scale_c (ptrdiff_t m, ptrdiff_t n, real beta, real *c,
                    ptrdiff_t c_row) {
  if (beta == 0) return 0;
  for (ptrdiff_t i = 0; beta != 1 && i < m; i++)
    for (ptrdiff_t j = 0; j < n; j++) c[i * c_row + j] *= beta;
  return 1;
}

size_t SL (sl_gemm_scratch) (ptrdiff_t m, ptrdiff_t n, ptrdiff_t k) {
  const ptrdiff_t bn = sl_min (BLOCK_N, sl_round_up (n, PANEL));
  const ptrdiff_t bm = sl_min (BLOCK_M, sl_round_up (m, SL_PANEL_ROWS));
  return (size_t)sl_min (BLOCK_K, k) * (size_t)(bn + bm);
}

void SL (sl_gemm) (ptrdiff_t m, ptrdiff_t n, ptrdiff_t k, real alpha,
                   const real *a, ptrdiff_t a_row, ptrdiff_t a_col,
                   const real *b, ptrdiff_t b_row, ptrdiff_t b_col, real beta,
                   real *c, ptrdiff_t c_row, real *scratch) {
  const blocks most = { BLOCK_M, BLOCK_N, BLOCK_K, scratch };
  const int add = scale_c (m, n, beta, c, c_row);
  if (alpha == 1 && k <= BLOCK_K && m * k <= SMALL)
    small (&most, m, n, k, a, a_row, a_col, b, b_row, b_col, add, c, c_row);
  else
    multiply (&most, m, n, k, alpha, a, a_row, a_col, b, b_row, b_col, add, c,
              c_row);
}

void SL (sl_gemm_host) (int ta, int tb, int m, int n, int k, real alpha,
                        const real *a, int lda, const real *b, int ldb,
                        real beta, real *c, int ldc) {
  real scratch[STACK_K * (STACK_N + STACK_M)] __attribute__ ((aligned (64)));
  const blocks most = { STACK_M, STACK_N, STACK_K, scratch };
  const ptrdiff_t a_row = ta ? 1 : lda, a_col = ta ? lda : 1;
  const ptrdiff_t b_row = tb ? 1 : ldb, b_col = tb ? ldb : 1;
  const int add = scale_c (m, n, beta, c, ldc);
  if (alpha == 1 && k <= STACK_K && (ptrdiff_t)m * k <= SMALL)
    small (&most, m, n, k, a, a_row, a_col, b, b_row, b_col, add, c, ldc);
  else
    multiply (&most, m, n, k, alpha, a, a_row, a_col, b, b_row, b_col, add, c,
              ldc);
}
