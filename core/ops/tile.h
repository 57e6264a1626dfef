/* tile.h - the micro-kernel of matrix products, whose sums stay in registers.
**
** Every matrix product of the project runs through sl_strip: rows of C, one or
** two vectors wide, += A B. Elements of A are broadcast one at a time, so A may
** have any strides; B and C are read as vectors. The products of an element are
** added in the order of k, whatever the sizes.
**
** Numeric code: include it from files that are compiled per precision. */
#ifndef SL_TILE_H
#define SL_TILE_H
#include "ops/shuffle.h"
#include <sinklab/lanes.h>

/* Rows of a tile two vectors wide: enough independent sums to hide the latency
** of an addition, and two rows more still fit the registers. A tile one vector
** wide has SL_TALL_TILE_ROWS, the same number of sums. */
#if defined __AVX512F__ || defined __aarch64__
enum { SL_TILE_ROWS = 8, SL_TALL_TILE_ROWS = 16 };
#else
enum { SL_TILE_ROWS = 4, SL_TALL_TILE_ROWS = 8 };
#endif
#define SL_INLINE static inline __attribute__ ((always_inline, unused))

/* A small array is kept in registers only if the loops over it are unrolled.
** SL_NO_UNROLL keeps a loop as it is written. */
#ifdef __clang__
#define SL_UNROLL _Pragma ("clang loop unroll(full)")
#define SL_NO_UNROLL _Pragma ("clang loop unroll(disable)")
#else
#define SL_UNROLL _Pragma ("GCC unroll 16")
#define SL_NO_UNROLL _Pragma ("GCC unroll 1")
#endif

/* Tell gcc that x is used here, so that it stays in its register: gcc then adds
** into the registers of the sums and not into those of the factors, which would
** cost moves and spills. */
#if defined __clang__
#define SL_KEEP_IN_REGISTER(x) (void)(x)
#elif defined __AVX512F__
#define SL_KEEP_IN_REGISTER(x) __asm__ volatile("" ::"v"(x))
#elif defined __x86_64__
#define SL_KEEP_IN_REGISTER(x) __asm__ volatile("" ::"x"(x))
#elif defined __aarch64__
#define SL_KEEP_IN_REGISTER(x) __asm__ volatile("" ::"w"(x))
#else
#define SL_KEEP_IN_REGISTER(x) (void)(x)
#endif

/* A sanitizer instruments every access: unrolling by four makes compilation
** four times as slow. */
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
#define SL_CHECKED
#elif defined __has_feature
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SL_CHECKED
#endif
#endif

/* C (rows, vectors) = A (rows, k) B (k, vectors), or += if 'accumulate'. */
SL_INLINE void sl_tile (int rows, int vectors, ptrdiff_t k, const real *a,
                        ptrdiff_t a_row, ptrdiff_t a_col, const real *b,
                        ptrdiff_t b_row, int accumulate, real *c,
                        ptrdiff_t c_row) {
  sl_lanes sum[SL_TALL_TILE_ROWS][2];
  if (accumulate) {
    const real *at = c;
    SL_UNROLL for (int i = 0; i < rows; i++) {
      SL_UNROLL for (int v = 0; v < vectors; v++) {
        sum[i][v] = *(const sl_lanes *)(at + v * SL_LANES);
      }
      at += c_row;
    }
  } else
    SL_UNROLL for (int i = 0; i < rows; i++) {
      SL_UNROLL for (int v = 0; v < vectors; v++) sum[i][v] = (sl_lanes){ 0 };
    }
#define SL_STEP                                                               \
  do {                                                                        \
    sl_lanes x[2];                                                            \
    SL_UNROLL for (int v = 0; v < vectors; v++) {                             \
      x[v] = *(const sl_lanes *)(b + v * SL_LANES);                           \
    }                                                                         \
    SL_UNROLL for (int i = 0; i < rows; i++) {                                \
      const sl_lanes factor = sl_splat (a[i * a_row]);                        \
      SL_UNROLL for (int v = 0; v < vectors; v++) sum[i][v] += factor * x[v]; \
      SL_KEEP_IN_REGISTER (factor);                                           \
    }                                                                         \
    SL_UNROLL for (int v = 0; v < vectors; v++) {                             \
      SL_KEEP_IN_REGISTER (x[v]);                                             \
    }                                                                         \
    a += a_col;                                                               \
    b += b_row;                                                               \
  } while (0)
#ifndef SL_CHECKED
  /* unrolled by four: with two threads a core, short loops are fetch-bound */
  SL_NO_UNROLL for (; k >= 4; k -= 4) {
    SL_STEP;
    SL_STEP;
    SL_STEP;
    SL_STEP;
  }
#endif
  if (__builtin_expect (k > 0, 0)) {
    SL_NO_UNROLL for (; k > 0; k--) SL_STEP;
  }
#undef SL_STEP
  SL_UNROLL for (int i = 0; i < rows; i++) {
    SL_UNROLL for (int v = 0; v < vectors; v++) {
      *(sl_lanes *)(c + v * SL_LANES) = sum[i][v];
    }
    c += c_row;
  }
}

