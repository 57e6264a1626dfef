/* differential.c - the difference of two softmax attentions (Ye et al. 2024,
** arXiv 2410.05258; code microsoft/unilm, Diff-Transformer).
**
**   A = softmax (scale q1 k1^T) - lambda softmax (scale q2 k2^T)
**   o = (1 - lambda_init) rms_norm (A v), over the head's output, without a
**       gain, eps 1e-5
**   lambda = exp (lq1 . lk1) - exp (lq2 . lk2) + lambda_init
**   lambda_init = 0.8 - 0.6 exp (-0.3 layer), layers from 0, if it is not given
**
** Mixer: inputs q1, k1, q2, k2 (t, d), v (t, 2 d), parameters lq1, lk1, lq2,
** lk2 (d) -> output o (t, 2 d), d = d_head. The parameters are initially N(0,
** 0.1^2), one set per head (the source has one per layer). wide = false: v and
** o are (t, d). norm = false: o = A v. learned = false: lambda is constant.
**
** Sinks: none reported either way; a row sums to 1 - lambda, not to 1. */
#include <math.h>
#include <sinklab/reduce.h>
#include <string.h>

typedef struct config {
  double lambda_init, lambda;
  int norm, learned, wide;
} config;

static const sl_option options[] = {
  SL_OPTION_REAL (config, lambda_init, -1, -1, 1,
                  "initial lambda, and 1 - the factor after the norm; -1: by "
                  "layer"),
  SL_OPTION_BOOL (config, learned, 1,
                  "lambda is learned; else it is the option lambda"),
  SL_OPTION_REAL (config, lambda, 0.8, -10, 10, "lambda if it is not learned"),
  SL_OPTION_BOOL (config, norm, 1,
                  "RMS norm of a head's output, times 1 - lambda_init"),
  SL_OPTION_BOOL (config, wide, 1,
                  "values are twice as wide as queries and keys"),
  { 0 }
};

enum { LQ1, LK1, LQ2, LK2, LAMBDAS };
#define LAMBDA(n) \
  { n, "of lambda (see its formula)", { 1, 0 }, SL_NORMAL, 0.1 }
static const sl_param params[] = {
  LAMBDA ("lq1"), LAMBDA ("lk1"), LAMBDA ("lq2"), LAMBDA ("lk2"), { 0 }
};

enum { Q1, K1, Q2, K2, V };
static const sl_input inputs[] = { SL_INPUT ("q1", 1, 0), SL_INPUT ("k1", 1, 0),
                                   SL_INPUT ("q2", 1, 0), SL_INPUT ("k2", 1, 0),
                                   SL_INPUT ("v", 2, 0),  { 0 } };

static void adapt (const void *options_in_effect, sl_param *param,
                   sl_input *input) {
  const config *o = options_in_effect;
  for (int i = 0; i < LAMBDAS && !o->learned; i++)
    param[i].width = (sl_width){ 0, 0 };
  if (!o->wide) input[V].width = (sl_width){ 1, 0 };
}

static int plan (const void *options_in_effect, const sl_shape *sh, sl_plan *p,
                 char *err, size_t cap) {
  const config *o = options_in_effect;
  const size_t t = (size_t)sh->t;
  (void)err, (void)cap;
  p->d_out = sh->d_head * (o->wide ? 2 : 1);
  p->saved = 2 * t * t + t;          /* both softmaxes, and 1 / rms of a row */
  p->scratch = t + (size_t)p->d_out; /* a row of dA, a row of d (A v) */
  return 0;
}

static real lambda_init (const sl_call *c) {
  const config *o = c->config;
  if (o->lambda_init >= 0) return (real)o->lambda_init;
  return (real)(0.8 - 0.6 * exp (-0.3 * c->layer));
}

