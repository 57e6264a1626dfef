/* replica.c - one worker's buffers for a program, and the replay over them.
**
** Everything lives in one block, and every argument of every kernel is resolved
** when the replica is made: replay is a plain loop of kernel calls. */
#include "base/clock.h"
#include "base/memory.h"
#include "program/record.h"
#include <stdint.h>
#include <string.h>

struct sl_replica {
  sl_program *program;     /* one reference */
  size_t n_nodes, n_slots; /* of the program when this was made */
  size_t n_back;
  sl_run *run;     /* per node */
  size_t *back;    /* nodes that backward visits, last first */
  void **value;    /* per slot */
  void **gradient; /* per slot; NULL: not computed */
  void *local;     /* gradients of locals, one piece */
  size_t local_bytes;
  void *wanted; /* gradients of wanted storages, one piece */
  size_t wanted_bytes;
  void *loss; /* where backward puts the seed; NULL: nothing to do */
  sl_dtype loss_dtype;
  double *seconds; /* NULL, or per node: in forward, in backward */
  sl_draw draw;
  sl_error error; /* of the last forward; empty: it went well */
  size_t bytes;
};

/* What backward must know of a slot. */
enum {
  DEPENDS = 1, /* on something wanted */
  REACHES = 2, /* the loss */
  NEEDED = DEPENDS | REACHES
};

static int differentiable (const sl_node *n) {
  return n->op->backward != NULL && !(n->op->flags & SL_OP_NO_GRADIENT);
}

/* The or of the marks of a node's inputs (side 0) or outputs (side 1); 'mark'
** is added to them all. */
static unsigned side (const sl_node *n, int outputs, unsigned char *marks,
                      unsigned mark) {
  unsigned all = 0;
  int from = outputs ? n->n_in : 0, to = outputs ? n->n_in + n->n_out : n->n_in;
  for (int i = from; i < to; i++) {
    marks[n->operand[i].slot] |= (unsigned char)mark;
    all |= marks[n->operand[i].slot];
  }
  return all;
}

/* Fill marks (per slot): forwards what depends on something wanted, backwards
** what the loss can be reached from. */
static void trace (const sl_program *p, unsigned char *marks) {
  for (size_t i = 0; i < p->n_slots; i++)
    if (p->slot[i].wanted) marks[i] |= DEPENDS;
  for (size_t i = 0; i < p->n_nodes; i++)
    if (differentiable (&p->node[i]) &&
        (side (&p->node[i], 0, marks, 0) & DEPENDS))
      side (&p->node[i], 1, marks, DEPENDS);
  if (p->has_loss) marks[p->loss.slot] |= REACHES;
  for (size_t i = p->n_nodes; i-- > 0;)
    if (differentiable (&p->node[i]) &&
        (side (&p->node[i], 1, marks, 0) & REACHES))
      side (&p->node[i], 0, marks, REACHES);
}

static int any_needed (const sl_node *n, int outputs,
                       const unsigned char *marks) {
  int from = outputs ? n->n_in : 0, to = outputs ? n->n_in + n->n_out : n->n_in;
  for (int i = from; i < to; i++)
    if ((marks[n->operand[i].slot] & NEEDED) == NEEDED) return 1;
  return 0;
}

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
    a->used += (bytes + 63) / 64 * 64;
  return a->overflow ? NULL : p;
}

static void *cut_slot (arena *a, const sl_slot *s) {
  return cut (a, s->storage->count, sl_dtype_size (s->storage->dtype));
}

/* Gradients of the slots of one kind, in one piece. */
static void cut_gradients (sl_replica *r, arena *a, const unsigned char *marks,
                           int local) {
  for (size_t i = 0; i < r->n_slots; i++) {
    const sl_slot *s = &r->program->slot[i];
    void *g;
    if (s->made != local) continue;
    if (!s->wanted && (marks[i] & NEEDED) != NEEDED) continue;
    g = cut_slot (a, s);
    if (a->base != NULL) r->gradient[i] = g;
  }
}

/* The views of a node's operands with the bases of their slots. */
static sl_view *resolve (arena *a, const sl_node *n, int from, int count,
                         void *const *bases, const unsigned char *marks) {
  sl_view *v = cut (a, (size_t)count, sizeof *v);
  for (int i = 0; a->base != NULL && i < count; i++) {
    const sl_operand *o = &n->operand[from + i];
    char *base = bases[o->slot];
    v[i] = o->view;
    if (marks != NULL && (marks[o->slot] & NEEDED) != NEEDED) base = NULL;
    if (base != NULL)
      v[i].data = base + o->offset * (ptrdiff_t)sl_dtype_size (n->dtype);
  }
  return v;
}

