/* linear.c - linear attention: a dot product of features instead of exp (q.k).
**
**   a_ij = scale f(q_i).f(k_j), j <= i;  o_i = sum_j a_ij v_j / m_i
**
** Mixer: inputs q, k, v (t, d) -> output o (t, d), d = d_head. The feature f
** and the normaliser m are, by the option 'feature':
**   elu1      f(x) = elu (x) + 1 elementwise, m_i = sum_j a_ij + eps
**             (Katharopoulos et al. 2020, arXiv 2006.16236, equations 7 to 12;
**             eps 1e-6 as in their code)
**   identity  f(x) = x, m_i = max (|sum_j a_ij|, 1): the "linear kernel" of Gu
**             et al. 2025 (arXiv 2410.10781, code sail-sg/Attention-Sink)
**   mlp       f(x) = W2 relu (W1 x), their "MLP kernel", with the same m_i; W1 is
**             (hidden, d), W2 (d, hidden), the same for queries and keys. In the
**             source all heads of a layer share one pair and hidden is d; here
**             each head has its own pair.
** Without 'normalise' m_i is 1. Running sums over j make the time linear in t.
**
** Sinks: with the division elu1 is reported to sink (53.65 %), identity without
** it not at all (Gu et al. 2025). */
#include <sinklab/reduce.h>
#include <sinklab/vmath.h>
#include <string.h>

typedef struct config {
  double eps, init;
  int feature, normalise, hidden;
} config;

enum { ELU1, IDENTITY, MLP };
static const char *const features[] = { "elu1", "identity", "mlp", NULL };

static const sl_option options[] = {
  SL_OPTION_CHOICE (config, feature, ELU1, features,
                    "of queries and keys: elu (x) + 1, x, or a learned map "
                    "of x"),
  SL_OPTION_BOOL (config, normalise, 1,
                  "divide by the sum of a row (identity, mlp: by at least 1)"),
  SL_OPTION_REAL (config, eps, 1e-6, 0, 1, "added to the sum of a row of elu1"),
  SL_OPTION_INT (config, hidden, 16, 1, 256,
                 "rows of W1 of mlp; as published the width of a head"),
  SL_OPTION_REAL (config, init, 0.02, 1e-6, 10,
                  "initial standard deviation of W1 and W2 of mlp"),
  { 0 }
};

enum { Q, K, V };
static const sl_input inputs[] = {
  SL_INPUT ("q", 1, 0), SL_INPUT ("k", 1, 0), SL_INPUT ("v", 1, 0), { 0 }
};

enum { W1, W2 };
static const sl_param params[] = {
  { "w1", "of mlp: (hidden, d_head)", { 1, 0 }, SL_NORMAL, 0 },
  { "w2", "of mlp: (d_head, hidden)", { 1, 0 }, SL_NORMAL, 0 },
  { 0 }
};

static void adapt (const void *options_in_effect, sl_param *param,
                   sl_input *input) {
  const config *o = options_in_effect;
  (void)input;
  for (int i = W1; i <= W2; i++) {
    param[i].width = (sl_width){ o->feature == MLP ? o->hidden : 0, 0 };
    param[i].scale = o->init;
  }
}

/* In scratch: the running sums S (d, d) = sum_j f(k_j) v_j^T and z (d) =
** sum_j f(k_j); features of one query and one key, (d); relu (W1 x) and its
** gradient, (hidden). */
typedef struct state {
  real *sum, *total, *fq, *fk, *hidden;
} state;

static state state_of (const sl_call *c, int d) {
  const ptrdiff_t n = d;
  state s = { .sum = c->scratch };
  s.total = s.sum + n * n;
  s.fq = s.total + n;
  s.fk = s.fq + n;
  s.hidden = s.fk + n;
  memset (s.sum, 0, (size_t)(n * n + n) * sizeof *s.sum);
  return s;
}

static int plan (const void *options_in_effect, const sl_shape *sh, sl_plan *p,
                 char *err, size_t cap) {
  const config *o = options_in_effect;
  const size_t d = (size_t)sh->d_head;
  (void)err, (void)cap;
  p->scratch = d * d + 3 * d + 2 * (size_t)o->hidden;
  p->saved = (size_t)sh->t; /* sum_j a_ij */
  return 0;
}

