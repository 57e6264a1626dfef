/* wrong_gate.c - gates that do one thing wrong each: y = o z. Built once per
** case with -DCASE_<case>. */
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
#ifdef CASE_gate_swapped
    dz[i] = dy[i] * z[i];
#else
    dz[i] = dy[i] * o[i];
#endif
  }
#ifdef CASE_gate_past_end
  dz[n] = 0;
#endif
}

static const sl_gate_kernel gate = { forward, backward };

#ifdef CASE_gate_declares_weights
#define PROPERTIES SL_NONNEGATIVE
#else
#define PROPERTIES 0
#endif

SL_PLUGIN = { SL_ABI,
              CASE_NAME,
              "1.0",
              "wrong on purpose",
              .properties = PROPERTIES,
              .inputs = inputs,
              .gate = &gate };
