/* mixer_shape.c - a mixer that loads: the input itself. For tests of the loader. */
#include <sinklab/plugin.h>
#include <string.h>

static const sl_input inputs[] = { { .name = "x", .width = { 1, 0 } }, { 0 } };

static int plan (const void *config, const sl_shape *sh, sl_plan *p, char *err,
                 size_t cap) {
  (void)config, (void)err, (void)cap;
  p->saved = p->scratch = 0;
  p->d_out = sh->d_head;
  return 0;
}

static void forward (const sl_call *c, const sl_shape *sh,
                     const real *const *in, real *out, real *saved) {
  (void)c, (void)saved;
  memcpy (out, in[0], (size_t)sh->t * (size_t)sh->d_out * sizeof *out);
}

static void backward (const sl_call *c, const sl_shape *sh,
                      const real *const *in, const real *out, const real *saved,
                      const real *dout, real *const *din, real *dparam) {
  (void)c, (void)in, (void)out, (void)saved, (void)dparam;
  memcpy (din[0], dout, (size_t)sh->t * (size_t)sh->d_out * sizeof *dout);
}

static const sl_mixer_kernel mixer = { plan, forward, backward, NULL };

SL_PLUGIN = { SL_ABI,           "mixer_shape",  "1.0", "the input itself",
              .inputs = inputs, .mixer = &mixer };