/* h (hidden) = relu (W1 x), x (d) */
static void hidden_of (const sl_call *c, int d, const real *x, real *h) {
  const config *o = c->config;
  for (ptrdiff_t i = 0; i < o->hidden; i++) {
    const real y = sl_row_dot (d, c->param + i * d, x);
    h[i] = y > 0 ? y : 0;
  }
}

/* f (d) = feature of x (d) */
static void feature (const sl_call *c, const state *s, int d,
                     const real *restrict x, real *restrict f) {
  const config *o = c->config;
  const ptrdiff_t n = o->hidden;
  if (o->feature == IDENTITY)
    memcpy (f, x, (size_t)d * sizeof *f);
  else if (o->feature == ELU1)
    for (int i = 0; i < d; i++) f[i] = x[i] > 0 ? x[i] + 1 : sl_expv (x[i]);
  else {
    hidden_of (c, d, x, s->hidden);
    for (ptrdiff_t i = 0; i < d; i++)
      f[i] = sl_row_dot (n, c->param + n * d + i * n, s->hidden);
  }
}

/* forward: f = W2 h, h = relu (W1 x)
** dh = W2^T df where h > 0, dW2 += df h^T, dx = W1^T dh, dW1 += dh x^T
** df (d) is in dx and is replaced. */
static void mlp_backward (const sl_call *c, const state *s, int d,
                          const real *restrict x, real *restrict dx,
                          real *restrict dparam) {
  const config *o = c->config;
  const ptrdiff_t n = o->hidden;
  const real *w1 = c->param, *w2 = w1 + n * d;
  real *h = s->hidden, *dh = h + n;
  hidden_of (c, d, x, h);
  memset (dh, 0, (size_t)n * sizeof *dh);
  for (ptrdiff_t i = 0; i < d; i++)
    for (ptrdiff_t k = 0; k < n; k++) {
      dh[k] += h[k] > 0 ? w2[i * n + k] * dx[i] : 0;
      dparam[n * d + i * n + k] += dx[i] * h[k];
    }
  memset (dx, 0, (size_t)d * sizeof *dx);
  for (ptrdiff_t k = 0; k < n; k++)
    for (ptrdiff_t i = 0; i < d; i++) {
      dx[i] += w1[k * d + i] * dh[k];
      dparam[k * d + i] += dh[k] * x[i];
    }
}

/* forward: f = feature of x; df (d) is in dx and is replaced by dx. */
static void feature_backward (const sl_call *c, const state *s, int d,
                              const real *restrict x, real *restrict dx,
                              real *dparam) {
  const config *o = c->config;
  if (o->feature == MLP) mlp_backward (c, s, d, x, dx, dparam);
  if (o->feature == ELU1)
    for (int i = 0; i < d; i++) dx[i] *= x[i] > 0 ? 1 : sl_expv (x[i]);
}

/* m of a row with sum_j a_ij = a (1 for a row of elu1 that is all 0), and dm / da
** into *slope. */
static real normaliser (const config *o, real a, real *slope) {
  const real sum = a + (real)o->eps;
  if (o->normalise && o->feature != ELU1) return sl_abs_or_one (a, slope);
  *slope = o->normalise && sum != 0;
  return *slope != 0 ? sum : 1;
}

/* S += f(k) v^T, z += f(k) */
static void add_key (const state *s, int d, const real *restrict f,
                     const real *restrict v) {
  for (ptrdiff_t a = 0; a < d; a++) {
    real *restrict row = s->sum + a * d;
    for (int b = 0; b < d; b++) row[b] += f[a] * v[b];
    s->total[a] += f[a];
  }
}

static void forward (const sl_call *c, const sl_shape *sh,
                     const real *const *in, real *out, real *saved) {
  const config *o = c->config;
  const int d = sh->d_head;
  const real scale = (real)c->scale;
  const state s = state_of (c, d);
  for (ptrdiff_t i = 0; i < sh->t; i++) {
    real *restrict y = out + i * d;
    feature (c, &s, d, in[K] + i * d, s.fk);
    feature (c, &s, d, in[Q] + i * d, s.fq);
    add_key (&s, d, s.fk, in[V] + i * d);
    saved[i] = scale * sl_row_dot (d, s.fq, s.total);
    real slope;
    const real m = scale / normaliser (o, saved[i], &slope);
    memset (y, 0, (size_t)d * sizeof *y);
    for (ptrdiff_t a = 0; a < d; a++)
      for (int b = 0; b < d; b++) y[b] += s.fq[a] * s.sum[a * d + b];
    for (int b = 0; b < d; b++) y[b] *= m;
  }
}

