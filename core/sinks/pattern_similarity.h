/* pattern_similarity.h - tokens whose states have the direction of the state at
** position 1. */
#ifndef SL_PATTERN_SIMILARITY_H
#define SL_PATTERN_SIMILARITY_H
#include "sinks/hidden.h"

/* A bit for each layer, sample, token and anchor (position 1 or 2). */
typedef struct sl_pattern_similarity sl_pattern_similarity;
sl_pattern_similarity *sl_pattern_similarity_new (int layers, long samples,
                                                  int tokens);
void sl_pattern_similarity_free (sl_pattern_similarity *a);
/* After 'layer', from 1; anchor 0 or 1. */
void sl_pattern_similarity_set (sl_pattern_similarity *a, int layer,
                                long sample, int token, int anchor);

/* From the norms of r: its anchor (position 1 or 2, the one with the larger
** norms), the window of layers in which the anchor's norm is large, and the
** tokens whose states have the direction of the anchor's. -1: no memory. */
int sl_secondary_find (const sl_pattern_similarity *a,
                       const sl_hidden_spec *spec, const sl_measuring *m,
                       sl_hidden_result *r);
#endif