/* e = { exp (lq1 . lk1), exp (lq2 . lk2) }; returns lambda. */
static real lambda (const sl_call *c, real e[2]) {
  const config *o = c->config;
  const ptrdiff_t d = c->d_head;
  const real *p = c->param;
  if (!o->learned) return (real)o->lambda;
  e[0] = (real)exp ((double)sl_row_dot (c->d_head, p + LQ1 * d, p + LK1 * d));
  e[1] = (real)exp ((double)sl_row_dot (c->d_head, p + LQ2 * d, p + LK2 * d));
  return e[0] - e[1] + lambda_init (c);
}

/* w (t) = softmax of scale q_i . k_j over the visible keys of query i, 0
** elsewhere; q, k (t, d). */
static void softmax (const sl_call *c, const sl_shape *sh, ptrdiff_t i,
                     const real *q, const real *k, real *w) {
  const int d = sh->d_head, lo = sh->lo[i], n = sh->hi[i] - lo;
  real *s = w + lo;
  memset (w, 0, (size_t)sh->t * sizeof *w);
  for (ptrdiff_t j = 0; j < n; j++)
    s[j] = (real)c->scale * sl_row_dot (d, q + i * d, k + (lo + j) * d);
  const real max = sl_row_max (n, s);
  sl_row_exp (n, s, max, s);
  const real sum = sl_row_sum (n, s);
  for (int j = 0; j < n; j++) s[j] /= sum;
}

static void forward (const sl_call *c, const sl_shape *sh,
                     const real *const *in, real *out, real *saved) {
  const config *o = c->config;
  const ptrdiff_t t = sh->t, v = sh->d_out;
  real e[2], *a = saved, *b = saved + t * t, *rms = b + t * t;
  const real l = lambda (c, e);
  for (ptrdiff_t i = 0; i < t; i++) {
    real *restrict y = out + i * v;
    softmax (c, sh, i, in[Q1], in[K1], a + i * t);
    softmax (c, sh, i, in[Q2], in[K2], b + i * t);
    memset (y, 0, (size_t)v * sizeof *y);
    for (ptrdiff_t j = sh->lo[i]; j < sh->hi[i]; j++) {
      const real w = a[i * t + j] - l * b[i * t + j];
      for (int k = 0; k < v; k++) y[k] += w * in[V][j * v + k];
    }
    rms[i] = 1;
    if (!o->norm) continue;
    rms[i] = (real)(1 / sqrt ((double)sl_row_dot (sh->d_out, y, y) / (double)v +
                              1e-5));
    for (int k = 0; k < v; k++) y[k] *= rms[i] * (1 - lambda_init (c));
  }
}

/* forward: y = g r x, r = 1 / rms (x), g = 1 - lambda_init; x, y (v)
** dx = g r dy - y (y . dy) r / (g v), which does not need x; g may be 0 */
static void norm_backward (const sl_call *c, int v, real r,
                           const real *restrict y, const real *restrict dy,
                           real *restrict dx) {
  const config *o = c->config;
  const real g = 1 - lambda_init (c);
  if (!o->norm) {
    memcpy (dx, dy, (size_t)v * sizeof *dx);
    return;
  }
  const real mean = g == 0 ? 0 : sl_row_dot (v, y, dy) * r / (g * (real)v);
  for (int k = 0; k < v; k++) dx[k] = g * r * dy[k] - y[k] * mean;
}

/* forward, row i: w = softmax (s), s_j = scale q_i . k_j, A = ... + by w
** ds = w (dw - w . dw), dw = by dA; dq_i += scale sum_j ds_j k_j,
** dk_j += scale ds_j q_i; w, dA (t), q, k (t, d) */
static void softmax_backward (const sl_call *c, const sl_shape *sh, ptrdiff_t i,
                              real by, const real *w, const real *da,
                              const real *q, const real *k, real *restrict dq,
                              real *restrict dk) {
  const ptrdiff_t d = sh->d_head;
  const int lo = sh->lo[i], n = sh->hi[i] - lo;
  const real mean = sl_row_dot (n, w + lo, da + lo);
  for (ptrdiff_t j = lo; j < sh->hi[i]; j++) {
    const real ds = (real)c->scale * by * w[j] * (da[j] - mean);
    for (int m = 0; m < d; m++) {
      dq[i * d + m] += ds * k[j * d + m];
      dk[j * d + m] += ds * q[i * d + m];
    }
  }
}

