/* program.c - the list of operations that a recording leaves. */
#include "base/memory.h"
#include "base/number.h"
#include "program/record.h"
#include <stdint.h>
#include <stdio.h>
#include <string.h>

sl_program *sl_program_begin (sl_context *c, sl_error *e) {
  sl_program *p;
  if (c->recording != NULL) {
    sl_fail (e, "record: another program is being recorded");
    return NULL;
  }
  p = sl_alloc (1, sizeof *p);
  if (p == NULL) {
    sl_fail (e, "record: out of memory");
    return NULL;
  }
  p->refs = 1;
  c->recording = p;
  return p;
}

void sl_program_end (sl_context *c, sl_program *p) {
  if (c->recording == p) c->recording = NULL;
}

void sl_program_free (sl_program *p) {
  if (p == NULL || --p->refs > 0) return;
  for (size_t i = 0; i < p->n_nodes; i++) {
    const sl_node *n = &p->node[i];
    if (n->op->release != NULL) n->op->release (n->attr);
    sl_free (n->operand);
  }
  for (size_t i = 0; i < p->n_slots; i++)
    sl_storage_release (p->slot[i].storage);
  sl_free (p->node);
  sl_free (p->slot);
  sl_free (p->table);
  sl_free (p);
}

/* Make room for 'more' elements behind the n that array holds. */
static int grow (void *array, size_t *have, size_t n, size_t more,
                 size_t size) {
  void **a = array, *bigger;
  size_t want = n + more;
  if (want <= *have) return 0;
  if (want < 2 * *have) want = 2 * *have;
  bigger = sl_alloc (want, size);
  if (bigger == NULL) return -1;
  if (n > 0) memcpy (bigger, *a, n * size);
  sl_free (*a);
  *a = bigger;
  *have = want;
  return 0;
}

/* The place of s in the table, or the empty one where it belongs. */
static size_t probe (const size_t *table, size_t size, const sl_slot *slot,
                     const sl_storage *s) {
  size_t i = (size_t)((uintptr_t)s / 64 * 0x9e3779b97f4a7c15u >> 20);
  for (i &= size - 1; table[i] != 0; i = (i + 1) & (size - 1))
    if (slot[table[i] - 1].storage == s) break;
  return i;
}

ptrdiff_t sl_slot_find (const sl_program *p, const sl_storage *s) {
  if (p->table_size == 0) return -1;
  return (ptrdiff_t)p->table[probe (p->table, p->table_size, p->slot, s)] - 1;
}

/* Room for 'more' slots, so that slot_of cannot fail. */
static int reserve_slots (sl_program *p, size_t more) {
  size_t size = p->table_size > 0 ? p->table_size : 64, *table;
  if (grow (&p->slot, &p->slot_room, p->n_slots, more, sizeof *p->slot) < 0)
    return -1;
  while (size < 2 * (p->n_slots + more)) size *= 2;
  if (size == p->table_size) return 0;
  table = sl_alloc (size, sizeof *table);
  if (table == NULL) return -1;
  for (size_t i = 0; i < p->n_slots; i++)
    table[probe (table, size, p->slot, p->slot[i].storage)] = i + 1;
  sl_free (p->table);
  p->table = table;
  p->table_size = size;
  return 0;
}

/* The slot of s, made if new (room is reserved). */
static size_t slot_of (sl_program *p, sl_storage *s) {
  size_t i = probe (p->table, p->table_size, p->slot, s);
  if (p->table[i] == 0) {
    p->slot[p->n_slots] = (sl_slot){ .storage = sl_storage_retain (s) };
    p->table[i] = ++p->n_slots;
  }
  return p->table[i] - 1;
}

static sl_operand operand_of (sl_program *p, const sl_tensor *t) {
  sl_operand o = { .slot = slot_of (p, t->storage),
                   .offset = t->offset,
                   .view = sl_tensor_view (t) };
  o.view.data = NULL;
  return o;
}

/* How many nodes have an op of this name. */
static int count_of (const sl_program *p, const char *op) {
  int n = 0;
  for (size_t i = 0; i < p->n_nodes; i++)
    n += strcmp (p->node[i].op->name, op) == 0;
  return n;
}

