/* update.c - sums of gradients, and the table of optimizers: options, factors,
** updates. */
#include "train/update.h"
#include <sinklab/plugin.h>
#include <string.h>
#include <tgmath.h>

/* Lanes of the sum of squares: fixed, so that the bits are. */
enum { LANES = 16 };

static double squares (size_t n, const void *gradient) {
  const real *restrict g = gradient;
  double lane[LANES] = { 0 }, sum = 0;
  size_t i = 0;
  for (; i + LANES <= n; i += LANES)
    for (int k = 0; k < LANES; k++)
      lane[k] += (double)g[i + (size_t)k] * (double)g[i + (size_t)k];
  for (; i < n; i++) lane[i % LANES] += (double)g[i] * (double)g[i];
  for (int k = 0; k < LANES; k++) sum += lane[k];
  return sum;
}

static void add (size_t n, const real *restrict x, real *restrict sum) {
  for (size_t i = 0; i < n; i++) sum[i] += x[i];
}

static double gather (size_t n, int slots, size_t stride, const void *slot,
                      double scale, void *out) {
  const real *x = slot;
  real *sum = out;
  const real factor = (real)scale;
  if (sum != x) memcpy (sum, x, n * sizeof *sum);
  for (int k = 1; k < slots; k++) add (n, x + (size_t)k * stride, sum);
  for (size_t i = 0; i < n; i++) sum[i] *= factor;
  return squares (n, sum);
}

/* Options of all rows, and of both Adams. */
#define CLIP_NORM \
  { "clip_norm", 0, 0, HUGE_VAL, 0, 0 }
#define WEIGHT_DECAY(def) \
  { "weight_decay", def, 0, HUGE_VAL, 0, 0 }
#define ADAM_OPTIONS(decay)                                                 \
  {                                                                         \
    { "beta1", 0.9, 0, 1, 0, 0 }, { "beta2", 0.999, 0, 1, 0, 0 },           \
        { "eps", 1e-8, 0, HUGE_VAL, 1, 0 }, WEIGHT_DECAY (decay), CLIP_NORM \
  }
enum { SGD_MOMENTUM, SGD_NESTEROV, SGD_DECAY };
enum { ADAM_BETA1, ADAM_BETA2, ADAM_EPS, ADAM_DECAY };

static int sgd_states (const double *o) {
  return o[SGD_MOMENTUM] > 0;
}

static const char *sgd_refuse (const double *o) {
  return o[SGD_NESTEROV] != 0 && o[SGD_MOMENTUM] == 0
             ? "nesterov needs a momentum above 0"
             : NULL;
}

/* d = scale g + decay p;  b = momentum b + d;
** p -= lr (nesterov ? d + momentum b : b), which is p -= lr (from_d d +
** from_b b) */
enum { LR, DECAY, MOMENTUM, FROM_D, FROM_B };
static void sgd_factors (const double *o, double lr, long step, double *f) {
  const int nesterov = o[SGD_NESTEROV] != 0;
  (void)step;
  f[LR] = lr;
  f[DECAY] = o[SGD_DECAY];
  f[MOMENTUM] = o[SGD_MOMENTUM];
  f[FROM_D] = nesterov ? 1 : 0;
  f[FROM_B] = nesterov ? o[SGD_MOMENTUM] : 1;
}

static void sgd (size_t n, double gradient_scale, const double *f,
                 void *parameters, const void *gradient, void *const *state) {
  real *restrict p = parameters;
  const real *restrict g = gradient;
  real *restrict b = state[0];
  const real scale = (real)gradient_scale, decay = (real)f[DECAY];
  const real lr = (real)f[LR], momentum = (real)f[MOMENTUM];
  const real from_d = (real)f[FROM_D], from_b = (real)f[FROM_B];
  if (b == NULL) {
    for (size_t i = 0; i < n; i++) p[i] -= lr * (scale * g[i] + decay * p[i]);
    return;
  }
  for (size_t i = 0; i < n; i++) {
    real d = scale * g[i] + decay * p[i];
    b[i] = momentum * b[i] + d;
    p[i] -= lr * (from_d * d + from_b * b[i]);
  }
}

/* Kingma and Ba 2015; AdamW: Loshchilov and Hutter 2019.
** d = scale g + decay p;  m = b1 m + (1 - b1) d;  v = b2 v + (1 - b2) d^2;
** p = keep p - lr / (1 - b1^t) m / (sqrt (v) / sqrt (1 - b2^t) + eps)
** Adam: keep 1. AdamW: decay 0, keep 1 - lr weight_decay. */
enum { LR_HAT, B1, B2, ROOT, EPS, IN_GRADIENT, KEEP };
static void adam_factors (const double *o, double lr, long step, double *f) {
  f[LR_HAT] = lr / (1 - pow (o[ADAM_BETA1], (double)step));
  f[B1] = o[ADAM_BETA1];
  f[B2] = o[ADAM_BETA2];
  f[ROOT] = 1 / sqrt (1 - pow (o[ADAM_BETA2], (double)step));
  f[EPS] = o[ADAM_EPS];
  f[IN_GRADIENT] = o[ADAM_DECAY];
  f[KEEP] = 1;
}

static void adamw_factors (const double *o, double lr, long step, double *f) {
  adam_factors (o, lr, step, f);
  f[IN_GRADIENT] = 0;
  f[KEEP] = 1 - lr * o[ADAM_DECAY];
}

static int adam_states (const double *o) {
  (void)o;
  return 2;
}

static void adam (size_t n, double gradient_scale, const double *f,
                  void *parameters, const void *gradient, void *const *state) {
  real *restrict p = parameters;
  const real *restrict g = gradient;
  real *restrict m = state[0];
  real *restrict v = state[1];
  const real scale = (real)gradient_scale, lr = (real)f[LR_HAT];
  const real b1 = (real)f[B1], b2 = (real)f[B2], eps = (real)f[EPS];
  const real c1 = (real)(1 - f[B1]), c2 = (real)(1 - f[B2]);
  const real root = (real)f[ROOT];
  const real decay = (real)f[IN_GRADIENT], keep = (real)f[KEEP];
  for (size_t i = 0; i < n; i++) {
    real d = scale * g[i] + decay * p[i];
    m[i] = b1 * m[i] + c1 * d;
    v[i] = b2 * v[i] + c2 * d * d;
    p[i] = keep * p[i] - lr * m[i] / (sqrt (v[i]) * root + eps);
  }
}

static const sl_optimizer_kind optimizers[] = {
  { "sgd",
    { { "momentum", 0, 0, 1, 0, 0 },
      { "nesterov", 0, 0, 2, 0, 1 },
      WEIGHT_DECAY (0),
      CLIP_NORM },
    sgd_states,
    sgd_refuse,
    sgd_factors,
    sgd },
  { "adam", ADAM_OPTIONS (0), adam_states, NULL, adam_factors, adam },
  { "adamw", ADAM_OPTIONS (0.01), adam_states, NULL, adamw_factors, adam },
  { 0 }
};

extern const sl_update_kernels SL (sl_update);
const sl_update_kernels SL (sl_update) = { gather, optimizers };
