/* gemm_body.c - the product against a triple loop in long double. */
#include "ops/gemm.h"
#include "support/variants.h"
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#ifdef SL_SINGLE
#define EPSILON 0x1p-23
#else
#define EPSILON 0x1p-52
#endif
enum { GUARD = 16 };
/* ck_assert_msg writes to a pipe each time, which is slow in a loop. */
#define HOLDS(condition, ...)                     \
  do {                                            \
    if (!(condition)) ck_abort_msg (__VA_ARGS__); \
  } while (0)
#define MARK ((real)12345)

static uint64_t state;

static uint32_t draw (uint32_t below) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(state >> 33) % below;
}

static real number (void) {
  return (real)((int)draw (4001) - 2000) / 1000;
}

/* A matrix somewhere in a buffer of random numbers. */
typedef struct matrix {
  real *buffer, *at;
  ptrdiff_t row, col;
} matrix;

enum { ROWS_LIE, COLUMNS_LIE, SPREAD, BACKWARD, REPEAT_ROW, REPEAT_COL, FORMS };

static matrix make (int form, ptrdiff_t rows, ptrdiff_t cols) {
  matrix x;
  const ptrdiff_t skip = draw (5), gap = draw (4);
  const size_t size = (size_t)(3 * (rows + 8) * (cols + 8) + 64);
  x.buffer = malloc (size * sizeof *x.buffer);
  ck_assert_ptr_nonnull (x.buffer);
  for (size_t i = 0; i < size; i++) x.buffer[i] = number ();
  x.at = x.buffer + skip;
  x.row = cols + gap;
  x.col = 1;
  if (form == COLUMNS_LIE) {
    x.row = 1;
    x.col = rows + gap;
  } else if (form == SPREAD) {
    x.col = 2;
    x.row = 2 * cols + gap;
  } else if (form == BACKWARD) {
    x.at += rows * x.row;
    x.row = -x.row;
  } else if (form == REPEAT_ROW) {
    x.row = 0;
  } else if (form == REPEAT_COL) {
    x.col = 0;
  }
  return x;
}

static real *scratch_for (ptrdiff_t m, ptrdiff_t n, ptrdiff_t k, real **end) {
  const size_t count = SL (sl_gemm_scratch) (m, n, k);
  real *s = aligned_alloc (64, ((count + GUARD) * sizeof *s + 63) / 64 * 64);
  ck_assert_ptr_nonnull (s);
  *end = s + count;
  for (size_t i = 0; i < count; i++) s[i] = (real)NAN;
  for (int i = 0; i < GUARD; i++) (*end)[i] = MARK;
  return s;
}

static void one_product (ptrdiff_t m, ptrdiff_t n, ptrdiff_t k, int form_a,
                         int form_b, uint64_t seed) {
  static const real factors[] = { 1, 1, (real)0.25, (real)-1.7, 0 };
  static const real keeps[] = { 0, 1, (real)-0.5, 0 };
  const real alpha = factors[draw (5)], beta = keeps[draw (4)];
  matrix a = make (form_a, m, k), b = make (form_b, k, n);
  const ptrdiff_t c_row = n + draw (4);
  const size_t c_size = (size_t)(m * c_row + n + 1);
  real *c = malloc ((c_size + 1) * sizeof *c), *end;
  real *before = malloc ((c_size + 1) * sizeof *before);
  real *s = scratch_for (m, n, k, &end);
  ck_assert (c != NULL && before != NULL);
  for (size_t i = 0; i < c_size; i++) c[i] = beta == 0 ? (real)NAN : number ();
  memcpy (before, c, c_size * sizeof *c);
  SL (sl_gemm)
  (m, n, k, alpha, a.at, a.row, a.col, b.at, b.row, b.col, beta, c, c_row, s);
  for (size_t at = 0; at < c_size; at++) {
    const ptrdiff_t i = c_row ? (ptrdiff_t)at / c_row : 0;
    const ptrdiff_t j = (ptrdiff_t)at - i * c_row;
    long double want = 0, size = 0;
    if (i >= m || j >= n) {
      HOLDS (memcmp (c + at, before + at, sizeof *c) == 0,
             "%s seed %llu: %td x %td x %td wrote element (%td, %td)", VARIANT,
             (unsigned long long)seed, m, n, k, i, j);
      continue;
    }
    if (beta != 0) want = (long double)beta * before[at];
    size = fabsl (want);
    for (ptrdiff_t p = 0; p < k; p++) {
      const long double term = (long double)alpha *
                               a.at[i * a.row + p * a.col] *
                               b.at[p * b.row + j * b.col];
      want += term;
      size += fabsl (term);
    }
    HOLDS (fabsl (c[at] - want) <= (long double)(k + 3) * EPSILON * size,
           "%s seed %llu: %td x %td x %td, forms %d %d, alpha %g, beta %g: "
           "(%td, %td) is %.17g, want %.17Lg",
           VARIANT, (unsigned long long)seed, m, n, k, form_a, form_b,
           (double)alpha, (double)beta, i, j, (double)c[at], want);
  }
  for (int i = 0; i < GUARD; i++)
    HOLDS (end[i] == MARK, "%s: wrote past its scratch (%td %td %td)", VARIANT,
           m, n, k);
  free (a.buffer);
  free (b.buffer);
  free (c);
  free (before);
  free (s);
}

