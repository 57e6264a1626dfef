/* tally.c - sums over the rows of one head, merged in a fixed order. */
#include "sinks/tally.h"
#include <math.h>

static void spread_add (sl_spread *s, double x) {
  const double d = x - s->mean;
  s->n += 1;
  s->mean += d / s->n;
  s->m2 += d * (x - s->mean);
}

static void spread_merge (sl_spread *s, const sl_spread *b) {
  const double d = b->mean - s->mean, n = s->n + b->n;
  if (b->n == 0) return;
  s->mean += d * (b->n / n);
  s->m2 += b->m2 + d * d * (s->n * b->n / n);
  s->n = n;
}

/* The smaller; a NaN wins, so that it is not lost. */
static double smaller (double a, double b) {
  return isnan (a) || a <= b ? a : b;
}

void sl_tally_reset (sl_tally *t) {
  *t = (sl_tally){ .first_min = HUGE_VAL, .norm = NAN };
}

/* Of |w| / sum, in nats; 0 for an all-zero row. */
static double entropy (const double *w, int lo, int hi, double sum) {
  double h = 0;
  if (sum == 0) return 0;
  for (int j = lo; j < hi; j++) {
    const double p = fabs (w[j]) / sum;
    if (p != 0) h -= p * log (p);
  }
  return h;
}

void sl_tally_row (sl_tally *t, sl_row_class class, const double *w,
                   int position, int lo, int hi) {
  const double first = lo <= position && position < hi ? w[position] : 0;
  double mass = 0, size = 0, outside = 0, all = 0;
  t->column += first;
  if (class == SL_ROW_FIRST) {
    t->firsts++;
    t->first_row += first;
    return;
  }
  if (class == SL_ROW_TRIGGER) {
    t->triggers++;
    t->trigger_row += first;
    return;
  }
  for (int j = lo; j < hi; j++) {
    all += fabs (w[j]);
    if (j < position)
      outside += w[j];
    else {
      mass += w[j];
      size += fabs (w[j]);
    }
  }
  t->plain++;
  spread_add (&t->first, first);
  t->first_min = smaller (t->first_min, first);
  t->mass += mass;
  t->size += size;
  t->outside += outside;
  t->null += 1 - (mass + outside);
  t->proxy += first / (all + 1e-8);
  t->entropy += entropy (w, lo, hi, all);
  t->contribution += fabs (first) * t->norm;
}

void sl_tally_close (sl_tally *t, double threshold) {
  if (t->samples == 0) return;
  t->over = t->column / t->length > threshold;
  t->norms = t->norm;
}

void sl_tally_merge (sl_tally *into, const sl_tally *t) {
  into->blocks += t->blocks;
  into->samples += t->samples;
  into->plain += t->plain;
  into->firsts += t->firsts;
  into->triggers += t->triggers;
  spread_merge (&into->first, &t->first);
  into->first_min = smaller (into->first_min, t->first_min);
  into->first_row += t->first_row;
  into->trigger_row += t->trigger_row;
  into->mass += t->mass;
  into->size += t->size;
  into->outside += t->outside;
  into->null += t->null;
  into->proxy += t->proxy;
  into->entropy += t->entropy;
  into->contribution += t->contribution;
  into->norms += t->norms;
  into->over += t->over;
}

void sl_tally_result (const sl_tally *t, long rows, sl_head_sinks *out) {
  const double plain = (double)t->plain;
  const double all = plain + (double)t->firsts;
  *out = (sl_head_sinks){
    .first_mean = t->plain ? t->first.mean : NAN,
    .first_min = t->plain ? t->first_min : NAN,
    .first_std = t->plain > 1 ? sqrt (t->first.m2 / (plain - 1)) : NAN,
    .first_all = (t->first.mean * plain + t->first_row) / all,
    .trigger_first = t->trigger_row / (double)t->triggers,
    .row_mass = t->mass / plain,
    .abs_mass = t->size / plain,
    .virtual_mass = t->outside / plain,
    .null_mass = t->null / plain,
    .proxy = t->proxy / plain,
    .entropy = t->entropy / plain,
    .contribution = t->contribution / plain,
    .value_norm = t->norms / (double)t->samples,
    .rate = (double)t->over / (double)t->samples,
    .plain_rows = t->plain,
    .trigger_rows = t->triggers,
    .empty_rows = rows - t->plain - t->firsts - t->triggers
  };
}
