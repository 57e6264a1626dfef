/* check_sinks.c - sinks of a program of two attention layers on one input.
**
** Queries, keys and values of layer 1 are the input itself, those of layer 2
** the output of layer 1: no other operation is needed, and the weights of
** layer 1 are easily computed again. */
#include "attention/attention.h"
#include "base/interrupt.h"
#include "base/isa.h"
#include "base/memory_test.h"
#include "sinks/sinks.h"
#include "support/suite.h"
#include <math.h>
#include <string.h>

enum { S = 12, T = 7, D = 6, H = 2, W = D / H }; /* W: width of a head */

typedef struct model {
  sl_context context;
  sl_program *program;
  sl_tensor *x, *length, *y1, *y2;
  sl_tensor *output[2]; /* W_O (4, D) */
} model;

typedef struct setting {
  sl_dtype dtype;
  int shard, threads, t, lengths; /* lengths: the program has them */
  int block, recompute_from;
} setting;

/* 20 bits, so that a few times it is exact in both precisions. */
static double noise (uint64_t i) {
  i = (i + 1) * 0x9e3779b97f4a7c15u;
  i = (i ^ i >> 31) * 0xbf58476d1ce4e5b9u;
  return (double)(i >> 44) / (double)(1 << 20) - 0.5;
}

/* Element c of token i of sequence s. */
static double x_at (long s, int i, int c) {
  return 3 * noise ((uint64_t)((s * 100 + i) * 100 + c));
}

static double output_at (int layer, int i, int c) {
  return noise ((uint64_t)(1000000 + (layer * 100 + i) * 100 + c));
}

static int length_at (long s) {
  return s == 3 ? 0 : s % 3 == 0 ? T - 2 : T;
}

static sl_tensor *tensor (sl_dtype dtype, int ndim, ptrdiff_t a, ptrdiff_t b,
                          ptrdiff_t c) {
  const ptrdiff_t dim[3] = { a, b, c };
  sl_error e;
  sl_tensor *t = sl_tensor_new (dtype, ndim, dim, &e);
  ck_assert_msg (t != NULL, "%s", e.text);
  return t;
}

static sl_tensor *attend (model *m, const setting *s, sl_tensor *x) {
  sl_error e = { "" };
  const sl_loaded *loaded =
      sl_plugin_load (SINKLAB_TEST_BUILD "/plugins/softmax.so", &e);
  sl_attention_attr a = { .heads = H,
                          .kv_heads = H,
                          .d_head = W,
                          .scale = 1,
                          .visibility = { .causal = 1 },
                          .has_length = s->lengths,
                          .block = s->block,
                          .recompute_from = s->recompute_from };
  sl_tensor *in[4] = { x, x, x, m->length }, *y;
  ck_assert_msg (loaded != NULL, "%s", e.text);
  a.mechanism = sl_mechanism_new (loaded, 0, NULL, &e);
  ck_assert_msg (a.mechanism != NULL, "%s", e.text);
  ck_assert_msg (sl_apply (&m->context, sl_op_find (s->dtype, "attention", &e),
                           &a, s->lengths ? 4 : 3, in, &y, &e) == 0,
                 "%s", e.text);
  return y;
}

static model model_new (const setting *s) {
  model m = { 0 };
  sl_error e = { "" };
  sl_isa isa;
  ck_assert_msg (sl_isa_choose (&isa, &e) == 0, "%s", e.text);
  ck_assert_msg (sl_context_init (&m.context, s->threads, &e) == 0, "%s",
                 e.text);
  m.x = tensor (s->dtype, 3, s->shard, s->t, D);
  m.length = tensor (s->dtype, 1, s->shard, 0, 0);
  m.program = sl_program_begin (&m.context, &e);
  ck_assert_msg (m.program != NULL, "%s", e.text);
  m.y1 = attend (&m, s, m.x);
  m.y2 = attend (&m, s, m.y1);
  sl_program_end (&m.context, m.program);
  ck_assert_int_eq (sl_program_input (m.program, m.x, &e), 0);
  ck_assert_int_eq (sl_program_input (m.program, m.length, &e), 0);
  for (int l = 0; l < 2; l++) {
    double w[4 * D];
    for (int i = 0; i < 4 * D; i++) w[i] = output_at (l, i / D, i % D);
    m.output[l] = tensor (s->dtype, 2, 4, D, 0);
    ck_assert_int_eq (sl_tensor_from_doubles (m.output[l], 4 * D, w, &e), 0);
  }
  return m;
}

