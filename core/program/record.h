/* record.h - the inside of a program, for core/program only. */
#ifndef SL_RECORD_H
#define SL_RECORD_H
#include "program/program.h"

/* A storage that the program touches: made by a node (local), an input, or,
** when it is neither, shared: read where it lies. */
typedef struct sl_slot {
  sl_storage *storage; /* retained, so that its address stays its name */
  int made, input, wanted;
} sl_slot;

/* A view of a slot. view.data is NULL; offset in elements. */
typedef struct sl_operand {
  size_t slot;
  ptrdiff_t offset;
  sl_view view;
} sl_operand;

typedef struct sl_node {
  const sl_op *op;
  sl_dtype dtype;
  int n_in, n_out, op_index;
  size_t saved, scratch; /* bytes */
  const void *attr;      /* in operand's block; NULL if the op has none */
  sl_operand *operand;   /* owned; n_in inputs, then n_out outputs */
} sl_node;

struct sl_program {
  size_t refs; /* its owner and its replicas */
  size_t n_nodes, node_room, n_slots, slot_room;
  sl_node *node;
  sl_slot *slot;
  size_t *table; /* hash of storage -> slot + 1; table_size is a power of two */
  size_t table_size;
  sl_operand loss;
  int has_loss, serial;
};

/* The slot of a storage, or -1. */
ptrdiff_t sl_slot_find (const sl_program *p, const sl_storage *s);

/* Append a node in two halves: prepare does all that can fail (and leaves the
** program as it was), commit cannot fail and takes over node->operand. */
int sl_node_prepare (sl_program *p, const sl_op *op, const void *attr, int n_in,
                     int n_out, sl_node *node, sl_error *e);
void sl_node_commit (sl_program *p, sl_node *node, sl_tensor *const *in,
                     sl_tensor *const *out);
#endif
