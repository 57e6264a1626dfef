/* worker_sums.h - sums over one part of the samples.
**
** The rows of one head come on one thread, but those of different heads may
** come on different threads at once. A head's sums are its own. The mutex
** 'shared' guards the state that all heads use: the current layer, the first
** misfit, the memory of W_O. */
#ifndef SL_WORKER_SUMS_H
#define SL_WORKER_SUMS_H
#include "attention/attention.h"
#include "sinks/keys.h"
#include "sinks/labels.h"
#include <pthread.h>

/* The first thing that did not fit. */
typedef struct sl_misfit {
  const char *what; /* NULL: none */
  long got, allowed;
  int call, rank; /* of one call: the lowest rank and number, whose thread ever
                  ** comes first */
} sl_misfit;

/* Sums over the plain rows of a group. */
typedef struct sl_group {
  long rows, dormant, logits;
  double first, logit;
} sl_group;

typedef struct sl_worker_sums {
  const sl_measuring *m;
  const sl_tensor *const *output; /* [layer]: W_O or NULL */
  const int *slot;                /* [head of all layers]: its map; -1: none */
  int calls;
  size_t per_sample; /* heads of all layers */
  sl_observer observer;
  pthread_mutex_t shared;
  sl_misfit misfit;
  int no_memory;         /* 1: a W_O did not fit */
  long first, n;         /* samples that are open */
  int call, layer, head; /* with calls: the last one, its layer, first head */
  sl_accumulator *open;  /* [shard][head of all layers] */
  sl_open_columns columns;
  sl_accumulator *total; /* [head of all layers] */
  long *samples;         /* [head of all layers]: that showed a row */
  /* With calls, a bit for each [sample of all][head of all layers] that showed
  ** a row, and the first that came again: its sample from 1; 0: none. */
  unsigned char *shown;
  long again;
  size_t again_head;
  sl_key_sums keys;
  sl_group *group; /* [head of all layers][group] */
  sl_maps maps;
  /* W_O transposed, in double: (heads * d_value, d_model), each head's part
  ** there since it was asked for first. */
  int output_layer; /* -1: none */
  double *w;
  unsigned char *loaded; /* [head]: 1: its part is there */
  int d_model, d_value;
  int width; /* numbers of a vector of w: d_model, or d_value if shortened */
} sl_worker_sums;

/* After m is set. -1: no memory; free works either way. */
int sl_worker_sums_init (sl_worker_sums *p);
void sl_worker_sums_begin (sl_worker_sums *p, long first, long n);
/* Observer: called by the attention operation. */
void sl_worker_sums_watch (void *part, const sl_weight_rows *r);
/* -1: something did not fit. */
int sl_worker_sums_end (sl_worker_sums *p);
void sl_worker_sums_merge (sl_worker_sums *into, const sl_worker_sums *p);
void sl_worker_sums_free (sl_worker_sums *p);

/* If something is wrong, records it; returns 'wrong'. */
int sl_worker_sums_misfit (sl_worker_sums *p, int rank, int wrong,
                           const char *what, long got, long allowed);

/* Rows, and the sums that they belong to. */
typedef struct sl_row_place {
  sl_worker_sums *p;
  const sl_weight_rows *r;
  const sl_scan_kernels *scan;
  sl_accumulator *sums;
  size_t head, open; /* of all layers; of all that are open */
  long sample;
  int token; /* column of token 0 of the batch */
} sl_row_place;

/* Memory for W_O of this layer, without any head's part. 0: W_O does not fit
** the values, or there is no memory. Called under 'shared'. */
int sl_output_room (sl_worker_sums *p, const sl_weight_rows *r, int layer);
/* || W_O^h v ||_2 of a token; NaN without W_O or values. */
double sl_output_norm (const sl_row_place *a, int layer, int token);
/* Norms of all tokens of all segments of the sample, before the first row. */
void sl_measure_norms (const sl_row_place *a, int layer);
#endif
