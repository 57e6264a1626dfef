/* keys.c - measures of every key of every head: columns of weights, norms. */
#include "sinks/keys.h"
#include "base/memory.h"
#include "base/number.h"
#include <math.h>
#include <string.h>

static const unsigned sum_group[SL_KEY_SUMS] = {
  SL_MEASURE_COLUMNS, SL_MEASURE_COLUMNS, SL_MEASURE_NORMS, SL_MEASURE_NORMS,
  SL_MEASURE_NORMS
};
static const unsigned count_group[SL_KEY_COUNTS] = {
  SL_MEASURE_COLUMNS, SL_MEASURE_COLUMNS, SL_MEASURE_COLUMNS, SL_MEASURE_NORMS
};

/* A number of sl_columns: four in double, two counts. */
enum { COLUMN_BYTES = 4 * sizeof (double) + 2 * sizeof (uint32_t) };

size_t sl_key_sums_bytes (unsigned measures) {
  size_t bytes = measures & SL_MEASURE_COLUMNS ? COLUMN_BYTES : 0;
  for (int i = 0; i < SL_KEY_SUMS; i++)
    if (measures & sum_group[i]) bytes += sizeof (double);
  for (int i = 0; i < SL_KEY_COUNTS; i++)
    if (measures & count_group[i]) bytes += sizeof (uint32_t);
  return bytes;
}

/* ---- columns of a segment ---- */

int sl_open_columns_init (sl_open_columns *o, size_t open, int tokens) {
  size_t n;
  double *x;
  o->tokens = tokens;
  if (sl_size_mul (open, (size_t)tokens, &n) < 0) return -1;
  x = sl_alloc (n, COLUMN_BYTES);
  if (x == NULL) return -1;
  o->all =
      (sl_columns){ x,   x + n, x + 2 * n, x + 3 * n, (uint32_t *)(x + 4 * n),
                    NULL };
  o->all.rows = o->all.seen + n;
  return 0;
}

void sl_open_columns_free (sl_open_columns *o) {
  sl_free (o->all.weight); /* and the others, which are one array with it */
}

sl_columns sl_open_columns_at (const sl_open_columns *o, size_t open,
                               int begin) {
  const size_t at = open * (size_t)o->tokens + (size_t)begin;
  const sl_columns *c = &o->all;
  return (sl_columns){ c->weight + at, c->over_rowsum + at, c->plogp + at,
                       c->share + at,  c->seen + at,        c->rows + at };
}

void sl_columns_clear (const sl_columns *c, int n) {
  const size_t count = (size_t)n;
  memset (c->weight, 0, count * sizeof *c->weight);
  memset (c->over_rowsum, 0, count * sizeof *c->over_rowsum);
  memset (c->plogp, 0, count * sizeof *c->plogp);
  memset (c->share, 0, count * sizeof *c->share);
  memset (c->seen, 0, count * sizeof *c->seen);
  memset (c->rows, 0, count * sizeof *c->rows);
}

void sl_columns_finish (const sl_columns *c, int n) {
  uint32_t rows = 0;
  for (int k = n - 1; k >= 0; k--) {
    rows += c->rows[k];
    c->rows[k] = rows;
    if (rows == 0) continue;
    c->weight[k] /= rows;
    c->over_rowsum[k] /= rows;
  }
}

void sl_key_sums_columns (sl_key_sums *k, size_t head, const sl_columns *c,
                          int n, double threshold) {
  const size_t at = head * (size_t)k->tokens;
  for (int j = 0; j < n && c->rows[j] > 0; j++) {
    const size_t i = at + (size_t)j;
    k->sum[SL_SUM_COLUMN][i] += c->weight[j];
    k->sum[SL_SUM_OVER_ROWSUM][i] += c->over_rowsum[j];
    k->count[SL_COUNT_ABOVE][i] += c->weight[j] > threshold;
    k->count[SL_COUNT_OVER_ROWSUM_ABOVE][i] += c->over_rowsum[j] > threshold;
    k->count[SL_COUNT_SEGMENTS][i]++;
  }
}

void sl_key_sums_norms (sl_key_sums *k, size_t head, int n, const double *key,
                        const double *value, const double *output) {
  const size_t at = head * (size_t)k->tokens;
  for (int j = 0; j < n; j++) {
    k->sum[SL_SUM_KEY_NORM][at + (size_t)j] += key[j];
    k->sum[SL_SUM_VALUE_NORM][at + (size_t)j] += value[j];
    k->sum[SL_SUM_OUTPUT_NORM][at + (size_t)j] += output[j];
    k->count[SL_COUNT_TOKENS][at + (size_t)j]++;
  }
}

/* ---- sums over segments ---- */

