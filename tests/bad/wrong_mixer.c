/* wrong_mixer.c - mixers that do one thing wrong each: out_i is the mean of x_j
** over the keys that query i sees. Built once per case with -DCASE_<case>. */
#include <sinklab/plugin.h>
#include <string.h>

static const sl_input inputs[] = { { .name = "v", .width = { 1, 0 } }, { 0 } };

/* The keys of query i. */
static int first (const sl_shape *sh, int i) {
  return sh->lo[i];
}
static int last (const sl_shape *sh, int i) {
#if defined CASE_mixer_looks_ahead || defined CASE_mixer_not_causal_only
  return sh->hi[i] < sh->t ? sh->hi[i] + 1 : sh->hi[i];
#else
  return sh->hi[i];
#endif
}

static int plan (const void *config, const sl_shape *sh, sl_plan *p, char *err,
                 size_t cap) {
  (void)config, (void)cap, (void)err, (void)sh;
  p->saved = 0;
  p->scratch = (size_t)sh->t;
#ifdef CASE_mixer_plan_silent
  if (sh->t > 6) return -1;
#endif
  return 0;
}

static void forward (const sl_call *c, const sl_shape *sh,
                     const real *const *in, real *out, real *saved) {
  const size_t d = (size_t)sh->d_head;
  (void)saved;
#ifdef CASE_mixer_past_scratch
  c->scratch[sh->t] = 0;
#else
  (void)c;
#endif
  memset (out, 0, (size_t)sh->t * d * sizeof *out);
  for (int i = 0; i < sh->t; i++) {
    const real each = 1 / (real)(last (sh, i) - first (sh, i));
    for (int j = first (sh, i); j < last (sh, i); j++)
      for (size_t k = 0; k < d; k++)
        out[(size_t)i * d + k] += each * in[0][(size_t)j * d + k];
  }
}

static void backward (const sl_call *c, const sl_shape *sh,
                      const real *const *in, const real *out, const real *saved,
                      const real *dout, real *const *din, real *dparam) {
  const size_t d = (size_t)sh->d_head;
  (void)c, (void)in, (void)out, (void)saved, (void)dparam;
  memset (din[0], 0, (size_t)sh->t * d * sizeof *dout);
  for (int i = 0; i < sh->t; i++) {
    const real each = 1 / (real)(last (sh, i) - first (sh, i));
    for (int j = first (sh, i); j < last (sh, i); j++)
      for (size_t k = 0; k < d; k++)
        din[0][(size_t)j * d + k] += each * dout[(size_t)i * d + k];
  }
#ifdef CASE_mixer_backward
  din[0][0] += dout[0];
#endif
}

static void weights (const sl_call *c, const sl_shape *sh,
                     const real *const *in, real *w) {
  const size_t t = (size_t)sh->t;
  (void)c, (void)in;
#ifndef CASE_mixer_weights_unwritten
  memset (w, 0, t * t * sizeof *w);
#endif
  for (int i = 0; i < sh->t; i++)
    for (int j = first (sh, i); j < last (sh, i); j++)
      w[(size_t)i * t + (size_t)j] = 1 / (real)(last (sh, i) - first (sh, i));
#ifdef CASE_mixer_weights_hidden
  if (t == 9) w[8] = (real)0.5;
#endif
}

static const sl_mixer_kernel mixer = { plan, forward, backward, weights };

#ifdef CASE_mixer_shift_unseen
#define PROPERTIES SL_SHIFT_INVARIANT
#elif defined CASE_mixer_not_causal_only
#define PROPERTIES SL_CAUSAL_ONLY
#else
#define PROPERTIES SL_NONNEGATIVE
#endif

SL_PLUGIN = { SL_ABI,
              CASE_NAME,
              "1.0",
              "wrong on purpose",
              .properties = PROPERTIES,
              .inputs = inputs,
              .mixer = &mixer };
