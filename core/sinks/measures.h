/* measures.h - the table of what is measured of a row. */
#ifndef SL_MEASURES_H
#define SL_MEASURES_H
#include "sinks/scan.h"
#include "sinks/sinks.h"

/* A row as the measures see it. */
typedef struct sl_row_facts {
  sl_scan scan;
  double first;     /* A[i,1]; 0 where it is not visible */
  double norm;      /* || W_O v_1 ||; NaN: not known */
  double logit;     /* NaN: not known */
  int keys, tokens; /* visible: of all kinds, and tokens */
} sl_row_facts;

/* x receives all row measures. */
void sl_row_measure_all (const sl_row_facts *f, double *x);
#endif
