/* show.c - weights that are given, shown to a collector of sinks. */
#include "support/show.h"
#include "support/suite.h"

void show_convert (const double *x, size_t n, sl_dtype dtype, void *out) {
  for (size_t i = 0; i < n; i++)
    if (dtype == SL_F32)
      ((float *)out)[i] = (float)x[i];
    else
      ((double *)out)[i] = x[i];
}

/* One head of one sample, a block of rows at a time. */
void show_head (const show *s, const sl_observer *o, int n, int l, int h) {
  double rows[SHOW_MOST * SHOW_MOST], value[2 * SHOW_MOST],
      apart[2 * SHOW_MOST] = { 0 };
  int lo[SHOW_MOST], hi[SHOW_MOST];
  const size_t head = (size_t)((n * s->layers + l) * s->heads + h);
  const int length = s->length ? (int)s->length[n] : s->t;
  /* every other number: a value need not lie in one piece */
  for (int j = 0; s->value && j < s->d_value; j++)
    apart[2 * j] = s->value[head * (size_t)s->d_value + (size_t)j];
  show_convert (apart, 2 * SHOW_MOST, s->dtype, value);
  for (int r = 0; r < s->t; r += s->block) {
    const int k = s->t - r < s->block ? s->t - r : s->block;
    sl_weight_rows block = { .layer = l,
                             .sample = n,
                             .head = h,
                             .t = s->t,
                             .length = length,
                             .row = r,
                             .rows = k,
                             .dtype = s->dtype,
                             .stride = s->t,
                             .weights = rows,
                             .lo = lo,
                             .hi = hi,
                             .value = s->value ? value : NULL,
                             .value_step = 2,
                             .d_value = s->d_value };
    if (s->only_row >= 0 && s->only_row != r) continue;
    show_convert (s->w + (head * (size_t)s->t + (size_t)r) * (size_t)s->t,
                  (size_t)(k * s->t), s->dtype, rows);
    for (int i = 0; i < k; i++) {
      lo[i] = s->window && r + i >= s->window ? r + i - s->window + 1 : 0;
      hi[i] = r + i < length ? r + i + 1 : lo[i];
    }
    o->rows (o->context, &block);
  }
}

/* All samples, in shards and parts. */
sl_sinks *show_measure (const show *s, sl_collect_spec spec, sl_error *e) {
  sl_collector *c;
  sl_sinks *sinks;
  spec.measuring.layers = s->layers;
  spec.measuring.heads = s->heads;
  spec.measuring.tokens = s->t;
  spec.samples = s->samples;
  c = sl_collect_new (&spec, e);
  ck_assert_msg (c != NULL, "%s", e->text);
  for (int p = 0; p < spec.parts; p++) {
    const long shards = s->samples / spec.shard;
    for (long i = shards * p / spec.parts; i < shards * (p + 1) / spec.parts;
         i++) {
      sl_collect_begin (c, p, i * spec.shard, spec.shard);
      for (int l = 0; l < s->layers; l++)
        for (int h = 0; h < s->heads; h++)
          for (long n = i * spec.shard; n < (i + 1) * spec.shard; n++)
            show_head (s, sl_collect_observer (c, p), (int)n, l, h);
      sl_collect_end (c, p);
    }
  }
  sinks = sl_collect_finish (c, e);
  sl_collect_free (c);
  return sinks;
}

sl_sinks *show_all (const show *s, sl_collect_spec spec) {
  sl_error e = { "" };
  sl_sinks *sinks = show_measure (s, spec, &e);
  ck_assert_msg (sinks != NULL, "%s", e.text);
  return sinks;
}
