/* head_gate.c - y = o sigmoid (b + w . x): one gate per head (Bondarenko et al.
** 2023, arXiv 2306.12929, section 4.2; code
** Qualcomm-AI-research/outlier-free-transformers).
**
** Gate: head output o (n), input z = w . x (1), parameter b (1) -> y (n).
** 'conditional': the gate depends on the layer input x (their
** "all-heads-linear" gate); else it is sigmoid (b), one learned number per
** head. b is initially logit (probability), 0.25 as in their BERT and OPT runs;
** w is initialised as the model's other matrices.
**
** Sinks: designed to let a head be idle without a sink; reported to reduce
** outliers. */
#include <math.h>
#include <sinklab/reduce.h>
#include <sinklab/vmath.h>

typedef struct config {
  double probability;
  int conditional;
} config;

static const sl_option options[] = {
  SL_OPTION_BOOL (config, conditional, 1,
                  "the gate depends on the layer input"),
  SL_OPTION_REAL (config, probability, 0.25, 1e-6, 1 - 1e-6,
                  "initial value of the gate (where w x is 0)"),
  { 0 }
};

static const sl_param params[] = {
  { "bias", "logit of the gate where w x is 0", { 0, 1 }, SL_CONST, 0 }, { 0 }
};

static const sl_input inputs[] = { { .name = "gate", .width = { 0, 1 } },
                                   { 0 } };

static void adapt (const void *options_in_effect, sl_param *param,
                   sl_input *input) {
  const config *o = options_in_effect;
  param->scale = log (o->probability / (1 - o->probability));
  if (!o->conditional) input->width = (sl_width){ 0, 0 };
}

static real logit (const sl_call *c, const real *z) {
  return z ? c->param[0] + z[0] : c->param[0];
}

static void forward (const sl_call *c, int n, const real *restrict o,
                     const real *z, real *restrict y) {
  const real g = sl_sigmoidv (logit (c, z));
  for (int i = 0; i < n; i++) y[i] = o[i] * g;
}

/* forward: y = o g, g = sigmoid (b + z)
** d_o = dy g, db = dz = (dy . o) g (1 - g) */
static void backward (const sl_call *c, int n, const real *restrict o,
                      const real *z, const real *restrict dy,
                      real *restrict d_o, real *dz, real *dparam) {
  const real l = logit (c, z), g = sl_sigmoidv (l);
  const real dl = sl_row_dot (n, dy, o) * g * sl_sigmoidv (-l);
  for (int i = 0; i < n; i++) d_o[i] = dy[i] * g;
  dparam[0] += dl;
  if (dz) dz[0] = dl;
}

static const sl_gate_kernel gate = { forward, backward };

SL_PLUGIN = { SL_ABI,
              "head_gate",
              "1.0",
              "head output times one learned gate a head (Qualcomm)",
              .config_size = sizeof (config),
              .options = options,
              .params = params,
              .inputs = inputs,
              .gate = &gate,
              .adapt = adapt };
