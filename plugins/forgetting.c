/* forgetting.c - softmax attention with a learned decay: the Forgetting
** Transformer (FoX; Lin et al. 2025, arXiv 2503.02130; code
** zhixuan-lin/forgetting-transformer).
**
**   a_ij = softmax over j <= i of  scale q_i.k_j + sum_{j < k <= i} log f_k,
**   f_k  = sigmoid (w.x_k + b), one per head;  o_i = sum_j a_ij v_j
**
** Mixer: inputs q, k, v (t, d), f = w.x (t, 1) -> output o (t, d), d = d_head.
** gate full, the default: w and b learned, b initially 0. bias: w = 0, the same
** decay for all tokens. fixed: b is not learned either. For bias and fixed,
** head h has initially b = -log (exp (1/T) - 1), so that f = exp (-1/T), with T
** spaced evenly in log between decay_min and decay_max, as published; the
** source has no default for the range, 2 and 128 are this file's. No positions
** are needed.
**
** Sinks: none reported either way. */
#include <math.h>
#include <sinklab/reduce.h>
#include <stdio.h>

typedef struct config {
  double decay_min, decay_max;
  int gate;
} config;

enum { FULL, BIAS, FIXED };
static const char *const gates[] = { "full", "bias", "fixed", NULL };

static const sl_option options[] = {
  SL_OPTION_CHOICE (config, gate, FULL, gates,
                    "by token, one number per head, or one that is not "
                    "learned"),
  SL_OPTION_REAL (config, decay_min, 2, 0.01, 1e6,
                  "decay length T of the first head, in tokens (bias, fixed)"),
  SL_OPTION_REAL (config, decay_max, 128, 0.01, 1e6,
                  "decay length T of the last head, in tokens; at least "
                  "decay_min"),
  { 0 }
};

enum { Q, K, V, F };
static const sl_input inputs[] = { SL_INPUT ("q", 1, 0),
                                   SL_INPUT ("k", 1, 0),
                                   SL_INPUT ("v", 1, 0),
                                   SL_INPUT ("f", 0, 1),
                                   { 0 } };

static const sl_param params[] = {
  { "bias", "of the forget gate, on top of b", { 0, 1 }, SL_DEFAULT, 0 }, { 0 }
};

static int validate (const void *options_in_effect, char *err, size_t cap) {
  const config *o = options_in_effect;
  if (o->decay_min <= o->decay_max) return 0;
  snprintf (err, cap, "decay_min is %g, which is more than decay_max, %g",
            o->decay_min, o->decay_max);
  return -1;
}

static void adapt (const void *options_in_effect, sl_param *param,
                   sl_input *input) {
  const config *o = options_in_effect;
  if (o->gate != FULL) input[F].width = (sl_width){ 0, 0 };
  if (o->gate == FIXED) param->width = (sl_width){ 0, 0 };
}

static int plan (const void *o, const sl_shape *sh, sl_plan *p, char *err,
                 size_t cap) {
  (void)o, (void)err, (void)cap;
  p->scratch = 4 * (size_t)sh->t;
  p->saved = 2 * (size_t)sh->t; /* per row: largest score, sum of exps */
  return 0;
}

/* The logit of the forget gate of token t. */
static real gate_input (const sl_call *c, const real *const *in, real start,
                        int t) {
  const config *o = c->config;
  return start + (o->gate == FIXED ? 0 : c->param[0]) +
         (o->gate == FULL ? in[F][t] : 0);
}

/* b of the head, without the parameter. */
static real initial_logit (const sl_call *c) {
  const config *o = c->config;
  const double part = c->heads > 1 ? c->head / (c->heads - 1.0) : 0;
  const double tokens = o->decay_min * pow (o->decay_max / o->decay_min, part);
  /* log (e^x - 1) = x + log (1 - e^-x), which does not overflow */
  return o->gate == FULL ? 0 : (real)(-1 / tokens - log (-expm1 (-1 / tokens)));
}

/* log_f (t) = log sigmoid (logit) = -softplus (-logit) */
static void log_gates (const sl_call *c, const sl_shape *sh,
                       const real *const *in, real *log_f) {
  const real start = initial_logit (c);
  for (int t = 0; t < sh->t; t++)
    log_f[t] = -sl_softplusv (-gate_input (c, in, start, t));
}

/* s (i + 1), the scores of row i. Logs are summed from the query to the key, so
** that scores of near keys do not lose digits in long sequences. */
static void scores (const sl_call *c, const sl_shape *sh, const real *const *in,
                    const real *log_f, ptrdiff_t i, real *s) {
  const ptrdiff_t d = sh->d_head;
  const real *q = in[Q] + i * d, scale = (real)c->scale;
  real decay = 0;
  for (ptrdiff_t j = i; j >= 0; j--) {
    s[j] = scale * sl_row_dot (d, q, in[K] + j * d) + decay;
    decay += log_f[j];
  }
}