/* Cut the whole block; called once to measure and once to place. */
static void layout (sl_replica *r, arena *a, const unsigned char *marks) {
  const sl_program *p = r->program;
  size_t scratch = 0, spill = 0;
  void *common;

  r->run = cut (a, r->n_nodes, sizeof *r->run);
  r->back = cut (a, r->n_nodes, sizeof *r->back);
  r->value = cut (a, r->n_slots, sizeof *r->value);
  r->gradient = cut (a, r->n_slots, sizeof *r->gradient);
  for (size_t i = 0; i < r->n_slots; i++) {
    const sl_slot *s = &p->slot[i];
    void *v = s->made || s->input ? cut_slot (a, s) : s->storage->data;
    if (a->base != NULL) r->value[i] = v;
  }
  r->wanted_bytes = a->used;
  cut_gradients (r, a, marks, 0);
  r->wanted_bytes = a->used - r->wanted_bytes;
  r->local_bytes = a->used;
  cut_gradients (r, a, marks, 1);
  r->local_bytes = a->used - r->local_bytes;
  if (a->base != NULL) {
    r->local = a->base + a->used - r->local_bytes;
    r->wanted = (char *)r->local - r->wanted_bytes;
  }

  /* Nodes that backward does not visit share one place for what they save. */
  for (size_t i = 0; i < r->n_nodes; i++) {
    const sl_node *n = &p->node[i];
    int back = any_needed (n, 0, marks) && any_needed (n, 1, marks);
    if (n->scratch > scratch) scratch = n->scratch;
    if (!back && n->saved > spill) spill = n->saved;
  }
  common = cut (a, spill + scratch, 1);
  r->n_back = 0;
  for (size_t i = r->n_nodes; i-- > 0;) {
    const sl_node *n = &p->node[i];
    int back = any_needed (n, 0, marks) && any_needed (n, 1, marks);
    sl_run run = { .attr = n->attr,
                   .n_in = n->n_in,
                   .n_out = n->n_out,
                   .draw = &r->draw,
                   .ordinal = n->ordinal,
                   .error = &r->error };
    run.in = resolve (a, n, 0, n->n_in, r->value, NULL);
    run.out = resolve (a, n, n->n_in, n->n_out, r->value, NULL);
    run.saved = back ? cut (a, n->saved, 1) : common;
    if (back) {
      run.din = resolve (a, n, 0, n->n_in, r->gradient, marks);
      run.dout = resolve (a, n, n->n_in, n->n_out, r->gradient, marks);
    }
    if (a->base == NULL) continue;
    run.scratch = (char *)common + spill;
    r->run[i] = run;
    if (back) r->back[r->n_back++] = i;
  }
}

sl_replica *sl_replica_new (const sl_program *p, sl_error *e) {
  unsigned char *marks = sl_alloc (p->n_slots, 1);
  /* Every program comes from sl_program_begin, so none is really const. */
  sl_replica head = { .program = (sl_program *)(uintptr_t)p,
                      .n_nodes = p->n_nodes,
                      .n_slots = p->n_slots };
  sl_replica *r = NULL;
  arena a = { 0 };
  if (marks == NULL) {
    sl_fail (e, "replica: out of memory");
    return NULL;
  }
  trace (p, marks);
  cut (&a, 1, sizeof *r);
  layout (&head, &a, marks);
  if (!a.overflow) r = sl_alloc (a.used, 1);
  if (r == NULL)
    sl_fail (e, "replica: out of memory for a program of %zu bytes", a.used);
  else {
    *r = head;
    r->program->refs++;
    r->bytes = a.used;
    a = (arena){ .base = (char *)r };
    cut (&a, 1, sizeof *r);
    layout (r, &a, marks);
    for (size_t i = 0; i < p->n_slots; i++) {
      const sl_storage *s = p->slot[i].storage;
      if (p->slot[i].input)
        memcpy (r->value[i], s->data, s->count * sl_dtype_size (s->dtype));
    }
    if (p->has_loss && (marks[p->loss.slot] & NEEDED) == NEEDED) {
      r->loss_dtype = p->slot[p->loss.slot].storage->dtype;
      r->loss = (char *)r->gradient[p->loss.slot] +
                p->loss.offset * (ptrdiff_t)sl_dtype_size (r->loss_dtype);
    }
  }
  sl_free (marks);
  return r;
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
static void run_node (const sl_replica *r, size_t i, int side,
                      void (*kernel) (const sl_run *run)) {
  const double from = r->seconds != NULL ? sl_now () : 0;
  kernel (&r->run[i]);
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
  const sl_node *node = r->program->node;
  r->draw = draw != NULL ? *draw : (sl_draw){ 0 };
  r->error.text[0] = '\0';
  for (size_t i = 0; i < r->n_nodes; i++) {
    r->run[i].observer = observer;
    run_node (r, i, 0, node[i].op->forward);
    if (r->error.text[0] != '\0') return -1;
  }
  return 0;
}

const sl_error *sl_replica_error (const sl_replica *r) {
  return &r->error;
}

void sl_replica_backward (sl_replica *r, double seed) {
  const sl_node *node = r->program->node;
  if (r->loss == NULL) return;
  memset (r->local, 0, r->local_bytes);
  if (r->loss_dtype == SL_F32)
    *(float *)r->loss = (float)seed;
  else
    *(double *)r->loss = seed;
  for (size_t i = 0; i < r->n_back; i++) {
    r->run[r->back[i]].observer = NULL;
    run_node (r, r->back[i], 1, node[r->back[i]].op->backward);
  }
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
  return view_of (r, t, r->gradient);
}
