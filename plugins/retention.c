/* retention.c - products of queries and keys that decay with distance: the
** retention of RetNet (Sun et al. 2023, arXiv 2307.08621, equations 5 and 6).
**
**   a_ij = scale q_i.k_j gamma^(i-j), j <= i;  o_i = sum_j a_ij v_j
**
** Mixer: inputs q, k, v (t, d) -> output o (t, d), d = d_head. gamma = 1 -
** 2^(-exponent - step h) in head h, from 0: as published 5 and 1; step 0 gives
** all heads one gamma. 'normalise' adds the paper's "score normalization": a_ij
** / sqrt (sum_{j<=i} gamma^(i-j)), then o_i / max (|sum_j a_ij|, 1). The
** paper's norm of each head's output, which cancels both, and its swish gate
** belong to the model, not to this file. Running sums over j make the time
** linear in t.
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
  SL_OPTION_REAL (config, exponent, 5, 0, 60,
                  "gamma of head 0 is 1 - 2^-exponent"),
  SL_OPTION_REAL (config, step, 1, 0, 60,
                  "added to the exponent from head to head"),
  SL_OPTION_BOOL (config, normalise, 0,
                  "divide scores by sqrt (sum of decays), rows by their sum or "
                  "by 1"),
  { 0 }
};

enum { Q, K, V };
static const sl_input inputs[] = {
  SL_INPUT ("q", 1, 0), SL_INPUT ("k", 1, 0), SL_INPUT ("v", 1, 0), { 0 }
};

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

/* The factor of q.k in a row, without gamma^(i-j). */
static real factor_of (const sl_call *c, real decays) {
  const config *o = c->config;
  return (real)(o->normalise ? c->scale / sqrt ((double)decays) : c->scale);
}

/* m of a row whose scores sum to a, and dm / da into *slope. */
static real normaliser (const config *o, real a, real *slope) {
  *slope = 0;
  return o->normalise ? sl_abs_or_one (a, slope) : 1;
}

/* S = gamma S + factor x y^T, z = gamma z + e x; S (d, d) and z (d) in
** scratch. */
static void update (const sl_call *c, ptrdiff_t d, real gamma, real factor,
                    const real *restrict x, const real *restrict y, real e) {
  real *restrict z = c->scratch + d * d;
  for (ptrdiff_t a = 0; a < d; a++) {
    real *restrict row = c->scratch + a * d;
    for (ptrdiff_t b = 0; b < d; b++)
      row[b] = gamma * row[b] + factor * x[a] * y[b];
    z[a] = gamma * z[a] + e * x[a];
  }
}

static void clear (const sl_call *c, ptrdiff_t d) {
  memset (c->scratch, 0, (size_t)(d * d + d) * sizeof *c->scratch);
}

/* y = factor S^T x; x, y (d) */
static void read_state (const sl_call *c, ptrdiff_t d, real factor,
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
  real *factor = saved, *sum = saved + sh->t, decays = 0, slope;
  clear (c, d);
  for (ptrdiff_t i = 0; i < sh->t; i++) {
    const real *q = in[Q] + i * d;
    decays = gamma * decays + 1;
    update (c, d, gamma, 1, in[K] + i * d, in[V] + i * d, 1);
    factor[i] = factor_of (c, decays);
    sum[i] = factor[i] * sl_row_dot (d, q, c->scratch + d * d);
    read_state (c, d, factor[i] / normaliser (o, sum[i], &slope), q,
                out + i * d);
  }
}

/* forward: o_i = r_i S_i^T q_i / m_i, S_i = sum_{j <= i} gamma^(i-j) k_j v_j^T,
**          m_i = m (r_i z_i . q_i), z_i = sum_{j <= i} gamma^(i-j) k_j
** With r_i the factor of row i, u_i = r_i dout_i / m_i and e_i = -r_i (dout_i .
** o_i) m'_i / m_i: dq_i = S_i u_i + e_i z_i, from the first token to the last;
** dk_j = R_j v_j + x_j, dv_j = R_j^T k_j with
** R_j = sum_{i >= j} gamma^(i-j) q_i u_i^T and
** x_j = sum_{i >= j} gamma^(i-j) e_i q_i, from the last token to the first. */
static void backward (const sl_call *c, const sl_shape *sh,
                      const real *const *in, const real *out, const real *saved,
                      const real *dout, real *const *din, real *dparam) {
  const config *o = c->config;
  const ptrdiff_t d = sh->d_head;
  const real gamma = decay_of (c);
  const real *factor = saved, *sum = saved + sh->t, *z = c->scratch + d * d;
  (void)dparam;
  for (int pass = 0; pass < 2; pass++) {
    clear (c, d);
    for (ptrdiff_t at = 0; at < sh->t; at++) {
      const ptrdiff_t i = pass == 0 ? at : sh->t - 1 - at;
      const real *dy = dout + i * d, *k = in[K] + i * d, *v = in[V] + i * d;
      real slope;
      const real m = factor[i] / normaliser (o, sum[i], &slope);
      const real e = -m * slope * sl_row_dot (d, dy, out + i * d);
      if (pass == 0) {
        update (c, d, gamma, 1, k, v, 1);
        for (ptrdiff_t a = 0; a < d; a++)
          din[Q][i * d + a] =
              m * sl_row_dot (d, c->scratch + a * d, dy) + e * z[a];
        continue;
      }
      update (c, d, gamma, m, in[Q] + i * d, dy, e);
      for (ptrdiff_t a = 0; a < d; a++)
        din[K][i * d + a] = sl_row_dot (d, c->scratch + a * d, v) + z[a];
      read_state (c, d, 1, k, din[V] + i * d);
    }
  }
}

/* w_ij = a_ij / m_i, (t, t) */
static void weights (const sl_call *c, const sl_shape *sh,
                     const real *const *in, real *w) {
  const config *o = c->config;
  const ptrdiff_t d = sh->d_head, t = sh->t;
  const real gamma = decay_of (c);
  real decays = 0;
  memset (w, 0, (size_t)(t * t) * sizeof *w);
  for (ptrdiff_t i = 0; i < t; i++) {
    real *row = w + i * t, sum = 0, factor, slope;
    decays = gamma * decays + 1;
    factor = factor_of (c, decays);
    for (ptrdiff_t j = i; j >= 0; j--) {
      row[j] = factor * sl_row_dot (d, in[Q] + i * d, in[K] + j * d);
      sum += row[j];
      factor *= gamma;
    }
    const real m = normaliser (o, sum, &slope);
    for (ptrdiff_t j = 0; j <= i; j++) row[j] /= m;
  }
}

static const sl_mixer_kernel mixer = { plan, forward, backward, weights };

SL_PLUGIN = { SL_ABI,
              "retention",
              "1.0",
              "products of queries and keys that decay with distance (RetNet)",
              .properties = SL_CAUSAL_ONLY | SL_KINKED,
              .config_size = sizeof (config),
              .options = options,
              .inputs = inputs,
              .mixer = &mixer };