/* Sizes around every tile, all pairs of layouts. */
static void small (void) {
  for (uint64_t seed = 1; seed <= 2000; seed++) {
    state = seed;
    draw (2);
    const int form_a = (int)(seed % FORMS),
              form_b = (int)(seed / FORMS % FORMS);
    const ptrdiff_t m = draw (41), n = draw (41), k = draw (41);
    one_product (m, n, k, form_a, form_b, seed);
  }
}

/* Every rest of rows and of columns around one and two tiles, twice: read
** where they lie, and packed. */
static void rests (void) {
  for (ptrdiff_t m = 1; m <= 18; m++)
    for (ptrdiff_t n = 1; n <= 36; n++)
      for (int turned = 0; turned < 2; turned++) {
        state = (uint64_t)(100 * m + n);
        one_product (m, n, 9, turned ? COLUMNS_LIE : ROWS_LIE,
                     turned ? COLUMNS_LIE : ROWS_LIE, state);
      }
}

/* Sizes beyond every block. */
static void large (void) {
  static const ptrdiff_t sizes[][3] = { { 70, 75, 300 }, { 200, 40, 20 },
                                        { 3, 1100, 30 }, { 100, 18, 300 },
                                        { 109, 70, 90 }, { 40, 150, 270 } };
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
    for (int form = 0; form < 4; form++) {
      state = 77 + (uint64_t)form;
      one_product (sizes[i][0], sizes[i][1], sizes[i][2], form % 2, form / 2,
                   state);
    }
}

/* The bits of an element do not depend on what is computed around it: all at
** once, row by row and column by column, and by the form without scratch. */
static void same_bits (void) {
  enum { M = 103, N = 75, K = 530 };
  for (int turned = 0; turned < 4; turned++) {
    const int ta = turned & 1, tb = turned >> 1;
    matrix a, b;
    real *end, *s = scratch_for (M, N, K, &end);
    real *c[4];
    state = 5;
    a = make (ta ? COLUMNS_LIE : ROWS_LIE, M, K);
    b = make (tb ? COLUMNS_LIE : ROWS_LIE, K, N);
    for (int i = 0; i < 4; i++) {
      c[i] = malloc (M * N * sizeof *c[i]);
      ck_assert_ptr_nonnull (c[i]);
      for (int j = 0; j < M * N; j++) c[i][j] = (real)(j % 13) / 7;
    }
    SL (sl_gemm)
    (M, N, K, (real)1.3, a.at, a.row, a.col, b.at, b.row, b.col, 1, c[0], N, s);
    for (int i = 0; i < M; i++) SL (sl_gemm)
    (1, N, K, (real)1.3, a.at + i * a.row, a.row, a.col, b.at, b.row, b.col, 1,
     c[1] + i * N, N, s);
    for (int j = 0; j < N; j++) SL (sl_gemm)
    (M, 1, K, (real)1.3, a.at, a.row, a.col, b.at + j * b.col, b.row, b.col, 1,
     c[2] + j, N, s);
    SL (sl_gemm_host)
    (ta, tb, M, N, K, (real)1.3, a.at, (int)(ta ? a.col : a.row), b.at,
     (int)(tb ? b.col : b.row), 1, c[3], N);
    for (int i = 1; i < 4; i++)
      for (int j = 0; j < M * N; j++)
        HOLDS (memcmp (&c[0][j], &c[i][j], sizeof (real)) == 0,
               "%s: element %d differs in way %d: %.17g, %.17g", VARIANT, j, i,
               (double)c[0][j], (double)c[i][j]);
    for (int i = 0; i < 4; i++) free (c[i]);
    free (a.buffer);
    free (b.buffer);
    free (s);
  }
}

/* NaN and infinity reach the elements that they belong to and no other. */
static void special_values (void) {
  enum { M = 13, N = 21, K = 17 };
  const real bad[] = { (real)NAN, (real)INFINITY, -(real)INFINITY };
  for (int which = 0; which < 3; which++)
    for (int in_b = 0; in_b < 2; in_b++) {
      real a[M * K], b[K * N], c[M * N], *end;
      real *s = scratch_for (M, N, K, &end);
      for (int i = 0; i < M * K; i++) a[i] = in_b ? 0 : 1;
      for (int i = 0; i < K * N; i++) b[i] = in_b ? 1 : 0;
      *(in_b ? &b[4 * N + 20] : &a[12 * K + 4]) = bad[which];
      SL (sl_gemm) (M, N, K, 1, a, K, 1, b, N, 1, 0, c, N, s);
      for (int i = 0; i < M; i++)
        for (int j = 0; j < N; j++) {
          const int reached = in_b ? j == 20 : i == 12;
          HOLDS (reached ? isnan (c[i * N + j]) : c[i * N + j] == 0,
                 "%s: 0 * %g in %c: (%d, %d) is %g", VARIANT,
                 (double)bad[which], in_b ? 'B' : 'A', i, j,
                 (double)c[i * N + j]);
        }
      free (s);
    }
}

static void run (void) {
  small ();
  rests ();
  large ();
  same_bits ();
  special_values ();
}

VARIANT_TEST (gemm_body) = { run };
