/* update.c - sums and updates of parameters, element by element. */
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

/* d = scale g + decay p;  b = momentum b + d;
** p -= lr (nesterov ? d + momentum b : b) */
static void sgd (size_t n, const sl_factors *f, int nesterov, void *parameters,
                 const void *gradient, void *momentum) {
  real *restrict p = parameters;
  const real *restrict g = gradient;
  real *restrict b = momentum;
  const real scale = (real)f->scale, decay = (real)f->decay, lr = (real)f->lr;
  const real mu = (real)f->momentum;
  /* p -= lr (from_d d + from_b b) says both rules without a branch inside */
  const real from_d = nesterov ? 1 : 0, from_b = nesterov ? mu : 1;
  if (b == NULL) {
    for (size_t i = 0; i < n; i++) p[i] -= lr * (scale * g[i] + decay * p[i]);
    return;
  }
  for (size_t i = 0; i < n; i++) {
    real d = scale * g[i] + decay * p[i];
    b[i] = mu * b[i] + d;
    p[i] -= lr * (from_d * d + from_b * b[i]);
  }
}

/* Kingma and Ba 2015; decoupled: Loshchilov and Hutter 2019.
** m = b1 m + (1 - b1) d;  v = b2 v + (1 - b2) d^2;
** p -= lr / (1 - b1^t) m / (sqrt (v) / sqrt (1 - b2^t) + eps) */
static void adam (size_t n, const sl_factors *f, int decoupled,
                  void *parameters, const void *gradient, void *first,
                  void *second) {
  real *restrict p = parameters;
  const real *restrict g = gradient;
  real *restrict m = first;
  real *restrict v = second;
  const real scale = (real)f->scale, lr = (real)f->lr_hat, eps = (real)f->eps;
  const real b1 = (real)f->beta1, b2 = (real)f->beta2;
  const real c1 = (real)(1 - f->beta1), c2 = (real)(1 - f->beta2);
  const real root = (real)(1 / f->sqrt_c2);
  const real decay = decoupled ? 0 : (real)f->decay;
  const real keep = decoupled ? (real)(1 - f->lr * f->decay) : 1;
  for (size_t i = 0; i < n; i++) {
    real d = scale * g[i] + decay * p[i];
    m[i] = b1 * m[i] + c1 * d;
    v[i] = b2 * v[i] + c2 * d * d;
    p[i] = keep * p[i] - lr * m[i] / (sqrt (v[i]) * root + eps);
  }
}

extern const sl_update_kernels SL (sl_update);
const sl_update_kernels SL (sl_update) = { gather, squares, sgd, adam };
