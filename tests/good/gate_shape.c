/* gate_shape.c - a gate that loads: y = o * z. For tests of the loader. */
#include <sinklab/plugin.h>

static const sl_input inputs[] = { { .name = "z", .width = { 1, 0 } }, { 0 } };

static void forward (const sl_call *c, int n, const real *o, const real *z,
                     real *y) {
  (void)c;
  for (int i = 0; i < n; i++) y[i] = o[i] * z[i];
}

static void backward (const sl_call *c, int n, const real *o, const real *z,
                      const real *dy, real *d_o, real *dz, real *dparam) {
  (void)c, (void)dparam;
  for (int i = 0; i < n; i++) {
    d_o[i] = dy[i] * z[i];
    dz[i] = dy[i] * o[i];
  }
}

static const sl_gate_kernel gate = { forward, backward };

SL_PLUGIN = { SL_ABI,           "gate_shape", "1.0", "output times input",
              .inputs = inputs, .gate = &gate };
