/* show.h - weights that are given, shown to a collector of sinks. */
#ifndef SHOW_H
#define SHOW_H
#include "sinks/collect.h"

enum { SHOW_MOST = 16 }; /* tokens */

/* Weights [sample][layer][head][query][key] and how they are shown. */
typedef struct show {
  const double *w;
  int samples, layers, heads, t;
  sl_dtype dtype;
  int block;            /* rows at once */
  const double *length; /* per sample; NULL: t */
  int window;           /* 0: causal without a window */
  const double *value;  /* [sample][layer][head][d_value] of token 1, or NULL */
  int d_value;
  int only_row; /* -1: all */
} show;

/* The first n of x in a precision. */
void show_convert (const double *x, size_t n, sl_dtype dtype, void *out);
/* One head of one sample, a block of rows at a time. */
void show_head (const show *s, const sl_observer *o, int n, int l, int h);
/* All samples, in the parts and shards of the spec, whose sizes are set here;
** NULL and a sentence. */
sl_sinks *show_measure (const show *s, sl_collect_spec spec, sl_error *e);
/* The same; failing fails the test. */
sl_sinks *show_all (const show *s, sl_collect_spec spec);
#endif
