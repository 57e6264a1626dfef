/* affine.c - a row plugin with an option of every type and learned parameters:
** w_i = gain tanh (s_i + shift) + c_{i mod d_head} / n, times 'factor'.
** For tests: smooth, and each parameter has a different effect. */
#include <math.h>
#include <sinklab/plugin.h>
#include <stdio.h>

typedef struct config {
  int count, flag, kind;
  double factor;
} config;

static const char *const kinds[] = { "plain", "negated", NULL };

static const sl_option options[] = {
  SL_OPTION_INT (config, count, 3, -2, 7, "a whole number"),
  SL_OPTION_REAL (config, factor, 1, 0.25, 4, "times this"),
  SL_OPTION_BOOL (config, flag, 1, "yes or no"),
  SL_OPTION_CHOICE (config, kind, 0, kinds, "one of two"),
  { 0 }
};

static const sl_param params[] = {
  { "gain", "times this", { 0, 1 }, SL_CONST, 1 },
  { "shift", "added to the scores", { 0, 1 }, SL_DEFAULT, 0 },
  { "c", "added to the weights", { 1, 0 }, SL_NORMAL, 0.5 },
  { 0 }
};

static int validate (const void *options_in_effect, char *err, size_t cap) {
  const config *o = options_in_effect;
  if (!o->flag && o->count < 0) {
    snprintf (err, cap, "count is %d; without flag it must not be negative",
              o->count);
    return -1;
  }
  return 0;
}

static double factor (const sl_call *c) {
  const config *o = c->config;
  return o->kind == 1 ? -o->factor : o->factor;
}

static void forward (const sl_call *c, int n, const real *s, real *w) {
  const double f = factor (c);
  for (int i = 0; i < n; i++)
    w[i] = (real)(f * (c->param[0] * tanh (s[i] + c->param[1]) +
                       c->param[2 + i % c->d_head] / (real)n));
}

static void backward (const sl_call *c, int n, const real *s, const real *w,
                      const real *dw, real *ds, real *dparam) {
  const double f = factor (c);
  (void)w;
  for (int i = 0; i < n; i++) {
    const double y = tanh (s[i] + c->param[1]);
    ds[i] = (real)(f * dw[i] * c->param[0] * (1 - y * y));
    dparam[0] += (real)(f * dw[i] * y);
    dparam[1] += ds[i];
    dparam[2 + i % c->d_head] += (real)(f * dw[i] / n);
  }
}

static const sl_row_kernel row = { forward, backward };

SL_PLUGIN = { SL_ABI,
              "affine",
              "1.2",
              "for tests: every type of option, three parameters",
              .config_size = sizeof (config),
              .options = options,
              .params = params,
              .validate = validate,
              .row = &row };
