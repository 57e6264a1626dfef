/* declared_properties.c - the checks of properties that a plugin declares:
** "nonnegative", "sums_to_one", "null_mass", "shift_invariant"; and
** "causal". */
#include "base/memory.h"
#include "check/check_case.h"
#include <math.h>
#include <string.h>

/* Tolerance of a sum of n weights. */
static double rounding (sl_dtype dtype, int n) {
  const double unit = dtype == SL_F64 ? 0x1p-53 : 0x1p-24;
  return unit * (16 + 4 * (double)n);
}

/* Inputs number k: ordinary, equal and large scores. */
enum { DRAWS = 6 };

static void draw (sl_test_inputs *in, int k) {
  static const double spread[DRAWS] = { 1, 1, 5, 0, 100, 1e4 };
  const int mixer = in->mechanism->loaded->plugin[SL_F64]->mixer != NULL;
  sl_test_inputs_draw (in, 600 + (uint32_t)k,
                       mixer && spread[k] > 10 ? spread[k] / 100 : spread[k]);
}

/* Check n weights of one row of h: 0, or -1 after a sentence. *figure is the
** extreme over all rows. */
typedef int (*row_property) (sl_check_case *c, const sl_harness *h,
                             const double *w, int n, double *figure);

typedef struct property {
  row_property holds;
  double figure;
  int rows;
} property;

/* The rows of weights are a row plugin's output (n), or a mixer's weights
** (n, n). */
static void visit (sl_check_case *c, sl_harness *h, void *context) {
  property *p = context;
  const int n = h->inputs->n, row = sl_case_plugin (c)->row != NULL;
  const int rows = row ? 1 : n;
  for (int k = 0; k < DRAWS && !sl_case_failed (c); k++) {
    draw (h->inputs, k);
    if (row)
      sl_case_forward (c, h);
    else
      sl_case_weights (c, h);
    for (int j = 0; j < rows && !sl_case_failed (c); j++)
      p->holds (c, h, (row ? h->out : h->weights) + (size_t)j * (size_t)n, n,
                &p->figure);
    p->rows += rows;
  }
}

/* 1 if the property is declared and holds: in every shape with every option,
** and in a long row with the defaults. */
static int holds (sl_check_case *c, uint32_t flag, const char *name,
                  property *p) {
  const sl_plugin *d = sl_case_plugin (c);
  const int n = d->row ? 20000 : 200;
  const sl_test_shape z = { n, 8, n - 1, 0, n, SL_MASK_CAUSAL };
  const sl_mechanism *m;
  sl_test_inputs *in;
  sl_error e;
  if (!(d->properties & flag)) {
    sl_case_skip (c, "not declared");
    return 0;
  }
  if (!d->row && !(d->mixer && d->mixer->weights)) {
    sl_case_figure (c, "no weights");
    sl_case_fail (c, "%s is declared of weights, but this %s gives none", name,
                  d->gate ? "gate" : "mixer");
    return 0;
  }
  sl_case_for_each_harness (c, SL_ALL_OPTIONS, visit, p);
  m = sl_case_mechanism (c);
  if (!m || sl_case_failed (c)) return 0;
  if (sl_test_inputs_new (m, &z, c->seed, &in, &e))
    sl_case_fail (c, "%d tokens: %s", n, e.text);
  else
    sl_case_both_precisions (c, in, visit, p);
  return !sl_case_failed (c);
}

static int not_negative (sl_check_case *c, const sl_harness *h, const double *w,
                         int n, double *least) {
  for (int i = 0; i < n; i++) {
    *least = fmin (*least, w[i]);
    if (!(w[i] >= 0)) {
      sl_case_figure (c, "a weight of %.3g", w[i]);
      return sl_case_fail_call (c, h->inputs, "%s weights[%d] is %.9g",
                                sl_dtype_name (h->dtype), i, w[i]);
    }
  }
  return 0;
}

static double sum_of (const double *w, int n) {
  double sum = 0;
  for (int i = 0; i < n; i++) sum += w[i];
  return sum;
}

static int wrong_sum (sl_check_case *c, const sl_harness *h, double sum) {
  sl_case_figure (c, "a sum of %.9g", sum);
  return sl_case_fail_call (c, h->inputs, "%s weights sum to %.9g",
                            sl_dtype_name (h->dtype), sum);
}

static int sums_to_one (sl_check_case *c, const sl_harness *h, const double *w,
                        int n, double *most) {
  const double sum = sum_of (w, n), off = fabs (sum - 1);
  if (h->dtype == SL_F32) *most = fmax (*most, off);
  return off <= rounding (h->dtype, n) ? 0 : wrong_sum (c, h, sum);
}