/* forward: lambda = exp (lq1 . lk1) - exp (lq2 . lk2) + lambda_init
** dlq1 += dlambda e1 lk1, dlk1 += dlambda e1 lq1, and with - for lq2, lk2 */
static void lambda_backward (const sl_call *c, real dl, const real e[2],
                             real *dparam) {
  const config *o = c->config;
  const ptrdiff_t d = c->d_head;
  const real *p = c->param;
  for (ptrdiff_t m = 0; o->learned && m < d; m++) {
    dparam[LQ1 * d + m] += dl * e[0] * p[LK1 * d + m];
    dparam[LK1 * d + m] += dl * e[0] * p[LQ1 * d + m];
    dparam[LQ2 * d + m] -= dl * e[1] * p[LK2 * d + m];
    dparam[LK2 * d + m] -= dl * e[1] * p[LQ2 * d + m];
  }
}

/* forward: o = g rms_norm (x), x = A v, A = a - lambda b, a and b softmaxes
** dA_ij = dx_i . v_j, dv_j += A_ij dx_i, dlambda = -sum_ij b_ij dA_ij */
static void backward (const sl_call *c, const sl_shape *sh,
                      const real *const *in, const real *out, const real *saved,
                      const real *dout, real *const *din, real *dparam) {
  const ptrdiff_t t = sh->t, v = sh->d_out;
  const real *a = saved, *b = saved + t * t, *rms = b + t * t;
  real e[2], *da = c->scratch, *dx = da + t, dl = 0;
  const real l = lambda (c, e);
  for (int i = Q1; i <= K2; i++)
    memset (din[i], 0, (size_t)(t * sh->d_head) * sizeof *din[i]);
  memset (din[V], 0, (size_t)(t * v) * sizeof *din[V]);
  for (ptrdiff_t i = 0; i < t; i++) {
    const int lo = sh->lo[i], n = sh->hi[i] - lo;
    norm_backward (c, sh->d_out, rms[i], out + i * v, dout + i * v, dx);
    for (ptrdiff_t j = lo; j < sh->hi[i]; j++) {
      const real w = a[i * t + j] - l * b[i * t + j];
      da[j] = sl_row_dot (sh->d_out, dx, in[V] + j * v);
      for (int k = 0; k < v; k++) din[V][j * v + k] += w * dx[k];
    }
    dl -= sl_row_dot (n, b + i * t + lo, da + lo);
    softmax_backward (c, sh, i, 1, a + i * t, da, in[Q1], in[K1], din[Q1],
                      din[K1]);
    softmax_backward (c, sh, i, -l, b + i * t, da, in[Q2], in[K2], din[Q2],
                      din[K2]);
  }
  lambda_backward (c, dl, e, dparam);
}

/* w = A, (t, t), without the norm */
static void weights (const sl_call *c, const sl_shape *sh,
                     const real *const *in, real *w) {
  const ptrdiff_t t = sh->t;
  real e[2], *other = c->scratch;
  const real l = lambda (c, e);
  for (ptrdiff_t i = 0; i < t; i++) {
    softmax (c, sh, i, in[Q1], in[K1], w + i * t);
    softmax (c, sh, i, in[Q2], in[K2], other);
    for (ptrdiff_t j = 0; j < t; j++) w[i * t + j] -= l * other[j];
  }
}

static const sl_mixer_kernel mixer = { plan, forward, backward, weights };

SL_PLUGIN = { SL_ABI,
              "differential",
              "1.0",
              "the difference of two softmax attentions (Diff Transformer)",
              .config_size = sizeof (config),
              .options = options,
              .params = params,
              .inputs = inputs,
              .mixer = &mixer,
              .adapt = adapt };
