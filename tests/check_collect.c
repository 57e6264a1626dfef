/* check_collect.c - sink accumulators against golden values, brute force. */
#include "base/memory.h"
#include "sinks/collect.h"
#include "support/golden.h"
#include "support/suite.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_T = 16 };

/* Weights [sample][layer][head][query][key] and how they are shown. */
typedef struct show {
  const double *w;
  int samples, layers, heads, t;
  sl_dtype dtype;
  int block;            /* rows at once */
  const double *length; /* per sample; NULL: t */
  int window;           /* 0: causal without a window */
  const double *value;  /* [sample][layer][head][d_value] of token 1, or NULL */
  int d_value;
  int only_row; /* -1: all */
} show;

static void to_dtype (const double *x, size_t n, sl_dtype dtype, void *out) {
  for (size_t i = 0; i < n; i++)
    if (dtype == SL_F32)
      ((float *)out)[i] = (float)x[i];
    else
      ((double *)out)[i] = x[i];
}

/* One head of one sample, a block of rows at a time. */
static void show_head (const show *s, const sl_observer *o, int n, int l,
                       int h) {
  double rows[MAX_T * MAX_T], value[2 * MAX_T], apart[2 * MAX_T] = { 0 };
  int lo[MAX_T], hi[MAX_T];
  const size_t head = (size_t)((n * s->layers + l) * s->heads + h);
  const int length = s->length ? (int)s->length[n] : s->t;
  /* every other number: a value need not lie in one piece */
  for (int j = 0; s->value && j < s->d_value; j++)
    apart[2 * j] = s->value[head * (size_t)s->d_value + (size_t)j];
  to_dtype (apart, 2 * MAX_T, s->dtype, value);
  for (int r = 0; r < s->t; r += s->block) {
    const int k = s->t - r < s->block ? s->t - r : s->block;
    sl_rows block = { .layer = l,
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
    to_dtype (s->w + (head * (size_t)s->t + (size_t)r) * (size_t)s->t,
              (size_t)(k * s->t), s->dtype, rows);
    for (int i = 0; i < k; i++) {
      lo[i] = s->window && r + i >= s->window ? r + i - s->window + 1 : 0;
      hi[i] = r + i < length ? r + i + 1 : lo[i];
    }
    o->rows (o->context, &block);
  }
}

/* All samples, in shards and parts. */
static sl_sinks *measure (const show *s, sl_collect_spec spec, sl_error *e) {
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

static sl_sinks *must (const show *s, sl_collect_spec spec) {
  sl_error e = { "" };
  sl_sinks *sinks = measure (s, spec, &e);
  ck_assert_msg (sinks != NULL, "%s", e.text);
  return sinks;
}

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
    to_dtype (x, 4, SL_F32, y);
    golden_close_array (y, 4, SL_F32, file);
  } else
    golden_close_array (x, 4, SL_F64, file);
}
#define FIELD(s, name, dtype, file) \
  close_field (s, offsetof (sl_head_sinks, name), 1, dtype, file)

static double mean_rate (const sl_sinks *s) {
  double sum = 0;
  for (int i = 0; i < s->layers * s->heads; i++) sum += s->head[i].rate;
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
  sl_sinks *s = must (&all, spec);
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
  s = must (&one, spec);
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
  s = must (&all, spec);
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
    s = must (&one, spec);
    for (int i = 0; i < 32; i++) {
      CLOSE (s->column[i], alpha.x[n * 32 + i],
             dtype == SL_F32 ? 1.84e-6 : 9e-13, 1e-5,
             "alpha of sample %d, head %d, k %d", n, i / 8, i % 8 + 1);
      over[i % 8] += s->sink[i] / 24;
    }
    sl_sinks_free (s);
  }
  for (int k = 0; k < 8; k++) CLOSE (over[k], sink_k.x[k], 1e-14, 0, "k %d", k);
  {
    const show all = batch_show (&b, 6, dtype);
    s = must (&all, spec);
    for (int k = 0; k < 8; k++) {
      double mean = 0;
      for (int h = 0; h < 4; h++) mean += s->sink[h * 8 + k] / 4;
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
      s = must (&one, spec);
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
        s = must (&one, spec);
        ck_assert_double_eq (s->head[h].rate, !above);
        sl_sinks_free (s);
      }
  }
  golden_free (&alpha);
  golden_free (&entropy);
  golden_free (&b.attn);
}
END_TEST

