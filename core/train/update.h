/* update.h - the arithmetic of an update on a range of elements.
**
** Ranges are chunks of SL_CHUNK elements, so threads may share an update and
** the bits do not depend on how many there are. */
#ifndef SL_UPDATE_H
#define SL_UPDATE_H
#include "tensor/tensor.h"

enum { SL_CHUNK = 4096 };

/* The factors of one update, worked out once in double. */
typedef struct sl_factors {
  double scale; /* of the gradient: clipping */
  double lr, decay;
  double momentum;          /* SGD */
  double beta1, beta2, eps; /* Adam */
  double lr_hat, sqrt_c2;   /* lr / (1 - beta1^t), sqrt (1 - beta2^t) */
} sl_factors;

/* One table a precision and instruction set. Elements are 'real'; p, g and the
** states do not overlap. */
typedef struct sl_update_kernels {
  /* out = scale * (slot 0 + slot 1 + ...), slots 'stride' elements apart;
  ** returns the sum of out's squares. out may be slot 0. */
  double (*gather) (size_t n, int slots, size_t stride, const void *slot,
                    double scale, void *out);
  double (*squares) (size_t n, const void *g);
  void (*sgd) (size_t n, const sl_factors *f, int nesterov, void *p,
               const void *g, void *momentum); /* momentum NULL: 0 */
  void (*adam) (size_t n, const sl_factors *f, int decoupled, void *p,
                const void *g, void *first, void *second);
} sl_update_kernels;

/* In the instruction set in use. */
const sl_update_kernels *sl_update_pick (sl_dtype dtype);

#endif
