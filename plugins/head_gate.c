/* head_gate.c - y = o * sigmoid (b_h [+ w_h . x]): one gate a head (Bondarenko,
** Nagel, Blankevoort 2023, arXiv 2306.12929, section 4.2; code
** Qualcomm-AI-research/outlier-free-transformers).
**
** conditional: the gate also reads the layer input, through a linear map of all
** of it (their "all-heads-linear" gate); else it is one learned number a head.
** b starts at logit (probability), 0.25 as in their BERT and OPT runs; w starts
** as the model's other matrices.
**
** Sinks: made to let a head do nothing without a sink; reported to reduce
** outliers. */
#include <math.h>
#include <sinklab/reduce.h>
#include <sinklab/vmath.h>

typedef struct config {
  double probability;
  int conditional;
} config;

static const sl_option options[] = {
  { .name = "conditional",
    .doc = "the gate reads the layer input",
    .type = SL_BOOL,
    .offset = offsetof (config, conditional),
    .def = 1 },
  { .name = "probability",
    .doc = "how far the gate is open at the start (where w x is 0)",
    .type = SL_REAL,
    .offset = offsetof (config, probability),
    .def = 0.25,
    .min = 1e-6,
    .max = 1 - 1e-6 },
  { 0 }
};

static const sl_param params[] = { { .name = "bias",
                                     .doc = "logit of the gate where w x is 0",
                                     .width = { 0, 1 },
                                     .init = SL_CONST,
                                     .scale = 0 },
                                   { 0 } };

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

/* d_o = dy g; db = dz = (dy . o) g (1 - g) */
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