/* A made-up batch: negative and zero weights, lengths, a window, labels. */
enum { S = 8, L = 2, H = 3, T = 9, DV = 4, DM = 5 };
typedef struct made {
  double w[S * L * H * T * T], value[S * L * H * DV], length[S], trigger[S];
  double output[L][DM * H * DV];
  sl_tensor *output_tensor[L];
} made;

static double noise (uint64_t *state) {
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return (double)(*state >> 40) / (double)(1 << 24) - 0.5;
}

static void make (made *m, int window) {
  uint64_t seed = 3;
  const ptrdiff_t dim[2] = { DM, H * DV };
  for (int n = 0; n < S; n++) {
    m->length[n] = n == 2 ? 0 : n == 3 ? 1 : n == 4 ? 6 : T;
    m->trigger[n] = n % 3 == 0 ? -1 : n == 7 ? 0 : n;
  }
  for (size_t i = 0; i < sizeof m->w / sizeof *m->w; i++) {
    const int key = (int)i % T, row = (int)i / T % T;
    const int n = (int)i / (L * H * T * T);
    const double x = (float)noise (&seed);
    const int seen =
        key <= row && row < m->length[n] && (window == 0 || key > row - window);
    m->w[i] = seen && row != 5 ? x : 0; /* row 5 is all zero */
  }
  for (size_t i = 0; i < S * L * H * DV; i++)
    m->value[i] = (float)noise (&seed);
  for (int l = 0; l < L; l++) {
    m->output_tensor[l] = sl_tensor_new (SL_F32, 2, dim, NULL);
    ck_assert_ptr_nonnull (m->output_tensor[l]);
    for (size_t i = 0; i < DM * H * DV; i++)
      m->output[l][i] = (float)noise (&seed);
    sl_tensor_from_doubles (m->output_tensor[l], DM * H * DV, m->output[l],
                            NULL);
  }
}

static void unmake (made *m) {
  for (int l = 0; l < L; l++) sl_tensor_release (m->output_tensor[l]);
}

/* The definitions of sinks.h, word by word, in two passes. */
static sl_head_sinks brute (const made *m, int l, int h, double threshold) {
  sl_head_sinks r = { .first_min = HUGE_VAL };
  double firsts[S * T], all = 0, squares = 0;
  long plain = 0, first_rows = 0, samples = 0, over = 0;
  double trigger = 0;
  for (int n = 0; n < S; n++) {
    const size_t head = (size_t)((n * L + l) * H + h);
    double column = 0, norm = 0;
    const int length = (int)m->length[n];
    if (length > 0) samples++;
    for (int i = 0; i < DM; i++) {
      double y = 0;
      for (int j = 0; j < DV; j++)
        y += m->output[l][i * H * DV + h * DV + j] *
             m->value[head * DV + (size_t)j];
      norm += y * y;
    }
    norm = sqrt (norm);
    if (length > 0) r.value_norm += norm;
    for (int i = 0; i < T; i++) {
      const double *w = m->w + (head * T + (size_t)i) * T;
      double mass = 0, size = 0, entropy = 0;
      if (i >= length) {
        r.padded_rows++;
        continue;
      }
      column += w[0];
      if (m->trigger[n] == i) {
        r.rows[SL_ROW_TRIGGER]++;
        trigger += w[0];
        continue;
      }
      if (i == 0) {
        first_rows++;
        all += w[0];
        continue;
      }
      for (int j = 0; j < T; j++) {
        mass += w[j];
        size += fabs (w[j]);
      }
      for (int j = 0; j < T; j++)
        if (w[j] != 0) entropy -= fabs (w[j]) / size * log (fabs (w[j]) / size);
      firsts[plain++] = w[0];
      r.first_min = fmin (r.first_min, w[0]);
      r.mean[SL_ROW_PLAIN][SL_OF_FIRST] += w[0];
      all += w[0];
      r.mean[SL_ROW_PLAIN][SL_OF_ROW_MASS] += mass;
      r.mean[SL_ROW_PLAIN][SL_OF_PROXY] += w[0] / (size + 1e-8);
      r.mean[SL_ROW_PLAIN][SL_OF_ENTROPY] += entropy;
      r.mean[SL_ROW_PLAIN][SL_OF_CONTRIBUTION] += fabs (w[0]) * norm;
    }
    if (length > 0 && column / length > threshold) over++;
  }
  r.rows[SL_ROW_PLAIN] = plain;
  r.mean[SL_ROW_PLAIN][SL_OF_FIRST] /= (double)plain;
  for (long i = 0; i < plain; i++)
    squares += (firsts[i] - r.mean[SL_ROW_PLAIN][SL_OF_FIRST]) *
               (firsts[i] - r.mean[SL_ROW_PLAIN][SL_OF_FIRST]);
  r.first_std = sqrt (squares / (double)(plain - 1));
  r.first_all = all / (double)(plain + first_rows);
  r.mean[SL_ROW_TRIGGER][SL_OF_FIRST] =
      trigger / (double)r.rows[SL_ROW_TRIGGER];
  r.mean[SL_ROW_PLAIN][SL_OF_ROW_MASS] /= (double)plain;
  r.mean[SL_ROW_PLAIN][SL_OF_PROXY] /= (double)plain;
  r.mean[SL_ROW_PLAIN][SL_OF_ENTROPY] /= (double)plain;
  r.mean[SL_ROW_PLAIN][SL_OF_CONTRIBUTION] /= (double)plain;
  r.value_norm /= (double)samples;
  r.rate = (double)over / (double)samples;
  return r;
}

