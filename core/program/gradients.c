/* gradients.c - which gradients are computed, and which are set to zero. */
#include "program/gradients.h"
#include "base/memory.h"
#include <string.h>

static int differentiable (const sl_node *n) {
  return n->op->backward != NULL && !(n->op->flags & SL_OP_NO_GRADIENT);
}

/* Mark a node's inputs (outputs 0) or outputs (1) with 'mark'; returns the or
** of their marks. */
static unsigned mark_all (const sl_node *n, int outputs, unsigned char *marks,
                          unsigned mark) {
  unsigned all = 0;
  int from = outputs ? n->n_in : 0, to = outputs ? n->n_in + n->n_out : n->n_in;
  for (int i = from; i < to; i++) {
    marks[n->operand[i].slot] |= (unsigned char)mark;
    all |= marks[n->operand[i].slot];
  }
  return all;
}

/* Fill marks (per slot): SL_DEPENDS in a pass forwards, SL_REACHES in one
** backwards. */
static void trace (const sl_program *p, unsigned char *marks) {
  for (size_t i = 0; i < p->n_slots; i++)
    if (p->slot[i].wanted) marks[i] |= SL_DEPENDS;
  for (size_t i = 0; i < p->n_nodes; i++)
    if (differentiable (&p->node[i]) &&
        (mark_all (&p->node[i], 0, marks, 0) & SL_DEPENDS))
      mark_all (&p->node[i], 1, marks, SL_DEPENDS);
  if (p->has_loss) marks[p->loss.slot] |= SL_REACHES;
  for (size_t i = p->n_nodes; i-- > 0;)
    if (differentiable (&p->node[i]) &&
        (mark_all (&p->node[i], 1, marks, 0) & SL_REACHES))
      mark_all (&p->node[i], 0, marks, SL_REACHES);
}

static int any_needed (const sl_node *n, int outputs,
                       const unsigned char *marks) {
  int from = outputs ? n->n_in : 0, to = outputs ? n->n_in + n->n_out : n->n_in;
  for (int i = from; i < to; i++)
    if ((marks[n->operand[i].slot] & SL_NEEDED) == SL_NEEDED) return 1;
  return 0;
}

/* Calls visit for the runs of adjacent elements of an operand until it returns
** 0; returns the result of the last call (1 without calls). */
static int each_run (const sl_operand *o, unsigned char *bytes,
                     int (*visit) (unsigned char *from, ptrdiff_t n)) {
  const sl_view *v = &o->view;
  ptrdiff_t index[SL_MAX_DIMS] = { 0 }, run = 1, at = o->offset;
  int axes = v->ndim;
  if (sl_view_count (v) == 0) return 1;
  if (axes > 0 && v->stride[axes - 1] == 1) run = v->dim[--axes];
  for (;;) {
    int i = axes - 1;
    if (!visit (bytes + at, run)) return 0;
    for (; i >= 0; i--) {
      at += v->stride[i];
      if (++index[i] < v->dim[i]) break;
      at -= v->stride[i] * v->dim[i];
      index[i] = 0;
    }
    if (i < 0) return 1;
  }
}

enum { UNWRITTEN, WRITTEN, CLAIMED }; /* of an element: a byte each */

/* Claim elements for one node; 0 when an element is claimed or written. */
static int claim (unsigned char *b, ptrdiff_t n) {
  for (ptrdiff_t i = 0; i < n; i++) {
    if (b[i] != UNWRITTEN) return 0;
    b[i] = CLAIMED;
  }
  return 1;
}

static int all_written (unsigned char *b, ptrdiff_t n) {
  for (ptrdiff_t i = 0; i < n; i++)
    if (b[i] != WRITTEN) return 0;
  return 1;
}

static int mark_written (unsigned char *b, ptrdiff_t n) {
  memset (b, WRITTEN, (size_t)n);
  return 1;
}

/* The same for all inputs of a node that lie in the slot. */
static int each_input (const sl_node *n, size_t slot, unsigned char *bytes,
                       int (*visit) (unsigned char *from, ptrdiff_t n)) {
  for (int k = 0; k < n->n_in; k++)
    if (n->operand[k].slot == slot && !each_run (&n->operand[k], bytes, visit))
      return 0;
  return 1;
}

static int reads (const sl_node *n, size_t slot) {
  for (int k = 0; k < n->n_in; k++)
    if (n->operand[k].slot == slot) return 1;
  return 0;
}

