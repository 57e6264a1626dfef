/* ssm.c - a selective state-space head, in the form of Mamba-2 (Dao and Gu
** 2024, arXiv 2405.21060, sections 2 and 5; code state-spaces/mamba,
** modules/mamba2.py).
**
**   dt_t = softplus (z_t + bias),
**   H_t  = exp (-A dt_t) H_{t-1} + dt_t B_t v_t^T,
**   o_t  = H_t^T C_t + skip v_t
**
** Mixer: inputs v (t, d), B, C (t, n), z (t, 1), parameters bias, a_log, skip
** (1) -> output o (t, d); state H (n, d), d = d_head, A > 0 one number per
** head. The same as attention with the weights (Ali et al. 2024, arXiv
** 2403.01590, with a scalar A)
**
**   a_ij = C_i.B_j dt_j exp (-A (dt_{j+1} + ... + dt_i)),
**   and skip on the diagonal
**
** As published: B and C are shared by all heads (one group), n is 2 d (128 for
** heads of 64), skip is initially 1, softplus (bias) log-uniform between dt_min
** and dt_max (within 5 % at the defaults: the bias is drawn uniformly). The
** published A is drawn from [a_min, a_max); here A = A_h exp (a_log), with A_h
** spaced evenly in that range. C.B has no scale. The published block's short
** convolution and gated norm belong to the model, not to this file.
**
** Sinks: a "state sink" on boundary tokens is reported for Mamba-2 (arXiv
** 2606.00930). */
#include <math.h>
#include <sinklab/reduce.h>
#include <sinklab/vmath.h>
#include <stdio.h>

typedef struct config {
  double dt_min, dt_max, a_min, a_max;
  int state, shared, skip;
} config;

static const sl_option options[] = {
  SL_OPTION_INT (config, state, 0, 0, 128, "rows of the state; 0: 2 d_head"),
  SL_OPTION_BOOL (config, shared, 1, "all heads have the same B and C"),
  SL_OPTION_BOOL (config, skip, 1,
                  "add the token's own value, times a number of the head"),
  SL_OPTION_REAL (config, dt_min, 1e-3, 1e-6, 100,
                  "shortest initial time step"),
  SL_OPTION_REAL (config, dt_max, 0.1, 1e-6, 100,
                  "longest initial time step, at least dt_min"),
  SL_OPTION_REAL (config, a_min, 1, 1e-6, 1e4,
                  "slowest initial decay, for a time step of 1"),
  SL_OPTION_REAL (config, a_max, 16, 1e-6, 1e4,
                  "fastest initial decay, at least a_min"),
  { 0 }
};

enum { V, B, C, DT };
static const sl_input inputs[] = { SL_INPUT ("v", 1, 0),
                                   SL_INPUT ("b", 2, 0),
                                   SL_INPUT ("c", 2, 0),
                                   SL_INPUT ("dt", 0, 1),
                                   { 0 } };

enum { BIAS, A_LOG, SKIP };
static const sl_param params[] = {
  { "dt_bias",
    "added to z, relative to a step of sqrt (dt_min dt_max)",
    { 0, 1 },
    SL_UNIFORM,
    0 },
  { "a_log", "log of A / the head's initial A", { 0, 1 }, SL_DEFAULT, 0 },
  { "skip", "factor of the token's own value", { 0, 1 }, SL_CONST, 1 },
  { 0 }
};

static int validate (const void *options_in_effect, char *err, size_t cap) {
  const config *o = options_in_effect;
  if (o->dt_min > o->dt_max)
    snprintf (err, cap, "dt_min is %g, which is more than dt_max, %g",
              o->dt_min, o->dt_max);
  else if (o->a_min > o->a_max)
    snprintf (err, cap, "a_min is %g, which is more than a_max, %g", o->a_min,
              o->a_max);
  else
    return 0;
  return -1;
}

static void adapt (const void *options_in_effect, sl_param *param,
                   sl_input *input) {
  const config *o = options_in_effect;
  if (o->state) input[B].width = input[C].width = (sl_width){ 0, o->state };
  input[B].shared = input[C].shared = o->shared;
  if (!o->skip) param[SKIP].width = (sl_width){ 0, 0 };
  param[BIAS].scale = log (o->dt_max / o->dt_min) / 2;
  if (o->dt_max <= o->dt_min) param[BIAS].init = SL_DEFAULT;
}

