/* accumulator.h - sums over the rows of one head, and means and spreads of its
** weights. */
#ifndef SL_ACCUMULATOR_H
#define SL_ACCUMULATOR_H
#include "sinks/measures.h"

/* Mean and sum of squared distances from it (Welford 1962), merged by the
** formula of Chan, Golub and LeVeque 1979: exact to rounding however small the
** spread is. */
typedef struct sl_moments {
  double n, mean, m2;
} sl_moments;

/* The sums of one head: in one sample, in a part of the samples, in all of
** them. */
typedef struct sl_accumulator {
  long blocks, segments; /* seen at all; with a row that sees a key */
  long rows[SL_ROW_CLASSES], masked, logits[SL_ROW_CLASSES];
  double sum[SL_ROW_CLASSES][SL_MOST_ROW_MEASURES];
  sl_moments first; /* A[i,1] of plain rows */
  double first_min; /* infinite: no plain row yet */
  double share[SL_SHARES], even[SL_SHARES], largest[SL_SHARES];
  long share_rows;
  sl_segment_sums segment;
  /* the segment that is open: tokens begin..end-1 */
  int begin, end;
  double column, column_over_rowsum; /* sums over its rows at position 1 */
  long used;                         /* rows that see a key */
  double norm;                       /* || W_O v_1 || */
} sl_accumulator;

/* Nothing has been seen. */
void sl_accumulator_reset (sl_accumulator *t);
/* One row's measures, all SL_ROW_MEASURES of them. */
void sl_accumulator_row (sl_accumulator *t, sl_row_class class,
                         const double *x);
void sl_accumulator_merge (sl_accumulator *into, const sl_accumulator *t);
/* rows: of all samples, padding included. */
void sl_accumulator_result (const sl_accumulator *t, const sl_measuring *m,
                            long rows, sl_head_sinks *out);

/* Mean and spread of every weight over the samples that have its row: padding
** and rows that see nothing would dilute them. */
typedef struct sl_maps {
  size_t heads; /* kept */
  int tokens, columns;
  double *mean, *m2; /* [head][query][column] */
  long *count;       /* [head][query]: samples that had the row */
} sl_maps;

/* Bytes of the means and spreads; SIZE_MAX when that overflows. */
size_t sl_maps_bytes (size_t heads, int tokens, int columns);
int sl_maps_init (sl_maps *m, size_t heads, int tokens, int columns);
void sl_maps_free (sl_maps *m);
/* The row at w has 'shown' columns, the rest are zeros; column 0 of the map is
** 'null'. */
void sl_maps_row (sl_maps *m, int head, int query, double null, const void *w,
                  sl_dtype dtype, int shown);
void sl_maps_merge (sl_maps *into, const sl_maps *m);
/* m2 becomes the standard deviation with n - 1 of the n samples that had the
** row (NaN for one or none). */
void sl_maps_result (sl_maps *m);
#endif
