/* keys.h - measures of every key of every head: columns of weights, norms. */
#ifndef SL_KEYS_H
#define SL_KEYS_H
#include "sinks/accumulator.h"

/* The columns of heads whose rows are still coming in, [open][tokens] each. */
typedef struct sl_open_columns {
  int tokens;
  sl_columns all; /* of the first; NULLs: not measured */
} sl_open_columns;

/* Sums over segments, [head][position] each; NULL: not measured. */
enum {
  SL_SUM_COLUMN,
  SL_SUM_OVER_ROWSUM,
  SL_SUM_KEY_NORM,
  SL_SUM_VALUE_NORM,
  SL_SUM_OUTPUT_NORM,
  SL_KEY_SUMS
};
enum {
  SL_COUNT_ABOVE, /* segments with a_k over the threshold */
  SL_COUNT_OVER_ROWSUM_ABOVE,
  SL_COUNT_SEGMENTS, /* with a row at or past the position */
  SL_COUNT_TOKENS,   /* with a token there */
  SL_KEY_COUNTS
};
typedef struct sl_key_sums {
  size_t heads;
  int tokens;
  double *sum[SL_KEY_SUMS];
  uint32_t *count[SL_KEY_COUNTS];
} sl_key_sums;

/* Bytes a head and token of all that 'measures' asks for. */
size_t sl_key_sums_bytes (unsigned measures);

/* Room for 'open' heads at once; -1: no memory. */
int sl_open_columns_init (sl_open_columns *o, size_t open, int tokens);
void sl_open_columns_free (sl_open_columns *o);
/* Those of head 'open' from token 'begin' on. */
sl_columns sl_open_columns_at (const sl_open_columns *o, size_t open,
                               int begin);
void sl_columns_clear (const sl_columns *c, int n); /* the first n of each */

/* -1: no memory; free it then, too. */
int sl_key_sums_init (sl_key_sums *k, size_t heads, int tokens,
                      unsigned measures);
void sl_key_sums_free (sl_key_sums *k);
/* The columns of a segment of n tokens whose rows have all been seen become
** means over the rows from each position on. */
void sl_columns_finish (const sl_columns *c, int n);
/* Adds finished columns. */
void sl_key_sums_columns (sl_key_sums *k, size_t head, const sl_columns *c,
                          int n, double threshold);
/* Adds norms of key, value and output of the n tokens of a segment. */
void sl_key_sums_norms (sl_key_sums *k, size_t head, int n, const double *key,
                        const double *value, const double *output);
void sl_key_sums_merge (sl_key_sums *into, const sl_key_sums *k);
/* Fills the arrays of s and the peaks of its heads; -1: no memory. */
int sl_key_sums_result (const sl_key_sums *k, sl_sinks *s);
#endif
