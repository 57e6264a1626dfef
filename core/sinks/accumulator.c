/* accumulator.c - sums over the rows of one head, merged in a fixed order. */
#include "sinks/accumulator.h"
#include "base/number.h"
#include <math.h>
#include <stddef.h>

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

void sl_accumulator_reset (sl_accumulator *t) {
  *t = (sl_accumulator){ .first_min = HUGE_VAL, .norm = NAN };
}

void sl_accumulator_row (sl_accumulator *t, sl_row_class class,
                         const double *x) {
  double *sum = t->sum[class];
  t->used++;
  t->column += x[SL_OF_FIRST];
  t->column_over_rowsum += fabs (x[SL_OF_FIRST_OVER_ROWSUM]);
  t->rows[class]++;
  for (int m = 0; m < sl_row_measures; m++)
    if (m != SL_OF_SINK_LOGIT) sum[m] += x[m];
  if (!isnan (x[SL_OF_SINK_LOGIT])) {
    sum[SL_OF_SINK_LOGIT] += x[SL_OF_SINK_LOGIT];
    t->logits[class]++;
  }
  if (class != SL_ROW_PLAIN) return;
  moments_add (&t->first, x[SL_OF_FIRST]);
  t->first_min = sl_min_or_nan (t->first_min, x[SL_OF_FIRST]);
}

/* What two accumulators of a head become: the fields, and how they merge. */
enum rule { ADD_COUNTS, ADD_NUMBERS, SMALLEST, MOMENTS };
static const struct {
  size_t offset, bytes;
  enum rule rule;
} fields[] = {
#define FIELD(name, rule) \
  { offsetof (sl_accumulator, name), sizeof ((sl_accumulator *)0)->name, rule }
  FIELD (blocks, ADD_COUNTS),
  FIELD (segments, ADD_COUNTS),
  FIELD (rows, ADD_COUNTS),
  FIELD (masked, ADD_COUNTS),
  FIELD (logits, ADD_COUNTS),
  FIELD (sum, ADD_NUMBERS),
  FIELD (first, MOMENTS),
  FIELD (first_min, SMALLEST),
  FIELD (share, ADD_NUMBERS),
  FIELD (even, ADD_NUMBERS),
  FIELD (largest, ADD_NUMBERS),
  FIELD (share_rows, ADD_COUNTS),
  FIELD (segment.sum, ADD_NUMBERS),
  FIELD (segment.at, ADD_NUMBERS),
  FIELD (segment.count, ADD_COUNTS),
#undef FIELD
};

static void merge_field (enum rule rule, size_t bytes, void *into,
                         const void *from) {
  long *n = into;
  double *x = into;
  switch (rule) {
  case ADD_COUNTS:
    for (size_t i = 0; i < bytes / sizeof *n; i++)
      n[i] += ((const long *)from)[i];
    break;
  case ADD_NUMBERS:
    for (size_t i = 0; i < bytes / sizeof *x; i++)
      x[i] += ((const double *)from)[i];
    break;
  case SMALLEST: *x = sl_min_or_nan (*x, *(const double *)from); break;
  case MOMENTS: moments_merge (into, from); break;
  }
}

void sl_accumulator_merge (sl_accumulator *into, const sl_accumulator *t) {
  for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
    merge_field (fields[i].rule, fields[i].bytes,
                 (char *)into + fields[i].offset,
                 (const char *)t + fields[i].offset);
}

static void class_result (const sl_accumulator *t, int class,
                          const sl_measuring *m, sl_head_sinks *out) {
  double *mean = out->mean[class];
  out->rows[class] = t->rows[class];
  for (int k = 0; k < sl_row_measures; k++)
    mean[k] = t->sum[class][k] / (double)t->rows[class];
  mean[SL_OF_SINK_LOGIT] =
      t->sum[class][SL_OF_SINK_LOGIT] / (double)t->logits[class];
  if (!m->null_mass) mean[SL_OF_NULL_MASS] = NAN;
  if (m->virtual_keys + m->registers == 0) mean[SL_OF_VIRTUAL_MASS] = NAN;
}

void sl_accumulator_result (const sl_accumulator *t, const sl_measuring *m,
                            long rows, sl_head_sinks *out) {
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
  out->segments = t->segments;
  out->peak_key = NAN;
  sl_segment_result (&t->segment, m, out);
  out->share_rows = t->share_rows;
  for (int i = 0; i < SL_SHARES; i++) {
    out->share[i] = t->share[i] / (double)t->share_rows;
    out->boost[i] = t->share[i] / t->even[i];
    out->largest[i] =
        isnan (out->share[i]) ? NAN : t->largest[i] / (double)t->share_rows;
  }
}