static void divide (ptrdiff_t n, real sum, real *w) {
  for (ptrdiff_t j = 0; j < n; j++) w[j] /= sum;
}

static void forward (const sl_call *c, const sl_shape *sh,
                     const real *const *in, real *out, real *saved) {
  const ptrdiff_t d = sh->d_head;
  real *log_f = c->scratch, *w = log_f + sh->t;
  log_gates (c, sh, in, log_f);
  for (ptrdiff_t i = 0; i < sh->t; i++) {
    real *restrict y = out + i * d;
    scores (c, sh, in, log_f, i, w);
    saved[2 * i] = sl_row_max (i + 1, w);
    sl_row_exp (i + 1, w, saved[2 * i], w);
    saved[2 * i + 1] = sl_row_sum (i + 1, w);
    memset (y, 0, (size_t)d * sizeof *y);
    for (ptrdiff_t j = 0; j <= i; j++)
      for (ptrdiff_t k = 0; k < d; k++) y[k] += w[j] * in[V][j * d + k];
    for (ptrdiff_t k = 0; k < d; k++) y[k] /= saved[2 * i + 1];
  }
}

/* forward: o_i = sum_j a_ij v_j, a_i = softmax (s_i),
**          s_ij = scale q_i.k_j + sum_{j < k <= i} log f_k
** ds_ij = a_ij (dout_i.v_j - dout_i.o_i), dv_j = sum_i a_ij dout_i,
** dq_i = scale sum_j ds_ij k_j, dk_j = scale sum_i ds_ij q_i,
** dlog f_k = sum_{i >= k, j < k} ds_ij, dlogit_k = dlog f_k (1 - f_k) */
static void backward (const sl_call *c, const sl_shape *sh,
                      const real *const *in, const real *out, const real *saved,
                      const real *dout, real *const *din, real *dparam) {
  const config *o = c->config;
  const ptrdiff_t d = sh->d_head, t = sh->t;
  const size_t bytes = (size_t)(t * d) * sizeof (real);
  const real scale = (real)c->scale, start = initial_logit (c);
  real *log_f = c->scratch, *w = log_f + t, *ds = w + t, *dlog_f = ds + t;
  log_gates (c, sh, in, log_f);
  for (int x = Q; x <= V; x++) memset (din[x], 0, bytes);
  memset (dlog_f, 0, (size_t)t * sizeof *dlog_f);
  for (ptrdiff_t i = 0; i < t; i++) {
    const real *restrict dy = dout + i * d, *restrict q = in[Q] + i * d;
    const real mean = sl_row_dot (d, dy, out + i * d);
    real *restrict dq = din[Q] + i * d, before = 0;
    scores (c, sh, in, log_f, i, w);
    sl_row_exp (i + 1, w, saved[2 * i], w);
    divide (i + 1, saved[2 * i + 1], w);
    for (ptrdiff_t j = 0; j <= i; j++) {
      const real *restrict k = in[K] + j * d;
      real *restrict dk = din[K] + j * d, *restrict dv = din[V] + j * d;
      ds[j] = w[j] * (sl_row_dot (d, dy, in[V] + j * d) - mean);
      for (ptrdiff_t a = 0; a < d; a++) {
        dq[a] += scale * ds[j] * k[a];
        dk[a] += scale * ds[j] * q[a];
        dv[a] += w[j] * dy[a];
      }
    }
    for (ptrdiff_t j = 0; j <= i; j++) {
      dlog_f[j] += before;
      before += ds[j];
    }
  }
  for (int k = 0; k < t && o->gate != FIXED; k++) {
    const real dz = dlog_f[k] * sl_sigmoidv (-gate_input (c, in, start, k));
    if (o->gate == FULL) din[F][k] = dz;
    dparam[0] += dz;
  }
}

/* w_ij = a_ij, (t, t) */
static void weights (const sl_call *c, const sl_shape *sh,
                     const real *const *in, real *w) {
  const ptrdiff_t t = sh->t;
  log_gates (c, sh, in, c->scratch);
  memset (w, 0, (size_t)(t * t) * sizeof *w);
  for (ptrdiff_t i = 0; i < t; i++) {
    real *row = w + i * t;
    scores (c, sh, in, c->scratch, i, row);
    sl_row_exp (i + 1, row, sl_row_max (i + 1, row), row);
    divide (i + 1, sl_row_sum (i + 1, row), row);
  }
}

static const sl_mixer_kernel mixer = { plan, forward, backward, weights };

SL_PLUGIN = { SL_ABI,
              "forgetting",
              "1.0",
              "softmax with a learned decay of older keys (FoX)",
              .properties = SL_CAUSAL_ONLY | SL_NONNEGATIVE | SL_SUMS_TO_ONE,
              .config_size = sizeof (config),
              .options = options,
              .params = params,
              .inputs = inputs,
              .validate = validate,
              .mixer = &mixer,
              .adapt = adapt };
