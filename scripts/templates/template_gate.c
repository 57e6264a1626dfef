/* template_gate.c - y_i = o_i sigmoid (z_i + bias_i), bias learned.
**
** Gate: head output o (n), input z = W x (n), which the host projects from the
** layer input x, parameter bias (n) -> y (n), at one token. Compile it as it
** is, run 'make check', then change one step at a time:
**
**   1. inputs: the width of z. 1, 0 is one number for each number of o, 0, 1 one
**      for the head.
**   2. params: learned vectors, one per head. Drop them if you need none.
**   3. forward: your formula. z and o may be huge.
**   4. backward: d_o and dz are overwritten, dparam is added to.
**   5. this comment: formula, source, shapes. */
#include <sinklab/vmath.h>

static const sl_input inputs[] = { SL_INPUT ("z", 1, 0), { 0 } };

static const sl_param params[] = {
  { "bias", "added to z", { 1, 0 }, SL_DEFAULT, 0 }, { 0 }
};

static void forward (const sl_call *c, int n, const real *restrict o,
                     const real *restrict z, real *restrict y) {
  for (int i = 0; i < n; i++) y[i] = o[i] * sl_sigmoidv (z[i] + c->param[i]);
}

/* forward: y_i = o_i g_i, g_i = sigmoid (z_i + bias_i)
** d_o_i = dy_i g_i, dz_i = dbias_i = dy_i o_i g_i (1 - g_i) */
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
