/* gemm.c - the one matrix product: C = alpha A B + beta C.
**
** A tile of ROWS x 2 vectors of C stays in registers while k runs; a step of k
** loads two vectors of B and broadcasts one number of A per row. Around it,
** blocks of B and A are packed when they are read often enough, or when they
** lie so that the tile cannot read them (Goto and van de Geijn, 2008). */
#include "ops/gemm.h"

/* Bytes of a vector, rows of a tile: ROWS x 2 sums and what feeds them fill the
** 16 or 32 registers. */
#if defined __AVX512F__
#define BYTES 64
#define ROWS 8
#elif defined __AVX2__
#define BYTES 32
#define ROWS 6
#elif defined __aarch64__
#define BYTES 16
#define ROWS 8
#else
#define BYTES 16
#define ROWS 6
#endif
enum { VECTOR = BYTES / sizeof (real), PANEL = 2 * VECTOR };

/* Vectors that may stand at any element. */
typedef real vec
    __attribute__ ((vector_size (BYTES), aligned (sizeof (real)), may_alias));
typedef real quad
    __attribute__ ((vector_size (16), aligned (sizeof (real)), may_alias));
#define INLINE static inline __attribute__ ((always_inline))
#define UNROLL _Pragma ("GCC unroll 16")

/* The largest block of each size (multiples of the tile) and where copies go: a
** panel of B stays in the first cache, a block of A in the second. */
typedef struct blocks {
  ptrdiff_t m, n, k;
  real *scratch;
} blocks;
enum { BLOCK_M = 96, BLOCK_N = 1024, BLOCK_K = 256 };
enum { STACK_M = 48, STACK_N = 2 * PANEL, STACK_K = 64 };
enum { SMALL = 8192 }; /* elements that stay in the first cache */

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
  real *at = c;
  UNROLL for (int i = 0; i < rows; i++) {
    UNROLL for (int v = 0; v < vectors; v++) {
      sum[i][v] = (vec){ 0 };
      if (beta != 0) sum[i][v] = *(const vec *)(at + v * VECTOR) * beta;
    }
    at += c_row;
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
      *(vec *)(c + v * VECTOR) = sum[i][v];
    }
    c += c_row;
  }
}

/* A column of tiles: m rows of C, 'vectors' wide. A lies anywhere, or is packed
** in panels [k][ROWS]; 'packed' and 'vectors' are constants where this is
** called. */
INLINE void strip (int packed, int vectors, ptrdiff_t m, ptrdiff_t k,
                   const real *a, ptrdiff_t a_row, ptrdiff_t a_col,
                   const real *b, ptrdiff_t b_row, real beta, real *c,
                   ptrdiff_t c_row) {
  ptrdiff_t rest = m % ROWS, i = 0;
  const ptrdiff_t step = packed ? k : a_row; /* a + i * step: row i of a tile */
  const ptrdiff_t row = packed ? 1 : a_row, col = packed ? ROWS : a_col;
#define TILE(rows)                                                \
  tile (rows, vectors, k, a + i * step, row, col, b, b_row, beta, \
        c + i * c_row, c_row)
  /* one or two rows are too few sums to hide the latency of an addition */
  if (!packed && (rest == 1 || rest == 2) && m > ROWS) rest += ROWS;
  for (; i < m - rest; i += ROWS) TILE (ROWS);
  if (rest > ROWS) {
    TILE (4);
    i += 4;
  }
  switch (m - i) {
  case 1: TILE (1); break;
  case 2: TILE (2); break;
  case 3: TILE (3); break;
  case 4: TILE (4); break;
  case 5: TILE (5); break;
#if ROWS > 6
  case 6: TILE (6); break;
  case 7: TILE (7); break;
#endif
  default: break;
  }
#undef TILE
}

typedef void (*strip_function) (ptrdiff_t m, ptrdiff_t k, const real *a,
                                ptrdiff_t a_row, ptrdiff_t a_col, const real *b,
                                ptrdiff_t b_row, real beta, real *c,
                                ptrdiff_t c_row);
#define STRIP(name, packed, vectors)                                          \
  static void name (ptrdiff_t m, ptrdiff_t k, const real *a, ptrdiff_t a_row, \
                    ptrdiff_t a_col, const real *b, ptrdiff_t b_row,          \
                    real beta, real *c, ptrdiff_t c_row) {                    \
    strip (packed, vectors, m, k, a, a_row, a_col, b, b_row, beta, c, c_row); \
  }
STRIP (strip_1, 0, 1)
STRIP (strip_2, 0, 2)
STRIP (packed_strip_1, 1, 1)
STRIP (packed_strip_2, 1, 2)
static const strip_function strips[2][2] = {
  { strip_1, strip_2 }, { packed_strip_1, packed_strip_2 }
};

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

/* Out of line: who packs nothing should not pay for their registers. */
static __attribute__ ((noinline)) void pack_b (ptrdiff_t columns, ptrdiff_t k,
                                               const real *b, ptrdiff_t b_row,
                                               ptrdiff_t b_col, real *out) {
  pack (PANEL, columns, k, 1, b, b_col, b_row, out);
}

static __attribute__ ((noinline)) void pack_a (ptrdiff_t rows, ptrdiff_t k,
                                               real alpha, const real *a,
                                               ptrdiff_t a_row, ptrdiff_t a_col,
                                               real *out) {
  pack (ROWS, rows, k, alpha, a, a_row, a_col, out);
}

