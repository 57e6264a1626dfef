/* panel.h - a few rows of a packed matrix unpacked into a product (numeric
** code). */
#ifndef SL_WEIGHT_PANEL_H
#define SL_WEIGHT_PANEL_H
#include <stddef.h>

/* y (rows, columns) = or += x (rows, in) w^T, where w (columns, in) is packed.
** Rows of x and y are contiguous, x_row and y_row numbers apart. */
typedef struct sl_weight_panel {
  ptrdiff_t rows, columns, in;
  const void *x, *bias; /* bias: columns numbers, or NULL */
  const char *w;        /* the first row */
  size_t w_row;         /* bytes */
  int kind, block, bytes;
  void *y;
  ptrdiff_t x_row, y_row;
  void *scratch; /* aligned to 64 bytes */
} sl_weight_panel;

typedef struct sl_weight_panel_functions {
  /* How many numbers of scratch a panel of these sizes wants. */
  size_t (*scratch) (ptrdiff_t rows, ptrdiff_t columns, ptrdiff_t in);
  /* Any thread. The bits of an element do not depend on the panel it is in. */
  void (*multiply) (const sl_weight_panel *p);
} sl_weight_panel_functions;
#endif
