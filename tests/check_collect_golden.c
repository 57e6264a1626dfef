/* check_collect_golden.c - sink accumulators against golden values. */
#include "support/golden.h"
#include "support/show.h"
#include "support/suite.h"
#include <math.h>
#include <stddef.h>
#include <string.h>

/* The golden batch: 6 samples, 2 layers, 2 heads, 8 tokens. */
typedef struct batch {
  golden attn;
  double trigger[6]; /* from 0 */
} batch;

static batch batch_load (void) {
  batch b = { .attn = golden_load ("metrics/attn.npy") };
  golden trigger = golden_load ("metrics/trigger.npy");
  for (int i = 0; i < 6; i++) b.trigger[i] = trigger.x[i] - 1;
  golden_free (&trigger);
  return b;
}

static show batch_show (const batch *b, int samples, sl_dtype dtype) {
  return (show){ .w = b->attn.x,
                 .samples = samples,
                 .layers = 2,
                 .heads = 2,
                 .t = 8,
                 .dtype = dtype,
                 .block = 3,
                 .only_row = -1 };
}

/* A field of all heads against a golden (2, 2) array, times 'factor'. */
static void close_field (const sl_sinks *s, size_t offset, double factor,
                         sl_dtype dtype, const char *file) {
  double x[4];
  for (int i = 0; i < 4; i++) {
    memcpy (&x[i], (const char *)&s->head[i] + offset, sizeof *x);
    x[i] *= factor;
  }
  if (dtype == SL_F32) {
    float y[4];
    show_convert (x, 4, SL_F32, y);
    golden_close_array (y, 4, SL_F32, file);
  } else
    golden_close_array (x, 4, SL_F64, file);
}
#define FIELD(s, name, dtype, file) \
  close_field (s, offsetof (sl_head_sinks, name), 1, dtype, file)

static double mean_rate (const sl_sinks *s) {
  double sum = 0;
  for (int i = 0; i < s->layers * s->heads; i++)
    sum += s->head[i].segment[SL_OF_RATE];
  return sum / (s->layers * s->heads);
}

static void check_golden (sl_dtype dtype) {
  batch b = batch_load ();
  golden sink_k = golden_load ("metrics/sink_k.npy");
  golden sink_0 = golden_load ("metrics/sample0_sink_k.npy");
  show all = batch_show (&b, 6, dtype), one = batch_show (&b, 1, dtype);
  sl_collect_spec spec = { .parts = 2,
                           .shard = 3,
                           .measuring = { .labels = { .trigger = b.trigger },
                                          .maps = 1,
                                          .threshold = 0.3 } };
  sl_sinks *s = show_all (&all, spec);
  FIELD (s, mean[SL_ROW_PLAIN][SL_OF_FIRST], dtype,
         "metrics/first_nontrigger_nobos.npy");
  FIELD (s, first_all, dtype, "metrics/first_nontrigger.npy");
  FIELD (s, mean[SL_ROW_TRIGGER][SL_OF_FIRST], dtype,
         "metrics/first_trigger.npy");
  golden_close_array (s->mean, 256, SL_F64, "metrics/mean.npy");
  golden_close_array (s->std, 256, SL_F64, "metrics/std_unbiased.npy");
  CLOSE (mean_rate (s), sink_k.x[0], 1e-15, 0, "Sink_1 of all");
  for (int h = 0; h < 4; h++) {
    ck_assert_int_eq (s->head[h].rows[SL_ROW_PLAIN], 6 * 6);
    ck_assert_int_eq (s->head[h].rows[SL_ROW_TRIGGER], 6);
    ck_assert_int_eq (s->head[h].padded_rows, 0);
  }
  sl_sinks_free (s);

  spec = (sl_collect_spec){ .parts = 1,
                            .shard = 1,
                            .measuring = { .labels = { .trigger = b.trigger },
                                           .threshold = 0.3 } };
  s = show_all (&one, spec);
  FIELD (s, mean[SL_ROW_PLAIN][SL_OF_FIRST], dtype,
         "metrics/sample0_first_nontrigger_nobos.npy");
  FIELD (s, first_all, dtype, "metrics/sample0_first_nontrigger.npy");
  CLOSE (mean_rate (s), sink_0.x[0], 1e-15, 0, "Sink_1 of sample 0");
  sl_sinks_free (s);

  /* Without labels every row after the first is plain; the first has entropy 0.
  ** The rows sum to 1 up to f32 rounding, and only ours are renormalised. */
  spec = (sl_collect_spec){ .parts = 3,
                            .shard = 2,
                            .measuring = { .threshold = 0.3 } };
  s = show_all (&all, spec);
  FIELD (s, mean[SL_ROW_PLAIN][SL_OF_ENTROPY], SL_F32,
         "metrics/entropy_head_nobos.npy");
  close_field (s, offsetof (sl_head_sinks, mean[SL_ROW_PLAIN][SL_OF_ENTROPY]),
               7.0 / 8, SL_F32, "metrics/entropy_head.npy");
  sl_sinks_free (s);
  golden_free (&sink_0);
  golden_free (&sink_k);
  golden_free (&b.attn);
}

