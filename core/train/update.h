/* update.h - the arithmetic of an update on a range of elements.
**
** Ranges are chunks of SL_CHUNK elements, so threads may share an update and
** the bits do not depend on how many there are. */
#ifndef SL_UPDATE_H
#define SL_UPDATE_H
#include "train/train.h"

enum { SL_CHUNK = 4096 };

enum { SL_UPDATE_FACTORS = 8, SL_UPDATE_STATES = 2 };

/* The kind of optimizer in a precision and instruction set. p, g and the states
** are n elements of 'real' that do not overlap. */
typedef struct sl_optimizer_kind {
  const char *name;
  sl_optimizer_option option[SL_OPTIMIZER_OPTIONS];
  /* How many arrays of n elements it keeps between updates. */
  int (*states) (const double *option);
  /* NULL, or why these options do not go together. */
  const char *(*refuse) (const double *option);
  /* What update number 'step' (from 1) needs, worked out once in double. */
  void (*factors) (const double *option, double lr, long step, double *f);
  /* g is multiplied by 'scale' (clipping) first. */
  void (*update) (size_t n, double scale, const double *f, void *p,
                  const void *g, void *const *state);
} sl_optimizer_kind;

/* One table a precision and instruction set. */
typedef struct sl_update_kernels {
  /* out = scale * (slot 0 + slot 1 + ...), slots 'stride' elements apart;
  ** returns the sum of out's squares. out may be slot 0. */
  double (*gather) (size_t n, int slots, size_t stride, const void *slot,
                    double scale, void *out);
  const sl_optimizer_kind *optimizer; /* ends with name NULL */
} sl_update_kernels;

/* In the instruction set in use. */
const sl_update_kernels *sl_update_pick (sl_dtype dtype);

/* The factors of one update. */
typedef struct sl_factors {
  double scale, factor[SL_UPDATE_FACTORS];
} sl_factors;
/* Of update number 'step' (from 1) for a gradient of this 2-norm. */
sl_factors sl_optimizer_factors (const sl_optimizer *o, double norm, double lr,
                                 long step);
/* The update of elements begin..end-1 of n; begin is a multiple of SL_CHUNK. */
void sl_optimizer_range (const sl_optimizer *o, const sl_factors *f,
                         sl_dtype dtype, size_t n, size_t begin, size_t end,
                         void *parameters, const void *gradient, void *state);
#endif