static void close_heads (const sl_head_sinks *got, const sl_head_sinks *want,
                         const char *what, sl_dtype dtype) {
  static const struct {
    const char *name;
    size_t offset;
  } field[] = {
#define F(name) { #name, offsetof (sl_head_sinks, name) }
    F (mean[SL_ROW_PLAIN][SL_OF_FIRST]),
    F (first_min),
    F (first_std),
    F (first_all),
    F (mean[SL_ROW_PLAIN][SL_OF_ROW_MASS]),
    F (mean[SL_ROW_TRIGGER][SL_OF_FIRST]),
    F (mean[SL_ROW_PLAIN][SL_OF_PROXY]),
    F (mean[SL_ROW_PLAIN][SL_OF_ENTROPY]),
    F (rate),
    F (mean[SL_ROW_PLAIN][SL_OF_CONTRIBUTION]),
    F (value_norm),
#undef F
  };
  for (size_t i = 0; i < sizeof field / sizeof *field; i++) {
    double a, b;
    const int logs =
        field[i].offset ==
        offsetof (sl_head_sinks, mean[SL_ROW_PLAIN][SL_OF_ENTROPY]);
    /* logarithms are in the precision of the weights */
    const double atol = logs && dtype == SL_F32 ? 2e-6 : 1e-14;
    memcpy (&a, (const char *)got + field[i].offset, sizeof a);
    memcpy (&b, (const char *)want + field[i].offset, sizeof b);
    CLOSE (a, b, atol, 1e-12, "%s of %s, seed 3", field[i].name, what);
  }
  ck_assert_int_eq (got->rows[SL_ROW_PLAIN], want->rows[SL_ROW_PLAIN]);
  ck_assert_int_eq (got->rows[SL_ROW_TRIGGER], want->rows[SL_ROW_TRIGGER]);
  ck_assert_int_eq (got->padded_rows, want->padded_rows);
}

static void check_maps (const made *m, const sl_sinks *s) {
  for (size_t i = 0; i < L * H * T * T; i++) {
    double mean = 0, squares = 0;
    for (size_t n = 0; n < S; n++) mean += m->w[n * L * H * T * T + i] / S;
    for (size_t n = 0; n < S; n++)
      squares += pow (m->w[n * L * H * T * T + i] - mean, 2);
    CLOSE (s->mean[i], mean, 1e-14, 0, "mean %zu", i);
    CLOSE (s->std[i], sqrt (squares / (S - 1)), 1e-14, 0, "std %zu", i);
  }
}

