/* retention.c - products of queries and keys that fade with distance: the
** retention of RetNet (Sun et al. 2023, arXiv 2307.08621, equations 5 and 6).
**
**   a_ij = scale q_i.k_j gamma^(i-j), j <= i;  o_i = sum_j a_ij v_j
**
** gamma = 1 - 2^(-exponent - step h) in head h, from 0: as published 5 and 1;
** step 0 gives all heads one gamma. 'normalise' adds the paper's "score
** normalization": a_ij / sqrt (sum_{j<=i} gamma^(i-j)), then
** o_i / max (|sum_j a_ij|, 1). The paper has a norm over each head's output
** behind it, to which neither matters, and a swish gate; they belong to the
** model, not to this file. The sums over j are carried from token to token, so
** the time is linear in the length.
**
** Sinks: not studied. */
#include <math.h>
#include <sinklab/reduce.h>
#include <string.h>

typedef struct config {
  double exponent, step;
  int normalise;
} config;

static const sl_option options[] = {
  { .name = "exponent",
    .doc = "gamma of head 0 is 1 - 2^-exponent",
    .type = SL_REAL,
    .offset = offsetof (config, exponent),
    .def = 5,
    .min = 0,
    .max = 60 },
  { .name = "step",
    .doc = "added to the exponent from head to head",
    .type = SL_REAL,
    .offset = offsetof (config, step),
    .def = 1,
    .min = 0,
    .max = 60 },
  { .name = "normalise",
    .doc =
        "divide scores by sqrt (sum of decays), rows by their sum, 1 at least",
    .type = SL_BOOL,
    .offset = offsetof (config, normalise) },
  { 0 }
};

enum { Q, K, V };
static const sl_input inputs[] = { { .name = "q", .width = { 1, 0 } },
                                   { .name = "k", .width = { 1, 0 } },
                                   { .name = "v", .width = { 1, 0 } },
                                   { 0 } };

static int plan (const void *o, const sl_shape *sh, sl_plan *p, char *err,
                 size_t cap) {
  const size_t d = (size_t)sh->d_head;
  (void)o, (void)err, (void)cap;
  p->scratch = d * d + d;
  p->saved = 2 * (size_t)sh->t; /* factors, then sums */
  return 0;
}

static real decay_of (const sl_call *c) {
  const config *o = c->config;
  return (real)(1 - exp2 (-o->exponent - o->step * c->head));
}

/* What q.k of a row is multiplied with besides the decay. */
static real factor_of (const sl_call *c, real decays) {
  const config *o = c->config;
  return (real)(o->normalise ? c->scale / sqrt ((double)decays) : c->scale);
}

/* m of a row whose scores sum to a, and dm / da. */
static real divisor (const config *o, real a) {
  const real size = a < 0 ? -a : a;
  return o->normalise && size > 1 ? size : 1;
}

static real divisor_slope (const config *o, real a) {
  if (!o->normalise) return 0;
  return a > 1 ? 1 : a < -1 ? -1 : 0;
}

/* S = gamma S + factor x y^T and z = gamma z + e x: S is d x d, z behind it. */
static void carry (const sl_call *c, ptrdiff_t d, real gamma, real factor,
                   const real *restrict x, const real *restrict y, real e) {
  real *restrict z = c->scratch + d * d;
  for (ptrdiff_t a = 0; a < d; a++) {
    real *restrict row = c->scratch + a * d;
    for (ptrdiff_t b = 0; b < d; b++)
      row[b] = gamma * row[b] + factor * x[a] * y[b];
    z[a] = gamma * z[a] + e * x[a];
  }
}

static void start (const sl_call *c, ptrdiff_t d) {
  memset (c->scratch, 0, (size_t)(d * d + d) * sizeof *c->scratch);
}

/* y = factor S^T x */
static void recall (const sl_call *c, ptrdiff_t d, real factor,
                    const real *restrict x, real *restrict y) {
  memset (y, 0, (size_t)d * sizeof *y);
  for (ptrdiff_t a = 0; a < d; a++)
    for (ptrdiff_t b = 0; b < d; b++) y[b] += x[a] * c->scratch[a * d + b];
  for (ptrdiff_t b = 0; b < d; b++) y[b] *= factor;
}

