/* measures.c - the tables of row measures and segment measures.
**
** A measure is added here, in docs/measures.md and in a test: sums, merging,
** results and Lua loop over the tables. */
#include "sinks/measures.h"
#include "base/isa.h"
#include "base/number.h"
#include <math.h>

SL_VARIANTS (const sl_scan_kernels, sl_scan_rows);

const sl_scan_kernels *sl_scan_pick (sl_dtype dtype) {
  return SL_PICK (sl_scan_rows, dtype == SL_F64);
}

const char *const sl_row_class_names[SL_ROW_CLASSES] = { "plain", "first",
                                                         "trigger",
                                                         "boundary" };
const int sl_share_keys[SL_SHARES] = { 1, 4, 8 };

const char *sl_measure_group_name (unsigned group) {
  return group == SL_MEASURE_COLUMNS  ? "columns"
         : group == SL_MEASURE_SHARE  ? "share"
         : group == SL_MEASURE_NORMS  ? "norms"
         : group == SL_MEASURE_LOGITS ? "logits"
                                      : "rows";
}

static double size_of (const sl_row_facts *f) {
  return f->scan.size + f->scan.virtual_size;
}

static double first (const sl_row_facts *f) {
  return f->first;
}

static double row_mass (const sl_row_facts *f) {
  return f->scan.mass;
}

static double abs_mass (const sl_row_facts *f) {
  return f->scan.size;
}

static double virtual_mass (const sl_row_facts *f) {
  return f->scan.virtual_mass;
}

static double null_mass (const sl_row_facts *f) {
  return 1 - (f->scan.mass + f->scan.virtual_mass);
}

static double first_over_rowsum (const sl_row_facts *f) {
  return f->first / (size_of (f) + 1e-8);
}

static double entropy (const sl_row_facts *f) {
  return f->scan.entropy;
}

static double entropy_share (const sl_row_facts *f) {
  return f->keys > 1 ? f->scan.entropy / log (f->keys) : 0;
}

static double contribution (const sl_row_facts *f) {
  return fabs (f->first) * f->norm;
}

/* Counts and comparisons would take a NaN for a small weight. */
static double largest_first (const sl_row_facts *f) {
  if (isnan (size_of (f))) return NAN;
  return f->first != 0 && fabs (f->first) >= f->scan.largest;
}

static double sparsity (const sl_row_facts *f) {
  if (isnan (f->scan.size)) return NAN;
  return f->tokens > 0 ? (double)f->scan.zeros / f->tokens : 0;
}

static double sink_logit (const sl_row_facts *f) {
  return f->logit;
}

