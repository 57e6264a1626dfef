/* pack.c - intermediate gradients in one block of memory, each only while it is
** used.
**
** The order of backward is known, and so are the first and the last step that
** use a gradient. Two gradients whose lifetimes are disjoint may share memory.
** In the order of their first step, each gets the lowest offset that is free
** during its lifetime. Backward goes from layer to layer, so it reuses the
** memory that it has just used, which is still in the cache. */
#include "base/memory.h"
#include "base/number.h"
#include "program/gradients.h"
#include <stdint.h>

enum { LINE = 64 }; /* bytes that gradients are aligned to */

/* One gradient: alive in the steps first..last, in the bytes from..to. */
typedef struct span {
  size_t slot, first, last, from, to;
} span;

/* list[0..]: one span for each slot with an intermediate gradient, in the order
** of their first step; returns their number. 'index' (per slot) is scratch. */
static size_t find_spans (const sl_program *p, const sl_gradients *g,
                          size_t *index, span *list) {
  size_t n = 0;
  for (size_t i = 0; i < p->n_slots; i++) index[i] = SIZE_MAX;
  if (p->has_loss && sl_gradients_intermediate (p, g, p->loss.slot)) {
    index[p->loss.slot] = n; /* the seed is written before the first step */
    list[n++] = (span){ .slot = p->loss.slot };
  }
  for (size_t i = 0; i < g->n_back; i++) {
    const sl_node *node = &p->node[g->back[i]];
    for (int k = 0; k < node->n_in + node->n_out; k++) {
      const size_t slot = g->shares[node->operand[k].slot];
      if (!sl_gradients_intermediate (p, g, slot)) continue;
      if (index[slot] == SIZE_MAX) {
        index[slot] = n;
        list[n++] = (span){ .slot = slot, .first = i };
      }
      list[index[slot]].last = i;
    }
  }
  return n;
}

/* The lowest offset of 'size' bytes that overlap no earlier span alive at the
** same time: 0, or the end of such a span. */
static size_t lowest_offset (const span *list, size_t n, const span *s,
                             size_t size) {
  size_t at = 0, i = 0;
  while (i < n) {
    const span *other = &list[i++];
    if (other->last < s->first || other->from >= at + size || other->to <= at)
      continue;
    at = other->to;
    i = 0;
  }
  return at;
}

/* Give all spans their offsets; -1: too large. */
static int assign_offsets (const sl_program *p, sl_gradients *g, span *list,
                           size_t n) {
  for (size_t i = 0; i < n; i++) {
    span *s = &list[i];
    const sl_storage *storage = p->slot[s->slot].storage;
    size_t size;
    if (sl_size_mul (storage->count, sl_dtype_size (storage->dtype), &size) ||
        size > SIZE_MAX / 4 - g->packed)
      return -1;
    size = sl_round_up (size, LINE);
    s->from = lowest_offset (list, i, s, size);
    s->to = s->from + size;
    g->at[s->slot] = s->from;
    if (s->to > g->packed) g->packed = s->to;
  }
  return 0;
}

int sl_gradients_pack (const sl_program *p, sl_gradients *g) {
  size_t *index = sl_alloc (p->n_slots, sizeof *index);
  span *list = sl_alloc (p->n_slots, sizeof *list);
  int done = -1;
  g->at = sl_alloc (p->n_slots, sizeof *g->at);
  if (index != NULL && list != NULL && g->at != NULL)
    done = assign_offsets (p, g, list, find_spans (p, g, index, list));
  sl_free (index);
  sl_free (list);
  return done;
}
