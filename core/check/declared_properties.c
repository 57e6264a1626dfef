/* declared_properties.c - the checks of what a plugin claims of its weights, and
** "causal". */
#include "base/memory.h"
#include "check/check_case.h"
#include <math.h>
#include <string.h>

/* Rounding allowed in a sum of n weights, by precision. */
static double rounding (sl_dtype dtype, int n) {
  const double unit = dtype == SL_F64 ? 0x1p-53 : 0x1p-24;
  return unit * (16 + 4 * (double)n);
}

/* The weights of row i, and how many: a row plugin's output, or a row of the
** map that a mixer gives. */
typedef struct rows {
  const double *w;
  int count, n;
} rows;

static rows rows_of (sl_check_case *c, sl_dtype dtype, sl_harness *h) {
  const sl_test_inputs *in = h->inputs;
  if (c->loaded->plugin[SL_F64]->row) {
    sl_case_forward (c, dtype, h);
    return (rows){ h->out, 1, in->n };
  }
  sl_case_weights (c, dtype, h);
  return (rows){ h->weights, in->n, in->n };
}

/* Rows of ordinary, of equal and of large scores. */
enum { DRAWS = 6 };

static void draw (sl_test_inputs *in, int k) {
  static const double spread[DRAWS] = { 1, 1, 5, 0, 100, 1e4 };
  const int mixer = in->mechanism->loaded->plugin[SL_F64]->mixer != NULL;
  sl_test_inputs_draw (in, 600 + (uint32_t)k,
                       mixer && spread[k] > 10 ? spread[k] / 100 : spread[k]);
}

/* A claim about one row: 0, or -1 after a sentence; *figure is its extreme. */
typedef int (*row_property) (sl_check_case *c, const sl_test_inputs *in,
                             sl_dtype dtype, const double *w, int n,
                             double *figure);

typedef struct property {
  row_property hold;
  double figure;
  int rows;
} property;

static void visit (sl_check_case *c, sl_test_inputs *in, void *context) {
  property *prop = context;
  for (int i = 0; i < 2; i++) {
    sl_harness *h = sl_case_harness (c, (sl_dtype)i, in);
    for (int k = 0; k < DRAWS && !sl_case_failed (c); k++) {
      rows r;
      draw (in, k);
      r = rows_of (c, (sl_dtype)i, h);
      for (int j = 0; j < r.count && !sl_case_failed (c); j++)
        prop->hold (c, in, (sl_dtype)i, r.w + (size_t)j * (size_t)r.n, r.n,
                    &prop->figure);
      prop->rows += r.count;
    }
    sl_harness_calls_of ((sl_dtype)i)->close (h);
  }
}

/* Every shape with every option, and a long row of the defaults. */
static void visit_all (sl_check_case *c, property *prop) {
  const sl_plugin *d = c->loaded->plugin[SL_F64];
  const int n = d->row ? 20000 : 200;
  const sl_test_shape z = { n, 8, n - 1, 0, n, SL_MASK_CAUSAL };
  const sl_mechanism *m = sl_case_mechanism (c);
  sl_test_inputs *in;
  sl_error e;
  sl_case_for_each (c, SL_ALL_OPTIONS, visit, prop);
  if (!m || sl_case_failed (c)) return;
  if (sl_test_inputs_new (m, &z, c->seed, &in, &e))
    sl_case_fail (c, "%d tokens: %s", n, e.text);
  else
    visit (c, in, prop);
}

/* 1 if the claim is made and can be looked at. */
static int claimed (sl_check_case *c, uint32_t flag, const char *name) {
  const sl_plugin *p = c->loaded->plugin[SL_F64];
  if (!(p->flags & flag)) {
    sl_case_skip (c, "not claimed");
    return 0;
  }
  if (p->row || (p->mixer && p->mixer->weights)) return 1;
  sl_case_figure (c, "no weights");
  sl_case_fail (c, "%s is claimed of weights, but this %s gives none", name,
                p->gate ? "gate" : "mixer");
  return 0;
}

static int not_negative (sl_check_case *c, const sl_test_inputs *in,
                         sl_dtype dtype, const double *w, int n,
                         double *least) {
  for (int i = 0; i < n; i++) {
    *least = fmin (*least, w[i]);
    if (!(w[i] >= 0)) {
      sl_case_figure (c, "a weight of %.3g", w[i]);
      return sl_case_fail_call (c, in, "%s weights[%d] is %.9g",
                                sl_dtype_name (dtype), i, w[i]);
    }
  }
  return 0;
}

static double sum_of (const double *w, int n) {
  double sum = 0;
  for (int i = 0; i < n; i++) sum += w[i];
  return sum;
}

