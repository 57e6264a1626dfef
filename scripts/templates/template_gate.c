/* template_gate.c - y_i = o_i sigmoid (z_i + bias_i), bias learned.
**
** A gate plugin: from the output o of one head at one token (n numbers) and z = W x,
** which the host projects from the layer's input, to the output y. Compile it as it
** is, run 'make check', then change a little at a time:
**
**   1. inputs: the width of z. { 1, 0 } is one number for each of o, { 0, 1 } one
**      for the head.
**   2. params: vectors that are learned, one for each head. Drop them if you need
**      none.
**   3. forward: your formula. z and o may be huge.
**   4. backward: d_o and dz are overwritten, dparam is added to.
**   5. this comment: formula and source. */
#include <sinklab/vmath.h>

static const sl_input inputs[] = { { .name = "z", .width = { 1, 0 } }, { 0 } };

static const sl_param params[] = {
  { .name = "bias", .doc = "added to z", .width = { 1, 0 }, .init = SL_ZEROS },
  { 0 }
};

static void forward (const sl_call *c, int n, const real *restrict o,
                     const real *restrict z, real *restrict y) {
  for (int i = 0; i < n; i++) y[i] = o[i] * sl_sigmoidv (z[i] + c->param[i]);
}

/* With g = sigmoid (z + bias): d_o = dy g, dz = dbias = dy o g (1 - g). */
static void backward (const sl_call *c, int n, const real *restrict o,
                      const real *restrict z, const real *restrict dy,
                      real *restrict d_o, real *restrict dz,
                      real *restrict dparam) {
  for (int i = 0; i < n; i++) {
    const real g = sl_sigmoidv (z[i] + c->param[i]);
    d_o[i] = dy[i] * g;
    dz[i] = dy[i] * o[i] * g * (1 - g);
    dparam[i] += dz[i];
  }
}

static const sl_gate_kernel gate = { forward, backward };

SL_PLUGIN = { SL_ABI,
              "template_gate",
              "0.1",
              "a sigmoid gate with a learned bias",
              .params = params,
              .inputs = inputs,
              .gate = &gate };