static int at_most_one (sl_check_case *c, const sl_harness *h, const double *w,
                        int n, double *most) {
  const double sum = sum_of (w, n);
  double least = 0;
  if (not_negative (c, h, w, n, &least)) return -1;
  *most = fmax (*most, sum);
  return sum <= 1 + rounding (h->dtype, n) ? 0 : wrong_sum (c, h, sum);
}

void sl_check_nonnegative (sl_check_case *c) {
  property p = { not_negative, INFINITY, 0 };
  if (holds (c, SL_NONNEGATIVE, "SL_NONNEGATIVE", &p))
    sl_case_pass (c, "least weight %.1e in %d rows", p.figure, p.rows);
}

void sl_check_sums_to_one (sl_check_case *c) {
  property p = { sums_to_one, 0, 0 };
  if (holds (c, SL_SUMS_TO_ONE, "SL_SUMS_TO_ONE", &p))
    sl_case_pass (c, "f32 sums within %.1e of 1 in %d rows", p.figure, p.rows);
}

void sl_check_null_mass (sl_check_case *c) {
  property p = { at_most_one, 0, 0 };
  if (holds (c, SL_NULL_MASS, "SL_NULL_MASS", &p))
    sl_case_pass (c, "largest sum %.9g in %d rows", p.figure, p.rows);
}

typedef struct shifts {
  double worst;
  int rows, array; /* array: scores, or the input k of a mixer */
} shifts;

/* Round to multiples of 1/64, as the shifts are: adding is exact in f32. */
static void to_grid (sl_test_inputs *in, int array) {
  for (size_t i = 0; i < in->size[array]; i++)
    in->value[array][i] = round (64 * in->value[array][i]) / 64;
}

/* A constant added to all scores of a row; or a vector to all keys of a mixer,
** which adds a constant to all scores of each query. */
static void visit_shift (sl_check_case *c, sl_harness *h, void *context) {
  static const double constants[3] = { 1, -40, 1000 };
  shifts *sum = context;
  sl_test_inputs *in = h->inputs;
  const int mixer = sl_case_plugin (c)->mixer != NULL;
  const size_t size = in->size[sum->array];
  const size_t width = size / (size_t)(mixer ? in->n : 1);
  const double tolerance = h->dtype == SL_F64 ? 1e-9 : 2e-4;
  for (int k = 0; k < 3 && !sl_case_failed (c); k++) {
    const double shift = mixer ? constants[k] / 40 : constants[k];
    double *before, *x = in->value[sum->array], d;
    size_t n, at;
    sl_test_inputs_draw (in, 700 + (uint32_t)k, 1);
    to_grid (in, sum->array);
    sl_case_forward (c, h);
    before = sl_case_results (c, h, &n);
    for (size_t j = 0; j < size; j++)
      x[j] += mixer ? shift * (double)(j % width % 3 + 1) : shift;
    sl_case_forward (c, h);
    d = sl_largest_difference (in->outputs, h->out, before, 1e-3, &at);
    if (!(d <= tolerance)) {
      sl_case_figure (c, "a change of %.2g, tolerance %.0e", d, tolerance);
      sl_case_fail_call (c, in,
                         "%s %s[%zu] goes from %.9g to %.9g when %g is added "
                         "to all %s",
                         sl_dtype_name (h->dtype), sl_case_output (c), at,
                         before[at], h->out[at], shift,
                         mixer ? "keys" : "scores");
    } else
      sum->worst = fmax (sum->worst, d);
    sl_free (before);
    sum->rows++;
  }
}

void sl_check_shift_invariant (sl_check_case *c) {
  const sl_plugin *d = sl_case_plugin (c);
  shifts sum = { 0, 0, 0 };
  if (!(d->properties & SL_SHIFT_INVARIANT)) {
    sl_case_skip (c, "not declared");
    return;
  }
  for (; d->mixer && d->inputs[sum.array].name; sum.array++)
    if (strcmp (d->inputs[sum.array].name, "k") == 0) break;
  if (d->gate || (d->mixer && !d->inputs[sum.array].name)) {
    sl_case_figure (c, "no scores");
    sl_case_fail (
        c, "SL_SHIFT_INVARIANT is declared of scores, but this %s has %s",
        d->gate ? "gate" : "mixer",
        d->gate ? "none" : "no input 'k' that moves them");
    return;
  }
  sl_case_for_each_harness (c, SL_ALL_OPTIONS, visit_shift, &sum);
  if (!sl_case_failed (c))
    sl_case_pass (c, "largest change %.1e in %d shifted rows", sum.worst,
                  sum.rows);
}