static void model_free (model *m) {
  sl_program_free (m->program);
  sl_tensor_release (m->x);
  sl_tensor_release (m->length);
  sl_tensor_release (m->y1);
  sl_tensor_release (m->y2);
  for (int l = 0; l < 2; l++) sl_tensor_release (m->output[l]);
  sl_context_free (&m->context);
}

enum {
  ALL = SL_MEASURE_COLUMNS | SL_MEASURE_SHARE | SL_MEASURE_NORMS |
        SL_MEASURE_LOGITS,
  GROUPS = 3
};

/* What the tests vary of a measurement. */
typedef struct labels {
  double trigger[S], length[S], group[S];
} labels;

static labels make_labels (void) {
  labels l;
  for (int s = 0; s < S; s++) {
    l.trigger[s] = s % 4 == 1 ? -1 : 1 + s % 4;
    l.length[s] = length_at (s);
    l.group[s] = s % (GROUPS + 1) - 1;
  }
  return l;
}

static sl_tensor *make_batch (sl_dtype dtype, int t) {
  static double x[S * 32 * D];
  sl_error e;
  sl_tensor *batch = tensor (dtype, 3, S, t, D);
  for (int s = 0; s < S; s++)
    for (int i = 0; i < t; i++)
      for (int c = 0; c < D; c++)
        x[(s * t + i) * D + c] = i < T ? x_at (s, i, c) : 0;
  ck_assert_int_eq (sl_tensor_from_doubles (batch, (size_t)(S * t * D), x, &e),
                    0);
  return batch;
}

static sl_sinks *measure (model *m, const setting *s, const sl_tensor *x,
                          const labels *l, sl_error *e) {
  const sl_dtype dtype = s->dtype;
  sl_tensor *length = tensor (dtype, 1, S, 0, 0);
  sl_tensor *const inputs[2] = { m->x, m->length };
  const sl_tensor *const batch[2] = { x, length };
  static const double curve[2] = { 0.1, 0.5 };
  const sl_sinks_spec spec = {
    .program = m->program,
    .n_inputs = 2,
    .inputs = inputs,
    .batch = batch,
    .measuring = { .layers = 2,
                   .heads = H,
                   .tokens = s->t,
                   .labels = { .trigger = l->trigger,
                               .length = s->lengths ? l->length : NULL,
                               .group = l->group,
                               .groups = GROUPS },
                   .output = (const sl_tensor *const *)m->output,
                   .measures = ALL,
                   .maps = 1,
                   .threshold = 0.3,
                   .thresholds = 2,
                   .curve = curve,
                   .share_rows = 4,
                   .dormant = 0.5 }
  };
  sl_sinks *sinks;
  sl_tensor_from_doubles (length, S, l->length, e);
  sinks = sl_sinks_measure (&m->context, &spec, e);
  sl_tensor_release (length);
  return sinks;
}

static sl_sinks *sinks_of (setting s) {
  const labels l = make_labels ();
  model m = model_new (&s);
  sl_tensor *x = make_batch (s.dtype, s.t);
  sl_error e = { "" };
  sl_sinks *sinks = measure (&m, &s, x, &l, &e);
  ck_assert_msg (sinks != NULL, "%s", e.text);
  sl_tensor_release (x);
  model_free (&m);
  return sinks;
}

/* Softmax over the keys that query i of sequence s sees in layer 1. */
static void weights_of (long s, int h, int i, double *w) {
  double sum = 0;
  for (int j = 0; j <= i; j++) {
    double score = 0;
    for (int c = h * W; c < (h + 1) * W; c++)
      score += x_at (s, i, c) * x_at (s, j, c);
    w[j] = exp (score);
    sum += w[j];
  }
  for (int j = 0; j <= i; j++) w[j] /= sum;
}

static double value_norm_of (long s, int h) {
  double squares = 0;
  for (int r = 0; r < 4; r++) {
    double y = 0;
    for (int c = h * W; c < (h + 1) * W; c++)
      y += output_at (0, r, c) * x_at (s, 0, c);
    squares += y * y;
  }
  return sqrt (squares);
}

