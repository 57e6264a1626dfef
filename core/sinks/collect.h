/* collect.h - the accumulators behind sl_sinks_measure, fed with blocks of
** rows.
**
** Samples are cut into 'parts' that are filled independently (by different
** threads) and merged in order. Within a part a head's samples are added up in
** the order in which they are closed, so the bits depend on the cut alone. */
#ifndef SL_COLLECT_H
#define SL_COLLECT_H
#include "attention/attention.h"
#include "sinks/sinks.h"

typedef struct sl_collect_spec {
  int layers, heads, tokens;
  int parts;
  long shard;            /* samples that are open at once in a part */
  long samples;          /* in all */
  const double *trigger; /* as in sl_sinks_spec */
  const double *length;
  const sl_tensor *const *output;
  int prefix, registers, null_mass; /* as in sl_sinks_spec */
  int maps;
  double threshold;
} sl_collect_spec;

/* Columns of a row: mass on nothing, keys that are no tokens, tokens. */
int sl_collect_columns (const sl_collect_spec *spec);

typedef struct sl_collector sl_collector;
sl_collector *sl_collect_new (const sl_collect_spec *spec, sl_error *e);
void sl_collect_free (sl_collector *c);

/* One part's samples first..first+n-1 are about to be watched by the observer,
** and have been. Parts may be used by different threads at once; each samples
** once. end gives -1 when what was seen does not fit the spec:
** sl_collect_finish then says what. */
void sl_collect_begin (sl_collector *c, int part, long first, long n);
const sl_observer *sl_collect_observer (sl_collector *c, int part);
int sl_collect_end (sl_collector *c, int part);

/* Merge the parts. NULL when a part has failed. */
sl_sinks *sl_collect_finish (sl_collector *c, sl_error *e);
#endif
