/* check_row_weights.c - the row_weights op with softmax and relu: reference values and
** gradients, visibility, options of relu, extremes. */
#include "attention/attention.h"
#include "base/isa.h"
#include "support/golden.h"
#include "support/op_bench.h"
#include "support/suite.h"
#include "support/variants.h"
#include <math.h>
#include <stdio.h>

/* 0 if this machine cannot run it. */
static int use_isa (sl_isa isa) {
  if (!variant_use (isa)) return 0;
  return 1;
}

static const sl_mechanism *mechanism (const char *name, int n,
                                      const sl_setting *s) {
  char path[512];
  sl_error e = { "" };
  const sl_loaded *l;
  const sl_mechanism *m;
  snprintf (path, sizeof path, SINKLAB_TEST_BUILD "/plugins/%s.so", name);
  l = sl_plugin_load (path, &e);
  ck_assert_msg (l != NULL, "%s", e.text);
  m = sl_mechanism_new (l, n, s, &e);
  ck_assert_msg (m != NULL, "%s", e.text);
  return m;
}

/* Weights and gradients of mech/<name>, in both precisions. */
static void reference (const char *plugin, const char *name) {
  const sl_attention_attr attr = { .mechanism = mechanism (plugin, 0, NULL),
                                   .d_head = 1,
                                   .visibility = { 1, 0 } };
  char file[4][80];
  static const char *const part[4] = { "scores", "weights", "up_weights",
                                       "grad_scores" };
  golden scores, up;
  for (int i = 0; i < 4; i++)
    snprintf (file[i], sizeof *file, "mech/%s/%s.npy", name, part[i]);
  scores = golden_load (file[0]);
  up = golden_load (file[2]);
  for (int d = SL_F32; d <= SL_F64; d++) {
    op_bench b;
    op_bench_start (&b, (sl_dtype)d, "row_weights", &attr);
    op_bench_input (&b, scores.ndim, scores.dim, scores.x);
    op_bench_forward (&b);
    golden_close (&b.out[0], (sl_dtype)d, file[1]);
    op_bench_backward (&b, up.x);
    golden_close (&b.din[0], (sl_dtype)d, file[3]);
    op_bench_free (&b);
  }
  golden_free (&scores);
  golden_free (&up);
}

static void reference_values (sl_isa isa) {
  if (!use_isa (isa)) return;
  reference ("softmax", "softmax");
  reference ("softmax", "softmax_extreme");
  reference ("relu", "relu");
  reference ("relu", "relu_extreme");
  reference ("relu", "relu_kink");
}

/* Weights of one head of t x t scores into w. */
static void weigh (const sl_attention_attr *attr, int t, const double *scores,
                   const double *length, double *w) {
  const ptrdiff_t dim[4] = { 1, 1, t, t }, one = 1;
  op_bench b;
  op_bench_start (&b, SL_F64, "row_weights", attr);
  op_bench_input (&b, 4, dim, scores);
  if (length) op_bench_input (&b, 1, &one, length);
  op_bench_forward (&b);
  for (int i = 0; i < t * t; i++) w[i] = op_bench_at (&b, &b.out[0], (size_t)i);
  op_bench_free (&b);
}

/* Scores of 1: the weight shows what relu divides by. 6 tokens, 5 of them
** valid. */
START_TEST (relu_normalisers) {
  static const char *const names[] = { "earlier", "visible", "length" };
  static const struct {
    int causal, window;
    double want[3][6];
  } cases[] = {
    { 1, 0, { { 1, 1, 2, 3, 4 }, { 1, 2, 3, 4, 5 }, { 5, 5, 5, 5, 5 } } },
    { 1, 3, { { 1, 1, 2, 2, 2 }, { 1, 2, 3, 3, 3 }, { 5, 5, 5, 5, 5 } } },
    { 1, 1, { { 1, 1, 1, 1, 1 }, { 1, 1, 1, 1, 1 }, { 5, 5, 5, 5, 5 } } },
    { 0, 0, { { 1, 1, 2, 3, 4 }, { 5, 5, 5, 5, 5 }, { 5, 5, 5, 5, 5 } } },
    { 0, 2, { { 1, 1, 1, 1, 1 }, { 2, 3, 3, 3, 2 }, { 5, 5, 5, 5, 5 } } },
  };
  double ones[36], w[36], length = 5;
  for (int i = 0; i < 36; i++) ones[i] = 1;
  ck_assert (use_isa (SL_ISA_BASE));
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
    for (int o = 0; o < 3; o++) {
      const sl_setting s = { "normaliser", 0, names[o] };
      const sl_attention_attr attr = { .mechanism = mechanism ("relu", 1, &s),
                                       .d_head = 1,
                                       .visibility = { cases[k].causal,
                                                       cases[k].window },
                                       .has_length = 1 };
      weigh (&attr, 6, ones, &length, w);
      for (int i = 0; i < 6; i++)
        for (int j = 0; j < 6; j++) {
          int lo, hi;
          sl_visible (&attr.visibility, i, 5, &lo, &hi);
          CLOSE (w[i * 6 + j], j >= lo && j < hi ? 1 / cases[k].want[o][i] : 0,
                 1e-15, 0, "%s, causal %d, window %d, w[%d][%d]", names[o],
                 cases[k].causal, cases[k].window, i, j);
        }
    }
}
END_TEST

