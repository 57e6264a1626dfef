/* claims.c - the checks of what a plugin claims of its weights, and
** "causal". */
#include "check/trial.h"
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

static rows rows_of (sl_trial *t, sl_dtype dtype, sl_stage *s) {
  const sl_problem *p = s->problem;
  if (t->loaded->plugin[SL_F64]->row) {
    sl_trial_forward (t, dtype, s);
    return (rows){ s->out, 1, p->n };
  }
  sl_trial_weights (t, dtype, s);
  return (rows){ s->weights, p->n, p->n };
}

/* Rows of ordinary, of equal and of large scores. */
enum { DRAWS = 6 };

static void draw (sl_problem *p, int k) {
  static const double spread[DRAWS] = { 1, 1, 5, 0, 100, 1e4 };
  const int mixer = p->mechanism->loaded->plugin[SL_F64]->mixer != NULL;
  sl_problem_draw (p, 600 + (uint32_t)k,
                   mixer && spread[k] > 10 ? spread[k] / 100 : spread[k]);
}

/* A claim about one row: 0, or -1 after a sentence; *figure is its extreme. */
typedef int (*row_claim) (sl_trial *t, const sl_problem *p, sl_dtype dtype,
                          const double *w, int n, double *figure);

typedef struct claim {
  row_claim hold;
  double figure;
  int rows;
} claim;

static void visit (sl_trial *t, sl_problem *p, void *context) {
  claim *c = context;
  for (int i = 0; i < 2; i++) {
    sl_stage *s = sl_trial_stage (t, (sl_dtype)i, p);
    for (int k = 0; k < DRAWS && !sl_trial_failed (t); k++) {
      rows r;
      draw (p, k);
      r = rows_of (t, (sl_dtype)i, s);
      for (int j = 0; j < r.count && !sl_trial_failed (t); j++)
        c->hold (t, p, (sl_dtype)i, r.w + (size_t)j * (size_t)r.n, r.n,
                 &c->figure);
      c->rows += r.count;
    }
    sl_stager_of ((sl_dtype)i)->close (s);
  }
}

/* Every shape with every option, and a long row of the defaults. */
static void visit_all (sl_trial *t, claim *c) {
  const sl_plugin *d = t->loaded->plugin[SL_F64];
  const int n = d->row ? 20000 : 200;
  const sl_sizes z = { n, 8, n - 1, 0, n, SL_SEE_EARLIER };
  const sl_mechanism *m = sl_trial_mechanism (t);
  sl_problem *p;
  sl_error e;
  sl_trial_each (t, SL_ALL_OPTIONS, visit, c);
  if (!m || sl_trial_failed (t)) return;
  if (sl_problem_new (m, &z, t->seed, &p, &e))
    sl_trial_fail (t, "%d tokens: %s", n, e.text);
  else
    visit (t, p, c);
}

/* 1 if the claim is made and can be looked at. */
static int claimed (sl_trial *t, uint32_t flag, const char *name) {
  const sl_plugin *p = t->loaded->plugin[SL_F64];
  if (!(p->flags & flag)) {
    sl_trial_none (t, "not claimed");
    return 0;
  }
  if (p->row || (p->mixer && p->mixer->weights)) return 1;
  sl_trial_figure (t, "no weights");
  sl_trial_fail (t, "%s is claimed of weights, but this %s gives none", name,
                 p->gate ? "gate" : "mixer");
  return 0;
}