/* Rows of A are packed in panels [k][SL_PANEL_ROWS], of one tile or two. */
#if defined SL_SINGLE && SL_LANE_BYTES == 32
enum { SL_PANEL_ROWS = 8 };
#else
enum { SL_PANEL_ROWS = SL_TILE_ROWS };
#endif

/* C (m, 'vectors') = A (m, k) B (k, 'vectors'), or += if 'accumulate'. Callers
** pass constants for 'vectors' (1 or 2) and for known strides. 'packed': A lies
** in panels, and a_row and a_col are not read. */
SL_INLINE void sl_strip (int packed, int vectors, ptrdiff_t m, ptrdiff_t k,
                         const real *a, ptrdiff_t a_row, ptrdiff_t a_col,
                         const real *b, ptrdiff_t b_row, int accumulate,
                         real *c, ptrdiff_t c_row) {
  const ptrdiff_t row = packed ? 1 : a_row,
                  col = packed ? SL_PANEL_ROWS : a_col;
  ptrdiff_t i = 0, rest;
#define SL_TILE(rows)                                                   \
  sl_tile (rows, vectors, k, a + SL_AT, row, col, b, b_row, accumulate, \
           c + i * c_row, c_row)
#define SL_AT \
  (packed ? (i - i % SL_PANEL_ROWS) * k + i % SL_PANEL_ROWS : i * a_row)
  if (vectors == 1 && !packed)
    for (; i + SL_TALL_TILE_ROWS <= m; i += SL_TALL_TILE_ROWS)
      SL_TILE (SL_TALL_TILE_ROWS);
  /* a rest of one or two rows has too few sums: add it to the last tile */
  rest = (m - i) % SL_TILE_ROWS;
  if (!packed && rest > 0 && rest < 3 && m - i > SL_TILE_ROWS)
    rest += SL_TILE_ROWS;
  for (; i < m - rest; i += SL_TILE_ROWS) {
    if (packed) /* then C is large and not in the cache */
      for (int r = SL_TILE_ROWS; r < 2 * SL_TILE_ROWS; r++)
        __builtin_prefetch (c + (i + r) * c_row, 1);
    SL_TILE (SL_TILE_ROWS);
  }
  switch (rest) {
  case 1: SL_TILE (1); break;
  case 2: SL_TILE (2); break;
  case 3: SL_TILE (3); break;
#if defined __AVX512F__ || defined __aarch64__ /* SL_TILE_ROWS is 8 */
  case 4: SL_TILE (4); break;
  case 7: SL_TILE (7); break;
  case 9: SL_TILE (9); break;
  case 10: SL_TILE (10); break;
#endif
  case 5: SL_TILE (5); break;
  case 6: SL_TILE (6); break;
  default: break;
  }
#undef SL_TILE
#undef SL_AT
}

/* A square is transposed by exchanging elements of pairs of rows, then pairs of
** elements, then halves: shuffles within 16 bytes first, then across them.
** SL_SWAP (i, j, low, high): row i becomes the elements 'low' of rows i and j,
** row j the elements 'high'. */
#if SL_LANE_BYTES > 16
typedef real sl_square_row
    __attribute__ ((vector_size (32), aligned (sizeof (real)), may_alias));
#else
typedef real sl_square_row
    __attribute__ ((vector_size (16), aligned (sizeof (real)), may_alias));
#endif
enum { SL_SQUARE = sizeof (sl_square_row) / sizeof (real) };
#ifdef SL_SINGLE
typedef int32_t sl_square_list
    __attribute__ ((vector_size (sizeof (sl_square_row))));
#else
typedef int64_t sl_square_list
    __attribute__ ((vector_size (sizeof (sl_square_row))));
#endif
#define SL_LIST(...) __VA_ARGS__
#define SL_SWAP(i, j, low, high)                                            \
  do {                                                                      \
    const sl_square_row one = SL_SHUFFLE (sl_square_list, r[i], r[j], low); \
    r[j] = SL_SHUFFLE (sl_square_list, r[i], r[j], high);                   \
    r[i] = one;                                                             \
  } while (0)
#if defined SL_SINGLE && SL_LANE_BYTES > 16
#define SL_ELEMENTS(i, j)                            \
  SL_SWAP (i, j, SL_LIST (0, 8, 1, 9, 4, 12, 5, 13), \
           SL_LIST (2, 10, 3, 11, 6, 14, 7, 15))
