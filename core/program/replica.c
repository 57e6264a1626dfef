/* replica.c - one worker's buffers for a program, and the replay over them.
**
** Everything lives in one block, and every argument of every kernel is resolved
** when the replica is made: replay is a plain loop of kernel calls. */
#include "base/clock.h"
#include "base/memory.h"
#include "base/number.h"
#include "program/gradients.h"
#include <stdint.h>
#include <string.h>

/* A gradient of a local that is set to zero before backward takes step 'at'. */
typedef struct zeroed {
  size_t at, slot;
} zeroed;

struct sl_replica {
  sl_program *program;     /* one reference */
  int training;            /* intermediate gradients share memory */
  size_t n_nodes, n_slots; /* of the program when this was made */
  size_t n_back, n_zeroed;
  sl_run *run;  /* per node */
  size_t *back; /* nodes that backward visits, last first */
  /* Per step of backward, bit k: input k may be assigned; is a view of a local
  ** slot; is a view of the slot 'bound'. */
  unsigned char *assigns, *of_locals, *of_bound;
  sl_view **din;             /* per step: the views of its run */
  zeroed *zeroed;            /* locals, in the order of 'at' */
  unsigned char *needs_zero; /* per slot: no step assigns all of it */
  void **value;              /* per slot */
  void **gradient;           /* per slot; NULL: not computed */
  void *wanted;              /* gradients of wanted storages, in one block */
  size_t wanted_bytes;
  size_t bound;     /* the slot of sl_replica_bind_gradient */
  int bound_is_new; /* 1: no backward has written its gradient yet */
  void *loss;       /* where backward puts the seed; NULL: nothing to do */
  size_t loss_slot; /* of the program when this was made */
  sl_dtype loss_dtype;
  double *seconds; /* NULL, or per node: in forward, in backward */
  sl_draw draw;
  sl_error error; /* of the last forward; empty: it went well */
  size_t bytes;
};

/* Memory given out in order. With base NULL it only measures. */
typedef struct arena {
  char *base;
  size_t used;
  int overflow;
} arena;

static void *cut (arena *a, size_t count, size_t size) {
  char *p = a->base == NULL ? NULL : a->base + a->used;
  size_t bytes;
  if (sl_size_mul (count, size, &bytes) < 0 || bytes > SIZE_MAX / 2 - a->used)
    a->overflow = 1;
  else
    a->used += sl_round_up (bytes, 64);
  return a->overflow ? NULL : p;
}

static void *cut_slot (arena *a, const sl_slot *s) {
  return cut (a, s->storage->count, sl_dtype_size (s->storage->dtype));
}

static size_t slot_bytes (const sl_replica *r, size_t slot) {
  const sl_storage *s = r->program->slot[slot].storage;
  return s->count * sl_dtype_size (s->dtype);
}

/* Gradients with memory of their own, in one block: of local slots (local 1) or
** of the others. */
static void cut_gradients (sl_replica *r, arena *a, const sl_gradients *plan,
                           int local) {
  for (size_t i = 0; i < r->n_slots; i++) {
    const sl_slot *s = &r->program->slot[i];
    void *g;
    if (s->made != local || plan->shares[i] != i ||
        !sl_gradients_has (r->program, plan, i) ||
        (plan->at != NULL && sl_gradients_intermediate (r->program, plan, i)))
      continue;
    g = cut_slot (a, s);
    if (a->base != NULL) r->gradient[i] = g;
  }
}

/* The intermediate gradients, packed. */
static void cut_intermediate (sl_replica *r, arena *a,
                              const sl_gradients *plan) {
  char *piece = cut (a, plan->packed, 1);
  for (size_t i = 0; a->base != NULL && i < r->n_slots; i++)
    if (plan->shares[i] == i && sl_gradients_intermediate (r->program, plan, i))
      r->gradient[i] = piece + plan->at[i];
}