START_TEST (layer_1_by_hand) {
  for (int f32 = 0; f32 < 2; f32++) {
    const double tol = f32 ? 2e-6 : 1e-13;
    const labels l = make_labels ();
    sl_sinks *got = sinks_of ((setting){ .dtype = f32 ? SL_F32 : SL_F64,
                                         .shard = 3,
                                         .threads = 2,
                                         .t = T,
                                         .lengths = 1 });
    ck_assert_int_eq (got->samples, S);
    for (int h = 0; h < H; h++) {
      const sl_head_sinks *head = &got->head[h];
      double first = 0, least = 1, trigger = 0, contribution = 0, norms = 0;
      double entropy = 0, map = 0, over = 0;
      long plain = 0, triggers = 0, valid = 0, empty = 0, mapped = 0;
      for (long s = 0; s < S; s++) {
        double column = 0;
        if (length_at (s) > 0) valid++, norms += value_norm_of (s, h);
        empty += T - length_at (s);
        for (int i = 0; i < length_at (s); i++) {
          double w[T];
          weights_of (s, h, i, w);
          column += w[0];
          if (i == 4) map += w[2], mapped++;
          if (l.trigger[s] == i) {
            triggers++;
            trigger += w[0];
          } else if (i > 0) {
            plain++;
            first += w[0];
            least = fmin (least, w[0]);
            contribution += w[0] * value_norm_of (s, h);
            for (int j = 0; j <= i; j++) entropy -= w[j] * log (w[j]);
          }
        }
        over += column > 0.3 * length_at (s);
      }
      ck_assert_int_eq (head->rows[SL_ROW_PLAIN], plain);
      ck_assert_int_eq (head->rows[SL_ROW_TRIGGER], triggers);
      ck_assert_int_eq (head->padded_rows, empty);
      CLOSE (head->mean[SL_ROW_PLAIN][SL_OF_FIRST], first / (double)plain, tol,
             0, "head %d", h);
      CLOSE (head->first_min, least, tol, 0, "head %d", h);
      CLOSE (head->mean[SL_ROW_TRIGGER][SL_OF_FIRST],
             trigger / (double)triggers, tol, 0, "head %d", h);
      CLOSE (head->mean[SL_ROW_PLAIN][SL_OF_CONTRIBUTION],
             contribution / (double)plain, tol, 0, "head %d", h);
      CLOSE (head->segment[SL_OF_VALUE_NORM], norms / (double)valid, tol, 0,
             "head %d", h);
      CLOSE (head->mean[SL_ROW_PLAIN][SL_OF_ENTROPY], entropy / (double)plain,
             tol, 0, "head %d", h);
      CLOSE (head->mean[SL_ROW_PLAIN][SL_OF_ROW_MASS], 1, tol, 0, "head %d", h);
      CLOSE (head->segment[SL_OF_RATE], over / (double)valid, 0, 0, "head %d",
             h);
      CLOSE (got->mean[(h * T + 4) * T + 2], map / (double)mapped, tol, 0,
             "head %d", h);
    }
    sl_sinks_free (got);
  }
}
END_TEST

static int same_bits (const sl_sinks *a, const sl_sinks *b) {
  const size_t heads = 2 * H, t = (size_t)a->tokens, map = heads * t * t;
  const double *const x[] = {
    a->at[SL_AT_COLUMN],      a->at[SL_AT_COLUMN_OVER_ROWSUM],
    a->at[SL_AT_SINK],        a->at[SL_AT_KEY_NORMS],
    a->at[SL_AT_VALUE_NORMS], a->at[SL_AT_OUTPUT_NORMS]
  };
  const double *const y[] = {
    b->at[SL_AT_COLUMN],      b->at[SL_AT_COLUMN_OVER_ROWSUM],
    b->at[SL_AT_SINK],        b->at[SL_AT_KEY_NORMS],
    b->at[SL_AT_VALUE_NORMS], b->at[SL_AT_OUTPUT_NORMS]
  };
  for (size_t i = 0; i < sizeof x / sizeof *x; i++)
    if (memcmp (x[i], y[i], heads * t * sizeof **x) != 0) return 0;
  return memcmp (a->head, b->head, heads * sizeof *a->head) == 0 &&
         memcmp (a->group, b->group, heads * GROUPS * sizeof *a->group) == 0 &&
         memcmp (a->mean, b->mean, map * sizeof *a->mean) == 0 &&
         memcmp (a->std, b->std, map * sizeof *a->std) == 0;
}

/* Threads, blocks of rows, and weights that are computed again: the same
** bits. */
START_TEST (bits_stay) {
  const setting base = {
    .dtype = SL_F32, .shard = 1, .threads = 1, .t = T, .lengths = 1
  };
  sl_sinks *want = sinks_of (base);
  for (int i = 0; i < 4; i++) {
    setting s = base;
    sl_sinks *got;
    if (i == 0) s.threads = 2;
    if (i == 1) s.threads = 5;
    if (i == 2) s.block = 3;
    if (i == 3) s.recompute_from = 1;
    got = sinks_of (s);
    ck_assert_msg (same_bits (want, got), "other bits in case %d", i);
    sl_sinks_free (got);
  }
  sl_sinks_free (want);
}
END_TEST