static ptrdiff_t state_of (const config *o, const sl_shape *sh) {
  return o->state ? o->state : 2 * (ptrdiff_t)sh->d_head;
}

/* Checkpoints of backward: it keeps the state before every step-th token, and
** recomputes the states before the tokens in between: about 2 sqrt (t)
** states. */
static ptrdiff_t step_of (const sl_shape *sh) {
  return (ptrdiff_t)ceil (sqrt ((double)sh->t));
}

static int plan (const void *o, const sl_shape *sh, sl_plan *p, char *err,
                 size_t cap) {
  const size_t step = (size_t)step_of (sh), d = (size_t)sh->d_head;
  (void)err, (void)cap;
  p->scratch =
      2 * (size_t)sh->t + (2 + 2 * step) * (size_t)state_of (o, sh) * d;
  p->saved = 0;
  return 0;
}

/* One head: its constants; in scratch dt (t) and exp (-A dt) (t). */
typedef struct head {
  ptrdiff_t n, d;
  int skips;
  real bias, a, skip;
  real *dt, *decay, *free; /* free: rest of scratch */
} head;

static head start_head (const sl_call *c, const sl_shape *sh, const real *z) {
  const config *o = c->config;
  const double middle = log (expm1 (sqrt (o->dt_min * o->dt_max)));
  const double a =
      o->a_min + (o->a_max - o->a_min) * (c->head + 0.5) / c->heads;
  head h = { .n = state_of (o, sh), .d = sh->d_head };
  h.bias = (real)middle + c->param[BIAS];
  h.a = (real)a * sl_expv (c->param[A_LOG]);
  h.skips = o->skip;
  h.skip = o->skip ? c->param[SKIP] : 0;
  h.dt = c->scratch;
  h.decay = h.dt + sh->t;
  h.free = h.decay + sh->t;
  for (int t = 0; t < sh->t; t++) {
    h.dt[t] = sl_softplusv (z[t] + h.bias);
    h.decay[t] = sl_expv (-h.a * h.dt[t]);
  }
  return h;
}

/* H = decay H + dt B v^T for token t; H (n, d) */
static void update (const head *h, ptrdiff_t t, const real *const *in,
                    real *state) {
  const real *restrict v = in[V] + t * h->d, *b = in[B] + t * h->n;
  for (ptrdiff_t a = 0; a < h->n; a++) {
    real *restrict row = state + a * h->d;
    const real x = h->dt[t] * b[a];
    for (ptrdiff_t k = 0; k < h->d; k++)
      row[k] = h->decay[t] * row[k] + x * v[k];
  }
}

static void forward (const sl_call *c, const sl_shape *sh,
                     const real *const *in, real *out, real *saved) {
  const head h = start_head (c, sh, in[DT]);
  (void)saved;
  memset (h.free, 0, (size_t)(h.n * h.d) * sizeof *h.free);
  for (ptrdiff_t t = 0; t < sh->t; t++) {
    const real *read = in[C] + t * h.n, *v = in[V] + t * h.d;
    real *restrict y = out + t * h.d;
    update (&h, t, in, h.free);
    for (ptrdiff_t k = 0; k < h.d; k++) y[k] = h.skip * v[k];
    for (ptrdiff_t a = 0; a < h.n; a++)
      for (ptrdiff_t k = 0; k < h.d; k++) y[k] += read[a] * h.free[a * h.d + k];
  }
}

