/* check_collect.c - sink accumulators against brute force. */
#include "base/memory.h"
#include "support/show.h"
#include "support/suite.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

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
    if (length > 0) r.segment[SL_OF_VALUE_NORM] += norm;
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
      r.mean[SL_ROW_PLAIN][SL_OF_FIRST_OVER_ROWSUM] += w[0] / (size + 1e-8);
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
  r.mean[SL_ROW_PLAIN][SL_OF_FIRST_OVER_ROWSUM] /= (double)plain;
  r.mean[SL_ROW_PLAIN][SL_OF_ENTROPY] /= (double)plain;
  r.mean[SL_ROW_PLAIN][SL_OF_CONTRIBUTION] /= (double)plain;
  r.segment[SL_OF_VALUE_NORM] /= (double)samples;
  r.segment[SL_OF_RATE] = (double)over / (double)samples;
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
    F (mean[SL_ROW_PLAIN][SL_OF_FIRST_OVER_ROWSUM]),
    F (mean[SL_ROW_PLAIN][SL_OF_ENTROPY]),
    F (segment[SL_OF_RATE]),
    F (mean[SL_ROW_PLAIN][SL_OF_CONTRIBUTION]),
    F (segment[SL_OF_VALUE_NORM]),
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
    const double row = (double)(i / T % T); /* of those that have it */
    double mean = 0, squares = 0, samples = 0;
    for (size_t n = 0; n < S; n++) {
      if (row >= m->length[n]) continue;
      samples++;
      mean += m->w[n * L * H * T * T + i];
    }
    mean /= samples;
    for (size_t n = 0; n < S; n++)
      if (row < m->length[n])
        squares += pow (m->w[n * L * H * T * T + i] - mean, 2);
    ck_assert (samples > 1);
    CLOSE (s->mean[i], mean, 1e-14, 0, "mean %zu", i);
    CLOSE (s->std[i], sqrt (squares / (samples - 1)), 1e-14, 0, "std %zu", i);
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
        sl_sinks *sinks = show_all (&s, spec);
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
  a = show_all (&s, spec);
  s.w = wide;
  s.t = LONG;
  b = show_all (&s, spec);
  for (int k = 0; k < L * H; k++) {
    ck_assert_int_eq (b->head[k].padded_rows - a->head[k].padded_rows,
                      S * (LONG - T));
    b->head[k].padded_rows = a->head[k].padded_rows;
    ck_assert_double_eq (a->head[k].mean[SL_ROW_PLAIN][SL_OF_FIRST],
                         b->head[k].mean[SL_ROW_PLAIN][SL_OF_FIRST]);
    ck_assert_double_eq (a->head[k].segment[SL_OF_RATE],
                         b->head[k].segment[SL_OF_RATE]);
    ck_assert_double_eq (a->head[k].mean[SL_ROW_PLAIN][SL_OF_ENTROPY],
                         b->head[k].mean[SL_ROW_PLAIN][SL_OF_ENTROPY]);
    ck_assert_msg (isnan (a->head[k].mean[SL_ROW_PLAIN][SL_OF_CONTRIBUTION]) &&
                       isnan (a->head[k].segment[SL_OF_VALUE_NORM]),
                   "without W_O: %g, %g",
                   a->head[k].mean[SL_ROW_PLAIN][SL_OF_CONTRIBUTION],
                   a->head[k].segment[SL_OF_VALUE_NORM]);
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
  sinks = show_all (&s, spec);
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
  sinks = show_all (&s, spec);
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
  sinks = show_all (&s, spec);
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

SUITE_MAIN ("collect", brute_force, padding_changes_nothing,
            spread_of_equal_samples, nan_is_not_lost, misfitting_programs)
