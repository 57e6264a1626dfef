/* row_cases.c - row mechanisms by their published formulas: see row_cases.h. */
#include "support/row_cases.h"
#include <check.h>
#include <math.h>
#include <stdio.h>

enum { EARLIER, VISIBLE, LENGTH, NONE, LEARNED };

/* What a row is divided by (relu, relu2) or takes the logarithm of. */
static long double count (const row_query *q, int which) {
  int earlier = q->pos - q->first;
  if (which == VISIBLE) return q->n;
  if (which == LENGTH) return q->length;
  if (earlier > q->n) earlier = q->n;
  return earlier > 1 ? earlier : 1;
}

static long double sum (int n, const long double *x) {
  long double total = 0;
  for (int i = 0; i < n; i++) total += x[i];
  return total;
}

static void divide (int n, long double *w, long double by) {
  for (int i = 0; i < n; i++) w[i] /= by;
}

static long double sigmoid (long double x) {
  return 1 / (1 + expl (-x));
}

/* exp (z) over its sum + more. Rows of large scores are moved, as softmax
** allows. */
static void softmax (int n, const long double *z, long double *w,
                     const long double *more) {
  long double max = more ? *more : z[0];
  for (int i = 0; i < n; i++) max = z[i] > max ? z[i] : max;
  for (int i = 0; i < n; i++) w[i] = expl (z[i] - max);
  divide (n, w, sum (n, w) + (more ? expl (*more - max) : 0));
}

/* max (s, 0)^x0 / count x1 */
static void relu (const row_case *c, const row_query *q, long double *w) {
  for (int i = 0; i < q->n; i++)
    w[i] = powl (q->s[i] > 0 ? q->s[i] : 0, c->x[0]) / count (q, (int)c->x[1]);
}

/* Bias: x0 = NONE: x1; LEARNED: the parameter; else -log of the count. x2: 1
** divides by the sum + 1e-8. */
static void logistic (const row_case *c, const row_query *q, long double *w) {
  const int kind = (int)c->x[0];
  const long double b = kind == NONE      ? c->x[1]
                        : kind == LEARNED ? q->param
                                          : -logl (count (q, kind));
  for (int i = 0; i < q->n; i++) w[i] = sigmoid (q->s[i] + b);
  if (c->x[2] != 0) divide (q->n, w, sum (q->n, w) + 1e-8L);
}

static void plain_softmax (const row_case *c, const row_query *q,
                           long double *w) {
  (void)c;
  softmax (q->n, q->s, w, NULL);
}

/* One more score, without a weight of its own. */
static void sink (const row_case *c, const row_query *q, long double *w) {
  const long double more = c->param ? q->param : 0;
  softmax (q->n, q->s, w, &more);
}

/* x0: eps, x1: 1 if it is in units of exp (largest score) */
static void pick (const row_case *c, const row_query *q, long double *w) {
  long double total = 0, max = q->s[0];
  for (int i = 0; i < q->n; i++) {
    w[i] = expl (q->s[i]) - 1;
    total += fabsl (w[i]);
    max = q->s[i] > max ? q->s[i] : max;
  }
  total += c->x[0] * (c->x[1] != 0 ? expl (max) : 1);
  for (int i = 0; i < q->n; i++) w[i] = w[i] > 0 ? w[i] / total : 0;
}

/* alpha-entmax (x0) by bisection on tau, in s (alpha - 1) - tau. */
static void entmax (const row_case *c, const row_query *q, long double *w) {
  const long double a = c->x[0] - 1;
  long double lo, hi, max = q->s[0];
  for (int i = 0; i < q->n; i++) max = q->s[i] > max ? q->s[i] : max;
  lo = a * max - 1;
  hi = a * max;
  for (int step = 0; step < 200; step++) {
    const long double tau = (lo + hi) / 2;
    for (int i = 0; i < q->n; i++) {
      const long double x = a * q->s[i] - tau;
      w[i] = x > 0 ? powl (x, 1 / a) : 0;
    }
    if (sum (q->n, w) >= 1)
      lo = tau;
    else
      hi = tau;
  }
  divide (q->n, w, sum (q->n, w));
}

/* x0: gamma, x1: eta, x2: alpha in place of gamma, if not 0 */
static void clipped (const row_case *c, const row_query *q, long double *w) {
  const long double gamma = c->x[2] != 0 ? -c->x[2] / q->length : c->x[0];
  softmax (q->n, q->s, w, NULL);
  for (int i = 0; i < q->n; i++) {
    w[i] = (c->x[1] - gamma) * w[i] + gamma;
    w[i] = w[i] < 0 ? 0 : w[i] > 1 ? 1 : w[i];
  }
}

