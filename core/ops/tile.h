/* tile.h - the vectors of the machine, and the product that stays in registers.
**
** Every matrix product of the project runs through sl_strip: rows of C, one or
** two vectors wide, += A B. A number of A is read by broadcast, so any strides
** of A are free; B and C are read as vectors. The sum of an element takes its
** products in the order of k, whatever the sizes.
**
** Numeric code: include it from files that are compiled per precision. */
#ifndef SL_TILE_H
#define SL_TILE_H
#include "ops/shuffle.h"
#include <sinklab/lanes.h>

/* Rows of a tile: two vectors a row give as many sums as hide the latency of an
** addition; a row more or two still fits the registers. TALL rows of one vector
** are as many sums. */
#if defined __AVX512F__ || defined __aarch64__
enum { SL_TILE_ROWS = 8, SL_TALL = 16 };
#else
enum { SL_TILE_ROWS = 4, SL_TALL = 8 };
#endif
#define SL_INLINE static inline __attribute__ ((always_inline, unused))

/* Sums are registers once their loops are gone; a loop that stays is as long as
** it is written. */
#ifdef __clang__
#define SL_UNROLL _Pragma ("clang loop unroll(full)")
#define SL_NO_UNROLL _Pragma ("clang loop unroll(disable)")
#else
#define SL_UNROLL _Pragma ("GCC unroll 16")
#define SL_NO_UNROLL _Pragma ("GCC unroll 1")
#endif

/* x is in a register up to here: so gcc adds into the registers of the sums,
** not into those of the factors, which costs moves and spills. */
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

/* A sanitizer checks every address: four steps take a compiler four times as
** long. */
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
#define SL_CHECKED
#elif defined __has_feature
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SL_CHECKED
#endif
#endif

/* rows x vectors of C = A (rows x k) B (k x vectors), or += if 'add'. */
SL_INLINE void sl_tile (int rows, int vectors, ptrdiff_t k, const real *a,
                        ptrdiff_t a_row, ptrdiff_t a_col, const real *b,
                        ptrdiff_t b_row, int add, real *c, ptrdiff_t c_row) {
  sl_lanes sum[SL_TALL][2];
  if (add) {
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
      const sl_lanes factor = sl_every (a[i * a_row]);                        \
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
  /* four steps: a core that two threads share fetches a short loop slowly */
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

/* A packed panel: [k][SL_PANEL_ROWS], one tile or two side by side. */
#if defined SL_SINGLE && SL_LANE_BYTES == 32
enum { SL_PANEL_ROWS = 8 };
#else
enum { SL_PANEL_ROWS = SL_TILE_ROWS };
#endif

/* m rows of C, 'vectors' (1 or 2) wide, = or += A B. 'vectors', and whatever
** strides are known, are constants where this is called. A lies in panels if
** 'packed': then a_row and a_col are not read. */
SL_INLINE void sl_strip (int packed, int vectors, ptrdiff_t m, ptrdiff_t k,
                         const real *a, ptrdiff_t a_row, ptrdiff_t a_col,
                         const real *b, ptrdiff_t b_row, int add, real *c,
                         ptrdiff_t c_row) {
  const ptrdiff_t row = packed ? 1 : a_row,
                  col = packed ? SL_PANEL_ROWS : a_col;
  ptrdiff_t i = 0, rest;
#define SL_TILE(rows)                                            \
  sl_tile (rows, vectors, k, a + SL_AT, row, col, b, b_row, add, \
           c + i * c_row, c_row)
#define SL_AT \
  (packed ? (i - i % SL_PANEL_ROWS) * k + i % SL_PANEL_ROWS : i * a_row)
  if (vectors == 1 && !packed)
    for (; i + SL_TALL <= m; i += SL_TALL) SL_TILE (SL_TALL);
  /* one or two rows are too few sums: they join the last full tile */
  rest = (m - i) % SL_TILE_ROWS;
  if (!packed && rest > 0 && rest < 3 && m - i > SL_TILE_ROWS)
    rest += SL_TILE_ROWS;
  for (; i < m - rest; i += SL_TILE_ROWS) {
    if (packed) /* who packs has a C that lies far away */
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

/* Squares are transposed by exchanging elements of pairs of rows, then pairs
** of elements, then halves: shuffles within 16 bytes first, those across them
** last. SL_SWAP (i, j, low, high): rows i and j become what the lists take of
** both. */
#if SL_LANE_BYTES > 16
typedef real sl_side
    __attribute__ ((vector_size (32), aligned (sizeof (real)), may_alias));
#else
typedef real sl_side
    __attribute__ ((vector_size (16), aligned (sizeof (real)), may_alias));
#endif
enum { SL_SIDE = sizeof (sl_side) / sizeof (real) };
#ifdef SL_SINGLE
typedef int32_t sl_side_list __attribute__ ((vector_size (sizeof (sl_side))));
#else
typedef int64_t sl_side_list __attribute__ ((vector_size (sizeof (sl_side))));
#endif
#define SL_LIST(...) __VA_ARGS__
#define SL_SWAP(i, j, low, high)                                    \
  do {                                                              \
    const sl_side one = SL_SHUFFLE (sl_side_list, r[i], r[j], low); \
    r[j] = SL_SHUFFLE (sl_side_list, r[i], r[j], high);             \
    r[i] = one;                                                     \
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

/* out = the transpose of a square of SL_SIDE rows at 'from', times 'scale'. */
SL_INLINE void sl_transpose (const real *from, ptrdiff_t row, real scale,
                             real *out, ptrdiff_t out_row) {
  sl_side r[SL_SIDE];
  SL_UNROLL for (int i = 0; i < SL_SIDE; i++) {
    r[i] = *(const sl_side *)(from + i * row) * scale;
  }
  SL_UNROLL for (int i = 0; i < SL_SIDE; i += 2) SL_ELEMENTS (i, i + 1);
#ifdef SL_PAIRS
  SL_UNROLL for (int i = 0; i < SL_SIDE; i += 4) {
    SL_PAIRS (i, i + 2);
    SL_PAIRS (i + 1, i + 3);
  }
#endif
#ifdef SL_HALVES
  SL_UNROLL for (int i = 0; i < SL_SIDE / 2; i++)
      SL_HALVES (i, i + SL_SIDE / 2);
#endif
  SL_UNROLL for (int i = 0; i < SL_SIDE; i++) {
#ifdef SL_PAIRS /* the two in the middle of every four have changed places */
    const int at = i % 4 == 1 ? i + 1 : i % 4 == 2 ? i - 1 : i;
#else
    const int at = i;
#endif
    *(sl_side *)(out + i * out_row) = r[at];
  }
}
#undef SL_ELEMENTS
#undef SL_PAIRS
#undef SL_HALVES
#undef SL_SWAP
#undef SL_LIST

/* out = scale from: 'width', a multiple of SL_SIDE, reals. */
SL_INLINE void sl_scale (int width, real scale, const real *from, real *out) {
  for (int i = 0; i < width; i += SL_SIDE)
    *(sl_side *)(out + i) = scale * *(const sl_side *)(from + i);
}

/* out[p][lane] = scale from (lane, p) for lane < lanes, 0 up to 'width'. */
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
    for (; lane + SL_SIDE <= lanes; lane += SL_SIDE) {
      const real *strip = from + lane * lane_step;
      ptrdiff_t p = 0;
      for (; p + SL_SIDE <= k; p += SL_SIDE)
        sl_transpose (strip + p, lane_step, scale, out + p * width + lane,
                      width);
      for (; p < k; p++)
        for (int j = 0; j < SL_SIDE; j++)
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
