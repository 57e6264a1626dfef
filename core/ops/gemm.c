/* gemm.c - the one matrix product: C = alpha A B + beta C.
**
** A tile of ROWS x 2 vectors of C stays in registers while k runs; a step of k
** loads two vectors of B and broadcasts one number of A per row. Around it,
** blocks of B and A are packed when they are read often enough, or when they lie
** so that the tile cannot read them (Goto and van de Geijn, 2008). */
#include "ops/gemm.h"
#include <string.h>

#if defined __AVX512F__
enum { VECTOR = 64 / sizeof (real), ROWS = 8 };
#elif defined __AVX2__
enum { VECTOR = 32 / sizeof (real), ROWS = 6 };
#elif defined __aarch64__
enum { VECTOR = 16 / sizeof (real), ROWS = 8 };
#else
enum { VECTOR = 16 / sizeof (real), ROWS = 6 };
#endif
enum { PANEL = 2 * VECTOR }; /* columns of a tile */

/* Vectors that may stand at any element. */
typedef real vec __attribute__ ((vector_size (VECTOR * sizeof (real)),
                                 aligned (sizeof (real)), may_alias));
typedef real quad
    __attribute__ ((vector_size (16), aligned (sizeof (real)), may_alias));
#define INLINE static inline __attribute__ ((always_inline))
#define UNROLL _Pragma ("GCC unroll 16")

/* The largest block of each size, and where packed blocks go. */
typedef struct blocks {
  ptrdiff_t m, n, k;
  real *scratch;
} blocks;
enum {
  BLOCK_M = 96,
  BLOCK_N = 1024,
  BLOCK_K = 256
}; /* multiples of the tile */
enum { STACK_M = 48, STACK_N = 2 * PANEL, STACK_K = 64 };

static ptrdiff_t least (ptrdiff_t a, ptrdiff_t b) {
  return a < b ? a : b;
}
static ptrdiff_t round_up (ptrdiff_t a, ptrdiff_t to) {
  return (a + to - 1) / to * to;
}

/* C tile of 'rows' x 'vectors' += A (rows x k) times B (k x vectors). */
INLINE void tile (int rows, int vectors, ptrdiff_t k, const real *a,
                  ptrdiff_t a_row, ptrdiff_t a_col, const real *b,
                  ptrdiff_t b_row, real beta, real *c, ptrdiff_t c_row) {
  vec sum[ROWS][2];
  UNROLL for (int i = 0; i < rows; i++) {
    UNROLL for (int v = 0; v < vectors; v++) {
      sum[i][v] = (vec){ 0 };
      if (beta != 0)
        sum[i][v] = *(const vec *)(c + i * c_row + v * VECTOR) * beta;
    }
  }
  for (ptrdiff_t p = 0; p < k; p++) {
    vec x[2];
    UNROLL for (int v = 0; v < vectors; v++) {
      x[v] = *(const vec *)(b + v * VECTOR);
    }
    UNROLL for (int i = 0; i < rows; i++) {
      const real factor = a[i * a_row];
      UNROLL for (int v = 0; v < vectors; v++) {
        sum[i][v] += factor * x[v];
      }
    }
    a += a_col;
    b += b_row;
  }
  UNROLL for (int i = 0; i < rows; i++) {
    UNROLL for (int v = 0; v < vectors; v++) {
      *(vec *)(c + i * c_row + v * VECTOR) = sum[i][v];
    }
  }
}

/* A tile of constant size: A where it lies, or packed as [k][ROWS]. */
typedef void (*tile_function) (ptrdiff_t k, const real *a, ptrdiff_t a_row,
                               ptrdiff_t a_col, const real *b, ptrdiff_t b_row,
                               real beta, real *c, ptrdiff_t c_row);
#define TILE(rows, vectors)                                                  \
  static void tile_##rows##x##vectors (                                      \
      ptrdiff_t k, const real *a, ptrdiff_t a_row, ptrdiff_t a_col,          \
      const real *b, ptrdiff_t b_row, real beta, real *c, ptrdiff_t c_row) { \
    if (a_row == 1 && a_col == ROWS)                                         \
      tile (rows, vectors, k, a, 1, ROWS, b, b_row, beta, c, c_row);         \
    else                                                                     \
      tile (rows, vectors, k, a, a_row, a_col, b, b_row, beta, c, c_row);    \
  }
