/* sinklab/count.h - the token count n of a row, as publications define it.
**
** Normalisers and biases of row mechanisms contain "n", and papers differ in
** its meaning, which matters for the first tokens. A plugin offers the choice:
**
**     SL_OPTION_COUNT (config, normaliser, SL_COUNT_EARLIER, "w is divided by")
**
** For query i (from 0) of causal attention without a window, n is
**
**   earlier   max (i, 1): visible tokens before the query, at least 1
**   visible   i + 1: visible tokens
**   length    tokens of the sequence, without padding */
#ifndef SINKLAB_COUNT_H
#define SINKLAB_COUNT_H
#include <sinklab/lanes.h>

enum { SL_COUNT_EARLIER, SL_COUNT_VISIBLE, SL_COUNT_LENGTH };
static const char *const sl_token_counts[]
    __attribute__ ((unused)) = { "earlier", "visible", "length", NULL };

/* An option for the choice; 'doc' says what n is used for. */
#define SL_OPTION_COUNT(config, field, def, doc)                              \
  SL_OPTION_CHOICE (config, field, def, sl_token_counts,                      \
                    doc ": earlier visible tokens (at least 1), all visible " \
                        "tokens, or the length of the sequence")

/* n >= 1 of a row of 'visible' scores. */
static inline __attribute__ ((unused)) int
sl_token_count (const sl_call *c, int visible, int which) {
  int earlier = c->position - c->first_key;
  if (which == SL_COUNT_VISIBLE) return visible;
  if (which == SL_COUNT_LENGTH) return c->length;
  if (earlier > visible) earlier = visible;
  return earlier > 1 ? earlier : 1;
}

/* n >= 1 of the lanes from l on, also of a lane that is no query. */
static inline __attribute__ ((unused)) sl_lanes
sl_lanes_token_count (const sl_call *c, int l, int which) {
  sl_lanes n = sl_load (c->visible_keys + l);
  if (which == SL_COUNT_LENGTH) return sl_splat ((real)c->length);
  if (which == SL_COUNT_EARLIER) {
    sl_lanes earlier;
    for (int i = 0; i < SL_LANES; i++)
      earlier[i] = (real)(c->position - c->first_key + l + i);
    n = sl_lanes_min (earlier, n);
  }
  return sl_lanes_max (n, sl_splat (1));
}
#endif
