/* block.h - the same 16 queries through a plugin's row and block kernels. */
#ifndef SL_CHECK_BLOCK_H
#define SL_CHECK_BLOCK_H
#include "attention/mechanism.h"

enum { SL_BY_ROWS, SL_BY_BLOCK };

/* scores, dweights, weights and dscores are (n, SL_QUERIES), key by lane; lane
** i has the first visible_keys[i] keys; param and dparam are (params). */
typedef struct sl_block_case {
  const sl_mechanism *mechanism;
  int n, position, length;
  int visible_keys[SL_QUERIES];
  size_t params;
  const double *scores, *dweights, *param;
  /* Results of the row and of the block kernel; 0 where masked. dparam starts
  ** from 1. */
  double *weights[2], *dscores[2], *dparam[2];
  char fault[160]; /* a sentence if the block kernel broke a buffer rule */
} sl_block_case;

/* Run both kernels in one precision; -1: no memory. */
typedef struct sl_block_runner {
  int (*run) (sl_block_case *c);
} sl_block_runner;
#endif
