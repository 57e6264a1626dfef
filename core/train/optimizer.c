/* optimizer.c - SGD, Adam and AdamW: one update of flat parameters. */
#include "base/isa.h"
#include "train/trainer.h"
#include <math.h>

SL_VARIANTS (const sl_update_kernels, sl_update);

const sl_update_kernels *sl_update_pick (sl_dtype dtype) {
  return SL_PICK (sl_update, dtype == SL_F64);
}

static const char *const kinds[] = { "sgd", "adam", "adamw" };
enum { KINDS = sizeof kinds / sizeof *kinds };

int sl_optimizer_parse (const char *name, sl_optimizer *o, sl_error *e) {
  const int i = sl_choice ("optimizer: no kind", name, KINDS, kinds, e);
  if (i < 0) return -1;
  *o = (sl_optimizer){ .kind = (sl_optimizer_kind)i,
                       .beta1 = 0.9,
                       .beta2 = 0.999,
                       .eps = 1e-8,
                       .weight_decay = i == SL_ADAMW ? 0.01 : 0 };
  return 0;
}

int sl_optimizer_check (const sl_optimizer *o, sl_error *e) {
  const struct {
    const char *name;
    double value, below;
  } range[] = {
    { "beta1", o->beta1, 1 },
    { "beta2", o->beta2, 1 },
    { "eps", o->eps, HUGE_VAL },
    { "momentum", o->momentum, 1 },
    { "weight_decay", o->weight_decay, HUGE_VAL },
    { "clip_norm", o->clip_norm, HUGE_VAL },
  };
  if ((unsigned)o->kind >= KINDS)
    return sl_fail (e, "optimizer: there is no kind number %d", (int)o->kind);
  for (size_t i = 0; i < sizeof range / sizeof *range; i++)
    if (!(range[i].value >= 0 && range[i].value < range[i].below))
      return sl_fail (e, "optimizer: %s is %g, allowed is 0 <= %s < %g",
                      range[i].name, range[i].value, range[i].name,
                      range[i].below);
  if (o->kind == SL_SGD && o->nesterov && o->momentum == 0)
    return sl_fail (e, "optimizer: nesterov needs a momentum above 0");
  return 0;
}

size_t sl_optimizer_state (const sl_optimizer *o, size_t n) {
  if (o->kind != SL_SGD) return 2 * n;
  return o->momentum > 0 ? n : 0;
}

sl_factors sl_optimizer_factors (const sl_optimizer *o, double norm, double lr,
                                 long step) {
  sl_factors f = { .scale = 1,
                   .lr = lr,
                   .decay = o->weight_decay,
                   .momentum = o->momentum,
                   .beta1 = o->beta1,
                   .beta2 = o->beta2,
                   .eps = o->eps };
  f.lr_hat = lr / (1 - pow (o->beta1, (double)step));
  f.sqrt_c2 = sqrt (1 - pow (o->beta2, (double)step));
  if (o->clip_norm > 0) f.scale = fmin (1, o->clip_norm / (norm + 1e-6));
  return f;
}

void sl_optimizer_range (const sl_optimizer *o, const sl_factors *f,
                         sl_dtype dtype, size_t n, size_t begin, size_t end,
                         void *parameters, const void *gradient, void *state) {
  const sl_update_kernels *k = sl_update_pick (dtype);
  const size_t size = sl_dtype_size (dtype);
  char *p = (char *)parameters + begin * size;
  const char *g = (const char *)gradient + begin * size;
  char *s = sl_optimizer_state (o, n) ? (char *)state + begin * size : NULL;
  if (o->kind == SL_SGD)
    k->sgd (end - begin, f, o->nesterov, p, g, s);
  else
    k->adam (end - begin, f, o->kind == SL_ADAMW, p, g, s, s + n * size);
}

double sl_optimizer_update (const sl_optimizer *o, sl_dtype dtype, size_t n,
                            void *parameters, const void *gradient, void *state,
                            double lr, long step) {
  const sl_update_kernels *k = sl_update_pick (dtype);
  const size_t size = sl_dtype_size (dtype);
  double norm = 0;
  sl_factors f;
  if (o->clip_norm > 0) {
    for (size_t i = 0; i < n; i += SL_CHUNK)
      norm += k->squares (n - i < SL_CHUNK ? n - i : SL_CHUNK,
                          (const char *)gradient + i * size);
    norm = sqrt (norm);
  }
  f = sl_optimizer_factors (o, norm, lr, step);
  sl_optimizer_range (o, &f, dtype, n, 0, n, parameters, gradient, state);
  return norm;
}
