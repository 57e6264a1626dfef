/* measures.h - the tables of row measures and segment measures. */
#ifndef SL_MEASURES_H
#define SL_MEASURES_H
#include "sinks/scan.h"
#include "sinks/sinks.h"

/* A row as the measures see it. */
typedef struct sl_row_facts {
  sl_scan scan;
  double first;     /* A[i,1]; 0 where it is not visible */
  double norm;      /* || W_O v_1 ||_2; NaN: not known */
  double logit;     /* NaN: not known */
  int keys, tokens; /* visible: of all kinds, and tokens */
} sl_row_facts;

/* How many row measures there are. */
extern const int sl_row_measures;
/* x receives all of them. */
void sl_row_measure_all (const sl_row_facts *f, double *x);

/* A segment whose rows have all been seen. */
typedef struct sl_segment_facts {
  const sl_measuring *m;
  int n;                     /* tokens */
  double first, over_rowsum; /* a_1, and of |A| / (sum of |A| + 1e-8) */
  double threshold;          /* of a rate; set by sl_segment_measure_add */
  double norm;               /* || W_O v_1 ||_2; NaN: not known */
  /* SL_MEASURE_COLUMNS: weight and over_rowsum are means over the rows from
  ** each position on, rows how many there are. */
  const sl_columns *columns;
  const double *key, *value, *output; /* SL_MEASURE_NORMS: (n) norms */
} sl_segment_facts;

/* Sums over segments. NaN once a value was. */
typedef struct sl_segment_sums {
  double sum[SL_MOST_SEGMENT_MEASURES];
  double at[SL_RATES][SL_MOST_THRESHOLDS]; /* at the thresholds of the curve */
  long count[SL_MOST_SEGMENT_MEASURES];    /* segments that have the measure */
} sl_segment_sums;

/* Adds the measures of this group, SL_MEASURE_... or 0. */
void sl_segment_measure_add (const sl_segment_facts *f, unsigned group,
                             sl_segment_sums *sums);
void sl_segment_result (const sl_segment_sums *s, const sl_measuring *m,
                        sl_head_sinks *out);
#endif
