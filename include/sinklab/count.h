/* sinklab/count.h - the count that a row mechanism without competition divides
** by.
**
** Publications differ in what "n" of a row is, and the difference shows at the
** first tokens. A plugin offers the choice as an option of its own:
**
**     { .name = "normaliser", .doc = "...", .type = SL_CHOICE,
**       .offset = offsetof (config, normaliser), .def = SL_EARLIER,
**       .choices = sl_counts }
**
** For query number i (from 0) of causal attention without a window they are
**
**   earlier   visible tokens before the query, at least 1: max (i, 1)
**   visible   visible tokens: i + 1
**   length    tokens of the sequence, padding left out */
#ifndef SINKLAB_COUNT_H
#define SINKLAB_COUNT_H
#include <sinklab/lanes.h>

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

/* The same of a block, for the lanes from l on; at least 1 also where a lane is
** no query. */
static inline __attribute__ ((unused)) sl_lanes
sl_lanes_count (const sl_call *c, int l, int which) {
  sl_lanes n = sl_load (c->seen + l);
  if (which == SL_LENGTH) return sl_every ((real)c->length);
  if (which == SL_EARLIER) {
    sl_lanes earlier;
    for (int i = 0; i < SL_LANES; i++)
      earlier[i] = (real)(c->pos - c->first + l + i);
    n = sl_lanes_min (earlier, n);
  }
  return sl_lanes_max (n, sl_every (1));
}
#endif
