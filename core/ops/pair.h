/* pair.h - elementwise kernels of two operands of which one may repeat along
** the rows of the other: a column times a matrix, a row plus a matrix.
**
** A row is done in pieces of eight or four elements, the last of which may lie
** over its neighbour, so that rows of any length from four on have no rest of
** single elements; what repeats is kept in a register. Numeric code: include it
** from files that are compiled per precision. */
#ifndef SL_PAIR_H
#define SL_PAIR_H
#include <sinklab/plugin.h>
#include <stddef.h>

enum { SL_PAIR_LEAST = 4, SL_PAIR_PIECE = 8 };

/* 'rows' rows of n >= SL_PAIR_LEAST results. */
typedef struct sl_pair {
  ptrdiff_t rows, n;
  const real *x[2];
  ptrdiff_t row[2]; /* from a row to the next one */
  int one[2];       /* 1: the row is the one number at x, 0: n side by side */
  real *y;          /* rows x n, contiguous, no part of an operand */
} sl_pair;

typedef void (*sl_pair_kernel) (const sl_pair *p);

/* Short rows as vectors, which need not be aligned. */
typedef real sl_eight __attribute__ ((vector_size (8 * sizeof (real)),
                                      aligned (sizeof (real)), may_alias));
typedef real sl_four __attribute__ ((vector_size (4 * sizeof (real)),
                                     aligned (sizeof (real)), may_alias));

#define SL_PAIR_INLINE static inline __attribute__ ((always_inline))

/* The kernel 'name': y = value, which is said in the vectors a and b. */
#define SL_PAIR(name, value)                                  \
  SL_PAIR_FORM (name##_eight, sl_eight, SL_PAIR_PIECE, value) \
  SL_PAIR_FORM (name##_four, sl_four, SL_PAIR_LEAST, value)   \
  static void name (const sl_pair *p) {                       \
    if (p->n < SL_PAIR_PIECE)                                 \
      name##_four (p, p->one[0], p->one[1]);                  \
    else if (p->one[0])                                       \
      name##_eight (p, 1, 0);                                 \
    else if (p->one[1])                                       \
      name##_eight (p, 0, 1);                                 \
    else                                                      \
      name##_eight (p, 0, 0);                                 \
  }
#define SL_PAIR_FORM(name, vector, size, value)                       \
  SL_PAIR_INLINE void name (const sl_pair *p, int one_a, int one_b) { \
    const real *left = p->x[0], *right = p->x[1];                     \
    const ptrdiff_t n = p->n, end = n - (size);                       \
    const ptrdiff_t left_row = p->row[0], right_row = p->row[1];      \
    real *y = p->y;                                                   \
    for (ptrdiff_t r = p->rows; r > 0; r--) {                         \
      const vector u = *left - (vector){ 0 };                         \
      const vector v = *right - (vector){ 0 };                        \
      for (ptrdiff_t j = 0; j < end; j += (size))                     \
        SL_PAIR_AT (vector, j, value)                                 \
      SL_PAIR_AT (vector, end, value)                                 \
      left += left_row, right += right_row, y += n;                   \
    }                                                                 \
  }
#define SL_PAIR_AT(vector, at, value)                             \
  {                                                               \
    const vector a = one_a ? u : *(const vector *)(left + (at));  \
    const vector b = one_b ? v : *(const vector *)(right + (at)); \
    *(vector *)(y + (at)) = value;                                \
  }
#endif