/* Which nodes assign the gradient of one slot, and when it is set to zero.
** 'bytes' has a byte for each element. An intermediate gradient with elements
** that no node writes is set to zero, since its memory may be shared. */
static void plan_slot (const sl_program *p, sl_gradients *g, size_t slot,
                       unsigned char *bytes) {
  const size_t count = p->slot[slot].storage->count;
  size_t first = g->n_back;
  memset (bytes, UNWRITTEN, count);
  for (size_t i = 0; i < g->n_back; i++) {
    const sl_node *n = &p->node[g->back[i]];
    if (!reads (n, slot)) continue;
    if (first == g->n_back) first = i;
    if (each_input (n, slot, bytes, all_written)) continue;
    if (!(n->op->flags & SL_OP_ASSIGNS) || !each_input (n, slot, bytes, claim))
      goto zeroed;
    each_input (n, slot, bytes, mark_written);
    for (int k = 0; k < n->n_in; k++)
      if (n->operand[k].slot == slot)
        g->assigns[g->back[i]] |= (unsigned char)(1u << k);
  }
  if (sl_gradients_intermediate (p, g, slot) &&
      !all_written (bytes, (ptrdiff_t)count))
    g->zero[slot] = first;
  return;
zeroed:
  g->zero[slot] = first;
  for (size_t i = first; i < g->n_back; i++) {
    const sl_node *n = &p->node[g->back[i]];
    for (int k = 0; k < n->n_in; k++)
      if (n->operand[k].slot == slot)
        g->assigns[g->back[i]] &= (unsigned char)~(1u << k);
  }
}

/* 1: the operand is all of its storage in row-major order. */
static int is_whole (const sl_program *p, const sl_operand *o) {
  return o->offset == 0 && sl_view_contiguous (&o->view) &&
         sl_view_count (&o->view) == p->slot[o->slot].storage->count;
}

/* The number of inputs of nodes of backward that are views of the slot. */
static size_t readers (const sl_program *p, const sl_gradients *g,
                       size_t slot) {
  size_t n = 0;
  for (size_t i = 0; i < g->n_back; i++)
    for (int k = 0; k < p->node[g->back[i]].n_in; k++)
      n += p->node[g->back[i]].operand[k].slot == slot;
  return n;
}

int sl_gradients_intermediate (const sl_program *p, const sl_gradients *g,
                               size_t slot) {
  return p->slot[slot].made && !p->slot[slot].wanted &&
         sl_gradients_has (p, g, slot);
}

/* Let the inputs of a node use the gradient of its output where the two are
** equal. */
static void share (const sl_program *p, sl_gradients *g, const sl_node *n) {
  const sl_operand *out = &n->operand[n->n_in];
  if (!(n->op->flags & SL_OP_GRAD_IS_IDENTITY) || !is_whole (p, out) ||
      !sl_gradients_intermediate (p, g, out->slot))
    return;
  for (int k = 0; k < n->n_in; k++) {
    const sl_operand *in = &n->operand[k];
    if (sl_gradients_intermediate (p, g, in->slot) && is_whole (p, in) &&
        sl_view_same_shape (&in->view, &out->view) &&
        !(p->has_loss && in->slot == p->loss.slot) &&
        readers (p, g, in->slot) == 1)
      g->shares[in->slot] = g->shares[out->slot];
  }
}

int sl_gradients_has (const sl_program *p, const sl_gradients *g, size_t slot) {
  return p->slot[slot].wanted || (g->marks[slot] & SL_NEEDED) == SL_NEEDED;
}

/* A byte for each element of the largest slot that has a gradient. */
static unsigned char *new_bytes (const sl_program *p, const sl_gradients *g) {
  size_t most = 0;
  for (size_t i = 0; i < p->n_slots; i++)
    if (sl_gradients_has (p, g, i) && p->slot[i].storage->count > most)
      most = p->slot[i].storage->count;
  return sl_alloc (most, 1);
}

int sl_gradients_plan (const sl_program *p, sl_gradients *g) {
  unsigned char *bytes = NULL;
  *g = (sl_gradients){ .back = sl_alloc (p->n_nodes, sizeof *g->back),
                       .marks = sl_alloc (p->n_slots, 1),
                       .assigns = sl_alloc (p->n_nodes, 1),
                       .zero = sl_alloc (p->n_slots, sizeof *g->zero),
                       .shares = sl_alloc (p->n_slots, sizeof *g->shares) };
  if (g->marks) {
    trace (p, g->marks);
    bytes = new_bytes (p, g);
  }
  if (!g->back || !g->assigns || !g->zero || !g->shares || !bytes) {
    sl_free (bytes);
    return -1;
  }
  for (size_t i = p->n_nodes; i-- > 0;)
    if (any_needed (&p->node[i], 0, g->marks) &&
        any_needed (&p->node[i], 1, g->marks))
      g->back[g->n_back++] = i;
  for (size_t i = 0; i < p->n_slots; i++) g->shares[i] = i;
  for (size_t i = 0; i < g->n_back; i++) share (p, g, &p->node[g->back[i]]);
  for (size_t i = 0; i < p->n_slots; i++) {
    g->zero[i] = g->n_back;
    if (p->has_loss && i == p->loss.slot)
      g->zero[i] = 0; /* the seed is put there first */
    else if (g->shares[i] == i && sl_gradients_has (p, g, i))
      plan_slot (p, g, i, bytes);
  }
  sl_free (bytes);
  return 0;
}

void sl_gradients_free (sl_gradients *g) {
  sl_free (g->back);
  sl_free (g->marks);
  sl_free (g->assigns);
  sl_free (g->zero);
  sl_free (g->shares);
  sl_free (g->at);
}
