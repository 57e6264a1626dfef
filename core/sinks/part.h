/* part.h - what has been watched of a part of the samples.
**
** The rows of one head come on one thread, but those of different heads may
** come on different threads at once. All sums are a head's own; what heads
** share (the layer at hand, what did not fit, room for W_O) is guarded by
** 'shared'. */
#ifndef SL_PART_H
#define SL_PART_H
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

typedef struct sl_part {
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
  sl_tally *open;        /* [shard][head of all layers] */
  sl_open_columns columns;
  sl_tally *total; /* [head of all layers] */
  long *samples;   /* [head of all layers]: that showed a row */
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
} sl_part;

/* After m is set: what is shared. -1: no memory; free works either way. */
int sl_part_init (sl_part *p);
void sl_part_begin (sl_part *p, long first, long n);
/* Observer: called by the attention operation. */
void sl_part_watch (void *part, const sl_weight_rows *r);
/* -1: something did not fit. */
int sl_part_end (sl_part *p);
void sl_part_merge (sl_part *into, const sl_part *p);
void sl_part_free (sl_part *p);
#endif
