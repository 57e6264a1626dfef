/* scan.h - a row of weights is read: its sums, and its part of the columns. */
#ifndef SL_SCAN_H
#define SL_SCAN_H
#include "tensor/tensor.h"
#include <stdint.h>

/* Sums over the rows of a segment for each of its keys, from the segment's
** first row on. */
typedef struct sl_columns {
  double *weight;      /* A */
  double *over_rowsum; /* |A| / (sum of the row's |A| + 1e-8) */
  double *plogp;       /* p log p, p = |A| / sum of the row's |A| */
  double *share;       /* p */
  uint32_t *seen;      /* entries that are not 0 */
  uint32_t *rows;      /* 1: the row of this position sees a key */
} sl_columns;

typedef struct sl_scan {
  double virtual_mass,
      virtual_size;  /* sums of A and |A| before column 'token' */
  double mass, size; /* and from there on */
  double entropy;    /* of |A| / sum, nats; 0 for an all-zero row;
                                ** filled by the kernel of that name */
  double largest;    /* |A| on a token */
  ptrdiff_t zeros;   /* tokens with |A| <= 1e-5 */
} sl_scan;

/* One table a precision and instruction set. Rows are 'real'. */
typedef struct sl_scan_kernels {
  /* Columns lo..hi-1 of w, tokens from 'token' on; all but the entropy. */
  void (*row) (const void *w, int lo, int hi, int token, sl_scan *out);
  /* The entropy of columns lo..hi-1; size: sum of the row's |A|. Adds columns
  ** first..last-1, which are among them, to c, whose position 0 is 'first';
  ** c NULL: adds nothing, to the same entropy. */
  double (*entropy) (const void *w, int lo, int hi, double size, int first,
                     int last, const sl_columns *c);
  double (*sum) (const void *x, int first, int last);
  /* || sum over j of x[j * step] w[j][0..n-1] ||, || x || if w is NULL.
  ** triangle 1: w[j][i] is 0 where i > j. */
  double (*norm) (const void *x, ptrdiff_t step, int d, const double *w, int n,
                  int triangle);
  /* out[j] = w[j] in double */
  void (*widen) (const void *w, int n, double *out);
  /* r[0..d-1], vectors of d numbers one behind the other, of w[0..d-1], vectors
  ** of n: || sum of x[j] r[j] || = || sum of x[j] w[j] || for every x. w is
  ** destroyed. */
  void (*shorten) (double *w, int d, int n, double *r);
} sl_scan_kernels;

/* 1 above the bound, else 0; a NaN stays one in sums of these. */
static inline double sl_above (double x, double bound) {
  return x != x ? x : x > bound;
}

/* In the instruction set in use. */
const sl_scan_kernels *sl_scan_pick (sl_dtype dtype);
#endif
