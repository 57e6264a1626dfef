/* check_rows.c - every row mechanism: golden values, the published formulas,
** gradients, claims, extremes, and what its options do. */
#include "attention/attention.h"
#include "base/isa.h"
#include "base/random.h"
#include "support/golden.h"
#include "support/op_bench.h"
#include "support/row_cases.h"
#include "support/suite.h"
#include "support/variants.h"
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MOST = 80 }; /* tokens of a test's sequence */

static int use_isa (sl_isa isa) {
  if (!variant_use (isa)) return 0;
  return 1;
}

/* ---- golden values ---- */

static const struct {
  const char *plugin, *name, *param; /* file of the parameter, or NULL */
  sl_setting settings[3];
} golden_cases[] = {
  { "softmax", "softmax", NULL, { { 0 } } },
  { "softmax", "softmax_extreme", NULL, { { 0 } } },
  { "relu", "relu", NULL, { { 0 } } },
  { "relu", "relu_extreme", NULL, { { 0 } } },
  { "relu", "relu_kink", NULL, { { 0 } } },
  { "relu2", "relu2", NULL, { { 0 } } },
  { "relu2", "relu2_extreme", NULL, { { 0 } } },
  { "relu2", "relu2_kink", NULL, { { 0 } } },
  { "sigmoid", "sigmoid", NULL, { { 0 } } },
  { "sigmoid", "sigmoid_extreme", NULL, { { 0 } } },
  { "sigmoid", "sigmoid_bias", "bias", { { "bias", 0, "learned" } } },
  { "sigmoid", "sigmoid_bias_extreme", "bias", { { "bias", 0, "learned" } } },
  { "softmax1", "softmax1", NULL, { { 0 } } },
  { "softmax1", "softmax1_extreme", NULL, { { 0 } } },
  { "sinklogit", "softmax_sink", "sink", { { 0 } } },
  { "sinklogit", "softmax_sink_extreme", "sink", { { 0 } } },
  { "softpick", "softpick", NULL, { { 0 } } },
  { "softpick", "softpick_extreme", NULL, { { 0 } } },
  { "softpick", "softpick_kink", NULL, { { 0 } } },
  { "softpick", "softpick_scaled_eps", NULL, { { "scaled_eps", 1, NULL } } },
  { "sparsemax", "sparsemax", NULL, { { 0 } } },
  { "sparsemax", "sparsemax_extreme", NULL, { { 0 } } },
  { "entmax15", "entmax15", NULL, { { 0 } } },
  { "entmax15", "entmax15_extreme", NULL, { { 0 } } },
  { "entmax", "entmax15", NULL, { { 0 } } },
  { "entmax", "entmax15_extreme", NULL, { { 0 } } },
  { "entmax", "sparsemax", NULL, { { "alpha", 2, NULL } } },
  { "entmax", "sparsemax_extreme", NULL, { { "alpha", 2, NULL } } },
  { "entmax", "softmax", NULL, { { "alpha", 1, NULL } } },
  { "entmax", "softmax_extreme", NULL, { { "alpha", 1, NULL } } },
  { "elu1", "elu1", NULL, { { "eps", 0, NULL } } },
};

static void golden_case (size_t k, sl_dtype dtype) {
  sl_attention_attr attr = { .d_head = 1, .visibility = { 1, 0 } };
  const char *name = golden_cases[k].name, *param = golden_cases[k].param;
  char file[96];
  golden scores, p, up;
  op_bench b;
  attr.mechanism =
      row_mechanism (golden_cases[k].plugin, golden_cases[k].settings);
  attr.has_param = param != NULL;
  snprintf (file, sizeof file, "mech/%s/scores.npy", name);
  scores = golden_load (file);
  op_bench_start (&b, dtype, "row_weights", &attr);
  op_bench_input (&b, scores.ndim, scores.dim, scores.x);
  if (param) {
    ptrdiff_t dim[2] = { 0, 1 };
    snprintf (file, sizeof file, "mech/%s/%s.npy", name, param);
    p = golden_load (file);
    dim[0] = p.dim[0];
    op_bench_input (&b, 2, dim, p.x);
    golden_free (&p);
  }
  op_bench_forward (&b);
  snprintf (file, sizeof file, "mech/%s/weights.npy", name);
  golden_close (&b.out[0], dtype, file);
  if (strcmp (name, "softpick_scaled_eps") != 0) { /* has no gradients */
    snprintf (file, sizeof file, "mech/%s/up_weights.npy", name);
    up = golden_load (file);
    op_bench_backward (&b, up.x);
    golden_free (&up);
    snprintf (file, sizeof file, "mech/%s/grad_scores.npy", name);
    golden_close (&b.din[0], dtype, file);
    if (param) {
      snprintf (file, sizeof file, "mech/%s/grad_%s.npy", name, param);
      golden_close (&b.din[1], dtype, file);
    }
  }
  op_bench_free (&b);
  golden_free (&scores);
}

