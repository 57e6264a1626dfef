/* stop.c - when training ends. */
#include "train/trainer.h"
#include <math.h>

const char *sl_stopped_name (sl_stopped s) {
  static const char *const names[] = { "running",    "max_abs_error",
                                       "loss",       "plateau",
                                       "seconds",    "interrupted",
                                       "not_finite", "failed" };
  return names[s];
}

/* The plateau's part of the state tensor: 100 losses, best mean, steps since.
** The loss of the batch after s updates lies at s % 100. */
static sl_view plateau_state (const sl_trainer *t) {
  sl_view v = sl_tensor_view (t->state);
  size_t first = sl_optimizer_state (&t->spec.optimizer, t->n);
  v.data = (char *)v.data + first * sl_dtype_size (t->dtype);
  return v;
}

/* As the state holds it, so that a resumed run decides alike. */
static double rounded (const sl_trainer *t, double x) {
  return t->dtype == SL_F32 ? (double)(float)x : x;
}

static int on_plateau (const sl_trainer *t, double loss, sl_plateau *next) {
  const sl_view v = plateau_state (t);
  double mean = isnan (loss) ? 0 : rounded (t, loss);
  int losses = !isnan (loss); /* a batch of weight 0 has none */
  *next =
      (sl_plateau){ sl_view_get (&v, t->dtype, SL_PLATEAU_WINDOW),
                    (long)sl_view_get (&v, t->dtype, SL_PLATEAU_WINDOW + 1) };
  if (t->step + 1 < SL_PLATEAU_WINDOW) return 0;
  for (int i = 0; i < SL_PLATEAU_WINDOW; i++) {
    const double x = sl_view_get (&v, t->dtype, (size_t)i);
    if (i == t->step % SL_PLATEAU_WINDOW || isnan (x)) continue;
    mean += x;
    losses++;
  }
  mean = rounded (t, mean / losses);
  if (t->step + 1 == SL_PLATEAU_WINDOW ||
      !(mean >= next->best - t->spec.stop.plateau_delta * fabs (next->best))) {
    *next = (sl_plateau){ mean, 0 };
    return 0;
  }
  return ++next->since >= t->spec.stop.plateau;
}

sl_stopped sl_trainer_test (const sl_trainer *t, const sl_progress *p,
                            sl_plateau *next) {
  const sl_stop *s = &t->spec.stop;
  if (s->max_abs_error > 0 && p->max_abs_error < s->max_abs_error)
    return SL_STOP_MAX_ABS_ERROR;
  if (s->loss > 0 && p->loss < s->loss) return SL_STOP_LOSS;
  if (s->plateau > 0 && on_plateau (t, p->loss, next)) return SL_STOP_PLATEAU;
  return SL_RUNNING;
}

void sl_trainer_keep (sl_trainer *t, const sl_progress *p,
                      const sl_plateau *next) {
  const sl_view v = plateau_state (t);
  if (t->spec.stop.plateau == 0) return;
  sl_view_set (&v, t->dtype, (size_t)(t->step % SL_PLATEAU_WINDOW), p->loss);
  sl_view_set (&v, t->dtype, SL_PLATEAU_WINDOW, next->best);
  sl_view_set (&v, t->dtype, SL_PLATEAU_WINDOW + 1, (double)next->since);
}
