/* tally.c - sums over the rows of one head, merged in a fixed order. */
#include "sinks/tally.h"
#include "base/number.h"
#include <math.h>

static void moments_add (sl_moments *s, double x) {
  const double d = x - s->mean;
  s->n += 1;
  s->mean += d / s->n;
  s->m2 += d * (x - s->mean);
}

static void moments_merge (sl_moments *s, const sl_moments *b) {
  const double d = b->mean - s->mean, n = s->n + b->n;
  if (b->n == 0) return;
  s->mean += d * (b->n / n);
  s->m2 += b->m2 + d * d * (s->n * b->n / n);
  s->n = n;
}

void sl_tally_reset (sl_tally *t) {
  *t = (sl_tally){ .first_min = HUGE_VAL, .norm = NAN };
}

void sl_tally_row (sl_tally *t, sl_row_class class, const double *x) {
  double *sum = t->sum[class];
  t->used++;
  t->column += x[SL_OF_FIRST];
  t->column_over_rowsum += fabs (x[SL_OF_FIRST_OVER_ROWSUM]);
  t->rows[class]++;
  for (int m = 0; m < SL_OF_SINK_LOGIT; m++) sum[m] += x[m];
  if (!isnan (x[SL_OF_SINK_LOGIT])) {
    sum[SL_OF_SINK_LOGIT] += x[SL_OF_SINK_LOGIT];
    t->logits[class]++;
  }
  if (class != SL_ROW_PLAIN) return;
  moments_add (&t->first, x[SL_OF_FIRST]);
  t->first_min = sl_min_or_nan (t->first_min, x[SL_OF_FIRST]);
}

void sl_tally_close (sl_tally *t, const sl_measuring *m) {
  const double a = t->column / (double)t->used;
  const double over_rowsum = t->column_over_rowsum / (double)t->used;
  if (t->used == 0) return;
  t->segments++;
  t->norms += t->norm;
  t->over += sl_above (a, m->threshold);
  t->over_rowsum_above += sl_above (over_rowsum, m->threshold);
  for (int i = 0; i < m->thresholds; i++) {
    t->over_at[i] += sl_above (a, m->curve[i]);
    t->over_rowsum_at[i] += sl_above (over_rowsum, m->curve[i]);
  }
}

static void merge_segments (sl_segment_sums *into, const sl_segment_sums *s) {
  into->first_key_norm_ratio += s->first_key_norm_ratio;
  into->first_value_norm_ratio += s->first_value_norm_ratio;
  into->first_norm_ratio += s->first_norm_ratio;
  into->norm_ratios += s->norm_ratios;
  into->null_rate += s->null_rate;
  into->null_above += s->null_above;
  into->nulls += s->nulls;
  into->column_entropy += s->column_entropy;
  into->column_weight += s->column_weight;
  for (int i = 0; i < SL_MOST_THRESHOLDS; i++)
    into->null_at[i] += s->null_at[i];
}

void sl_tally_merge (sl_tally *into, const sl_tally *t) {
  into->blocks += t->blocks;
  into->segments += t->segments;
  into->masked += t->masked;
  for (int c = 0; c < SL_ROW_CLASSES; c++) {
    into->rows[c] += t->rows[c];
    into->logits[c] += t->logits[c];
    for (int m = 0; m < SL_ROW_MEASURES; m++) into->sum[c][m] += t->sum[c][m];
  }
  moments_merge (&into->first, &t->first);
  into->first_min = sl_min_or_nan (into->first_min, t->first_min);
  into->norms += t->norms;
  into->over += t->over;
  into->over_rowsum_above += t->over_rowsum_above;
  for (int i = 0; i < SL_MOST_THRESHOLDS; i++) {
    into->over_at[i] += t->over_at[i];
    into->over_rowsum_at[i] += t->over_rowsum_at[i];
  }
  for (int i = 0; i < SL_SHARES; i++) {
    into->share[i] += t->share[i];
    into->even[i] += t->even[i];
    into->largest[i] += t->largest[i];
  }
  into->share_rows += t->share_rows;
  merge_segments (&into->of, &t->of);
}

