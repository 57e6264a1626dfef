/* pair.h - elementwise kernels of two operands; one of them may be a single
** number a row: a column times a matrix, a row plus a matrix.
**
** A row is done in pieces of eight or four elements; the last piece may overlap
** its neighbour, so that rows of four or more elements have no scalar tail. A
** number that broadcasts along the row stays in a register. Numeric code:
** include it from files that are compiled per precision. */
#ifndef SL_PAIR_H
#define SL_PAIR_H
#include <sinklab/plugin.h>
#include <stddef.h>

enum { SL_PAIR_MIN = 4, SL_PAIR_PIECE = 8 };

/* 'rows' rows of n >= SL_PAIR_MIN results. */
typedef struct sl_pair {
  ptrdiff_t rows, n;
  const real *x[2];
  ptrdiff_t row[2]; /* stride between rows */
  int scalar[2];    /* 1: the row is one number at x; 0: n contiguous ones */
  real *y;          /* (rows, n), contiguous; overlaps no operand */
} sl_pair;

typedef void (*sl_pair_kernel) (const sl_pair *p);

/* Vectors of eight and four reals, not aligned. */
typedef real sl_eight __attribute__ ((vector_size (8 * sizeof (real)),
                                      aligned (sizeof (real)), may_alias));
typedef real sl_four __attribute__ ((vector_size (4 * sizeof (real)),
                                     aligned (sizeof (real)), may_alias));

#define SL_PAIR_INLINE static inline __attribute__ ((always_inline))

/* The kernel 'name': y = value, an expression of the vectors a and b. */
#define SL_PAIR(name, value)                                  \
  SL_PAIR_FORM (name##_eight, sl_eight, SL_PAIR_PIECE, value) \
  SL_PAIR_FORM (name##_four, sl_four, SL_PAIR_MIN, value)     \
  static void name (const sl_pair *p) {                       \
    if (p->n < SL_PAIR_PIECE)                                 \
      name##_four (p, p->scalar[0], p->scalar[1]);            \
    else if (p->scalar[0])                                    \
      name##_eight (p, 1, 0);                                 \
    else if (p->scalar[1])                                    \
      name##_eight (p, 0, 1);                                 \
    else                                                      \
      name##_eight (p, 0, 0);                                 \
  }
#define SL_PAIR_FORM(name, vector, size, value)                             \
  SL_PAIR_INLINE void name (const sl_pair *p, int scalar_a, int scalar_b) { \
    const real *left = p->x[0], *right = p->x[1];                           \
    const ptrdiff_t n = p->n, end = n - (size);                             \
    const ptrdiff_t left_row = p->row[0], right_row = p->row[1];            \
    real *y = p->y;                                                         \
    for (ptrdiff_t r = p->rows; r > 0; r--) {                               \
      const vector u = *left - (vector){ 0 };                               \
      const vector v = *right - (vector){ 0 };                              \
      for (ptrdiff_t j = 0; j < end; j += (size))                           \
        SL_PAIR_AT (vector, j, value)                                       \
      SL_PAIR_AT (vector, end, value)                                       \
      left += left_row, right += right_row, y += n;                         \
    }                                                                       \
  }
#define SL_PAIR_AT(vector, at, value)                                \
  {                                                                  \
    const vector a = scalar_a ? u : *(const vector *)(left + (at));  \
    const vector b = scalar_b ? v : *(const vector *)(right + (at)); \
    *(vector *)(y + (at)) = value;                                   \
  }
#endif