/* forward, token t: H = decay H' + dt B v^T, o = H^T C + skip v, with H' the
** state 'before' the token, decay = exp (-A dt), dt = softplus (z) On entry
** grad (n, d) is the gradient of H from later tokens; on return that of H'.
** With D = grad + C dout^T: dC = H dout, dB = dt D v, dv = dt D^T B + skip
** dout, dskip = v . dout, ddt = B . D v - A decay sum (D * H'), dz = ddt
** sigmoid (z), dA_log = -A dt decay sum (D * H'), grad = decay D */
static void step_backward (const head *h, ptrdiff_t t, const real *const *in,
                           const real *before, const real *dout, real *grad,
                           real *const *din, real *dparam) {
  const ptrdiff_t n = h->n, d = h->d;
  const real *v = in[V] + t * d, *b = in[B] + t * n, *read = in[C] + t * n;
  const real *restrict dy = dout + t * d;
  const real dt = h->dt[t], decay = h->decay[t];
  const real own = sl_row_dot (d, v, dy), z = in[DT][t] + h->bias;
  real *restrict dv = din[V] + t * d, *db = din[B] + t * n;
  real *dread = din[C] + t * n, ddt = 0, decayed = 0;
  for (ptrdiff_t k = 0; k < d; k++) dv[k] = h->skip * dy[k];
  for (ptrdiff_t a = 0; a < n; a++) {
    real *restrict row = grad + a * d;
    const real *h_row = before + a * d;
    real dv_b;
    for (ptrdiff_t k = 0; k < d; k++) row[k] += read[a] * dy[k];
    dread[a] = decay * sl_row_dot (d, h_row, dy) + dt * b[a] * own;
    dv_b = sl_row_dot (d, row, v);
    db[a] = dt * dv_b;
    ddt += b[a] * dv_b;
    decayed += sl_row_dot (d, row, h_row);
    for (ptrdiff_t k = 0; k < d; k++) {
      dv[k] += dt * b[a] * row[k];
      row[k] *= decay;
    }
  }
  decayed *= decay * h->a; /* -d / d(dt_t) through exp (-A dt_t) */
  din[DT][t] = (ddt - decayed) * sl_sigmoidv (z);
  dparam[BIAS] += din[DT][t];
  dparam[A_LOG] -= decayed * dt;
  if (h->skips) dparam[SKIP] += own;
}

/* From the last token to the first, with checkpoints (see step_of). */
static void backward (const sl_call *c, const sl_shape *sh,
                      const real *const *in, const real *out, const real *saved,
                      const real *dout, real *const *din, real *dparam) {
  const head h = start_head (c, sh, in[DT]);
  const ptrdiff_t size = h.n * h.d, step = step_of (sh);
  const size_t bytes = (size_t)size * sizeof (real);
  real *state = h.free, *grad = state + size, *mark = grad + size;
  real *before = mark + step * size;
  (void)out, (void)saved;
  memset (state, 0, 2 * bytes); /* and grad */
  for (ptrdiff_t t = 0; t < sh->t; t++) {
    if (t % step == 0) memcpy (mark + t / step * size, state, bytes);
    update (&h, t, in, state);
  }
  for (ptrdiff_t first = (sh->t - 1) / step * step; first >= 0; first -= step) {
    const ptrdiff_t end = first + step < sh->t ? first + step : sh->t;
    memcpy (before, mark + first / step * size, bytes);
    for (ptrdiff_t t = first + 1; t < end; t++) {
      real *next = before + (t - first) * size;
      memcpy (next, next - size, bytes);
      update (&h, t - 1, in, next);
    }
    for (ptrdiff_t t = end - 1; t >= first; t--)
      step_backward (&h, t, in, before + (t - first) * size, dout, grad, din,
                     dparam);
  }
}

/* w_ij = a_ij, (t, t) */
static void weights (const sl_call *c, const sl_shape *sh,
                     const real *const *in, real *w) {
  const head h = start_head (c, sh, in[DT]);
  const ptrdiff_t t = sh->t;
  memset (w, 0, (size_t)(t * t) * sizeof *w);
  for (ptrdiff_t i = 0; i < t; i++) {
    real left = 1;
    for (ptrdiff_t j = i; j >= 0; j--) {
      w[i * t + j] =
          left * h.dt[j] * sl_row_dot (h.n, in[C] + i * h.n, in[B] + j * h.n);
      left *= h.decay[j];
    }
    w[i * t + i] += h.skip;
  }
}

static const sl_mixer_kernel mixer = { plan, forward, backward, weights };

SL_PLUGIN = {
  SL_ABI,
  "ssm",
  "1.0",
  "selective state-space head: a state that decays over time (Mamba-2)",
  .properties = SL_CAUSAL_ONLY,
  .config_size = sizeof (config),
  .options = options,
  .params = params,
  .inputs = inputs,
  .validate = validate,
  .mixer = &mixer,
  .adapt = adapt
};