static void class_result (const sl_tally *t, int class, const sl_measuring *m,
                          sl_head_sinks *out) {
  double *mean = out->mean[class];
  out->rows[class] = t->rows[class];
  for (int k = 0; k < SL_ROW_MEASURES; k++)
    mean[k] = t->sum[class][k] / (double)t->rows[class];
  mean[SL_OF_SINK_LOGIT] =
      t->sum[class][SL_OF_SINK_LOGIT] / (double)t->logits[class];
  if (!m->null_mass) mean[SL_OF_NULL_MASS] = NAN;
  if (m->virtual_keys + m->registers == 0) mean[SL_OF_VIRTUAL_MASS] = NAN;
}

static void segment_result (const sl_tally *t, const sl_measuring *m,
                            sl_head_sinks *out) {
  const double segments = (double)t->segments, nulls = (double)t->of.nulls;
  const int columns = (m->measures & SL_MEASURE_COLUMNS) != 0;
  out->segments = t->segments;
  out->value_norm = t->norms / segments;
  out->rate = t->over / segments;
  out->first_over_rowsum_rate = t->over_rowsum_above / segments;
  out->null_rate = columns ? t->of.null_rate / nulls : NAN;
  out->null_above = columns ? t->of.null_above / nulls : NAN;
  out->column_entropy = columns ? t->of.column_entropy / segments : NAN;
  out->column_weight = columns ? t->of.column_weight / segments : NAN;
  out->peak_key = NAN;
  out->first_key_norm_ratio =
      t->of.first_key_norm_ratio / (double)t->of.norm_ratios;
  out->first_value_norm_ratio =
      t->of.first_value_norm_ratio / (double)t->of.norm_ratios;
  out->first_norm_ratio = t->of.first_norm_ratio / (double)t->of.norm_ratios;
  for (int i = 0; i < m->thresholds; i++)
    out->curve[i] = (sl_rate){ m->curve[i], t->over_at[i] / segments,
                               t->over_rowsum_at[i] / segments,
                               columns ? t->of.null_at[i] / nulls : NAN };
}

void sl_tally_result (const sl_tally *t, const sl_measuring *m, long rows,
                      sl_head_sinks *out) {
  const double plain = (double)t->rows[SL_ROW_PLAIN];
  const double firsts =
      (double)(t->rows[SL_ROW_FIRST] + t->rows[SL_ROW_BOUNDARY]);
  *out = (sl_head_sinks){ .masked_rows = t->masked,
                          .padded_rows = rows - t->masked };
  for (int c = 0; c < SL_ROW_CLASSES; c++) {
    class_result (t, c, m, out);
    out->padded_rows -= t->rows[c];
  }
  /* the spread's mean is closer to the truth than that of the sum */
  out->mean[SL_ROW_PLAIN][SL_OF_FIRST] = plain > 0 ? t->first.mean : NAN;
  out->first_min = plain > 0 ? t->first_min : NAN;
  out->first_std = plain > 1 ? sqrt (t->first.m2 / (plain - 1)) : NAN;
  out->first_all = (t->first.mean * plain + t->sum[SL_ROW_FIRST][SL_OF_FIRST] +
                    t->sum[SL_ROW_BOUNDARY][SL_OF_FIRST]) /
                   (plain + firsts);
  segment_result (t, m, out);
  out->share_rows = t->share_rows;
  for (int i = 0; i < SL_SHARES; i++) {
    out->share[i] = t->share[i] / (double)t->share_rows;
    out->boost[i] = t->share[i] / t->even[i];
    out->largest[i] =
        isnan (out->share[i]) ? NAN : t->largest[i] / (double)t->share_rows;
  }
}