/* elu (s) + 1; x0: 1 divides by the sum + x1 */
static void elu (const row_case *c, const row_query *q, long double *w) {
  for (int i = 0; i < q->n; i++)
    w[i] = q->s[i] > 0 ? q->s[i] + 1 : expl (q->s[i]);
  if (c->x[0] != 0) divide (q->n, w, sum (q->n, w) + c->x[1]);
}

/* The product over nearer keys, for each key anew; x0: 1 counts the query's
** own. */
static void sticks (const row_case *c, const row_query *q, long double *w) {
  for (int i = 0; i < q->n; i++) {
    w[i] = sigmoid (q->s[i]);
    for (int k = i + 1; k < q->n; k++)
      if (q->first + k != q->pos || c->x[0] != 0) w[i] *= sigmoid (-q->s[k]);
    if (q->first + i == q->pos && c->x[0] == 0) w[i] = 0;
  }
}

/* A key is kept if fewer than k = x0 scores are larger. */
static void top (const row_case *c, const row_query *q, long double *w) {
  softmax (q->n, q->s, w, NULL);
  for (int i = 0; i < q->n; i++) {
    int larger = 0;
    for (int k = 0; k < q->n; k++) larger += q->s[k] > q->s[i];
    if (larger >= (int)c->x[0]) w[i] = -w[i];
  }
  for (int i = 0; i < q->n; i++) w[i] = w[i] < 0 ? 0 : w[i];
  divide (q->n, w, sum (q->n, w));
}

/* x0 (or the parameter) times log of count x1 */
static void by_length (const row_case *c, const row_query *q, long double *w) {
  const long double a = c->param ? q->param : c->x[0];
  for (int i = 0; i < q->n; i++)
    w[i] = a * logl (count (q, (int)c->x[1])) * q->s[i];
  softmax (q->n, w, w, NULL);
}

static void capped (const row_case *c, const row_query *q, long double *w) {
  for (int i = 0; i < q->n; i++) w[i] = c->x[0] * tanhl (q->s[i] / c->x[0]);
  softmax (q->n, w, w, NULL);
}