static int not_negative (sl_trial *t, const sl_problem *p, sl_dtype dtype,
                         const double *w, int n, double *least) {
  for (int i = 0; i < n; i++) {
    *least = fmin (*least, w[i]);
    if (!(w[i] >= 0)) {
      sl_trial_figure (t, "a weight of %.3g", w[i]);
      return sl_trial_wrong (t, p, "%s weights[%d] is %.9g",
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

static int sums_to_one (sl_trial *t, const sl_problem *p, sl_dtype dtype,
                        const double *w, int n, double *most) {
  const double off = fabs (sum_of (w, n) - 1);
  if (dtype == SL_F32) *most = fmax (*most, off);
  if (off <= rounding (dtype, n)) return 0;
  sl_trial_figure (t, "a sum that is off by %.3g", off);
  return sl_trial_wrong (t, p, "%s weights sum to %.9g", sl_dtype_name (dtype),
                         sum_of (w, n));
}

static int at_most_one (sl_trial *t, const sl_problem *p, sl_dtype dtype,
                        const double *w, int n, double *most) {
  const double sum = sum_of (w, n);
  double least = 0;
  if (not_negative (t, p, dtype, w, n, &least)) return -1;
  *most = fmax (*most, sum);
  if (sum <= 1 + rounding (dtype, n)) return 0;
  sl_trial_figure (t, "a sum of %.9g", sum);
  return sl_trial_wrong (t, p, "%s weights sum to %.9g", sl_dtype_name (dtype),
                         sum);
}

void sl_check_nonnegative (sl_trial *t) {
  claim c = { not_negative, INFINITY, 0 };
  if (!claimed (t, SL_NONNEGATIVE, "SL_NONNEGATIVE")) return;
  visit_all (t, &c);
  if (!sl_trial_failed (t))
    sl_trial_ok (t, "least weight %.1e in %d rows", c.figure, c.rows);
}

void sl_check_sums (sl_trial *t) {
  claim c = { sums_to_one, 0, 0 };
  if (!claimed (t, SL_SUMS_TO_ONE, "SL_SUMS_TO_ONE")) return;
  visit_all (t, &c);
  if (!sl_trial_failed (t))
    sl_trial_ok (t, "f32 sums within %.1e of 1 in %d rows", c.figure, c.rows);
}

void sl_check_null_mass (sl_trial *t) {
  claim c = { at_most_one, 0, 0 };
  if (!claimed (t, SL_NULL_MASS, "SL_NULL_MASS")) return;
  visit_all (t, &c);
  if (!sl_trial_failed (t))
    sl_trial_ok (t, "largest sum %.9g in %d rows", c.figure, c.rows);
}

typedef struct shifted {
  double worst;
  int rows, key; /* key: the array to which a shift is added */
} shifted;

/* Whole multiples of 1/64, and a shift that is one too: adding is exact in
** f32. */
static void to_grid (sl_problem *p, int array) {
  for (size_t i = 0; i < p->size[array]; i++)
    p->in[array][i] = round (64 * p->in[array][i]) / 64;
}

static void visit_shift (sl_trial *t, sl_problem *p, void *context) {
  static const double shifts[3] = { 1, -40, 1000 };
  shifted *c = context;
  const int mixer = t->loaded->plugin[SL_F64]->mixer != NULL;
  const size_t width = p->size[c->key] / (size_t)(mixer ? p->n : 1);
  for (int i = 0; i < 2; i++) {
    sl_stage *s = sl_trial_stage (t, (sl_dtype)i, p);
    const double tolerance = i == SL_F64 ? 1e-9 : 2e-4;
    for (int k = 0; k < 3 && !sl_trial_failed (t); k++) {
      /* Keys that all move along one vector move all scores of a query
      ** alike. */
      const double shift = mixer ? shifts[k] / 40 : shifts[k];
      double *before, d;
      size_t at;
      sl_problem_draw (p, 700 + (uint32_t)k, 1);
      to_grid (p, c->key);
      sl_trial_forward (t, (sl_dtype)i, s);
      before = sl_problem_copy (s->out, p->outputs);
      for (size_t j = 0; j < p->size[c->key]; j++)
        p->in[c->key][j] += mixer ? shift * (double)(j % width % 3 + 1) : shift;
      sl_trial_forward (t, (sl_dtype)i, s);
      if (!before) sl_trial_fail (t, "no memory for weights");
      d = before ? sl_trial_distance (p->outputs, s->out, before, 1e-3, &at)
                 : 0;
      if (!(d <= tolerance)) {
        sl_trial_figure (t, "a change of %.2g, tolerance %.0e", d, tolerance);
        sl_trial_wrong (t, p,
                        "%s %s[%zu] goes from %.9g to %.9g when %g is added to "
                        "all %s",
                        sl_dtype_name ((sl_dtype)i), sl_trial_output (t), at,
                        before[at], s->out[at], shift,
                        mixer ? "keys" : "scores");
      } else
        c->worst = fmax (c->worst, d);
      sl_problem_forget (before);
      c->rows++;
    }
    sl_stager_of ((sl_dtype)i)->close (s);
  }
}

void sl_check_shift (sl_trial *t) {
  const sl_plugin *d = t->loaded->plugin[SL_F64];
  shifted c = { 0, 0, 0 };
  if (!(d->flags & SL_SHIFT_INVARIANT)) {
    sl_trial_none (t, "not claimed");
    return;
  }
  for (; d->mixer && d->inputs[c.key].name; c.key++)
    if (strcmp (d->inputs[c.key].name, "k") == 0) break;
  if (d->gate || (d->mixer && !d->inputs[c.key].name)) {
    sl_trial_figure (t, "no scores");
    sl_trial_fail (
        t, "SL_SHIFT_INVARIANT is claimed of scores, but this %s has %s",
        d->gate ? "gate" : "mixer",
        d->gate ? "none" : "no input 'k' that moves them");
    return;
  }
  sl_trial_each (t, SL_ALL_OPTIONS, visit_shift, &c);
  if (!sl_trial_failed (t))
    sl_trial_ok (t, "largest change %.1e in %d shifted rows", c.worst, c.rows);
}

static int sees (const sl_problem *p, int i, int j) {
  return i == j || (j >= p->lo[i] && j < p->hi[i]);
}

/* Tokens that see token j may change with it; the outputs of all others keep
** their bits, and no gradient flows from them to j. */
static void visit_causal (sl_trial *t, sl_problem *p, void *context) {
  long *pairs = context;
  sl_stage *s = sl_trial_stage (t, SL_F64, p);
  const size_t d = (size_t)p->d_out;
  double *before;
  sl_problem_draw (p, 800, 1);
  sl_trial_forward (t, SL_F64, s);
  before = sl_problem_copy (s->out, p->outputs);
  if (!before) sl_trial_fail (t, "no memory for outputs");
  for (int j = 0; j < p->n && !sl_trial_failed (t); j++) {
    for (int a = 0; a < p->arrays - 1; a++) {
      const size_t width = p->size[a] / (size_t)p->n;
      for (size_t k = 0; k < width; k++)
        p->in[a][(size_t)j * width + k] +=
            sl_problem_normal (p->seed, 801, (uint32_t)(j + a * p->n));
    }
    sl_trial_forward (t, SL_F64, s);
    for (int i = 0; i < p->n; i++) {
      if (sees (p, i, j)) continue;
      ++*pairs;
      if (memcmp (s->out + (size_t)i * d, before + (size_t)i * d,
                  d * sizeof *before) == 0)
        continue;
      sl_trial_wrong (t, p,
                      "out[%d] moves with token %d, which query %d does not "
                      "see",
                      i, j, i);
      break;
    }
    sl_problem_draw (p, 800, 1);
  }
  /* The cotangent of the queries that do not see j alone: nothing reaches j. */
  for (int j = 0; j < p->n && !sl_trial_failed (t); j++) {
    sl_problem_draw (p, 800, 1);
    for (int i = 0; i < p->n; i++)
      if (sees (p, i, j))
        memset (p->cotangent + (size_t)i * d, 0, d * sizeof *p->cotangent);
    sl_trial_backward (t, SL_F64, s);
    for (int a = 0; a < p->arrays - 1; a++) {
      const size_t width = p->size[a] / (size_t)p->n;
      for (size_t k = 0; k < width; k++) {
        const double g = s->grad[a][(size_t)j * width + k];
        if (g == 0) continue;
        sl_trial_wrong (t, p,
                        "a gradient of %.3g reaches %s of token %d from "
                        "queries that do not see it",
                        g, p->name[a], j);
        break;
      }
    }
  }
  sl_problem_forget (before);
  sl_stager_of (SL_F64)->close (s);
}

/* What weights give keys that are not seen must be 0. */
static void visit_hidden (sl_trial *t, sl_problem *p, void *context) {
  (void)context;
  for (int k = 0; k < 2 && p->weights; k++) {
    sl_stage *s = sl_trial_stage (t, (sl_dtype)k, p);
    sl_trial_weights (t, (sl_dtype)k, s);
    for (int i = 0; i < p->n; i++)
      for (int j = 0; j < p->n; j++) {
        const double w = s->weights[(size_t)i * (size_t)p->n + (size_t)j];
        if ((j >= p->lo[i] && j < p->hi[i]) || w == 0) continue;
        sl_trial_wrong (t, p,
                        "%s weights give key %d %.3g of query %d, which does "
                        "not see it",
                        sl_dtype_name ((sl_dtype)k), j, w, i);
        i = p->n;
        break;
      }
    sl_stager_of ((sl_dtype)k)->close (s);
  }
}

void sl_check_causal (sl_trial *t) {
  long pairs = 0;
  if (!t->loaded->plugin[SL_F64]->mixer) {
    sl_trial_none (t, "the host hides keys from a %s",
                   sl_plugin_shape (t->loaded->plugin[SL_F64]));
    return;
  }
  sl_trial_each (t, SL_ALL_OPTIONS, visit_causal, &pairs);
  if (!sl_trial_failed (t))
    sl_trial_each (t, SL_ALL_OPTIONS, visit_hidden, NULL);
  sl_trial_ok (t, "no output or gradient moved over %ld hidden pairs", pairs);
}