static void golden_values (void) {
  for (size_t k = 0; k < sizeof golden_cases / sizeof *golden_cases; k++)
    for (int d = SL_F32; d <= SL_F64; d++) golden_case (k, (sl_dtype)d);
}

/* ---- one head of t x t scores ---- */

typedef struct head {
  const row_case *c;
  sl_dtype dtype;
  int t, causal, window;
  double length, param;
  const double *s; /* t x t */
} head;

static sl_attention_attr attr_of (const head *h) {
  return (sl_attention_attr){ .mechanism =
                                  row_mechanism (h->c->plugin, h->c->settings),
                              .d_head = 1,
                              .visibility = { h->causal, h->window },
                              .has_param = h->c->param,
                              .has_length = 1 };
}

/* Weights into w; with a cotangent also gradients into ds, and *dparam. */
static void run (const head *h, const double *dw, double *w, double *ds,
                 double *dparam) {
  const ptrdiff_t dim[4] = { 1, 1, h->t, h->t }, one[2] = { 1, 1 };
  const sl_attention_attr attr = attr_of (h);
  op_bench b;
  op_bench_start (&b, h->dtype, "row_weights", &attr);
  op_bench_input (&b, 4, dim, h->s);
  if (h->c->param) op_bench_input (&b, 2, one, &h->param);
  op_bench_input (&b, 1, one, &h->length);
  op_bench_forward (&b);
  for (int i = 0; w && i < h->t * h->t; i++)
    w[i] = op_bench_at (&b, &b.out[0], (size_t)i);
  if (dw) {
    op_bench_backward (&b, dw);
    for (int i = 0; i < h->t * h->t; i++)
      ds[i] = op_bench_at (&b, &b.din[0], (size_t)i);
    *dparam = h->c->param ? op_bench_at (&b, &b.din[1], 0) : 0;
  }
  op_bench_free (&b);
}

/* The formula's weights of query i, in the places of its keys; returns their
** number. */
static int want_row (const head *h, int i, int *first, long double *w) {
  const sl_visibility v = { h->causal, h->window };
  long double s[MOST];
  row_query q = { .pos = i, .length = (int)h->length, .s = s };
  int hi;
  sl_visible (&v, i, q.length, first, &hi);
  q.first = *first;
  q.n = hi - *first;
  q.param = h->dtype == SL_F32 ? (float)h->param : h->param;
  for (int j = 0; j < q.n; j++) s[j] = h->s[i * h->t + *first + j];
  if (q.n > 0) h->c->weights (h->c, &q, w);
  return q.n;
}

static void compare (const head *h, double atol, double rtol) {
  static double w[MOST * MOST];
  run (h, NULL, w, NULL, NULL);
  for (int i = 0; i < h->t; i++) {
    long double want[MOST];
    int first, n = want_row (h, i, &first, want);
    for (int j = 0; j < h->t; j++) {
      const int seen = j >= first && j < first + n;
      CLOSE (w[i * h->t + j], seen ? (double)want[j - first] : 0, atol, rtol,
             "%s in %s, causal %d, window %d, w[%d][%d] of %d", h->c->name,
             h->dtype == SL_F32 ? "f32" : "f64", h->causal, h->window, i, j,
             h->t);
    }
  }
}