#define SL_PAIRS(i, j)                               \
  SL_SWAP (i, j, SL_LIST (0, 1, 8, 9, 4, 5, 12, 13), \
           SL_LIST (2, 3, 10, 11, 6, 7, 14, 15))
#define SL_HALVES(i, j)                              \
  SL_SWAP (i, j, SL_LIST (0, 1, 2, 3, 8, 9, 10, 11), \
           SL_LIST (4, 5, 6, 7, 12, 13, 14, 15))
#elif defined SL_SINGLE
#define SL_ELEMENTS(i, j) \
  SL_SWAP (i, j, SL_LIST (0, 4, 1, 5), SL_LIST (2, 6, 3, 7))
#define SL_PAIRS(i, j) \
  SL_SWAP (i, j, SL_LIST (0, 1, 4, 5), SL_LIST (2, 3, 6, 7))
#elif SL_LANE_BYTES > 16
#define SL_ELEMENTS(i, j) \
  SL_SWAP (i, j, SL_LIST (0, 4, 2, 6), SL_LIST (1, 5, 3, 7))
#define SL_HALVES(i, j) \
  SL_SWAP (i, j, SL_LIST (0, 1, 4, 5), SL_LIST (2, 3, 6, 7))
#else
#define SL_ELEMENTS(i, j) SL_SWAP (i, j, SL_LIST (0, 2), SL_LIST (1, 3))
#endif

/* out (SL_SQUARE, SL_SQUARE) = scale times the transpose of 'from'. */
SL_INLINE void sl_transpose (const real *from, ptrdiff_t row, real scale,
                             real *out, ptrdiff_t out_row) {
  sl_square_row r[SL_SQUARE];
  SL_UNROLL for (int i = 0; i < SL_SQUARE; i++) {
    r[i] = *(const sl_square_row *)(from + i * row) * scale;
  }
  SL_UNROLL for (int i = 0; i < SL_SQUARE; i += 2) SL_ELEMENTS (i, i + 1);
#ifdef SL_PAIRS
  SL_UNROLL for (int i = 0; i < SL_SQUARE; i += 4) {
    SL_PAIRS (i, i + 2);
    SL_PAIRS (i + 1, i + 3);
  }
#endif
#ifdef SL_HALVES
  SL_UNROLL for (int i = 0; i < SL_SQUARE / 2; i++)
      SL_HALVES (i, i + SL_SQUARE / 2);
#endif
  SL_UNROLL for (int i = 0; i < SL_SQUARE; i++) {
#ifdef SL_PAIRS /* the middle two of every four rows are exchanged */
    const int at = i % 4 == 1 ? i + 1 : i % 4 == 2 ? i - 1 : i;
#else
    const int at = i;
#endif
    *(sl_square_row *)(out + i * out_row) = r[at];
  }
}
#undef SL_ELEMENTS
#undef SL_PAIRS
#undef SL_HALVES
#undef SL_SWAP
#undef SL_LIST

/* out (width) = scale from; width is a multiple of SL_SQUARE. */
SL_INLINE void sl_scale (int width, real scale, const real *from, real *out) {
  for (int i = 0; i < width; i += SL_SQUARE)
    *(sl_square_row *)(out + i) = scale * *(const sl_square_row *)(from + i);
}

/* out (k, width): out[p][lane] = scale from[lane, p] for lane < lanes, else
** 0. */
SL_INLINE void sl_pack (int width, ptrdiff_t lanes, ptrdiff_t k, real scale,
                        const real *from, ptrdiff_t lane_step, ptrdiff_t k_step,
                        real *out) {
  ptrdiff_t lane = 0;
  if (lane_step == 1 && lanes == width) {
    for (ptrdiff_t p = 0; p < k; p++)
      sl_scale (width, scale, from + p * k_step, out + p * width);
    return;
  }
  if (k_step == 1) {
    for (; lane + SL_SQUARE <= lanes; lane += SL_SQUARE) {
      const real *strip = from + lane * lane_step;
      ptrdiff_t p = 0;
      for (; p + SL_SQUARE <= k; p += SL_SQUARE)
        sl_transpose (strip + p, lane_step, scale, out + p * width + lane,
                      width);
      for (; p < k; p++)
        for (int j = 0; j < SL_SQUARE; j++)
          out[p * width + lane + j] = scale * strip[j * lane_step + p];
    }
  }
  for (; lane < lanes; lane++)
    for (ptrdiff_t p = 0; p < k; p++)
      out[p * width + lane] = scale * from[lane * lane_step + p * k_step];
  for (; lane < width; lane++)
    for (ptrdiff_t p = 0; p < k; p++) out[p * width + lane] = 0;
}
#endif