int sl_node_prepare (sl_program *p, const sl_op *op, const void *attr, int n_in,
                     int n_out, sl_node *node, sl_error *e) {
  size_t operands = (size_t)(n_in + n_out) * sizeof *node->operand;
  size_t skip = sl_round_up (operands, 64);
  char *block;
  if (grow (&p->node, &p->node_room, p->n_nodes, 1, sizeof *p->node) < 0 ||
      reserve_slots (p, (size_t)(n_in + n_out)) < 0 ||
      (block = sl_alloc (skip + op->attr_size, 1)) == NULL)
    return sl_fail (e, "out of memory while recording");
  node->op = op;
  node->n_in = n_in;
  node->n_out = n_out;
  node->op_index = count_of (p, op->name);
  node->operand = (sl_operand *)block;
  if (op->attr_size > 0) {
    memcpy (block + skip, attr, op->attr_size);
    node->attr = block + skip;
  }
  return 0;
}

void sl_node_commit (sl_program *p, sl_node *node, sl_tensor *const *in,
                     sl_tensor *const *out) {
  for (int i = 0; i < node->n_in; i++) node->operand[i] = operand_of (p, in[i]);
  for (int i = 0; i < node->n_out; i++) {
    node->operand[node->n_in + i] = operand_of (p, out[i]);
    p->slot[node->operand[node->n_in + i].slot].made = 1;
  }
  p->serial |= (node->op->flags & SL_OP_SERIAL) != 0;
  p->node[p->n_nodes++] = *node;
}

int sl_program_want (sl_program *p, sl_tensor *t, sl_error *e) {
  ptrdiff_t i = sl_slot_find (p, t->storage);
  if (i < 0)
    return sl_fail (e, "want: no operation of the program uses this tensor");
  p->slot[i].wanted = 1;
  return 0;
}

int sl_program_loss (sl_program *p, sl_tensor *loss, sl_error *e) {
  char text[SL_SHAPE_TEXT];
  ptrdiff_t i = sl_slot_find (p, loss->storage);
  sl_view v = sl_tensor_view (loss);
  if (sl_view_count (&v) != 1)
    return sl_fail (e, "loss: must be one number, got shape %s",
                    sl_shape_text (loss->ndim, loss->dim, text, sizeof text));
  if (i < 0 || !p->slot[i].made)
    return sl_fail (e, "loss: no operation of the program made this tensor");
  p->loss = operand_of (p, loss);
  p->has_loss = 1;
  return 0;
}

int sl_program_input (sl_program *p, sl_tensor *t, sl_error *e) {
  size_t i;
  if (reserve_slots (p, 1) < 0) return sl_fail (e, "input: out of memory");
  i = slot_of (p, t->storage);
  if (p->slot[i].made)
    return sl_fail (e, "input: an operation of the program made this tensor");
  p->slot[i].input = 1;
  return 0;
}

int sl_program_is_input (const sl_program *p, const sl_tensor *t) {
  const ptrdiff_t i = sl_slot_find (p, t->storage);
  return i >= 0 && p->slot[i].input;
}

int sl_program_serial (const sl_program *p) {
  return p->serial;
}
size_t sl_program_nodes (const sl_program *p) {
  return p->n_nodes;
}
const sl_op *sl_program_op (const sl_program *p, size_t node) {
  return p->node[node].op;
}
int sl_program_uses (const sl_program *p, const sl_tensor *t) {
  return sl_slot_find (p, t->storage) >= 0;
}

/* Like snprintf for the whole text: returns its length. */
static size_t write_text (const sl_program *p, char *text, size_t size) {
  char shape[SL_SHAPE_TEXT];
  size_t n = 0;
#define PUT(...)                                                              \
  n += (size_t)snprintf (n < size ? text + n : NULL, n < size ? size - n : 0, \
                         __VA_ARGS__)
  for (size_t i = 0; i < p->n_nodes; i++) {
    const sl_node *node = &p->node[i];
    PUT ("%4zu  %s", i + 1, node->op->name);
    for (int k = 0; k < node->n_in + node->n_out; k++) {
      const sl_view *v = &node->operand[k].view;
      PUT ("%s%s", k == node->n_in ? " -> " : " ",
           sl_shape_text (v->ndim, v->dim, shape, sizeof shape));
    }
    PUT ("\n");
  }
#undef PUT
  return n;
}

char *sl_program_text (const sl_program *p) {
  size_t n = write_text (p, NULL, 0);
  char *text = sl_alloc (n + 1, 1);
  if (text != NULL) write_text (p, text, n + 1);
  return text;
}