/* Rows of equal scores, of scores far apart, and of one score. */
START_TEST (softmax_extremes) {
  const sl_attention_attr attr = { .mechanism = mechanism ("softmax", 0, NULL),
                                   .d_head = 1,
                                   .visibility = { 1, 0 } };
  double s[9] = { -1e4, 0, 0, 1e4, 1e4, 0, -1e4, 1e4, 0 }, w[9];
  static const double want[9] = { 1, 0, 0, .5, .5, 0, 0, 1, 0 };
  ck_assert (use_isa (SL_ISA_BASE));
  weigh (&attr, 3, s, NULL, w);
  for (int i = 0; i < 9; i++) CLOSE (w[i], want[i], 0, 0, "w[%d]", i);
}
END_TEST

/* Long rows, whose sums run in vectors: against a sum in long double. */
static void long_rows (sl_isa isa) {
  enum { T = 70 };
  static double s[T * T], w[T * T];
  sl_attention_attr attr = { .d_head = 1, .visibility = { 1, 0 } };
  if (!use_isa (isa)) return;
  attr.mechanism = mechanism ("softmax", 0, NULL);
  for (int i = 0; i < T * T; i++) s[i] = 6 * sin (i * 1.7);
  weigh (&attr, T, s, NULL, w);
  for (int i = 0; i < T; i++) {
    long double sum = 0;
    for (int j = 0; j <= i; j++) sum += expl ((long double)s[i * T + j]);
    for (int j = 0; j < T; j++)
      CLOSE (w[i * T + j],
             j <= i ? (double)(expl ((long double)s[i * T + j]) / sum) : 0,
             1e-18, 1e-14, "w[%d][%d]", i, j);
  }
}

/* A plugin's variant is picked when it is loaded: a process for each. */
#define ON_ISA(name, isa)            \
  START_TEST (name##_##isa) {        \
    reference_values (SL_ISA_##isa); \
    long_rows (SL_ISA_##isa);        \
  }                                  \
  END_TEST
ON_ISA (values, BASE)
ON_ISA (values, V3)
ON_ISA (values, V4)

START_TEST (refusals) {
  const ptrdiff_t dim[4] = { 1, 2, 3, 3 }, odd[4] = { 1, 2, 3, 4 };
  double x[36] = { 0 };
  sl_attention_attr attr = { .mechanism = mechanism ("softmax", 0, NULL),
                             .d_head = 1 };
  op_bench b;
  const char *text;
  ck_assert (use_isa (SL_ISA_BASE));
  op_bench_start (&b, SL_F64, "row_weights", &attr);
  op_bench_input (&b, 4, odd, x);
  text = op_bench_refusal (&b);
  ck_assert_str_eq (
      text, "row_weights: scores are (1, 2, 3, 4); expected (b, h, t, t)");
  op_bench_free (&b);
  op_bench_start (&b, SL_F64, "row_weights", &attr);
  op_bench_input (&b, 4, dim, x);
  attr.visibility.window = -1;
  ck_assert_str_eq (op_bench_refusal (&b),
                    "row_weights: window is -1; expected "
                    "0 (none) or more");
  attr.visibility.window = 0;
  attr.has_param = 1;
  op_bench_input (&b, 4, dim, x);
  ck_assert_str_eq (
      op_bench_refusal (&b),
      "row_weights: plugin 'softmax' has no parameters; param was "
      "given");
  attr.has_param = 0;
  attr.has_length = 1;
  ck_assert_str_eq (op_bench_refusal (&b),
                    "row_weights: length is (1, 2, 3, 3); "
                    "expected (1), one a sequence");
  op_bench_free (&b);
}
END_TEST

SUITE_MAIN ("weigh", values_BASE, values_V3, values_V4, relu_normalisers,
            softmax_extremes, refusals)