static int visible (const sl_test_inputs *in, int i, int j) {
  return j >= in->lo[i] && j < in->hi[i];
}

/* 1 if the output of token i may depend on token j. */
static int depends (const sl_test_inputs *in, int i, int j) {
  return i == j || visible (in, i, j);
}

/* Change token j: outputs that do not depend on it keep their bits. */
static void change_tokens (sl_check_case *c, sl_harness *h, long *pairs) {
  sl_test_inputs *in = h->inputs;
  const size_t d = (size_t)in->d_out;
  double *before;
  size_t n;
  sl_test_inputs_draw (in, 800, 1);
  sl_case_forward (c, h);
  before = sl_case_results (c, h, &n);
  for (int j = 0; j < in->n && !sl_case_failed (c); j++) {
    for (int a = 0; a < in->arrays - 1; a++) {
      const size_t width = in->size[a] / (size_t)in->n;
      for (size_t k = 0; k < width; k++)
        in->value[a][(size_t)j * width + k] +=
            sl_test_normal (in->seed, 801, (uint32_t)(j + a * in->n));
    }
    sl_case_forward (c, h);
    for (int i = 0; i < in->n && !sl_case_failed (c); i++) {
      if (depends (in, i, j)) continue;
      ++*pairs;
      if (memcmp (h->out + (size_t)i * d, before + (size_t)i * d,
                  d * sizeof *before) != 0)
        sl_case_fail_call (c, in,
                           "out[%d] changes with token %d, which is not "
                           "visible to query %d",
                           i, j, i);
    }
    sl_test_inputs_draw (in, 800, 1);
  }
  sl_free (before);
}

/* Cotangents of the queries that do not depend on token j: none reaches it. */
static void mask_cotangents (sl_check_case *c, sl_harness *h) {
  sl_test_inputs *in = h->inputs;
  const size_t d = (size_t)in->d_out;
  for (int j = 0; j < in->n && !sl_case_failed (c); j++) {
    sl_test_inputs_draw (in, 800, 1);
    for (int i = 0; i < in->n; i++)
      if (depends (in, i, j))
        memset (in->cotangent + (size_t)i * d, 0, d * sizeof *in->cotangent);
    sl_case_backward (c, h);
    for (int a = 0; a < in->arrays - 1; a++) {
      const size_t width = in->size[a] / (size_t)in->n;
      for (size_t k = 0; k < width && !sl_case_failed (c); k++) {
        const double g = h->grad[a][(size_t)j * width + k];
        if (g != 0)
          sl_case_fail_call (c, in,
                             "a gradient of %.3g reaches %s of token %d from "
                             "queries to which it is not visible",
                             g, in->name[a], j);
      }
    }
  }
}

static void visit_causal (sl_check_case *c, sl_harness *h, void *pairs) {
  if (h->dtype != SL_F64) return;
  change_tokens (c, h, pairs);
  mask_cotangents (c, h);
}

/* Weights of masked keys are 0. */
static void visit_masked (sl_check_case *c, sl_harness *h, void *context) {
  const sl_test_inputs *in = h->inputs;
  (void)context;
  if (in->weights) sl_case_weights (c, h);
  for (int i = 0; i < in->n && in->weights; i++)
    for (int j = 0; j < in->n && !sl_case_failed (c); j++) {
      const double w = h->weights[(size_t)i * (size_t)in->n + (size_t)j];
      if (!visible (in, i, j) && w != 0)
        sl_case_fail_call (c, in,
                           "%s weights give key %d %.3g of query %d, to which "
                           "it is not visible",
                           sl_dtype_name (h->dtype), j, w, i);
    }
}

void sl_check_causal (sl_check_case *c) {
  long pairs = 0;
  if (!sl_case_plugin (c)->mixer) {
    sl_case_skip (c, "the host masks the keys of a %s",
                  sl_plugin_shape (sl_case_plugin (c)));
    return;
  }
  sl_case_for_each_harness (c, SL_ALL_OPTIONS, visit_causal, &pairs);
  if (!sl_case_failed (c))
    sl_case_for_each_harness (c, SL_ALL_OPTIONS, visit_masked, NULL);
  sl_case_pass (c, "no output or gradient moved over %ld masked pairs", pairs);
}
