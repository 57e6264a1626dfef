/* sinklab/count.h - the count that a row mechanism without competition divides by.
**
** Publications differ in what "n" of a row is, and the difference shows at the first
** tokens. A plugin offers the choice as an option of its own:
**
**     { .name = "normaliser", .doc = "...", .type = SL_CHOICE,
**       .offset = offsetof (config, normaliser), .def = SL_EARLIER,
**       .choices = sl_counts }
**
** For query number i (from 0) of causal attention without a window the counts are
**
**   earlier   visible tokens before the query, at least 1: max (i, 1)
**   visible   visible tokens: i + 1
**   length    tokens of the sequence, padding left out */
#ifndef SINKLAB_COUNT_H
#define SINKLAB_COUNT_H
#include <sinklab/plugin.h>

enum { SL_EARLIER, SL_VISIBLE, SL_LENGTH };
static const char *const sl_counts[]
    __attribute__ ((unused)) = { "earlier", "visible", "length", NULL };

/* The count of a row of n scores: always 1 or more. */
static inline __attribute__ ((unused)) int sl_count (const sl_call *c, int n,
                                                     int which) {
  int earlier = c->pos - c->first;
  if (which == SL_VISIBLE) return n;
  if (which == SL_LENGTH) return c->length;
  if (earlier > n) earlier = n;
  return earlier > 1 ? earlier : 1;
}
#endif
