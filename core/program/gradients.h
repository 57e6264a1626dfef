/* gradients.h - which gradients a replica computes, and how each one begins.
**
** A gradient is a sum over the nodes that read the value. The first of them in
** the order of backward may assign instead of adding, if its operation can
** (SL_OP_ASSIGNS) and its views are, together, elements that nobody has written
** before, each once: nothing must be set to zero then, but for an inner
** gradient whose views leave something out. Where a value goes into one sum
** (SL_OP_GRAD_IS_IDENTITY) and nowhere else, its gradient is that of the sum: the two are
** one place, and the sum has nothing to do. */
#ifndef SL_GRADIENTS_H
#define SL_GRADIENTS_H
#include "program/record.h"

/* What backward must know of a slot. */
enum {
  SL_DEPENDS = 1, /* on something wanted */
  SL_REACHES = 2, /* the loss */
  SL_NEEDED = SL_DEPENDS | SL_REACHES
};

typedef struct sl_gradients {
  size_t n_back;
  size_t *back;         /* nodes that backward visits, last first */
  unsigned char *marks; /* per slot */
  unsigned char *fresh; /* per node: bit k: input k is assigned */
  /* Per slot: it is set to zero before the node at this place of 'back' runs;
  ** n_back: never. */
  size_t *zero;
  size_t *place; /* per slot: the slot whose gradient is also its own */
  /* After sl_gradients_pack, of an inner slot that is its own place: where it
  ** lies in one piece of 'packed' bytes. NULL: each has memory of its own. */
  size_t *at;
  size_t packed;
} sl_gradients;

/* Work all of it out for the program as it is; -1: no memory; what there is is
** to be freed as well. */
int sl_gradients_plan (const sl_program *p, sl_gradients *g);
void sl_gradients_free (sl_gradients *g);
/* 1: the slot has a gradient. */
int sl_gradients_has (const sl_program *p, const sl_gradients *g, size_t slot);
/* 1: and it is one that the program makes itself and nobody asks for. */
int sl_gradients_inner (const sl_program *p, const sl_gradients *g,
                        size_t slot);

/* Let the inner gradients share memory, each being there only from the first
** node of backward that touches it to the last: fills 'at' and 'packed'. -1: no
** memory, or more than a size_t holds. */
int sl_gradients_pack (const sl_program *p, sl_gradients *g);
#endif
