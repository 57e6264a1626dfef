/* keys.c - measures of every key of every head: columns of weights, norms. */
#include "sinks/keys.h"
#include "base/memory.h"
#include "base/number.h"
#include <math.h>
#include <string.h>

size_t sl_key_sums_bytes (unsigned measures) {
  size_t bytes = 0;
  if (measures & SL_MEASURE_COLUMNS)
    bytes += 6 * sizeof (double) + 5 * sizeof (uint32_t);
  if (measures & SL_MEASURE_NORMS)
    bytes += 3 * sizeof (double) + sizeof (uint32_t);
  return bytes;
}

/* ---- columns of a segment ---- */

int sl_open_columns_init (sl_open_columns *o, size_t open, int tokens) {
  size_t n;
  o->tokens = tokens;
  if (sl_size_mul (open, (size_t)tokens, &n) < 0) return -1;
  o->all = (sl_columns){
    sl_alloc (n, sizeof (double)),   sl_alloc (n, sizeof (double)),
    sl_alloc (n, sizeof (double)),   sl_alloc (n, sizeof (double)),
    sl_alloc (n, sizeof (uint32_t)), sl_alloc (n, sizeof (uint32_t))
  };
  return o->all.weight && o->all.over_rowsum && o->all.plogp && o->all.share &&
                 o->all.seen && o->all.rows
             ? 0
             : -1;
}