/* The views of a node's operands with the bases of their slots. */
static sl_view *resolve (arena *a, const sl_node *n, int from, int count,
                         void *const *bases, const unsigned char *marks) {
  sl_view *v = cut (a, (size_t)count, sizeof *v);
  for (int i = 0; a->base != NULL && i < count; i++) {
    const sl_operand *o = &n->operand[from + i];
    char *base = bases[o->slot];
    v[i] = o->view;
    if (marks != NULL && (marks[o->slot] & SL_NEEDED) != SL_NEEDED) base = NULL;
    if (base != NULL)
      v[i].data = base + o->offset * (ptrdiff_t)sl_dtype_size (n->dtype);
  }
  return v;
}

/* The steps of backward, from the plan. */
static void cut_steps (sl_replica *r, arena *a, const sl_gradients *plan) {
  r->n_back = plan->n_back;
  r->n_zeroed = 0;
  r->back = cut (a, r->n_back, sizeof *r->back);
  r->assigns = cut (a, r->n_back, 1);
  r->of_locals = cut (a, r->n_back, 1);
  r->of_bound = cut (a, r->n_back, 1);
  r->din = cut (a, r->n_back, sizeof *r->din);
  r->needs_zero = cut (a, r->n_slots, 1);
  r->zeroed = cut (a, r->n_slots, sizeof *r->zeroed);
  for (size_t i = 0; a->base != NULL && i < r->n_back; i++) {
    const sl_node *n = &r->program->node[plan->back[i]];
    r->back[i] = plan->back[i];
    r->assigns[i] = plan->assigns[plan->back[i]];
    for (int k = 0; k < n->n_in; k++)
      if (r->program->slot[n->operand[k].slot].made)
        r->of_locals[i] |= (unsigned char)(1u << k);
    for (size_t slot = 0; slot < r->n_slots; slot++) {
      if (plan->zero[slot] != i) continue;
      r->needs_zero[slot] = 1;
      if (r->program->slot[slot].made)
        r->zeroed[r->n_zeroed++] = (zeroed){ i, slot };
    }
  }
}

/* Divide the block among all arrays; the first call (a->base NULL) measures,
** the second sets the pointers. */
static void layout (sl_replica *r, arena *a, const sl_gradients *plan) {
  const sl_program *p = r->program;
  size_t scratch = 0, spill = 0, next = 0;
  void *common;

  r->run = cut (a, r->n_nodes, sizeof *r->run);
  cut_steps (r, a, plan);
  r->value = cut (a, r->n_slots, sizeof *r->value);
  r->gradient = cut (a, r->n_slots, sizeof *r->gradient);
  for (size_t i = 0; i < r->n_slots; i++) {
    const sl_slot *s = &p->slot[i];
    void *v = s->made || s->input ? cut_slot (a, s) : s->storage->data;
    if (a->base != NULL) r->value[i] = v;
  }
  r->wanted_bytes = a->used;
  cut_gradients (r, a, plan, 0);
  r->wanted_bytes = a->used - r->wanted_bytes;
  if (a->base != NULL) r->wanted = a->base + a->used - r->wanted_bytes;
  cut_gradients (r, a, plan, 1);
  if (plan->at != NULL) cut_intermediate (r, a, plan);
  for (size_t i = 0; a->base != NULL && i < r->n_slots; i++)
    r->gradient[i] = r->gradient[plan->shares[i]];

  /* Nodes that backward does not visit share one buffer 'saved'. */
  for (size_t i = r->n_nodes; i-- > 0;) {
    const int back = next < plan->n_back && plan->back[next] == i;
    const sl_node *n = &p->node[i];
    next += (size_t)back;
    if (n->scratch > scratch) scratch = n->scratch;
    if (!back && n->saved > spill) spill = n->saved;
  }
  common = cut (a, spill + scratch, 1);
  next = 0;
  for (size_t i = r->n_nodes; i-- > 0;) {
    const int back = next < plan->n_back && plan->back[next] == i;
    const sl_node *n = &p->node[i];
    sl_run run = { .attr = n->attr,
                   .n_in = n->n_in,
                   .n_out = n->n_out,
                   .draw = &r->draw,
                   .op_index = n->op_index,
                   .error = &r->error };
    run.in = resolve (a, n, 0, n->n_in, r->value, NULL);
    run.out = resolve (a, n, n->n_in, n->n_out, r->value, NULL);
    run.saved = back ? cut (a, n->saved, 1) : common;
    if (back) {
      sl_view *din = resolve (a, n, 0, n->n_in, r->gradient, plan->marks);
      for (int k = 0; a->base != NULL && k < n->n_in; k++)
        if (plan->shares[n->operand[k].slot] != n->operand[k].slot)
          din[k].data = NULL; /* it is dout itself: see gradients.h */
      if (a->base != NULL) r->din[next] = din;
      run.din = din;
      run.dout = resolve (a, n, n->n_in, n->n_out, r->gradient, plan->marks);
      next++;
    }
    if (a->base == NULL) continue;
    run.scratch = (char *)common + spill;
    r->run[i] = run;
  }
}