static void forward (const sl_call *c, const sl_shape *sh,
                     const real *const *in, real *out, real *saved) {
  const config *o = c->config;
  const ptrdiff_t d = sh->d_head;
  const real gamma = decay_of (c);
  real *factor = saved, *sum = saved + sh->t, decays = 0;
  start (c, d);
  for (ptrdiff_t i = 0; i < sh->t; i++) {
    const real *q = in[Q] + i * d;
    decays = gamma * decays + 1;
    carry (c, d, gamma, 1, in[K] + i * d, in[V] + i * d, 1);
    factor[i] = factor_of (c, decays);
    sum[i] = factor[i] * sl_row_dot (d, q, c->scratch + d * d);
    recall (c, d, factor[i] / divisor (o, sum[i]), q, out + i * d);
  }
}

/* With m_i the divisor and r_i the factor of row i, u_i = r_i dout_i / m_i and
** e_i = -r_i (dout_i . o_i) m'_i / m_i:
**   dq_i = S_i u_i + e_i z_i                    carried forwards
**   dk_j = R_j v_j + x_j, dv_j = R_j^T k_j, where
**   R_j = sum_{i >= j} gamma^(i-j) q_i u_i^T and
**   x_j = sum_{i >= j} gamma^(i-j) e_i q_i     carried backwards */
static void backward (const sl_call *c, const sl_shape *sh,
                      const real *const *in, const real *out, const real *saved,
                      const real *dout, real *const *din, real *dparam) {
  const config *o = c->config;
  const ptrdiff_t d = sh->d_head;
  const real gamma = decay_of (c);
  const real *factor = saved, *sum = saved + sh->t, *z = c->scratch + d * d;
  (void)dparam;
  for (int turn = 0; turn < 2; turn++) {
    start (c, d);
    for (ptrdiff_t at = 0; at < sh->t; at++) {
      const ptrdiff_t i = turn == 0 ? at : sh->t - 1 - at;
      const real *dy = dout + i * d, *k = in[K] + i * d, *v = in[V] + i * d;
      const real m = factor[i] / divisor (o, sum[i]);
      const real e =
          -m * divisor_slope (o, sum[i]) * sl_row_dot (d, dy, out + i * d);
      if (turn == 0) {
        carry (c, d, gamma, 1, k, v, 1);
        for (ptrdiff_t a = 0; a < d; a++)
          din[Q][i * d + a] =
              m * sl_row_dot (d, c->scratch + a * d, dy) + e * z[a];
        continue;
      }
      carry (c, d, gamma, m, in[Q] + i * d, dy, e);
      for (ptrdiff_t a = 0; a < d; a++)
        din[K][i * d + a] = sl_row_dot (d, c->scratch + a * d, v) + z[a];
      recall (c, d, 1, k, din[V] + i * d);
    }
  }
}

/* a_ij / m_i */
static void weights (const sl_call *c, const sl_shape *sh,
                     const real *const *in, real *w) {
  const config *o = c->config;
  const ptrdiff_t d = sh->d_head, t = sh->t;
  const real gamma = decay_of (c);
  real decays = 0;
  memset (w, 0, (size_t)(t * t) * sizeof *w);
  for (ptrdiff_t i = 0; i < t; i++) {
    real *row = w + i * t, sum = 0, factor;
    decays = gamma * decays + 1;
    factor = factor_of (c, decays);
    for (ptrdiff_t j = i; j >= 0; j--) {
      row[j] = factor * sl_row_dot (d, in[Q] + i * d, in[K] + j * d);
      sum += row[j];
      factor *= gamma;
    }
    for (ptrdiff_t j = 0; j <= i; j++) row[j] /= divisor (o, sum);
  }
}

static const sl_mixer_kernel mixer = { plan, forward, backward, weights };

SL_PLUGIN = { SL_ABI,
              "retention",
              "1.0",
              "products of queries and keys that fade with distance (RetNet)",
              .flags = SL_CAUSAL_ONLY | SL_KINKED,
              .config_size = sizeof (config),
              .options = options,
              .inputs = inputs,
              .mixer = &mixer };