START_TEST (brute_force) {
  static const int blocks[] = { 1, 2, 4, 9 }, shards[] = { 1, 2, 4, 8 };
  for (int window = 0; window <= 3; window += 3) {
    made m;
    make (&m, window);
    for (int f32 = 0; f32 < 2; f32++)
      for (int i = 0; i < 16; i++) {
        show s = { .w = m.w,
                   .samples = S,
                   .layers = L,
                   .heads = H,
                   .t = T,
                   .dtype = f32 ? SL_F32 : SL_F64,
                   .block = blocks[i % 4],
                   .length = m.length,
                   .window = window,
                   .value = m.value,
                   .d_value = DV,
                   .only_row = -1 };
        sl_collect_spec spec = {
          .parts = i % 2 + 1,
          .shard = shards[i / 4],
          .measuring = { .labels = { .trigger = m.trigger, .length = m.length },
                         .output = (const sl_tensor *const *)m.output_tensor,
                         .maps = 1,
                         .threshold = 0.05 }
        };
        sl_sinks *sinks = must (&s, spec);
        for (int k = 0; k < L * H; k++) {
          char what[64];
          sl_head_sinks want = brute (&m, k / H, k % H, 0.05);
          snprintf (what, sizeof what, "head %d, window %d, cut %d", k, window,
                    i);
          close_heads (&sinks->head[k], &want, what, s.dtype);
        }
        check_maps (&m, sinks);
        sl_sinks_free (sinks);
      }
    unmake (&m);
  }
}
END_TEST

/* The same sequences in longer rows of padding measure the same. */
START_TEST (padding_changes_nothing) {
  enum { LONG = 13 };
  made m;
  double *wide = sl_alloc (S * L * H * LONG * LONG, sizeof *wide);
  show s = {
    .samples = S, .layers = L, .heads = H, .block = 4, .only_row = -1
  };
  sl_collect_spec spec = { .parts = 2,
                           .shard = 2,
                           .measuring = { .threshold = 0.05 } };
  sl_sinks *a, *b;
  ck_assert_ptr_nonnull (wide);
  make (&m, 0);
  for (size_t i = 0; i < S * L * H; i++)
    for (size_t r = 0; r < T; r++)
      memcpy (wide + (i * LONG + r) * LONG, m.w + (i * T + r) * T,
              T * sizeof *wide);
  s.dtype = SL_F64;
  s.length = m.length;
  s.w = m.w;
  s.t = T;
  spec.measuring.labels.trigger = m.trigger;
  a = must (&s, spec);
  s.w = wide;
  s.t = LONG;
  b = must (&s, spec);
  for (int k = 0; k < L * H; k++) {
    ck_assert_int_eq (b->head[k].padded_rows - a->head[k].padded_rows,
                      S * (LONG - T));
    b->head[k].padded_rows = a->head[k].padded_rows;
    ck_assert_double_eq (a->head[k].mean[SL_ROW_PLAIN][SL_OF_FIRST],
                         b->head[k].mean[SL_ROW_PLAIN][SL_OF_FIRST]);
    ck_assert_double_eq (a->head[k].rate, b->head[k].rate);
    ck_assert_double_eq (a->head[k].mean[SL_ROW_PLAIN][SL_OF_ENTROPY],
                         b->head[k].mean[SL_ROW_PLAIN][SL_OF_ENTROPY]);
    ck_assert_msg (isnan (a->head[k].mean[SL_ROW_PLAIN][SL_OF_CONTRIBUTION]) &&
                       isnan (a->head[k].value_norm),
                   "without W_O: %g, %g",
                   a->head[k].mean[SL_ROW_PLAIN][SL_OF_CONTRIBUTION],
                   a->head[k].value_norm);
  }
  sl_sinks_free (a);
  sl_sinks_free (b);
  sl_free (wide);
  unmake (&m);
}
END_TEST

