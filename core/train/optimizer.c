/* optimizer.c - options of optimizers by the table in update.c, and updates. */
#include "base/isa.h"
#include "train/trainer.h"
#include <math.h>
#include <string.h>

SL_VARIANTS (const sl_update_kernels, sl_update);

const sl_update_kernels *sl_update_pick (sl_dtype dtype) {
  return SL_PICK (sl_update, dtype == SL_F64);
}

static const sl_optimizer_kind *row (int kind) {
  return &sl_update_pick (SL_F64)->optimizer[kind];
}

const char *sl_optimizer_name (int kind) {
  return row (kind)->name;
}

const sl_optimizer_option *sl_optimizer_options (int kind) {
  return row (kind)->option;
}

int sl_optimizer_parse (const char *name, sl_optimizer *o, sl_error *e) {
  const char *names[64];
  int n = 0;
  while (n < 64 && row (n)->name != NULL) {
    names[n] = row (n)->name;
    n++;
  }
  *o = (sl_optimizer){ .kind = sl_choice ("optimizer: no kind", name, n, names,
                                          e) };
  if (o->kind < 0) return -1;
  for (int i = 0; row (o->kind)->option[i].name != NULL; i++)
    o->option[i] = row (o->kind)->option[i].def;
  return 0;
}

static int find (const sl_optimizer *o, const char *option) {
  const sl_optimizer_option *all = row (o->kind)->option;
  int i = 0;
  while (all[i].name != NULL && strcmp (all[i].name, option) != 0) i++;
  return all[i].name != NULL ? i : -1;
}

double *sl_optimizer_find (sl_optimizer *o, const char *option) {
  const int i = find (o, option);
  return i < 0 ? NULL : &o->option[i];
}

int sl_optimizer_check (const sl_optimizer *o, sl_error *e) {
  const sl_optimizer_kind *k = row (o->kind);
  const char *why;
  for (int i = 0; k->option[i].name != NULL; i++) {
    const sl_optimizer_option *p = &k->option[i];
    const double x = o->option[i];
    if (!(x >= p->low && x < p->below) || (p->excludes_low && x == p->low))
      return sl_fail (e, "optimizer: %s is %g, allowed is %g %s %s < %g",
                      p->name, x, p->low, p->excludes_low ? "<" : "<=", p->name,
                      p->below);
  }
  why = k->refuse != NULL ? k->refuse (o->option) : NULL;
  return why == NULL ? 0 : sl_fail (e, "optimizer: %s", why);
}

size_t sl_optimizer_state (const sl_optimizer *o, size_t n) {
  return (size_t)row (o->kind)->states (o->option) * n;
}

sl_factors sl_optimizer_factors (const sl_optimizer *o, double norm, double lr,
                                 long step) {
  const double clip = o->option[find (o, "clip_norm")];
  sl_factors f = { .scale = clip > 0 ? fmin (1, clip / (norm + 1e-6)) : 1 };
  row (o->kind)->factors (o->option, lr, step, f.factor);
  return f;
}

void sl_optimizer_range (const sl_optimizer *o, const sl_factors *f,
                         sl_dtype dtype, size_t n, size_t begin, size_t end,
                         void *parameters, const void *gradient, void *state) {
  const sl_optimizer_kind *k = &sl_update_pick (dtype)->optimizer[o->kind];
  const size_t size = sl_dtype_size (dtype);
  void *states[SL_UPDATE_STATES] = { NULL };
  for (int i = 0; i < k->states (o->option); i++)
    states[i] = (char *)state + ((size_t)i * n + begin) * size;
  k->update (end - begin, f->scale, f->factor,
             (char *)parameters + begin * size,
             (const char *)gradient + begin * size, states);
}
