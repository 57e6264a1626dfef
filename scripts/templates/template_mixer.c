/* template_mixer.c - out_i = sum_j a_ij v_j with a_ij = scale q_i.k_j / m_i, over the
** m_i keys that query i sees.
**
** A mixer plugin: the whole mechanism of one head, from inputs that the host projects
** to the head's output. Compile it as it is, run 'make check', then change a little
** at a time:
**
**   1. inputs: what is projected, how wide for each head; in[i] has a row per token.
**   2. plan: how many reals of scratch, and of 'saved', which forward writes and
**      backward reads.
**   3. forward, and backward below it: every din is overwritten.
**   4. weights: the map for the analysis of sinks; NULL if there is none.
**   5. this comment: formula and source. */
#include <sinklab/reduce.h>
#include <string.h>

enum { Q, K, V };
static const sl_input inputs[] = { { .name = "q", .width = { 1, 0 } },
                                   { .name = "k", .width = { 1, 0 } },
                                   { .name = "v", .width = { 1, 0 } },
                                   { 0 } };

static int plan (const void *config, const sl_shape *sh, sl_plan *p, char *err,
                 size_t cap) {
  (void)config, (void)err, (void)cap;
  p->saved = p->scratch = 0;
  p->d_out = sh->d_head;
  return 0;
}

/* Row i of a matrix with d numbers in a row. */
static const real *row (const real *x, int i, int d) {
  return x + (ptrdiff_t)i * d;
}

/* scale / m_i */
static real factor (const sl_call *c, const sl_shape *sh, int i) {
  return (real)c->scale / (real)(sh->hi[i] - sh->lo[i]);
}

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

/* With da_ij = dout_i.v_j and f_i = scale / m_i: dv_j += a_ij dout_i,
** dq_i += da_ij f_i k_j, dk_j += da_ij f_i q_i. */
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