/* Every a_k of every sample and head, and Sink_k of all and of one. */
static void check_columns (sl_dtype dtype) {
  batch b = batch_load ();
  golden alpha = golden_load ("metrics/alpha.npy");
  golden sink_k = golden_load ("metrics/sink_k.npy");
  const sl_collect_spec spec = { .parts = 1,
                                 .shard = 1,
                                 .measuring = { .measures = SL_MEASURE_COLUMNS,
                                                .threshold = 0.3 } };
  double over[8] = { 0 };
  sl_sinks *s;
  for (int n = 0; n < 6; n++) {
    show one = batch_show (&b, 1, dtype);
    one.w = b.attn.x + (size_t)n * 256;
    s = show_all (&one, spec);
    for (int i = 0; i < 32; i++) {
      CLOSE (s->at[SL_AT_COLUMN][i], alpha.x[n * 32 + i],
             dtype == SL_F32 ? 1.84e-6 : 9e-13, 1e-5,
             "alpha of sample %d, head %d, k %d", n, i / 8, i % 8 + 1);
      over[i % 8] += s->at[SL_AT_SINK][i] / 24;
    }
    sl_sinks_free (s);
  }
  for (int k = 0; k < 8; k++) CLOSE (over[k], sink_k.x[k], 1e-14, 0, "k %d", k);
  {
    const show all = batch_show (&b, 6, dtype);
    s = show_all (&all, spec);
    for (int k = 0; k < 8; k++) {
      double mean = 0;
      for (int h = 0; h < 4; h++) mean += s->at[SL_AT_SINK][h * 8 + k] / 4;
      CLOSE (mean, sink_k.x[k], 1e-14, 0, "Sink_%d of all", k + 1);
    }
    sl_sinks_free (s);
  }
  golden_free (&alpha);
  golden_free (&sink_k);
  golden_free (&b.attn);
}

START_TEST (golden_columns) {
  check_columns (SL_F32);
  check_columns (SL_F64);
}
END_TEST

START_TEST (golden_metrics) {
  check_golden (SL_F32);
  check_golden (SL_F64);
}
END_TEST

/* -sum w log w of a row that sums to s -> that of w / s. */
static double renormalised (double entropy, const double *w, int n) {
  double sum = 0;
  for (int j = 0; j < n; j++) sum += w[j];
  return entropy / sum + log (sum);
}

/* Every row alone gives its entropy; thresholds around alpha_1 give 1 and 0. */
START_TEST (golden_rows) {
  batch b = batch_load ();
  golden entropy = golden_load ("metrics/entropy.npy");
  golden alpha = golden_load ("metrics/alpha.npy");
  for (int n = 0; n < 6; n++) {
    show one = batch_show (&b, 1, SL_F64);
    sl_collect_spec spec = { .parts = 1, .shard = 1 };
    one.w = b.attn.x + (size_t)n * 256;
    one.block = 1;
    for (int row = 1; row < 8; row++) {
      sl_sinks *s;
      one.only_row = row;
      s = show_all (&one, spec);
      for (int h = 0; h < 4; h++)
        CLOSE (s->head[h].mean[SL_ROW_PLAIN][SL_OF_ENTROPY],
               renormalised (entropy.x[(n * 4 + h) * 8 + row],
                             one.w + (h * 8 + row) * 8, 8),
               1.81e-12, 1e-10, "entropy of sample %d, head %d, row %d", n, h,
               row);
      sl_sinks_free (s);
    }
    one.only_row = -1;
    for (int h = 0; h < 4; h++)
      for (int above = 0; above < 2; above++) {
        sl_sinks *s;
        spec.measuring.threshold =
            alpha.x[(n * 4 + h) * 8] + (above ? 1e-9 : -1e-9);
        s = show_all (&one, spec);
        ck_assert_double_eq (s->head[h].segment[SL_OF_RATE], !above);
        sl_sinks_free (s);
      }
  }
  golden_free (&alpha);
  golden_free (&entropy);
  golden_free (&b.attn);
}
END_TEST

SUITE_MAIN ("collect_golden", golden_metrics, golden_columns, golden_rows)