void sl_open_columns_free (sl_open_columns *o) {
  sl_free (o->all.weight);
  sl_free (o->all.over_rowsum);
  sl_free (o->all.plogp);
  sl_free (o->all.share);
  sl_free (o->all.seen);
  sl_free (o->all.rows);
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

/* Entropy of a column over the log of its rows. */
static double column_entropy (double share, double plogp, uint32_t rows) {
  double h;
  if (share == 0 || rows < 2) return 0;
  h = (log (share) - plogp / share) / log (rows);
  return h < 0 ? 0 : h;
}

/* Sums become means over the rows from each position on; how many there are. */
static void finish_columns (const sl_columns *c, int n) {
  uint32_t rows = 0;
  for (int k = n - 1; k >= 0; k--) {
    rows += c->rows[k];
    c->rows[k] = rows;
    if (rows == 0) continue;
    c->weight[k] /= rows;
    c->over_rowsum[k] /= rows;
  }
}

/* Would any position do? All that at least half of the rows follow are
** tried. */
static void random_positions (const sl_columns *c, int n, const sl_measuring *m,
                              sl_segment_sums *sums) {
  double over = 0, above = 0, at[SL_MOST_THRESHOLDS] = { 0 };
  long tried = 0;
  for (int k = 1; k < n && 2 * c->rows[k] >= c->rows[0]; k++) {
    tried++;
    over += sl_above (c->weight[k], m->threshold);
    above += 1 - sl_above (c->weight[0], c->weight[k]);
    for (int i = 0; i < m->thresholds; i++)
      at[i] += sl_above (c->weight[k], m->curve[i]);
  }
  if (tried == 0) return;
  sums->nulls++;
  sums->null_rate += over / (double)tried;
  sums->null_above += above / (double)tried;
  for (int i = 0; i < m->thresholds; i++)
    sums->null_at[i] += at[i] / (double)tried;
}

void sl_key_sums_columns (sl_key_sums *k, size_t head, const sl_columns *c,
                          int n, const sl_measuring *m, sl_segment_sums *sums) {
  const size_t at = head * (size_t)k->tokens;
  double most = 0;
  finish_columns (c, n);
  if (c->rows[0] == 0) return;
  random_positions (c, n, m, sums);
  if (c->seen[0] > 0)
    sums->column_weight += c->weight[0] * c->rows[0] / c->seen[0];
  for (int j = 0; j < n && c->rows[j] > 0; j++) {
    const double h = column_entropy (c->share[j], c->plogp[j], c->rows[j]);
    most = sl_max_or_nan (most, h);
    k->column[at + (size_t)j] += c->weight[j];
    k->over_rowsum[at + (size_t)j] += c->over_rowsum[j];
    k->over[at + (size_t)j] += c->weight[j] > m->threshold;
    k->over_rowsum_above[at + (size_t)j] += c->over_rowsum[j] > m->threshold;
    k->count[at + (size_t)j]++;
  }
  sums->column_entropy += most;
}

/* ---- norms ---- */

/* The first over the mean of the others. */
static double first_norm_ratio (const double *norm, int n) {
  double others = 0;
  for (int j = 1; j < n; j++) others += norm[j];
  return norm[0] / (others / (n - 1));
}

void sl_key_sums_norms (sl_key_sums *k, size_t head, int n, const double *key,
                        const double *value, const double *output,
                        sl_segment_sums *sums) {
  const size_t at = head * (size_t)k->tokens;
  for (int j = 0; j < n; j++) {
    k->key[at + (size_t)j] += key[j];
    k->value[at + (size_t)j] += value[j];
    k->output[at + (size_t)j] += output[j];
    k->tokens_seen[at + (size_t)j]++;
  }
  if (n < 2) return;
  sums->norm_ratios++;
  sums->first_key_norm_ratio += first_norm_ratio (key, n);
  sums->first_value_norm_ratio += first_norm_ratio (value, n);
  sums->first_norm_ratio += first_norm_ratio (output, n);
}

/* ---- sums over segments ---- */

int sl_key_sums_init (sl_key_sums *k, size_t heads, int tokens,
                      unsigned measures) {
  size_t n;
  *k = (sl_key_sums){ .heads = heads, .tokens = tokens };
  if (sl_size_mul (heads, (size_t)tokens, &n) < 0) return -1;
  if (measures & SL_MEASURE_COLUMNS) {
    k->column = sl_alloc (n, sizeof *k->column);
    k->over_rowsum = sl_alloc (n, sizeof *k->over_rowsum);
    k->over = sl_alloc (n, sizeof *k->over);
    k->over_rowsum_above = sl_alloc (n, sizeof *k->over_rowsum_above);
    k->count = sl_alloc (n, sizeof *k->count);
    if (!k->column || !k->over_rowsum || !k->over || !k->over_rowsum_above ||
        !k->count)
      return -1;
  }
  if (measures & SL_MEASURE_NORMS) {
    k->key = sl_alloc (n, sizeof *k->key);
    k->value = sl_alloc (n, sizeof *k->value);
    k->output = sl_alloc (n, sizeof *k->output);
    k->tokens_seen = sl_alloc (n, sizeof *k->tokens_seen);
    if (!k->key || !k->value || !k->output || !k->tokens_seen) return -1;
  }
  return 0;
}

void sl_key_sums_free (sl_key_sums *k) {
  sl_free (k->column);
  sl_free (k->over_rowsum);
  sl_free (k->over);
  sl_free (k->over_rowsum_above);
  sl_free (k->count);
  sl_free (k->key);
  sl_free (k->value);
  sl_free (k->output);
  sl_free (k->tokens_seen);
}

void sl_key_sums_merge (sl_key_sums *into, const sl_key_sums *k) {
  const size_t n = k->heads * (size_t)k->tokens;
  for (size_t i = 0; k->column && i < n; i++) {
    into->column[i] += k->column[i];
    into->over_rowsum[i] += k->over_rowsum[i];
    into->over[i] += k->over[i];
    into->over_rowsum_above[i] += k->over_rowsum_above[i];
    into->count[i] += k->count[i];
  }
  for (size_t i = 0; k->key && i < n; i++) {
    into->key[i] += k->key[i];
    into->value[i] += k->value[i];
    into->output[i] += k->output[i];
    into->tokens_seen[i] += k->tokens_seen[i];
  }
}

/* Position of the largest mean column, from 1. Late ones may have no rows; NaN
** in the first one says that weights are NaN. */
static double peak (const double *column, int n) {
  int at = 0;
  for (int k = 1; k < n; k++)
    if (column[k] > column[at]) at = k;
  return isnan (column[0]) ? (double)NAN : at + 1;
}

static int column_result (const sl_key_sums *k, size_t n, sl_sinks *s) {
  s->column = sl_alloc (n, sizeof *s->column);
  s->column_over_rowsum = sl_alloc (n, sizeof *s->column_over_rowsum);
  s->sink = sl_alloc (n, sizeof *s->sink);
  s->sink_over_rowsum = sl_alloc (n, sizeof *s->sink_over_rowsum);
  s->count = sl_alloc (n, sizeof *s->count);
  if (!s->column || !s->column_over_rowsum || !s->sink ||
      !s->sink_over_rowsum || !s->count)
    return -1;
  for (size_t i = 0; i < n; i++) {
    const double count = k->count[i];
    s->column[i] = k->column[i] / count;
    s->column_over_rowsum[i] = k->over_rowsum[i] / count;
    s->sink[i] = isnan (s->column[i]) ? NAN : k->over[i] / count;
    s->sink_over_rowsum[i] = isnan (s->column_over_rowsum[i])
                                 ? NAN
                                 : k->over_rowsum_above[i] / count;
    s->count[i] = count;
  }
  for (size_t h = 0; h < k->heads; h++)
    s->head[h].peak_key = peak (s->column + h * (size_t)k->tokens, k->tokens);
  return 0;
}

int sl_key_sums_result (const sl_key_sums *k, sl_sinks *s) {
  const size_t n = k->heads * (size_t)k->tokens;
  if (k->column && column_result (k, n, s) < 0) return -1;
  if (!k->key) return 0;
  s->key_norm = sl_alloc (n, sizeof *s->key_norm);
  s->value_norm = sl_alloc (n, sizeof *s->value_norm);
  s->output_norm = sl_alloc (n, sizeof *s->output_norm);
  if (!s->key_norm || !s->value_norm || !s->output_norm) return -1;
  for (size_t i = 0; i < n; i++) {
    s->key_norm[i] = k->key[i] / k->tokens_seen[i];
    s->value_norm[i] = k->value[i] / k->tokens_seen[i];
    s->output_norm[i] = k->output[i] / k->tokens_seen[i];
  }
  return 0;
}
