/* packed_rows.h - the product with a few rows of a quantised matrix (numeric
** code). */
#ifndef SL_PACKED_ROWS_H
#define SL_PACKED_ROWS_H
#include <stddef.h>

/* y (rows, columns) = or += x (rows, in) w^T, where w (columns, in) is packed.
** Rows of x and y are contiguous, x_row and y_row numbers apart. */
typedef struct sl_packed_rows {
  ptrdiff_t rows, columns, in;
  const void *x, *bias; /* bias: columns numbers, or NULL */
  const char *w;        /* the first row */
  size_t w_row;         /* bytes */
  int kind, block, bytes;
  void *y;
  ptrdiff_t x_row, y_row;
  void *scratch; /* aligned to 64 bytes */
} sl_packed_rows;

typedef struct sl_packed_rows_functions {
  /* Numbers of scratch that a product of these sizes needs. */
  size_t (*scratch) (ptrdiff_t rows, ptrdiff_t columns, ptrdiff_t in);
  /* Any thread. The bits of an element do not depend on 'rows' and 'columns'. */
  void (*multiply) (const sl_packed_rows *p);
} sl_packed_rows_functions;
#endif
