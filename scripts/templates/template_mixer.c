/* template_mixer.c - out_i = sum_j a_ij v_j with a_ij = scale q_i.k_j / m_i,
** over the m_i visible keys of query i.
**
** Mixer: the whole mechanism of one head; inputs q, k, v (t, d), which the host
** projects from the layer input, -> out (t, d), d = d_head. Compile it as it
** is, run 'make check', then change one step at a time:
**
**   1. inputs: what is projected, and how wide per head; in[i] is (t, width).
**   2. plan: reals of scratch, and of 'saved', which forward writes for backward.
**   3. forward, and backward below it: every din is overwritten.
**   4. weights: the (t, t) weights for measurements; NULL if there are none.
**   5. this comment: formula, source, shapes. */
#include <sinklab/reduce.h>
#include <string.h>

enum { Q, K, V };
static const sl_input inputs[] = {
  SL_INPUT ("q", 1, 0), SL_INPUT ("k", 1, 0), SL_INPUT ("v", 1, 0), { 0 }
};

static int plan (const void *config, const sl_shape *sh, sl_plan *p, char *err,
                 size_t cap) {
  (void)config, (void)err, (void)cap;
  p->saved = p->scratch = 0;
  p->d_out = sh->d_head;
  return 0;
}

/* Row i of x (t, d). */
static const real *row (const real *x, int i, int d) {
  return x + (ptrdiff_t)i * d;
}

/* scale / m_i */
static real factor (const sl_call *c, const sl_shape *sh, int i) {
  return (real)c->scale / (real)(sh->hi[i] - sh->lo[i]);
}

/* a_ij */
static real weight (const sl_call *c, const sl_shape *sh, const real *const *in,
                    int i, int j) {
  const int d = sh->d_head;
  return factor (c, sh, i) *
         sl_row_dot (d, row (in[Q], i, d), row (in[K], j, d));
}

static void forward (const sl_call *c, const sl_shape *sh,
                     const real *const *in, real *out, real *saved) {
  const int d = sh->d_head;
  (void)saved;
  memset (out, 0, (size_t)sh->t * (size_t)d * sizeof *out);
  for (int i = 0; i < sh->t; i++)
    for (int j = sh->lo[i]; j < sh->hi[i]; j++) {
      const real a = weight (c, sh, in, i, j), *v = row (in[V], j, d);
      real *o = out + (ptrdiff_t)i * d;
      for (int k = 0; k < d; k++) o[k] += a * v[k];
    }
}

/* forward: out_i = sum_j a_ij v_j, a_ij = f_i q_i.k_j, f_i = scale / m_i
** da_ij = dout_i.v_j, dv_j += a_ij dout_i, dq_i += da_ij f_i k_j,
** dk_j += da_ij f_i q_i */
static void backward (const sl_call *c, const sl_shape *sh,
                      const real *const *in, const real *out, const real *saved,
                      const real *dout, real *const *din, real *dparam) {
  const int d = sh->d_head;
  (void)out, (void)saved, (void)dparam;
  for (int x = Q; x <= V; x++)
    memset (din[x], 0, (size_t)sh->t * (size_t)d * sizeof *din[x]);
  for (int i = 0; i < sh->t; i++)
    for (int j = sh->lo[i]; j < sh->hi[i]; j++) {
      const real *q = row (in[Q], i, d), *k = row (in[K], j, d);
      const real *v = row (in[V], j, d), *g = row (dout, i, d);
      const real a = weight (c, sh, in, i, j);
      const real da = factor (c, sh, i) * sl_row_dot (d, g, v);
      for (int x = 0; x < d; x++) {
        din[Q][(ptrdiff_t)i * d + x] += da * k[x];
        din[K][(ptrdiff_t)j * d + x] += da * q[x];
        din[V][(ptrdiff_t)j * d + x] += a * g[x];
      }
    }
}

/* w_ij = a_ij, (t, t) */
static void weights (const sl_call *c, const sl_shape *sh,
                     const real *const *in, real *w) {
  const size_t t = (size_t)sh->t;
  memset (w, 0, t * t * sizeof *w);
  for (int i = 0; i < sh->t; i++)
    for (int j = sh->lo[i]; j < sh->hi[i]; j++)
      w[(size_t)i * t + (size_t)j] = weight (c, sh, in, i, j);
}

static const sl_mixer_kernel mixer = { plan, forward, backward, weights };

SL_PLUGIN = {
  SL_ABI,           "template_mixer", "0.1", "the mean of q.k times v",
  .inputs = inputs, .mixer = &mixer
};