const row_case row_cases[] = {
  { "softmax", "softmax", plain_softmax, { { 0 } }, { 0 }, 0, 0 },
  { "relu", "relu", relu, { { 0 } }, { 1, EARLIER }, 0, 0 },
  { "relu2", "relu2", relu, { { 0 } }, { 2, EARLIER }, 0, 0 },
  { "relu2 visible",
    "relu2",
    relu,
    { { "normaliser", 0, "visible" } },
    { 2, VISIBLE },
    0,
    0 },
  { "relu2 length",
    "relu2",
    relu,
    { { "normaliser", 0, "length" } },
    { 2, LENGTH },
    0,
    0 },
  { "sigmoid", "sigmoid", logistic, { { 0 } }, { LENGTH }, 0, 0 },
  { "sigmoid visible",
    "sigmoid",
    logistic,
    { { "n", 0, "visible" } },
    { VISIBLE },
    0,
    0 },
  { "sigmoid earlier",
    "sigmoid",
    logistic,
    { { "n", 0, "earlier" } },
    { EARLIER },
    0,
    0 },
  { "sigmoid unbiased",
    "sigmoid",
    logistic,
    { { "bias", 0, "fixed" } },
    { NONE, 0 },
    0,
    0 },
  { "sigmoid normalised",
    "sigmoid",
    logistic,
    { { "bias", 0, "fixed" }, { "normalise", 1, NULL } },
    { NONE, 0, 1 },
    0,
    0 },
  { "sigmoid fixed",
    "sigmoid",
    logistic,
    { { "bias", 0, "fixed" }, { "value", -1.5, NULL } },
    { NONE, -1.5L },
    0,
    0 },
  { "sigmoid learned",
    "sigmoid",
    logistic,
    { { "bias", 0, "learned" }, { "value", -3, NULL } },
    { LEARNED },
    1,
    -3 },
  { "sigmoid learned, normalised",
    "sigmoid",
    logistic,
    { { "bias", 0, "learned" }, { "normalise", 1, NULL } },
    { LEARNED, 0, 1 },
    1,
    0 },
  { "softmax1", "softmax1", sink, { { 0 } }, { 0 }, 0, 0 },
  { "sinklogit", "sinklogit", sink, { { 0 } }, { 0 }, 1, 0 },
  { "sinklogit from -2",
    "sinklogit",
    sink,
    { { "init", -2, NULL } },
    { 0 },
    1,
    -2 },
  { "softpick", "softpick", pick, { { 0 } }, { 1e-6L, 0 }, 0, 0 },
  { "softpick scaled",
    "softpick",
    pick,
    { { "eps", 1e-2, NULL }, { "scaled_eps", 1, NULL } },
    { 1e-2L, 1 },
    0,
    0 },
  { "sparsemax", "sparsemax", entmax, { { 0 } }, { 2 }, 0, 0 },
  { "entmax15", "entmax15", entmax, { { 0 } }, { 1.5L }, 0, 0 },
  { "entmax", "entmax", entmax, { { 0 } }, { 1.5L }, 0, 0 },
  { "entmax 1",
    "entmax",
    plain_softmax,
    { { "alpha", 1, NULL } },
    { 0 },
    0,
    0 },
  { "entmax 1.0625",
    "entmax",
    entmax,
    { { "alpha", 1.0625, NULL } },
    { 1.0625L },
    0,
    0 },
  { "entmax 1.25",
    "entmax",
    entmax,
    { { "alpha", 1.25, NULL } },
    { 1.25L },
    0,
    0 },
  { "entmax 1.875",
    "entmax",
    entmax,
    { { "alpha", 1.875, NULL } },
    { 1.875L },
    0,
    0 },
  { "entmax 2", "entmax", entmax, { { "alpha", 2, NULL } }, { 2 }, 0, 0 },
  { "clipped", "clipped_softmax", clipped, { { 0 } }, { -0.025L, 1 }, 0, 0 },
  { "clipped at both ends",
    "clipped_softmax",
    clipped,
    { { "gamma", -0.0625, NULL }, { "eta", 1.125, NULL } },
    { -0.0625L, 1.125L },
    0,
    0 },
  { "clipped alpha",
    "clipped_softmax",
    clipped,
    { { "alpha", 0.75, NULL } },
    { 0, 1, 0.75L },
    0,
    0 },
  { "elu1", "elu1", elu, { { 0 } }, { 1, 1e-8L }, 0, 0 },
  { "elu1 alone", "elu1", elu, { { "normalise", 0, NULL } }, { 0 }, 0, 0 },
  { "stickbreaking", "stickbreaking", sticks, { { 0 } }, { 0 }, 0, 0 },
  { "stickbreaking with current",
    "stickbreaking",
    sticks,
    { { "attend_current", 1, NULL } },
    { 1 },
    0,
    0 },
  { "topk", "topk_softmax", top, { { 0 } }, { 8 }, 0, 0 },
  { "topk 3", "topk_softmax", top, { { "k", 3, NULL } }, { 3 }, 0, 0 },
  { "logn", "logn_softmax", by_length, { { 0 } }, { 0.43L, VISIBLE }, 0, 0 },
  { "logn length",
    "logn_softmax",
    by_length,
    { { "scale", 1, NULL }, { "n", 0, "length" } },
    { 1, LENGTH },
    0,
    0 },
  { "logn learned",
    "logn_softmax",
    by_length,
    { { "learned", 1, NULL } },
    { 0, VISIBLE },
    1,
    0.43 },
  { "softcap", "softcap_softmax", capped, { { 0 } }, { 50 }, 0, 0 },
  { "softcap 2",
    "softcap_softmax",
    capped,
    { { "cap", 2, NULL } },
    { 2 },
    0,
    0 },
};
const int row_case_count = (int)(sizeof row_cases / sizeof *row_cases);

const sl_mechanism *row_mechanism (const char *plugin,
                                   const sl_setting *settings) {
  char path[512];
  sl_error e = { "" };
  const sl_loaded *l;
  const sl_mechanism *m = NULL;
  int n = 0;
  snprintf (path, sizeof path, SINKLAB_TEST_BUILD "/plugins/%s.so", plugin);
  while (settings && n < 4 && settings[n].name) n++;
  l = sl_plugin_load (path, &e);
  if (l) m = sl_mechanism_new (l, n, settings, &e);
  if (!m) ck_abort_msg ("%s: %s", plugin, e.text);
  return m;
}