/* forward: o_i = scale S_i^T f(q_i) / m_i, S_i = sum_{j <= i} f(k_j) v_j^T,
**          m_i = m (scale z_i . f(q_i)), z_i = sum_{j <= i} f(k_j)
** With u_i = dout_i / m_i and e_i = -(dout_i . o_i) m'_i / m_i:
** df(q_i) = scale (S_i u_i + e_i z_i), from the first token to the last;
** df(k_j) = scale (R_j v_j + r_j), dv_j = scale R_j^T f(k_j) with
** R_j = sum_{i >= j} f(q_i) u_i^T and r_j = sum_{i >= j} e_i f(q_i), from the
** last token to the first. */
static void backward (const sl_call *c, const sl_shape *sh,
                      const real *const *in, const real *out, const real *saved,
                      const real *dout, real *const *din, real *dparam) {
  const config *o = c->config;
  const int d = sh->d_head;
  const real scale = (real)c->scale;
  state s = state_of (c, d);
  for (ptrdiff_t i = 0; i < sh->t; i++) {
    real slope;
    const real m = 1 / normaliser (o, saved[i], &slope);
    const real e = -sl_row_dot (d, dout + i * d, out + i * d) * slope * m;
    real *dq = din[Q] + i * d;
    feature (c, &s, d, in[K] + i * d, s.fk);
    add_key (&s, d, s.fk, in[V] + i * d);
    for (ptrdiff_t a = 0; a < d; a++)
      dq[a] = scale * (m * sl_row_dot (d, s.sum + a * d, dout + i * d) +
                       e * s.total[a]);
    feature_backward (c, &s, d, in[Q] + i * d, dq, dparam);
  }
  s = state_of (c, d);
  for (ptrdiff_t i = sh->t - 1; i >= 0; i--) {
    real slope;
    const real m = 1 / normaliser (o, saved[i], &slope);
    const real e = -sl_row_dot (d, dout + i * d, out + i * d) * slope * m;
    const real *v = in[V] + i * d;
    real *dk = din[K] + i * d, *dv = din[V] + i * d;
    feature (c, &s, d, in[Q] + i * d, s.fq);
    feature (c, &s, d, in[K] + i * d, s.fk);
    for (ptrdiff_t a = 0; a < d; a++) {
      for (int b = 0; b < d; b++)
        s.sum[a * d + b] += m * s.fq[a] * dout[i * d + b];
      s.total[a] += e * s.fq[a];
      dk[a] = scale * (sl_row_dot (d, s.sum + a * d, v) + s.total[a]);
    }
    memset (dv, 0, (size_t)d * sizeof *dv);
    for (ptrdiff_t a = 0; a < d; a++)
      for (int b = 0; b < d; b++) dv[b] += s.fk[a] * s.sum[a * d + b];
    for (int b = 0; b < d; b++) dv[b] *= scale;
    feature_backward (c, &s, d, in[K] + i * d, dk, dparam);
  }
}

/* w_ij = a_ij / m_i, (t, t) */
static void weights (const sl_call *c, const sl_shape *sh,
                     const real *const *in, real *w) {
  const config *o = c->config;
  const ptrdiff_t d = sh->d_head, t = sh->t;
  const state s = state_of (c, sh->d_head);
  memset (w, 0, (size_t)(t * t) * sizeof *w);
  for (ptrdiff_t i = 0; i < t; i++) {
    real *row = w + i * t, sum = 0, slope;
    feature (c, &s, sh->d_head, in[Q] + i * d, s.fq);
    for (ptrdiff_t j = 0; j <= i; j++) {
      feature (c, &s, sh->d_head, in[K] + j * d, s.fk);
      row[j] = (real)c->scale * sl_row_dot (sh->d_head, s.fq, s.fk);
      sum += row[j];
    }
    const real m = normaliser (o, sum, &slope);
    for (ptrdiff_t j = 0; j <= i; j++) row[j] /= m;
  }
}

static const sl_mixer_kernel mixer = { plan, forward, backward, weights };

SL_PLUGIN = { SL_ABI,
              "linear",
              "1.0",
              "linear attention: features multiplied, no exponential of scores",
              .properties = SL_CAUSAL_ONLY | SL_KINKED,
              .config_size = sizeof (config),
              .options = options,
              .params = params,
              .inputs = inputs,
              .mixer = &mixer,
              .adapt = adapt };
