/* collect.h - the accumulators behind every measurement, fed with blocks of
** rows by an observer.
**
** Samples are cut into 'parts' that are filled independently (by different
** threads) and merged in order. Within a part a head's samples are added up in
** the order in which they are closed, so the bits depend on the cut alone. A
** part's observer may be called by several threads at once for different heads:
** sums are a head's own; a lock of the part guards state that heads share. */
#ifndef SL_COLLECT_H
#define SL_COLLECT_H
#include "attention/attention.h"
#include "sinks/sinks.h"

typedef struct sl_collect_spec {
  sl_measuring measuring; /* its arrays outlive the collector */
  int parts;
  long shard;   /* samples that are open at once in a part */
  long samples; /* in all */
  /* 1: the rows come from attention that runs at once, one call a layer, of
  ** sequences of at most 'tokens' tokens (sl_collect_calls). */
  int calls;
} sl_collect_spec;

/* Bytes that grow with heads x tokens, of one part; SIZE_MAX: too many. */
size_t sl_collect_bytes (const sl_measuring *m, long shard);

typedef struct sl_collector sl_collector;
/* NULL and a sentence when a W_O does not fit or there is no memory. */
sl_collector *sl_collect_new (const sl_collect_spec *spec, sl_error *e);
void sl_collect_free (sl_collector *c); /* NULL is allowed */

/* W_O of a layer from now on, NULL: none; the caller keeps it alive while rows
** of the layer are watched. */
int sl_collect_output (sl_collector *c, int layer, const sl_tensor *w,
                       sl_error *e);

/* One part's samples first..first+n-1 are about to be watched by the observer,
** and have been. Parts may be used by different threads at once, but begin and
** end not while the part's observer is called; each sample once, or with calls
** once a layer and group of heads. end gives -1 when the weights do not fit
** the spec: sl_collect_finish then says what. */
void sl_collect_begin (sl_collector *c, int part, long first, long n);
/* After begin, with calls: the next call of attention is that of 'layer', and
** its heads begin at 'head'. */
void sl_collect_calls (sl_collector *c, int part, int layer, int head);
const sl_observer *sl_collect_observer (sl_collector *c, int part);
int sl_collect_end (sl_collector *c, int part);

/* Merge the parts. NULL when a part has failed or a head has not been seen. */
sl_sinks *sl_collect_finish (sl_collector *c, sl_error *e);
#endif