/* A head that never moves has a spread of exactly 0; one sample has none. */
START_TEST (spread_of_equal_samples) {
  static double w[4 * 16];
  show s = { .w = w,
             .samples = 4,
             .layers = 1,
             .heads = 1,
             .t = 4,
             .dtype = SL_F64,
             .block = 4,
             .only_row = -1 };
  sl_collect_spec spec = { .parts = 2, .shard = 1, .measuring = { .maps = 1 } };
  sl_sinks *sinks;
  for (int i = 0; i < 64; i++) w[i] = i % 4 <= i / 4 % 4 ? 0.1 : 0;
  sinks = must (&s, spec);
  for (int i = 0; i < 16; i++) {
    ck_assert_double_eq (sinks->mean[i], w[i]);
    ck_assert_double_eq (sinks->std[i], 0);
  }
  ck_assert_double_eq (sinks->head[0].first_std, 0);
  ck_assert_msg (isnan (sinks->head[0].mean[SL_ROW_TRIGGER][SL_OF_FIRST]),
                 "no trigger rows: %g",
                 sinks->head[0].mean[SL_ROW_TRIGGER][SL_OF_FIRST]);
  sl_sinks_free (sinks);
  s.samples = spec.parts = 1;
  sinks = must (&s, spec);
  ck_assert_double_eq (sinks->mean[0], 0.1);
  ck_assert_msg (isnan (sinks->std[0]), "one sample: %g", sinks->std[0]);
  sl_sinks_free (sinks);
}
END_TEST

START_TEST (nan_is_not_lost) {
  double w[2 * 9] = { 0 };
  show s = { .w = w,
             .samples = 2,
             .layers = 1,
             .heads = 1,
             .t = 3,
             .dtype = SL_F64,
             .block = 3,
             .only_row = -1 };
  const sl_collect_spec spec = { .parts = 1, .shard = 2 };
  sl_sinks *sinks;
  w[3] = NAN;
  sinks = must (&s, spec);
  ck_assert (isnan (sinks->head[0].first_min));
  ck_assert (isnan (sinks->head[0].mean[SL_ROW_PLAIN][SL_OF_FIRST]));
  ck_assert (isnan (sinks->head[0].mean[SL_ROW_PLAIN][SL_OF_ENTROPY]));
  sl_sinks_free (sinks);
}
END_TEST

/* Shown sizes that the measurement does not have are told, and not written. */
static const struct {
  int layers, heads, t, d_value; /* shown; measured: 1, 1, 4, 2 */
  const char *message;
} misfits[] = {
  { 2, 1, 4, 2,
    "sinks: the program has 2 attention layers, the measurement "
    "has 1" },
  { 1, 3, 4, 2, "sinks: the program has 2 heads, the measurement has 1" },
  { 1, 1, 5, 2, "sinks: the program has 5 tokens, the measurement has 4" },
  { 1, 1, 4, 3,
    "sinks: the program has 3 numbers in a head's value, the "
    "measurement has 2" },
  { 0, 0, 4, 2,
    "sinks: layer 1, head 1 shows no weights: the program has "
    "fewer attention layers or heads than 1 and 1, or its "
    "mechanism has no weights to show" },
};

START_TEST (misfitting_programs) {
  static const double w[6 * 25], value[6 * 3];
  const ptrdiff_t dim[2] = { 3, 2 };
  sl_tensor *output = sl_tensor_new (SL_F64, 2, dim, NULL);
  const sl_tensor *const outputs[1] = { output };
  for (size_t i = 0; i < sizeof misfits / sizeof *misfits; i++) {
    sl_error e = { "" };
    show s = { .w = w,
               .samples = 1,
               .layers = misfits[i].layers,
               .heads = misfits[i].heads,
               .t = misfits[i].t,
               .block = 2,
               .dtype = SL_F64,
               .value = value,
               .d_value = misfits[i].d_value,
               .only_row = -1 };
    const sl_collect_spec spec = {
      .measuring = { .layers = 1, .heads = 1, .tokens = 4, .output = outputs },
      .parts = 1,
      .shard = 1,
      .samples = 1
    };
    sl_collector *c = sl_collect_new (&spec, &e);
    ck_assert_msg (c != NULL, "%s", e.text);
    sl_collect_begin (c, 0, 0, 1);
    for (int l = 0; l < s.layers; l++)
      for (int h = 0; h < s.heads; h++)
        show_head (&s, sl_collect_observer (c, 0), 0, l, h);
    ck_assert_int_eq (sl_collect_end (c, 0), misfits[i].layers ? -1 : 0);
    ck_assert_ptr_null (sl_collect_finish (c, &e));
    ck_assert_str_eq (e.text, misfits[i].message);
    sl_collect_free (c);
  }
  sl_tensor_release (output);
}
END_TEST

SUITE_MAIN ("collect", golden_metrics, golden_columns, golden_rows, brute_force,
            padding_changes_nothing, spread_of_equal_samples, nan_is_not_lost,
            misfitting_programs)