#define TILES(rows) TILE (rows, 1) TILE (rows, 2)
#define NAMES(rows) \
  { tile_##rows##x1, tile_##rows##x2 }
TILES (1)
TILES (2)
TILES (3) TILES (4) TILES (5) TILES (6)
#if defined __AVX512F__ || defined __aarch64__
    TILES (7) TILES (8) static const tile_function tiles[ROWS][2] = {
      NAMES (1), NAMES (2), NAMES (3), NAMES (4),
      NAMES (5), NAMES (6), NAMES (7), NAMES (8)
    };
#else
    static const tile_function tiles[ROWS][2] = { NAMES (1), NAMES (2),
                                                  NAMES (3), NAMES (4),
                                                  NAMES (5), NAMES (6) };
#endif

/* out[p][j] = the transpose of a square of 16-byte rows at 'from'. */
INLINE void turn (const real *from, ptrdiff_t row, real scale, real *out,
                  ptrdiff_t out_row) {
#define ROW(i) (*(const quad *)(from + (i)*row) * scale)
#define OUT(i) *(quad *)(out + (i)*out_row)
#ifdef SL_SINGLE
  const quad r0 = ROW (0), r1 = ROW (1), r2 = ROW (2), r3 = ROW (3);
  const quad a = __builtin_shufflevector (r0, r1, 0, 4, 1, 5);
  const quad b = __builtin_shufflevector (r2, r3, 0, 4, 1, 5);
  const quad c = __builtin_shufflevector (r0, r1, 2, 6, 3, 7);
  const quad d = __builtin_shufflevector (r2, r3, 2, 6, 3, 7);
  OUT (0) = __builtin_shufflevector (a, b, 0, 1, 4, 5);
  OUT (1) = __builtin_shufflevector (a, b, 2, 3, 6, 7);
  OUT (2) = __builtin_shufflevector (c, d, 0, 1, 4, 5);
  OUT (3) = __builtin_shufflevector (c, d, 2, 3, 6, 7);
#else
  const quad r0 = ROW (0), r1 = ROW (1);
  OUT (0) = __builtin_shufflevector (r0, r1, 0, 2);
  OUT (1) = __builtin_shufflevector (r0, r1, 1, 3);
#endif
#undef ROW
#undef OUT
}

/* out[p][lane] = scale from (lane, p) for lane < lanes, 0 up to 'width'. */
INLINE void pack (int width, ptrdiff_t lanes, ptrdiff_t k, real scale,
                  const real *from, ptrdiff_t lane_step, ptrdiff_t k_step,
                  real *out) {
  enum { SQUARE = 16 / sizeof (real) };
  ptrdiff_t lane = 0;
  if (lane_step == 1 && lanes == width) {
    for (ptrdiff_t p = 0; p < k; p++)
      for (int j = 0; j < width; j++)
        out[p * width + j] = scale * from[p * k_step + j];
    return;
  }
  if (k_step == 1) {
    for (; lane + SQUARE <= lanes; lane += SQUARE) {
      const real *strip = from + lane * lane_step;
      ptrdiff_t p = 0;
      for (; p + SQUARE <= k; p += SQUARE)
        turn (strip + p, lane_step, scale, out + p * width + lane, width);
      for (; p < k; p++)
        for (int j = 0; j < SQUARE; j++)
          out[p * width + lane + j] = scale * strip[j * lane_step + p];
    }
  }
  for (; lane < lanes; lane++)
    for (ptrdiff_t p = 0; p < k; p++)
      out[p * width + lane] = scale * from[lane * lane_step + p * k_step];
  for (; lane < width; lane++)
    for (ptrdiff_t p = 0; p < k; p++) out[p * width + lane] = 0;
}

/* One column of tiles: m rows of C, 'columns' <= PANEL of them, over k. The rows
** are cut so that no tile but the only one is very thin. */
static void column (ptrdiff_t m, ptrdiff_t columns, ptrdiff_t k, const real *a,
                    ptrdiff_t a_row, ptrdiff_t a_col, ptrdiff_t a_tile,
                    const real *b, ptrdiff_t b_row, real beta, real *c,
                    ptrdiff_t c_row) {
  const int vectors = columns > VECTOR ? 2 : 1;
  const int whole = columns == vectors * VECTOR;
  for (ptrdiff_t i = 0; i < m; i += ROWS) {
    const int rows = (int)least (ROWS, m - i);
    const tile_function function = tiles[rows - 1][vectors - 1];
    real *to = c + i * c_row;
    const real *from = a + i / ROWS * a_tile;
    if (whole) {
      function (k, from, a_row, a_col, b, b_row, beta, to, c_row);
    } else {
      real edge[ROWS * PANEL];
      const size_t bytes = (size_t)columns * sizeof *to;
      if (beta != 0)
        for (int r = 0; r < rows; r++)
          memcpy (edge + r * PANEL, to + r * c_row, bytes);
      function (k, from, a_row, a_col, b, b_row, beta, edge, PANEL);
      for (int r = 0; r < rows; r++)
        memcpy (to + r * c_row, edge + r * PANEL, bytes);
    }
  }
}

static void multiply (const blocks *most, ptrdiff_t m, ptrdiff_t n, ptrdiff_t k,
                      real alpha, const real *a, ptrdiff_t a_row,
                      ptrdiff_t a_col, const real *b, ptrdiff_t b_row,
                      ptrdiff_t b_col, real beta, real *c, ptrdiff_t c_row) {
  /* packing pays when the copy is read often and the original lies badly */
  const int pack_b = b_col != 1 || (m >= 8 * ROWS && k * b_row > 8192);
  const int pack_a = alpha != 1 || (n >= 8 * PANEL && m * k > 8192);
  real *packed_b = most->scratch;
  real *packed_a =
      packed_b + least (most->k, k) * least (most->n, round_up (n, PANEL));
  ptrdiff_t p = 0;
  do { /* k may be 0: C = beta C */
    const ptrdiff_t pk = least (most->k, k - p);
    const real keep = p == 0 ? beta : 1;
    for (ptrdiff_t j = 0; j < n; j += most->n) {
      const ptrdiff_t jn = least (most->n, n - j);
      for (ptrdiff_t u = 0; u < jn; u += PANEL)
        if (pack_b || jn - u < PANEL)
          pack (PANEL, least (PANEL, jn - u), pk, 1,
                b + p * b_row + (j + u) * b_col, b_col, b_row,
                packed_b + u * pk);
      for (ptrdiff_t i = 0; i < m; i += most->m) {
        const ptrdiff_t im = least (most->m, m - i);
        const real *from = a + i * a_row + p * a_col;
        if (pack_a)
          for (ptrdiff_t t = 0; t < im; t += ROWS)
            pack (ROWS, least (ROWS, im - t), pk, alpha, from + t * a_row,
                  a_row, a_col, packed_a + t * pk);
        for (ptrdiff_t u = 0; u < jn; u += PANEL) {
          const int copied = pack_b || jn - u < PANEL;
          column (im, least (PANEL, jn - u), pk, pack_a ? packed_a : from,
                  pack_a ? 1 : a_row, pack_a ? ROWS : a_col,
                  pack_a ? ROWS * pk : ROWS * a_row,
                  copied ? packed_b + u * pk : b + p * b_row + j + u,
                  copied ? PANEL : b_row, keep, c + i * c_row + j + u, c_row);
        }
      }
    }
    p += pk;
  } while (p < k);
}

size_t SL (sl_gemm_scratch) (ptrdiff_t m, ptrdiff_t n, ptrdiff_t k) {
  const ptrdiff_t bn = least (BLOCK_N, round_up (n, PANEL));
  const ptrdiff_t bm = least (BLOCK_M, round_up (m, ROWS));
  return (size_t)least (BLOCK_K, k) * (size_t)(bn + bm);
}

void SL (sl_gemm) (ptrdiff_t m, ptrdiff_t n, ptrdiff_t k, real alpha,
                   const real *a, ptrdiff_t a_row, ptrdiff_t a_col,
                   const real *b, ptrdiff_t b_row, ptrdiff_t b_col, real beta,
                   real *c, ptrdiff_t c_row, real *scratch) {
  const blocks most = { BLOCK_M, BLOCK_N, BLOCK_K, scratch };
  multiply (&most, m, n, k, alpha, a, a_row, a_col, b, b_row, b_col, beta, c,
            c_row);
}

void SL (sl_gemm_host) (int ta, int tb, int m, int n, int k, real alpha,
                        const real *a, int lda, const real *b, int ldb,
                        real beta, real *c, int ldc) {
  real scratch[STACK_K * (STACK_N + STACK_M)] __attribute__ ((aligned (64)));
  const blocks most = { STACK_M, STACK_N, STACK_K, scratch };
  multiply (&most, m, n, k, alpha, a, ta ? 1 : lda, ta ? lda : 1, b,
            tb ? 1 : ldb, tb ? ldb : 1, beta, c, ldc);
}
