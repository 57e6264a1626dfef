/* brute.h - attention by its definition, in double, one number at a time. */
#ifndef BRUTE_H
#define BRUTE_H
#include "attention/attention.h"

/* Sizes, numbers (row-major, as the op takes them) and what comes out. */
typedef struct brute {
  int batch, t, heads, kv_heads, d, dv;
  int relu; /* else softmax */
  double scale;
  sl_visibility visibility;
  int alibi;
  const double *length; /* NULL: t */
  double *q, *k, *v, *dout;
  double *out, *dq, *dk, *dvalue, *weights; /* weights: (batch, heads, t, t) */
} brute;

/* Draw q, k, v and dout from 'seed', room for the results; freed by
** brute_free. */
void brute_start (brute *b, unsigned seed);
void brute_run (brute *b);
void brute_free (brute *b);
#endif
