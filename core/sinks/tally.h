/* tally.h - sums over the rows of one head, and means and spreads of its
** weights. */
#ifndef SL_TALLY_H
#define SL_TALLY_H
#include "sinks/sinks.h"

/* Mean and sum of squared distances from it (Welford 1962), merged by the
** formula of Chan, Golub and LeVeque 1979: exact to rounding however small the
** spread is. */
typedef struct sl_spread {
  double n, mean, m2;
} sl_spread;

/* What one head has shown: in one sample, in a part of the samples, in all of
** them. */
typedef struct sl_tally {
  long blocks, samples; /* seen at all; with a valid token */
  long plain, firsts, triggers;
  sl_spread first;               /* weight on position 1, plain rows */
  double first_min;              /* infinite: no plain row yet */
  double first_row, trigger_row; /* its sums over first and trigger rows */
  /* sums over plain rows */
  double mass, size, outside, null, proxy, entropy, contribution;
  double norms; /* sum of norm over samples */
  long over;    /* samples above the threshold */
  /* of a sample that is open */
  double column; /* sum of the weights on position 1 over all rows */
  double norm;   /* || W_O v_1 ||_2 */
  int length;
} sl_tally;

typedef enum sl_row_class {
  SL_ROW_PLAIN,
  SL_ROW_FIRST,
  SL_ROW_TRIGGER
} sl_row_class;

void sl_tally_reset (sl_tally *t);
/* One row that sees columns lo..hi-1 of w; column 'first' is position 1, those
** before it are no positions. */
void sl_tally_row (sl_tally *t, sl_row_class class, const double *w, int first,
                   int lo, int hi);
void sl_tally_close (sl_tally *t, double threshold);
void sl_tally_merge (sl_tally *into, const sl_tally *t);
void sl_tally_result (const sl_tally *t, long rows, sl_head_sinks *out);

/* Mean and spread of every weight over samples. A row that a sample does not
** have counts as zeros. */
typedef struct sl_maps {
  size_t heads; /* of all layers */
  int tokens, columns;
  double *mean, *m2; /* [head][query][column] */
  long *count;       /* [head][query]: samples that had the row */
} sl_maps;

/* Bytes of the means and spreads; SIZE_MAX when that overflows. */
size_t sl_maps_bytes (size_t heads, int tokens, int columns);
int sl_maps_init (sl_maps *m, size_t heads, int tokens, int columns);
void sl_maps_free (sl_maps *m);
void sl_maps_row (sl_maps *m, int head, int query, const double *w);
void sl_maps_merge (sl_maps *into, const sl_maps *m);
/* m2 becomes the standard deviation with samples - 1 (NaN for one sample). */
void sl_maps_result (sl_maps *m, long samples);
#endif
