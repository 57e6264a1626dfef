/* gradients.h - which gradients a replica computes, and which are assigned.
**
** The gradient of a value is the sum of a contribution of each node that reads
** the value. The first of these nodes, in the order of backward, may assign its
** contribution (beta 0) instead of adding it (beta 1) if its operation can
** (SL_OP_ASSIGNS) and its views cover elements that no node has written before,
** each element once. The gradient need not be set to zero then, except an
** intermediate one with elements that no node writes.
**
** Where a value is read by one sum (SL_OP_GRAD_IS_IDENTITY) and by nothing
** else, its gradient equals that of the sum: the two share their memory, and
** the backward of the sum is nothing. */
#ifndef SL_GRADIENTS_H
#define SL_GRADIENTS_H
#include "program/record.h"

/* Marks of a slot. */
enum {
  SL_DEPENDS = 1, /* it depends on a wanted storage */
  SL_REACHES = 2, /* the loss depends on it */
  SL_NEEDED = SL_DEPENDS | SL_REACHES
};

typedef struct sl_gradients {
  size_t n_back;
  size_t *back;           /* nodes that backward visits, last first */
  unsigned char *marks;   /* per slot */
  unsigned char *assigns; /* per node: bit k: input k is assigned */
  /* Per slot: the step (index into 'back') before which its gradient is set to
  ** zero; n_back: never. */
  size_t *zero;
  size_t *shares; /* per slot: the slot whose memory its gradient uses */
  /* After sl_gradients_pack, of an intermediate slot with memory of its own:
  ** its offset in one block of 'packed' bytes. NULL: each is allocated
  ** alone. */
  size_t *at;
  size_t packed;
} sl_gradients;

/* Plan the gradients of the program as it is. -1: out of memory. Free the plan
** in both cases. */
int sl_gradients_plan (const sl_program *p, sl_gradients *g);
void sl_gradients_free (sl_gradients *g);
/* 1: a gradient of the slot is computed. */
int sl_gradients_has (const sl_program *p, const sl_gradients *g, size_t slot);
/* 1: it is computed, of a value that the program makes, and not wanted. */
int sl_gradients_intermediate (const sl_program *p, const sl_gradients *g,
                               size_t slot);

/* Let intermediate gradients share memory when their lifetimes, from the first
** to the last step of backward that uses them, are disjoint: fills 'at' and
** 'packed'. -1: out of memory, or more bytes than a size_t holds. */
int sl_gradients_pack (const sl_program *p, sl_gradients *g);
#endif
