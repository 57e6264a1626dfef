/* keys.h - measures of every key of every head: columns of weights, norms. */
#ifndef SL_KEYS_H
#define SL_KEYS_H
#include "sinks/tally.h"

/* The columns of heads whose rows are still coming in, [open][tokens] each. */
typedef struct sl_open_columns {
  int tokens;
  sl_columns all; /* of the first; NULLs: not measured */
} sl_open_columns;

/* Sums over segments, [head][position]. */
typedef struct sl_keys {
  size_t heads;
  int tokens;
  double *column, *proxy; /* NULL: not measured */
  uint32_t *over, *over_proxy, *count;
  double *key, *value, *output; /* norms; NULL: not measured */
  uint32_t *tokens_seen;
} sl_keys;

/* Bytes a head and token of all that 'measures' asks for. */
size_t sl_keys_bytes (unsigned measures);

int sl_open_columns_init (sl_open_columns *o, size_t open, int tokens);
void sl_open_columns_free (sl_open_columns *o);
/* Those of head 'open' from token 'begin' on. */
sl_columns sl_open_columns_at (const sl_open_columns *o, size_t open,
                               int begin);
void sl_columns_clear (const sl_columns *c, int n);

int sl_keys_init (sl_keys *k, size_t heads, int tokens, unsigned measures);
void sl_keys_free (sl_keys *k);
/* A segment of n tokens is done; its columns are used up. */
void sl_keys_columns (sl_keys *k, size_t head, const sl_columns *c, int n,
                      const sl_measuring *m, sl_segment_sums *sums);
/* Norms of key, value and output of the n tokens of a segment. */
void sl_keys_norms (sl_keys *k, size_t head, int n, const double *key,
                    const double *value, const double *output,
                    sl_segment_sums *sums);
void sl_keys_merge (sl_keys *into, const sl_keys *k);
/* Fills the arrays of s and the peaks of its heads; -1: no memory. */
int sl_keys_result (const sl_keys *k, sl_sinks *s);
#endif