int sl_key_sums_init (sl_key_sums *k, size_t heads, int tokens,
                      unsigned measures) {
  size_t n;
  *k = (sl_key_sums){ .heads = heads, .tokens = tokens };
  if (sl_size_mul (heads, (size_t)tokens, &n) < 0) return -1;
  for (int i = 0; i < SL_KEY_SUMS; i++)
    if (measures & sum_group[i] &&
        (k->sum[i] = sl_alloc (n, sizeof (double))) == NULL)
      return -1;
  for (int i = 0; i < SL_KEY_COUNTS; i++)
    if (measures & count_group[i] &&
        (k->count[i] = sl_alloc (n, sizeof (uint32_t))) == NULL)
      return -1;
  return 0;
}

void sl_key_sums_free (sl_key_sums *k) {
  for (int i = 0; i < SL_KEY_SUMS; i++) sl_free (k->sum[i]);
  for (int i = 0; i < SL_KEY_COUNTS; i++) sl_free (k->count[i]);
}

void sl_key_sums_merge (sl_key_sums *into, const sl_key_sums *k) {
  const size_t n = k->heads * (size_t)k->tokens;
  for (int s = 0; s < SL_KEY_SUMS; s++)
    for (size_t i = 0; k->sum[s] && i < n; i++) into->sum[s][i] += k->sum[s][i];
  for (int c = 0; c < SL_KEY_COUNTS; c++)
    for (size_t i = 0; k->count[c] && i < n; i++)
      into->count[c][i] += k->count[c][i];
}

/* Position of the largest mean column, from 1. Late ones may have no rows; NaN
** in the first one says that weights are NaN. */
static double peak (const double *column, int n) {
  int at = 0;
  for (int k = 1; k < n; k++)
    if (column[k] > column[at]) at = k;
  return isnan (column[0]) ? (double)NAN : at + 1;
}

/* The mean at each position: sum / divisor; count / divisor, NaN
** where the sum is; or the count. -1: none. */
static const struct {
  int sum, count, divisor;
} results[SL_POSITION_MEASURES] = {
  [SL_AT_COLUMN] = { SL_SUM_COLUMN, -1, SL_COUNT_SEGMENTS },
  [SL_AT_COLUMN_OVER_ROWSUM] = { SL_SUM_OVER_ROWSUM, -1, SL_COUNT_SEGMENTS },
  [SL_AT_SINK] = { SL_SUM_COLUMN, SL_COUNT_ABOVE, SL_COUNT_SEGMENTS },
  [SL_AT_SINK_OVER_ROWSUM] = { SL_SUM_OVER_ROWSUM, SL_COUNT_OVER_ROWSUM_ABOVE,
                               SL_COUNT_SEGMENTS },
  [SL_AT_SEGMENTS] = { -1, SL_COUNT_SEGMENTS, -1 },
  [SL_AT_KEY_NORMS] = { SL_SUM_KEY_NORM, -1, SL_COUNT_TOKENS },
  [SL_AT_VALUE_NORMS] = { SL_SUM_VALUE_NORM, -1, SL_COUNT_TOKENS },
  [SL_AT_OUTPUT_NORMS] = { SL_SUM_OUTPUT_NORM, -1, SL_COUNT_TOKENS },
};
const char *const sl_position_measure_names[SL_POSITION_MEASURES] = {
  [SL_AT_COLUMN] = "column",
  [SL_AT_COLUMN_OVER_ROWSUM] = "column_over_rowsum",
  [SL_AT_SINK] = "sink",
  [SL_AT_SINK_OVER_ROWSUM] = "sink_over_rowsum",
  [SL_AT_SEGMENTS] = "segments",
  [SL_AT_KEY_NORMS] = "key_norms",
  [SL_AT_VALUE_NORMS] = "value_norms",
  [SL_AT_OUTPUT_NORMS] = "output_norms",
};

int sl_key_sums_result (const sl_key_sums *k, sl_sinks *s) {
  const size_t n = k->heads * (size_t)k->tokens;
  for (int p = 0; p < SL_POSITION_MEASURES; p++) {
    const double *sum = results[p].sum < 0 ? NULL : k->sum[results[p].sum];
    const uint32_t *count =
        results[p].count < 0 ? NULL : k->count[results[p].count];
    const uint32_t *divisor =
        results[p].divisor < 0 ? NULL : k->count[results[p].divisor];
    if (sum == NULL && count == NULL) continue;
    s->at[p] = sl_alloc (n, sizeof (double));
    if (s->at[p] == NULL) return -1;
    for (size_t i = 0; i < n; i++) {
      const double by = divisor ? divisor[i] : 1;
      const double mean = sum ? sum[i] / by : 0;
      s->at[p][i] = count == NULL || isnan (mean) ? mean : count[i] / by;
    }
  }
  for (size_t h = 0; s->at[SL_AT_COLUMN] && h < k->heads; h++)
    s->head[h].peak_key =
        peak (s->at[SL_AT_COLUMN] + h * (size_t)k->tokens, k->tokens);
  return 0;
}