static int sums_to_one (sl_check_case *c, const sl_test_inputs *in,
                        sl_dtype dtype, const double *w, int n, double *most) {
  const double off = fabs (sum_of (w, n) - 1);
  if (dtype == SL_F32) *most = fmax (*most, off);
  if (off <= rounding (dtype, n)) return 0;
  sl_case_figure (c, "a sum that is off by %.3g", off);
  return sl_case_fail_call (c, in, "%s weights sum to %.9g",
                            sl_dtype_name (dtype), sum_of (w, n));
}

static int at_most_one (sl_check_case *c, const sl_test_inputs *in,
                        sl_dtype dtype, const double *w, int n, double *most) {
  const double sum = sum_of (w, n);
  double least = 0;
  if (not_negative (c, in, dtype, w, n, &least)) return -1;
  *most = fmax (*most, sum);
  if (sum <= 1 + rounding (dtype, n)) return 0;
  sl_case_figure (c, "a sum of %.9g", sum);
  return sl_case_fail_call (c, in, "%s weights sum to %.9g",
                            sl_dtype_name (dtype), sum);
}

void sl_check_nonnegative (sl_check_case *c) {
  property prop = { not_negative, INFINITY, 0 };
  if (!claimed (c, SL_NONNEGATIVE, "SL_NONNEGATIVE")) return;
  visit_all (c, &prop);
  if (!sl_case_failed (c))
    sl_case_pass (c, "least weight %.1e in %d rows", prop.figure, prop.rows);
}

void sl_check_sums (sl_check_case *c) {
  property prop = { sums_to_one, 0, 0 };
  if (!claimed (c, SL_SUMS_TO_ONE, "SL_SUMS_TO_ONE")) return;
  visit_all (c, &prop);
  if (!sl_case_failed (c))
    sl_case_pass (c, "f32 sums within %.1e of 1 in %d rows", prop.figure,
                  prop.rows);
}

void sl_check_null_mass (sl_check_case *c) {
  property prop = { at_most_one, 0, 0 };
  if (!claimed (c, SL_NULL_MASS, "SL_NULL_MASS")) return;
  visit_all (c, &prop);
  if (!sl_case_failed (c))
    sl_case_pass (c, "largest sum %.9g in %d rows", prop.figure, prop.rows);
}

typedef struct shifted {
  double worst;
  int rows, key; /* key: the array to which a shift is added */
} shifted;

/* Whole multiples of 1/64, and a shift that is one too: adding is exact in
** f32. */
static void to_grid (sl_test_inputs *in, int array) {
  for (size_t i = 0; i < in->size[array]; i++)
    in->value[array][i] = round (64 * in->value[array][i]) / 64;
}

static void visit_shift (sl_check_case *c, sl_test_inputs *in, void *context) {
  static const double shifts[3] = { 1, -40, 1000 };
  shifted *sum = context;
  const int mixer = c->loaded->plugin[SL_F64]->mixer != NULL;
  const size_t width = in->size[sum->key] / (size_t)(mixer ? in->n : 1);
  for (int i = 0; i < 2; i++) {
    sl_harness *h = sl_case_harness (c, (sl_dtype)i, in);
    const double tolerance = i == SL_F64 ? 1e-9 : 2e-4;
    for (int k = 0; k < 3 && !sl_case_failed (c); k++) {
      /* Keys that all move along one vector move all scores of a query
      ** alike. */
      const double shift = mixer ? shifts[k] / 40 : shifts[k];
      double *before, d;
      size_t at;
      sl_test_inputs_draw (in, 700 + (uint32_t)k, 1);
      to_grid (in, sum->key);
      sl_case_forward (c, (sl_dtype)i, h);
      before = sl_copy_doubles (h->out, in->outputs);
      for (size_t j = 0; j < in->size[sum->key]; j++)
        in->value[sum->key][j] +=
            mixer ? shift * (double)(j % width % 3 + 1) : shift;
      sl_case_forward (c, (sl_dtype)i, h);
      if (!before) sl_case_fail (c, "no memory for weights");
      d = before
              ? sl_largest_difference (in->outputs, h->out, before, 1e-3, &at)
              : 0;
      if (!(d <= tolerance)) {
        sl_case_figure (c, "a change of %.2g, tolerance %.0e", d, tolerance);
        sl_case_fail_call (
            c, in,
            "%s %s[%zu] goes from %.9g to %.9g when %g is added to "
            "all %s",
            sl_dtype_name ((sl_dtype)i), sl_case_output (c), at, before[at],
            h->out[at], shift, mixer ? "keys" : "scores");
      } else
        sum->worst = fmax (sum->worst, d);
      sl_free (before);
      sum->rows++;
    }
    sl_harness_calls_of ((sl_dtype)i)->close (h);
  }
}

