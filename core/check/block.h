/* block.h - a block of 16 queries before a plugin's row and block kernels. */
#ifndef SL_CHECK_BLOCK_H
#define SL_CHECK_BLOCK_H
#include "attention/mechanism.h"

enum { SL_BY_ROWS, SL_BY_BLOCK };

/* n keys x 16 queries, [key][lane]; lane i sees the first seen[i] keys. */
typedef struct sl_block_case {
  const sl_mechanism *mechanism;
  int n, pos, length;
  int seen[SL_QUERIES];
  size_t params;
  const double *scores, *dweights, *param;
  /* What the kernels make of it, rounded to the precision; 0 where not seen.
  ** dparam starts from 1. */
  double *weights[2], *dscores[2], *dparam[2];
  char fault[160]; /* a sentence if the block kernel forgot its manners */
} sl_block_case;

/* Run both on a case, in one precision; -1: no memory. */
typedef struct sl_block_runner {
  int (*run) (sl_block_case *c);
} sl_block_runner;
#endif