static sl_replica *new_replica (const sl_program *p, int training,
                                sl_error *e) {
  sl_gradients plan;
  /* Every program comes from sl_program_begin, so none is really const. */
  sl_replica head = { .program = (sl_program *)(uintptr_t)p,
                      .training = training,
                      .n_nodes = p->n_nodes,
                      .n_slots = p->n_slots };
  sl_replica *r = NULL;
  arena a = { 0 };
  if (sl_gradients_plan (p, &plan) < 0 ||
      (training && sl_gradients_pack (p, &plan) < 0)) {
    sl_gradients_free (&plan);
    sl_fail (e, "replica: out of memory");
    return NULL;
  }
  cut (&a, 1, sizeof *r);
  layout (&head, &a, &plan);
  if (!a.overflow) r = sl_alloc (a.used, 1);
  if (r == NULL)
    sl_fail (e, "replica: out of memory for a program of %zu bytes", a.used);
  else {
    *r = head;
    r->program->refs++;
    r->bytes = a.used;
    a = (arena){ .base = (char *)r };
    cut (&a, 1, sizeof *r);
    layout (r, &a, &plan);
    for (size_t i = 0; i < p->n_slots; i++) {
      const sl_storage *s = p->slot[i].storage;
      if (p->slot[i].input)
        memcpy (r->value[i], s->data, s->count * sl_dtype_size (s->dtype));
    }
    if (p->has_loss && (plan.marks[p->loss.slot] & SL_NEEDED) == SL_NEEDED) {
      r->loss_slot = p->loss.slot;
      r->loss_dtype = p->slot[p->loss.slot].storage->dtype;
      r->loss = (char *)r->gradient[p->loss.slot] +
                p->loss.offset * (ptrdiff_t)sl_dtype_size (r->loss_dtype);
    }
  }
  sl_gradients_free (&plan);
  return r;
}

sl_replica *sl_replica_new (const sl_program *p, sl_error *e) {
  return new_replica (p, 0, e);
}

sl_replica *sl_replica_new_training (const sl_program *p, sl_error *e) {
  return new_replica (p, 1, e);
}

void sl_replica_free (sl_replica *r) {
  if (r == NULL) return;
  sl_program_free (r->program);
  sl_free (r->seconds);
  sl_free (r);
}

size_t sl_replica_bytes (const sl_replica *r) {
  return r->bytes;
}

/* Run one kernel; with a profile, 'side' (0 forward, 1 backward) of node i gets
** the time it takes. */
static void run_node (const sl_replica *r, size_t i, int side) {
  const sl_op *op = r->program->node[i].op;
  const double from = r->seconds != NULL ? sl_now () : 0;
  sl_op_run (op, side ? op->backward : op->forward, &r->run[i]);
  if (r->seconds != NULL) r->seconds[2 * i + (size_t)side] += sl_now () - from;
}

int sl_replica_profile (sl_replica *r, int on, sl_error *e) {
  sl_free (r->seconds);
  r->seconds = on ? sl_alloc (r->n_nodes, 2 * sizeof *r->seconds) : NULL;
  if (on && r->seconds == NULL)
    return sl_fail (e, "profile: no memory for %zu operations", r->n_nodes);
  return 0;
}

void sl_replica_times (const sl_replica *r, size_t node, double *forward,
                       double *backward) {
  const int known = r->seconds != NULL && node < r->n_nodes;
  *forward = known ? r->seconds[2 * node] : 0;
  *backward = known ? r->seconds[2 * node + 1] : 0;
}