/* Normal numbers that a float holds (Box and Muller). */
static void draw (uint64_t seed, int n, double scale, double *x) {
  for (int i = 0; i < n; i++) {
    const uint32_t counter[4] = { (uint32_t)i };
    uint32_t word[4];
    sl_philox (seed, counter, word);
    x[i] =
        (float)(scale * sqrt (-2 * log (1 - sl_uniform53 (word[0], word[1]))) *
                cos (6.283185307179586 * sl_uniform53 (word[2], word[3])));
  }
}

/* ---- the published formulas ---- */

static const struct {
  int causal, window, t;
  double length, scale; /* valid tokens; size of the scores */
} shapes[] = { { 1, 0, 7, 7, 2 }, { 0, 0, 7, 6, 2 },   { 1, 3, 9, 9, 0.02 },
               { 0, 2, 9, 8, 6 }, { 1, 0, 70, 70, 3 }, { 0, 0, 40, 33, 12 } };

static void formulas (void) {
  static double s[MOST * MOST];
  for (int k = 0; k < row_case_count; k++)
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
      head h = {
        &row_cases[k],    SL_F64,           shapes[i].t, shapes[i].causal,
        shapes[i].window, shapes[i].length, -0.75,       s
      };
      draw (i + 1, h.t * h.t, shapes[i].scale, s);
      compare (&h, 1e-15, 1e-12);
      h.dtype = SL_F32;
      compare (&h, 3e-7, 1e-5);
    }
}

