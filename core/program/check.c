/* check.c - backward against differences of forward. */
#include "base/memory.h"
#include "program/record.h"
#include <math.h>
#include <stdint.h>

/* An element of a wanted storage: where forward reads it, and its gradient. */
typedef struct element {
  double *value;
  double gradient;
} element;

typedef struct check {
  const sl_program *program;
  sl_replica *replica;
  const double *loss;
  sl_draw draw;
  int failed; /* -1: the last forward failed */
} check;

static double loss_at (check *c, double *x, double value) {
  double before = *x;
  if (c->failed) return NAN;
  *x = value;
  c->failed = sl_replica_forward (c->replica, &c->draw, NULL);
  *x = before;
  return *c->loss;
}

/* f'(x) = (8 (f(x+h) - f(x-h)) - (f(x+2h) - f(x-2h))) / 12h + O(h^4). The
** smallest error of three step sizes counts: a kink within a step spoils one of
** them, a wrong gradient all. */
static double difference (check *c, const element *p) {
  double x = *p->value, best = INFINITY;
  for (double h = 1e-3; h > 1e-6; h /= 10) {
    double s = h * fmax (1, fabs (x));
    double near = loss_at (c, p->value, x + s) - loss_at (c, p->value, x - s);
    double far =
        loss_at (c, p->value, x + 2 * s) - loss_at (c, p->value, x - 2 * s);
    double d = fabs ((8 * near - far) / (12 * s) - p->gradient);
    if (!(d >= best)) best = d; /* also a NaN */
    if (best <= 1e-9 * fmax (1, fabs (p->gradient)) || isnan (best)) break;
  }
  return best;
}

/* A view of the whole storage of slot i. */
static sl_tensor whole (const sl_slot *s) {
  return (sl_tensor){ .refs = 1,
                      .storage = s->storage,
                      .ndim = 1,
                      .dim = { (ptrdiff_t)s->storage->count },
                      .stride = { 1 } };
}

/* Element number 'index' of all wanted storages in order. */
static element find (const check *c, size_t index) {
  const sl_slot *s = c->program->slot;
  sl_tensor t;
  while (!s->wanted || index >= s->storage->count)
    index -= s->wanted ? s->storage->count : 0, s++;
  t = whole (s);
  return (element){
    .value = (double *)sl_replica_value (c->replica, &t).data + index,
    .gradient = ((double *)sl_replica_gradient (c->replica, &t).data)[index]
  };
}

/* Refuse a program that is not f64 or has no loss or no wanted storage; else
** *count: the elements of all wanted storages. */
static int validate (const sl_program *p, size_t *count, sl_error *e) {
  *count = 0;
  for (size_t i = 0; i < p->n_nodes; i++)
    if (p->node[i].dtype != SL_F64)
      return sl_fail (e, "check: %s is f32; differences need a program in f64",
                      p->node[i].op->name);
  for (size_t i = 0; i < p->n_slots; i++) {
    if (!p->slot[i].wanted) continue;
    if (p->slot[i].made)
      return sl_fail (e, "check: only gradients of parameters and inputs can "
                         "be checked, not of what an operation made");
    *count += p->slot[i].storage->count;
  }
  if (!p->has_loss) return sl_fail (e, "check: the program has no loss");
  if (*count == 0) return sl_fail (e, "check: no gradient is wanted");
  return 0;
}

int sl_program_check (const sl_program *p, size_t samples, uint64_t seed,
                      double *worst, sl_error *e) {
  check c = { .program = p, .draw = { .seed = seed, .step = 1 } };
  size_t count, n;
  sl_tensor loss;
  element *elements;
  double largest = 1, most = 0;

  if (validate (p, &count, e) < 0) return -1;
  n = samples == 0 || samples > count ? count : samples;
  elements = sl_alloc (n, sizeof *elements);
  if (elements == NULL) return sl_fail (e, "check: out of memory");
  c.replica = sl_replica_new (p, e);
  if (c.replica == NULL) {
    sl_free (elements);
    return -1;
  }
  loss = whole (&p->slot[p->loss.slot]);
  c.loss =
      (const double *)sl_replica_value (c.replica, &loss).data + p->loss.offset;
  c.failed = sl_replica_forward (c.replica, &c.draw, NULL);
  if (!c.failed) sl_replica_backward (c.replica, 1);
  for (size_t i = 0; i < n; i++) {
    size_t index = i;
    if (n < count) { /* one from each of n equal parts */
      uint32_t word[4], counter[4] = { (uint32_t)i, (uint32_t)(i >> 32), 0, 0 };
      sl_philox (seed, counter, word);
      index = (size_t)((double)count / (double)n *
                       ((double)i + sl_uniform53 (word[0], word[1])));
      if (index >= count) index = count - 1;
    }
    elements[i] = find (&c, index);
    largest = fmax (largest, fabs (elements[i].gradient));
  }
  for (size_t i = 0; i < n && !c.failed; i++) {
    double d = difference (&c, &elements[i]);
    if (isnan (d) || isnan (elements[i].gradient)) most = INFINITY;
    if (d > most) most = d;
  }
  *worst = most / largest;
  if (c.failed) sl_fail (e, "check: %s", sl_replica_error (c.replica)->text);
  sl_replica_free (c.replica);
  sl_free (elements);
  return c.failed;
}