#define ROW(id, name, group, is_optional) \
  [SL_OF_##id] = { { #name, SL_MEASURE_##group, is_optional }, name }
static const struct {
  sl_measure is;
  double (*of) (const sl_row_facts *f);
} of_rows[] = {
  ROW (FIRST, first, ROWS, 0),
  ROW (ROW_MASS, row_mass, ROWS, 0),
  ROW (ABS_MASS, abs_mass, ROWS, 0),
  ROW (VIRTUAL_MASS, virtual_mass, ROWS, 1),
  ROW (NULL_MASS, null_mass, ROWS, 1),
  ROW (FIRST_OVER_ROWSUM, first_over_rowsum, ROWS, 0),
  ROW (ENTROPY, entropy, ROWS, 0),
  ROW (ENTROPY_SHARE, entropy_share, ROWS, 0),
  ROW (CONTRIBUTION, contribution, ROWS, 0),
  ROW (LARGEST_FIRST, largest_first, ROWS, 0),
  ROW (SPARSITY, sparsity, ROWS, 0),
  ROW (SINK_LOGIT, sink_logit, LOGITS, 1),
};
enum { OF_ROWS = sizeof of_rows / sizeof *of_rows };
_Static_assert((int)OF_ROWS <= (int)SL_MOST_ROW_MEASURES, "room for a row");
const int sl_row_measures = OF_ROWS;

sl_measure sl_row_measure_of (int m) {
  return m < OF_ROWS ? of_rows[m].is : (sl_measure){ 0 };
}

void sl_row_measure_all (const sl_row_facts *f, double *x) {
  for (int m = 0; m < OF_ROWS; m++) x[m] = of_rows[m].of (f);
}

/* ---- segments ---- */

static double rate (const sl_segment_facts *f) {
  return sl_above (f->first, f->threshold);
}

static double first_over_rowsum_rate (const sl_segment_facts *f) {
  return sl_above (f->over_rowsum, f->threshold);
}

/* Random positions, up to the one before this. */
static int random_end (const sl_segment_facts *f) {
  int k = 1;
  while (k < f->n && 2 * f->columns->rows[k] >= f->columns->rows[0]) k++;
  return k;
}

static int has_random (const sl_segment_facts *f) {
  return random_end (f) > 1;
}

static double null_rate (const sl_segment_facts *f) {
  const int end = random_end (f);
  double above = 0;
  for (int k = 1; k < end; k++)
    above += sl_above (f->columns->weight[k], f->threshold);
  return above / (end - 1);
}

static double null_above (const sl_segment_facts *f) {
  const double *weight = f->columns->weight;
  const int end = random_end (f);
  double above = 0;
  for (int k = 1; k < end; k++) above += 1 - sl_above (weight[0], weight[k]);
  return above / (end - 1);
}

/* Entropy of a column over the log of its rows: (log s - sum of p log p / s) /
** log rows, s the sum of the column's p. */
static double entropy_of_column (double share, double plogp, uint32_t rows) {
  double h;
  if (share == 0 || rows < 2) return 0;
  h = (log (share) - plogp / share) / log (rows);
  return h < 0 ? 0 : h;
}

static double column_entropy (const sl_segment_facts *f) {
  const sl_columns *c = f->columns;
  double most = 0;
  for (int j = 0; j < f->n && c->rows[j] > 0; j++)
    most = sl_max_or_nan (
        most, entropy_of_column (c->share[j], c->plogp[j], c->rows[j]));
  return most;
}

static double column_weight (const sl_segment_facts *f) {
  const sl_columns *c = f->columns;
  return c->seen[0] > 0 ? c->weight[0] * c->rows[0] / c->seen[0] : 0;
}

static double value_norm (const sl_segment_facts *f) {
  return f->norm;
}

static int has_second (const sl_segment_facts *f) {
  return f->n > 1;
}

/* The first over the mean of the others. */
static double first_ratio (const double *norm, int n) {
  double others = 0;
  for (int j = 1; j < n; j++) others += norm[j];
  return norm[0] / (others / (n - 1));
}

static double first_key_norm_ratio (const sl_segment_facts *f) {
  return first_ratio (f->key, f->n);
}

static double first_value_norm_ratio (const sl_segment_facts *f) {
  return first_ratio (f->value, f->n);
}

static double first_norm_ratio (const sl_segment_facts *f) {
  return first_ratio (f->output, f->n);
}

/* 'has': NULL, or whether a segment has the measure. */
#define SEGMENT(id, name, group, has)                                      \
  [SL_OF_##id] = { { #name, SL_MEASURE_##group, SL_MEASURE_##group != 0 }, \
                   name,                                                   \
                   has }
static const struct {
  sl_measure is;
  double (*of) (const sl_segment_facts *f);
  int (*has) (const sl_segment_facts *f);
} of_segments[] = {
  SEGMENT (RATE, rate, ROWS, NULL),
  SEGMENT (FIRST_OVER_ROWSUM_RATE, first_over_rowsum_rate, ROWS, NULL),
  SEGMENT (NULL_RATE, null_rate, COLUMNS, has_random),
  SEGMENT (NULL_ABOVE, null_above, COLUMNS, has_random),
  SEGMENT (COLUMN_ENTROPY, column_entropy, COLUMNS, NULL),
  SEGMENT (COLUMN_WEIGHT, column_weight, COLUMNS, NULL),
  SEGMENT (VALUE_NORM, value_norm, ROWS, NULL),
  SEGMENT (FIRST_KEY_NORM_RATIO, first_key_norm_ratio, NORMS, has_second),
  SEGMENT (FIRST_VALUE_NORM_RATIO, first_value_norm_ratio, NORMS, has_second),
  SEGMENT (FIRST_NORM_RATIO, first_norm_ratio, NORMS, has_second),
};
enum { OF_SEGMENTS = sizeof of_segments / sizeof *of_segments };
_Static_assert((int)OF_SEGMENTS <= (int)SL_MOST_SEGMENT_MEASURES,
               "room for a segment");

sl_measure sl_segment_measure_of (int m) {
  return m < OF_SEGMENTS ? of_segments[m].is : (sl_measure){ 0 };
}

void sl_segment_measure_add (const sl_segment_facts *facts, unsigned group,
                             sl_segment_sums *sums) {
  sl_segment_facts f = *facts;
  for (int k = 0; k < OF_SEGMENTS; k++) {
    if (of_segments[k].is.group != group ||
        (of_segments[k].has && !of_segments[k].has (&f)))
      continue;
    f.threshold = f.m->threshold;
    sums->count[k]++;
    sums->sum[k] += of_segments[k].of (&f);
    for (int i = 0; k < SL_RATES && i < f.m->thresholds; i++) {
      f.threshold = f.m->curve[i];
      sums->at[k][i] += of_segments[k].of (&f);
    }
  }
}

void sl_segment_result (const sl_segment_sums *s, const sl_measuring *m,
                        sl_head_sinks *out) {
  for (int k = 0; k < OF_SEGMENTS; k++)
    out->segment[k] = s->sum[k] / (double)s->count[k];
  for (int i = 0; i < m->thresholds; i++) {
    out->curve[i].threshold = m->curve[i];
    for (int k = 0; k < SL_RATES; k++)
      out->curve[i].rate[k] = s->at[k][i] / (double)s->count[k];
  }
}