INLINE void copy_row (ptrdiff_t n, const real *from, real *to) {
  if (n >= VECTOR) {
    *(vec *)to = *(const vec *)from;
    from += VECTOR;
    to += VECTOR;
    n -= VECTOR;
  }
  for (ptrdiff_t j = 0; j < n; j++) to[j] = from[j];
}

/* The last columns of C, which do not fill their vectors: through a copy. */
static void edge (strip_function function, ptrdiff_t m, ptrdiff_t columns,
                  ptrdiff_t k, const real *a, ptrdiff_t a_row, ptrdiff_t a_col,
                  ptrdiff_t a_step, const real *b, real beta, real *c,
                  ptrdiff_t c_row) {
  enum { LINES = 4 * ROWS };
  real copy[LINES * PANEL];
  for (ptrdiff_t i = 0; i < m; i += LINES) {
    const ptrdiff_t lines = least (LINES, m - i);
    real *to = c + i * c_row;
    if (beta != 0)
      for (ptrdiff_t r = 0; r < lines; r++)
        copy_row (columns, to + r * c_row, copy + r * PANEL);
    function (lines, k, a + i * a_step, a_row, a_col, b, PANEL, beta, copy,
              PANEL);
    for (ptrdiff_t r = 0; r < lines; r++)
      copy_row (columns, copy + r * PANEL, to + r * c_row);
  }
}

/* A product that needs no blocks: panel by panel of B, each packed only if it
** has to be. */
static void small (ptrdiff_t m, ptrdiff_t n, ptrdiff_t k, const real *a,
                   ptrdiff_t a_row, ptrdiff_t a_col, const real *b,
                   ptrdiff_t b_row, ptrdiff_t b_col, real beta, real *c,
                   ptrdiff_t c_row, real *panel) {
  const int badly = b_col != 1 || (m >= 8 * ROWS && k * b_row > SMALL);
  for (ptrdiff_t j = 0; j < n; j += PANEL) {
    const ptrdiff_t columns = least (PANEL, n - j);
    const strip_function function = strips[0][columns > VECTOR];
    const int partial = columns % VECTOR != 0;
    if (badly || partial)
      pack_b (columns, k, b + j * b_col, b_row, b_col, panel);
    if (partial)
      edge (function, m, columns, k, a, a_row, a_col, a_row, panel, beta, c + j,
            c_row);
    else if (badly)
      function (m, k, a, a_row, a_col, panel, PANEL, beta, c + j, c_row);
    else
      function (m, k, a, a_row, a_col, b + j, b_row, beta, c + j, c_row);
  }
}

static void multiply (const blocks *most, ptrdiff_t m, ptrdiff_t n, ptrdiff_t k,
                      real alpha, const real *a, ptrdiff_t a_row,
                      ptrdiff_t a_col, const real *b, ptrdiff_t b_row,
                      ptrdiff_t b_col, real beta, real *c, ptrdiff_t c_row) {
  /* packing pays when the copy is read often and the original lies badly */
  const int copy_b = b_col != 1 || (m >= 8 * ROWS && k * b_row > SMALL);
  const int copy_a = alpha != 1 || (n >= 8 * PANEL && m * k > SMALL);
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
        if (copy_b || (jn - u < PANEL && (jn - u) % VECTOR != 0))
          pack_b (least (PANEL, jn - u), pk, b + p * b_row + (j + u) * b_col,
                  b_row, b_col, packed_b + u * pk);
      for (ptrdiff_t i = 0; i < m; i += most->m) {
        const ptrdiff_t im = least (most->m, m - i);
        const real *from = a + i * a_row + p * a_col;
        if (copy_a)
          for (ptrdiff_t t = 0; t < im; t += ROWS)
            pack_a (least (ROWS, im - t), pk, alpha, from + t * a_row, a_row,
                    a_col, packed_a + t * pk);
        for (ptrdiff_t u = 0; u < jn; u += PANEL) {
          const ptrdiff_t columns = least (PANEL, jn - u);
          const strip_function function = strips[copy_a][columns > VECTOR];
          const real *x = copy_a ? packed_a : from;
          const real *y = packed_b + u * pk;
          real *to = c + i * c_row + j + u;
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
  if (alpha == 1 && k <= BLOCK_K && m * k <= SMALL)
    small (m, n, k, a, a_row, a_col, b, b_row, b_col, beta, c, c_row, scratch);
  else
    multiply (&most, m, n, k, alpha, a, a_row, a_col, b, b_row, b_col, beta, c,
              c_row);
}

void SL (sl_gemm_host) (int ta, int tb, int m, int n, int k, real alpha,
                        const real *a, int lda, const real *b, int ldb,
                        real beta, real *c, int ldc) {
  real scratch[STACK_K * (STACK_N + STACK_M)] __attribute__ ((aligned (64)));
  const blocks most = { STACK_M, STACK_N, STACK_K, scratch };
  const ptrdiff_t a_row = ta ? 1 : lda, a_col = ta ? lda : 1;
  const ptrdiff_t b_row = tb ? 1 : ldb, b_col = tb ? ldb : 1;
  if (alpha == 1 && k <= STACK_K && (ptrdiff_t)m * k <= SMALL)
    small (m, n, k, a, a_row, a_col, b, b_row, b_col, beta, c, ldc, scratch);
  else
    multiply (&most, m, n, k, alpha, a, a_row, a_col, b, b_row, b_col, beta, c,
              ldc);
}