void sl_check_shift (sl_check_case *c) {
  const sl_plugin *d = c->loaded->plugin[SL_F64];
  shifted prop = { 0, 0, 0 };
  if (!(d->flags & SL_SHIFT_INVARIANT)) {
    sl_case_skip (c, "not claimed");
    return;
  }
  for (; d->mixer && d->inputs[prop.key].name; prop.key++)
    if (strcmp (d->inputs[prop.key].name, "k") == 0) break;
  if (d->gate || (d->mixer && !d->inputs[prop.key].name)) {
    sl_case_figure (c, "no scores");
    sl_case_fail (c,
                  "SL_SHIFT_INVARIANT is claimed of scores, but this %s has %s",
                  d->gate ? "gate" : "mixer",
                  d->gate ? "none" : "no input 'k' that moves them");
    return;
  }
  sl_case_for_each (c, SL_ALL_OPTIONS, visit_shift, &prop);
  if (!sl_case_failed (c))
    sl_case_pass (c, "largest change %.1e in %d shifted rows", prop.worst,
                  prop.rows);
}

static int sees (const sl_test_inputs *in, int i, int j) {
  return i == j || (j >= in->lo[i] && j < in->hi[i]);
}

/* Tokens that see token j may change with it; the outputs of all others keep
** their bits, and no gradient flows from them to j. */
static void visit_causal (sl_check_case *c, sl_test_inputs *in, void *context) {
  long *pairs = context;
  sl_harness *h = sl_case_harness (c, SL_F64, in);
  const size_t d = (size_t)in->d_out;
  double *before;
  sl_test_inputs_draw (in, 800, 1);
  sl_case_forward (c, SL_F64, h);
  before = sl_copy_doubles (h->out, in->outputs);
  if (!before) sl_case_fail (c, "no memory for outputs");
  for (int j = 0; j < in->n && !sl_case_failed (c); j++) {
    for (int a = 0; a < in->arrays - 1; a++) {
      const size_t width = in->size[a] / (size_t)in->n;
      for (size_t k = 0; k < width; k++)
        in->value[a][(size_t)j * width + k] +=
            sl_test_normal (in->seed, 801, (uint32_t)(j + a * in->n));
    }
    sl_case_forward (c, SL_F64, h);
    for (int i = 0; i < in->n; i++) {
      if (sees (in, i, j)) continue;
      ++*pairs;
      if (memcmp (h->out + (size_t)i * d, before + (size_t)i * d,
                  d * sizeof *before) == 0)
        continue;
      sl_case_fail_call (c, in,
                         "out[%d] moves with token %d, which query %d does not "
                         "see",
                         i, j, i);
      break;
    }
    sl_test_inputs_draw (in, 800, 1);
  }
  /* The cotangent of the queries that do not see j alone: nothing reaches j. */
  for (int j = 0; j < in->n && !sl_case_failed (c); j++) {
    sl_test_inputs_draw (in, 800, 1);
    for (int i = 0; i < in->n; i++)
      if (sees (in, i, j))
        memset (in->cotangent + (size_t)i * d, 0, d * sizeof *in->cotangent);
    sl_case_backward (c, SL_F64, h);
    for (int a = 0; a < in->arrays - 1; a++) {
      const size_t width = in->size[a] / (size_t)in->n;
      for (size_t k = 0; k < width; k++) {
        const double g = h->grad[a][(size_t)j * width + k];
        if (g == 0) continue;
        sl_case_fail_call (c, in,
                           "a gradient of %.3g reaches %s of token %d from "
                           "queries that do not see it",
                           g, in->name[a], j);
        break;
      }
    }
  }
  sl_free (before);
  sl_harness_calls_of (SL_F64)->close (h);
}

/* What weights give keys that are not seen must be 0. */
static void visit_hidden (sl_check_case *c, sl_test_inputs *in, void *context) {
  (void)context;
  for (int k = 0; k < 2 && in->weights; k++) {
    sl_harness *h = sl_case_harness (c, (sl_dtype)k, in);
    sl_case_weights (c, (sl_dtype)k, h);
    for (int i = 0; i < in->n; i++)
      for (int j = 0; j < in->n; j++) {
        const double w = h->weights[(size_t)i * (size_t)in->n + (size_t)j];
        if ((j >= in->lo[i] && j < in->hi[i]) || w == 0) continue;
        sl_case_fail_call (
            c, in,
            "%s weights give key %d %.3g of query %d, which does "
            "not see it",
            sl_dtype_name ((sl_dtype)k), j, w, i);
        i = in->n;
        break;
      }
    sl_harness_calls_of ((sl_dtype)k)->close (h);
  }
}

void sl_check_causal (sl_check_case *c) {
  long pairs = 0;
  if (!c->loaded->plugin[SL_F64]->mixer) {
    sl_case_skip (c, "the host hides keys from a %s",
                  sl_plugin_shape (c->loaded->plugin[SL_F64]));
    return;
  }
  sl_case_for_each (c, SL_ALL_OPTIONS, visit_causal, &pairs);
  if (!sl_case_failed (c))
    sl_case_for_each (c, SL_ALL_OPTIONS, visit_hidden, NULL);
  sl_case_pass (c, "no output or gradient moved over %ld hidden pairs", pairs);
}