/* A plugin's variant is picked when it is loaded: a process for each. */
#define ON_ISA(isa)                      \
  START_TEST (values_##isa) {            \
    if (!use_isa (SL_ISA_##isa)) return; \
    golden_values ();                    \
    formulas ();                         \
  }                                      \
  END_TEST
ON_ISA (BASE)
ON_ISA (V3)
ON_ISA (V4)

/* ---- gradients ---- */

enum { T = 6, STEPS = 4 };
static const double step_at[STEPS] = { -2, -1, 1, 2 },
                    step_weight[STEPS] = { 1, -8, 8, -1 };

/* Which weights are inside 0..1: on another piece of a mechanism with pieces it
** is another, and differences across the kink mean nothing. */
static int same_piece (const double *a, const double *b) {
  for (int i = 0; i < T * T; i++)
    if ((a[i] > 0) != (b[i] > 0) || (a[i] < 1) != (b[i] < 1)) return 0;
  return 1;
}

/* d (dw . w) / d *x by four-point differences; 0 if a kink is near. */
static int difference (head *h, double *x, double step, const double *dw,
                       double *result) {
  const double at = *x;
  double plain[T * T], w[T * T];
  int smooth = 1;
  run (h, NULL, plain, NULL, NULL);
  *result = 0;
  for (int k = 0; k < STEPS; k++) {
    double sum = 0;
    *x = at + step_at[k] * step;
    run (h, NULL, w, NULL, NULL);
    smooth = smooth && same_piece (plain, w);
    for (int i = 0; i < T * T; i++) sum += dw[i] * w[i];
    *result += step_weight[k] * sum / (12 * step);
  }
  *x = at;
  return smooth;
}

/* 'got' against differences of two step sizes, which also tell how good they
** are: near the end of a support they are not. Returns 0 if a kink is near. */
static int check_slope (head *h, double *x, const double *dw, double got,
                        const char *what, int i) {
  double coarse, fine, doubt;
  if (!difference (h, x, 0x1p-11, dw, &coarse)) return 0;
  difference (h, x, 0x1p-12, dw, &fine);
  doubt = fabs (coarse - fine);
  ck_assert_msg (doubt < 1e-5, "%s, %s[%d]: %.12g or %.12g", h->c->name, what,
                 i, coarse, fine);
  CLOSE (got, fine, 1e-10 + doubt, 1e-9, "%s, %s[%d]", h->c->name, what, i);
  return 1;
}

static void check_gradient (const row_case *c, uint64_t seed) {
  double s[T * T], dw[T * T], ds[T * T], single[T * T], dparam, other;
  head h = { c, SL_F64, T, (int)seed % 2, 0, T, -0.4375, s };
  int skipped = 0;
  draw (seed, T * T, 1.5, s);
  draw (seed + 100, T * T, 1, dw);
  run (&h, dw, NULL, ds, &dparam);
  for (int i = 0; i < T * T; i++)
    skipped += !check_slope (&h, &s[i], dw, ds[i], "ds", i);
  ck_assert_msg (skipped <= T * T / 6, "%s, seed %d: %d of %d near a kink",
                 c->name, (int)seed, skipped, T * T);
  if (c->param) ck_assert (check_slope (&h, &h.param, dw, dparam, "dparam", 0));
  h.dtype = SL_F32;
  run (&h, dw, NULL, single, &other);
  for (int i = 0; i < T * T; i++)
    CLOSE (single[i], ds[i], 4e-6, 1e-5, "%s, seed %d, ds[%d] in f32", c->name,
           (int)seed, i);
  CLOSE (other, dparam, 1e-5, 1e-5, "%s, seed %d, dparam in f32", c->name,
         (int)seed);
}

START_TEST (gradients_by_differences) {
  ck_assert (use_isa (SL_ISA_BASE));
  for (int k = 0; k < row_case_count; k++)
    for (uint64_t seed = 1; seed <= 4; seed++)
      check_gradient (&row_cases[k], seed);
}
END_TEST

/* ---- claims and extremes ---- */

/* Rows that break careless code. The first row of each has one score. */
static double hard (int kind, int i, int j) {
  static const double far[4] = { 1e4, -1e4, 0, 1e4 };
  switch (kind) {
  case 0: return 1e4;
  case 1: return -1e4;
  case 2: return 0;
  case 3: return far[(i + j) % 4];
  case 4: return j == i ? 1e4 : -1e4;
  case 5: return -1e4 - (j % 3);
  case 6: return (j % 2) * 2.5;
  default: return 88.5 * (j % 2 ? 1 : -1); /* the end of exp in f32 */
  }
}
enum { HARD = 8 };

/* Finite, and what the plugin claims of weights. */
static void check_claims (const head *h, int kind) {
  const sl_mechanism *m = row_mechanism (h->c->plugin, h->c->settings);
  const uint32_t flags = m->loaded->plugin[SL_F64]->properties;
  const double eps = h->dtype == SL_F32 ? 2e-6 : 1e-14;
  double dw[MOST * MOST], w[MOST * MOST], ds[MOST * MOST], dparam;
  draw (9, h->t * h->t, 1, dw);
  run (h, dw, w, ds, &dparam);
  ck_assert_msg (isfinite (dparam), "%s, rows %d: dparam %g", h->c->name, kind,
                 dparam);
  for (int i = 0; i < h->t; i++) {
    double sum = 0;
    for (int j = 0; j <= i; j++) {
      const double x = w[i * h->t + j], g = ds[i * h->t + j];
      if (!isfinite (x) || !isfinite (g) || x < 0)
        ck_abort_msg ("%s, rows %d, dtype %d: w[%d][%d] = %g, ds = %g",
                      h->c->name, kind, (int)h->dtype, i, j, x, g);
      sum += x;
    }
    if (flags & SL_SUMS_TO_ONE)
      CLOSE (sum, 1, eps, 0, "%s, rows %d, row %d", h->c->name, kind, i);
    if (flags & SL_NULL_MASS)
      ck_assert_msg (sum <= 1 + eps, "%s, rows %d, row %d sums to %.17g",
                     h->c->name, kind, i, sum);
  }
}

/* A row of equal scores has equal weights, where keys have no order. */
static void check_ties (const head *h, int kind) {
  double w[MOST * MOST];
  if (kind > 2 || h->c->weights == row_cases[0].weights) return;
  if (strcmp (h->c->plugin, "stickbreaking") == 0) return;
  run (h, NULL, w, NULL, NULL);
  for (int i = 0; i < h->t; i++)
    for (int j = 1; j <= i; j++)
      CLOSE (w[i * h->t + j], w[i * h->t], 0, 0, "%s, rows %d, w[%d][%d]",
             h->c->name, kind, i, j);
}

START_TEST (claims_hold_at_extremes) {
  double s[20 * 20];
  ck_assert (use_isa (SL_ISA_BASE));
  for (int k = 0; k < row_case_count; k++)
    for (int kind = 0; kind < HARD; kind++)
      for (int d = SL_F32; d <= SL_F64; d++) {
        head h = { &row_cases[k], (sl_dtype)d, 20, 1, 0, 20, 1.25, s };
        for (int i = 0; i < 400; i++) s[i] = hard (kind, i / 20, i % 20);
        check_claims (&h, kind);
        check_ties (&h, kind);
        /* long double has the range for the formulas as they stand */
        if (d == SL_F64 && LDBL_MAX_EXP > 15000) compare (&h, 1e-13, 1e-10);
      }
}
END_TEST

START_TEST (shifts_change_nothing_where_claimed) {
  double s[T * T], moved[T * T], w[T * T], v[T * T];
  int claimed = 0, moves = 0;
  ck_assert (use_isa (SL_ISA_BASE));
  draw (3, T * T, 2, s);
  for (int i = 0; i < T * T; i++) moved[i] = s[i] + 3;
  for (int k = 0; k < row_case_count; k++) {
    const row_case *c = &row_cases[k];
    const sl_mechanism *m = row_mechanism (c->plugin, c->settings);
    head h = { c, SL_F64, T, 1, 0, T, 0.5, s };
    double largest = 0;
    run (&h, NULL, w, NULL, NULL);
    h.s = moved;
    run (&h, NULL, v, NULL, NULL);
    for (int i = 0; i < T * T; i++)
      largest = fmax (largest, fabs (w[i] - v[i]));
    if (m->loaded->plugin[SL_F64]->properties & SL_SHIFT_INVARIANT) {
      ck_assert_msg (largest < 1e-12, "%s: %g", c->name, largest);
      claimed++;
    } else if (largest > 1e-3)
      moves++;
    else
      ck_abort_msg ("%s might claim invariance: %g", c->name, largest);
  }
  ck_assert_int_ge (claimed, 10);
  ck_assert_int_ge (moves, 10);
}
END_TEST

/* ---- options ---- */

START_TEST (parameters_start_where_options_say) {
  for (int k = 0; k < row_case_count; k++) {
    const row_case *c = &row_cases[k];
    const sl_mechanism *m = row_mechanism (c->plugin, c->settings);
    ck_assert_msg (sl_mechanism_params (m, 16) == c->param,
                   "%s has %d parameters", c->name,
                   sl_mechanism_params (m, 16));
    if (!c->param) continue;
    ck_assert_int_eq (m->params[0].init, SL_CONST);
    CLOSE (m->params[0].scale, c->start, 0, 0, "%s", c->name);
  }
}
END_TEST

static const struct {
  const char *plugin;
  sl_setting setting;
  const char *message;
} refused[] = {
  { "entmax",
    { "alpha", 2.5, NULL },
    "option alpha is 2.5; expected a number "
    "from 1 to 2" },
  { "entmax", { "alpha", NAN, NULL }, "expected a number from 1 to 2" },
  { "topk_softmax", { "k", 0, NULL }, "expected a whole number from 1" },
  { "clipped_softmax", { "gamma", 0.5, NULL }, "from -100 to 0" },
  { "clipped_softmax", { "eta", 0.5, NULL }, "from 1 to 100" },
  { "sigmoid", { "bias", 0, "fix" }, "expected one of log_n, fixed, learned" },
  { "softcap_softmax", { "cap", 0, NULL }, "from 0.001 to 1000000" },
  { "relu2",
    { "normaliser", 0, "none" },
    "expected one of earlier, visible, length" },
  { "softmax1", { "init", 0, NULL }, "softmax1 has no option 'init'" },
};

START_TEST (options_out_of_range_are_refused) {
  for (size_t k = 0; k < sizeof refused / sizeof *refused; k++) {
    const sl_mechanism *m = row_mechanism (refused[k].plugin, NULL);
    sl_error e = { "" };
    ck_assert (!sl_mechanism_new (m->loaded, 1, &refused[k].setting, &e));
    ck_assert_msg (strstr (e.text, refused[k].message) != NULL,
                   "got '%s', want '%s' in it", e.text, refused[k].message);
  }
}
END_TEST

SUITE_MAIN ("rows", values_BASE, values_V3, values_V4, gradients_by_differences,
            claims_hold_at_extremes, shifts_change_nothing_where_claimed,
            parameters_start_where_options_say,
            options_out_of_range_are_refused)