static void close_all (const sl_sinks *a, const sl_sinks *b, const char *what) {
  for (int i = 0; i < 2 * H; i++) {
    const sl_head_sinks *x = &a->head[i], *y = &b->head[i];
    CLOSE (x->mean[SL_ROW_PLAIN][SL_OF_FIRST],
           y->mean[SL_ROW_PLAIN][SL_OF_FIRST], 1e-14, 0, "%s", what);
    CLOSE (x->first_std, y->first_std, 1e-14, 0, "%s", what);
    CLOSE (x->first_min, y->first_min, 1e-14, 0, "%s", what);
    CLOSE (x->mean[SL_ROW_PLAIN][SL_OF_ENTROPY],
           y->mean[SL_ROW_PLAIN][SL_OF_ENTROPY], 1e-14, 0, "%s", what);
    CLOSE (x->mean[SL_ROW_PLAIN][SL_OF_CONTRIBUTION],
           y->mean[SL_ROW_PLAIN][SL_OF_CONTRIBUTION], 1e-14, 0, "%s", what);
    CLOSE (x->segment[SL_OF_RATE], y->segment[SL_OF_RATE], 0, 0, "%s", what);
    ck_assert_int_eq (x->rows[SL_ROW_PLAIN], y->rows[SL_ROW_PLAIN]);
  }
}

/* However the batch is cut, and in longer rows of padding. */
START_TEST (cut_and_padding) {
  const setting base = {
    .dtype = SL_F64, .shard = 1, .threads = 2, .t = T, .lengths = 1
  };
  static const int shards[] = { 2, 3, 4, 6, 12 };
  sl_sinks *want = sinks_of (base), *got;
  setting s = base;
  for (int i = 0; i < 5; i++) {
    s.shard = shards[i];
    got = sinks_of (s);
    close_all (want, got, "shards");
    for (int k = 0; k < 2 * H * T * T; k++) {
      CLOSE (got->mean[k], want->mean[k], 1e-14, 0, "mean %d", k);
      CLOSE (got->std[k], want->std[k], 1e-14, 0, "std %d", k);
    }
    sl_sinks_free (got);
  }
  s.t = 30;
  got = sinks_of (s);
  close_all (want, got, "padding");
  ck_assert_int_eq (got->head[0].padded_rows,
                    want->head[0].padded_rows + S * (30 - T));
  sl_sinks_free (got);
  sl_sinks_free (want);
}
END_TEST

/* A batch of the other precision, and one whose axes lie otherwise in
** memory. */
START_TEST (batches_of_any_layout) {
  const setting s = { .dtype = SL_F32, .shard = 4, .threads = 2, .t = T };
  const labels l = make_labels ();
  model m = model_new (&s);
  sl_error e = { "" };
  sl_tensor *x = make_batch (SL_F32, T), *y = make_batch (SL_F64, T);
  sl_tensor *turned = tensor (SL_F32, 3, D, T, S);
  sl_tensor *view = sl_tensor_transpose (turned, 0, 2, &e);
  sl_sinks *want, *got;
  ck_assert_int_eq (sl_tensor_copy (view, x, &e), 0);
  want = measure (&m, &s, x, &l, &e);
  got = measure (&m, &s, y, &l, &e);
  ck_assert_msg (want && got && same_bits (want, got), "f64 batch: %s", e.text);
  sl_sinks_free (got);
  got = measure (&m, &s, view, &l, &e);
  ck_assert_msg (got && same_bits (want, got), "strided batch: %s", e.text);
  sl_sinks_free (got);
  sl_sinks_free (want);
  sl_tensor_release (view);
  sl_tensor_release (turned);
  sl_tensor_release (y);
  sl_tensor_release (x);
  model_free (&m);
}
END_TEST

START_TEST (interrupted) {
  const setting s = { .dtype = SL_F32, .shard = 4, .threads = 2, .t = T };
  const labels l = make_labels ();
  model m = model_new (&s);
  sl_tensor *x = make_batch (SL_F32, T);
  sl_error e = { "" };
  sl_interrupted = SIGINT;
  ck_assert_ptr_null (measure (&m, &s, x, &l, &e));
  ck_assert_str_eq (e.text, "interrupted");
  sl_interrupted = 0;
  sl_tensor_release (x);
  model_free (&m);
}
END_TEST