int sl_replica_forward (sl_replica *r, const sl_draw *draw, void *observer) {
  r->draw = draw != NULL ? *draw : (sl_draw){ 0 };
  r->error.text[0] = '\0';
  for (size_t i = 0; i < r->n_nodes; i++) {
    r->run[i].observer = observer;
    run_node (r, i, 0);
    if (r->error.text[0] != '\0') return -1;
  }
  return 0;
}

const sl_error *sl_replica_error (const sl_replica *r) {
  return &r->error;
}

static void set_zero (const sl_replica *r, size_t slot) {
  memset (r->gradient[slot], 0, slot_bytes (r, slot));
}

/* The gradient of the loss's storage: the seed, and 0 elsewhere. */
static void start_backward (const sl_replica *r, double seed) {
  set_zero (r, r->loss_slot);
  if (r->loss_dtype == SL_F32)
    *(float *)r->loss = (float)seed;
  else
    *(double *)r->loss = seed;
  if (r->bound_is_new && r->needs_zero[r->bound]) set_zero (r, r->bound);
}

void sl_replica_backward (sl_replica *r, double seed) {
  size_t z = 0;
  if (r->loss == NULL) return;
  start_backward (r, seed);
  for (size_t i = 0; i < r->n_back; i++) {
    sl_run *run = &r->run[r->back[i]];
    for (; z < r->n_zeroed && r->zeroed[z].at == i; z++)
      if (r->zeroed[z].slot != r->loss_slot) set_zero (r, r->zeroed[z].slot);
    run->assigns = r->assigns[i] &
                   (r->of_locals[i] | (r->bound_is_new ? r->of_bound[i] : 0u));
    run->observer = NULL;
    run_node (r, r->back[i], 1);
  }
  r->bound_is_new = 0;
}

int sl_replica_bind_gradient (sl_replica *r, const sl_tensor *t, void *data,
                              sl_error *e) {
  const ptrdiff_t slot = sl_slot_find (r->program, t->storage);
  if (slot < 0 || (size_t)slot >= r->n_slots || r->gradient[slot] == NULL ||
      r->program->slot[slot].made)
    return sl_fail (e, "the program computes no gradient of this tensor, or "
                       "makes the tensor itself");
  r->bound = (size_t)slot;
  r->bound_is_new = 1;
  r->gradient[r->bound] = data;
  for (size_t i = 0; i < r->n_back; i++) {
    const sl_node *n = &r->program->node[r->back[i]];
    r->of_bound[i] = 0;
    for (int k = 0; k < n->n_in; k++) {
      const sl_operand *o = &n->operand[k];
      if (o->slot != r->bound || r->din[i][k].data == NULL) continue;
      r->din[i][k].data =
          (char *)data + o->offset * (ptrdiff_t)sl_dtype_size (n->dtype);
      r->of_bound[i] |= (unsigned char)(1u << k);
    }
  }
  return 0;
}

void sl_replica_zero (sl_replica *r) {
  memset (r->wanted, 0, r->wanted_bytes);
}

static sl_view view_of (const sl_replica *r, const sl_tensor *t,
                        void *const *bases) {
  ptrdiff_t i = sl_slot_find (r->program, t->storage);
  sl_view v = sl_tensor_view (t);
  char *base = i >= 0 && (size_t)i < r->n_slots ? bases[i] : NULL;
  v.data =
      base == NULL
          ? NULL
          : base + t->offset * (ptrdiff_t)sl_dtype_size (t->storage->dtype);
  return v;
}

sl_view sl_replica_value (const sl_replica *r, const sl_tensor *t) {
  return view_of (r, t, r->value);
}

sl_view sl_replica_gradient (const sl_replica *r, const sl_tensor *t) {
  const ptrdiff_t i = sl_slot_find (r->program, t->storage);
  sl_view v = view_of (r, t, r->gradient);
  if (r->training && i >= 0 && r->program->slot[i].made &&
      !r->program->slot[i].wanted)
    v.data = NULL; /* its memory is used by others */
  return v;
}