START_TEST (no_memory) {
  const setting s = { .dtype = SL_F32, .shard = 4, .threads = 2, .t = T };
  const labels l = make_labels ();
  model m = model_new (&s);
  sl_tensor *x = make_batch (SL_F32, T);
  const size_t live = sl_alloc_live ();
  sl_sinks *sinks = NULL;
  long n = 2; /* the two allocations of the test's own tensor */
  for (; n < 200; n++) {
    sl_error e = { "" };
    sl_alloc_fail_after (n);
    sinks = measure (&m, &s, x, &l, &e);
    sl_alloc_fail_after (-1);
    if (sinks != NULL) break;
    ck_assert_msg (e.text[0] != 0, "no sentence after %ld allocations", n);
    ck_assert_uint_eq (sl_alloc_live (), live);
  }
  ck_assert_int_gt (n, 8);
  ck_assert_ptr_nonnull (sinks);
  sl_sinks_free (sinks);
  ck_assert_uint_eq (sl_alloc_live (), live);
  sl_tensor_release (x);
  model_free (&m);
}
END_TEST

static void refuse (model *m, const sl_sinks_spec *spec, const char *message) {
  sl_error e = { "" };
  sl_sinks *sinks = sl_sinks_measure (&m->context, spec, &e);
  ck_assert_msg (sinks == NULL, "not refused: %s", message);
  ck_assert_str_eq (e.text, message);
}

START_TEST (refusals) {
  const setting s = { .dtype = SL_F32, .shard = 4, .threads = 2, .t = T };
  labels l = make_labels ();
  model m = model_new (&s);
  sl_tensor *x = make_batch (SL_F32, T), *odd = tensor (SL_F32, 3, 10, T, D);
  sl_tensor *narrow = tensor (SL_F32, 3, S, T, D - 1);
  sl_tensor *w[2] = { m.output[0], x };
  sl_tensor *inputs[1] = { m.x };
  const sl_tensor *batch[1] = { x };
  const sl_sinks_spec good = {
    .program = m.program,
    .n_inputs = 1,
    .inputs = inputs,
    .batch = batch,
    .measuring = { .layers = 2, .heads = H, .tokens = T, .threshold = 0.3 }
  };
  sl_sinks_spec bad = good;
  batch[0] = odd;
  refuse (&m, &good, "sinks: 10 samples cannot be cut into shards of 4");
  batch[0] = narrow;
  refuse (&m, &good,
          "sinks: batch 1 has shape (12, 7, 5) and its input (4, 7, 6), "
          "allowed are 12 samples and 4 a shard with the same other axes");
  batch[0] = x;
  inputs[0] = m.y2;
  refuse (&m, &good,
          "sinks: input 1 is no input of the program (program:input (tensor) "
          "makes it one)");
  inputs[0] = m.x;
  bad.n_inputs = 0;
  refuse (&m, &bad, "sinks: there are no inputs to feed the batch to");
  bad = good;
  bad.measuring.layers = 3;
  refuse (&m, &bad,
          "sinks: layer 3, head 1 shows no weights: the program has fewer "
          "attention layers or heads than 3 and 2, or its mechanism has no "
          "weights to show");
  bad.measuring.layers = 1;
  refuse (&m, &bad,
          "sinks: the program has 2 attention layers, the measurement has 1");
  bad = good;
  bad.measuring.output = (const sl_tensor *const *)w;
  refuse (&m, &bad,
          "sinks: W_O of layer 2 has shape (12, 7, 6), allowed is (d_model, a "
          "multiple of 2 heads)");
  bad = good;
  bad.measuring.labels.trigger = l.trigger;
  l.trigger[5] = T;
  refuse (&m, &bad,
          "sinks: the trigger of sample 6 is 7, allowed is a position from 0 "
          "to 6, or below 0 for none");
  bad = good;
  bad.measuring.labels.length = l.length;
  l.length[1] = 2.5;
  refuse (&m, &bad,
          "sinks: the length of sample 2 is 2.5, allowed is a whole "
          "number from 0 to 7");
  bad = good;
  bad.measuring.threshold = NAN;
  refuse (&m, &bad, "sinks: the threshold is nan, allowed is a number");
  sl_tensor_release (narrow);
  sl_tensor_release (odd);
  sl_tensor_release (x);
  model_free (&m);
}
END_TEST

SUITE_MAIN ("sinks", layer_1_by_hand, bits_stay, cut_and_padding,
            batches_of_any_layout, interrupted, no_memory, refusals)
