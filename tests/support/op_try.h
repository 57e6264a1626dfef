/* op_try.h - run operations on tensors of doubles, in every build of them. */
#ifndef OP_TRY_H
#define OP_TRY_H
#include "ops/ops.h"
#include "program/program.h"

/* What a test function receives: a context, and what is being tested. */
typedef struct op_try {
  sl_context context;
  sl_dtype dtype;
  const char *isa;
  uint64_t seed; /* of op_random */
} op_try;

/* Run test once for each precision and instruction set of this machine. */
void op_each (void (*test) (op_try *t));

#define DIMS(...)                                                    \
  (int)(sizeof ((ptrdiff_t[]){ __VA_ARGS__ }) / sizeof (ptrdiff_t)), \
      (const ptrdiff_t[]) {                                          \
    __VA_ARGS__                                                      \
  }

/* New tensors; release them. Values are rounded to the precision. */
sl_tensor *op_zeros (op_try *t, int ndim, const ptrdiff_t *dim);
sl_tensor *op_random (op_try *t, double low, double high, int ndim,
                      const ptrdiff_t *dim);
sl_tensor *op_values (op_try *t, const double *x, int ndim,
                      const ptrdiff_t *dim);
/* Element by row-major index. */
double op_at (const sl_tensor *x, size_t i);
size_t op_count (const sl_tensor *x);

/* The op's only output; any error fails the test with its sentence. */
sl_tensor *op_call (op_try *t, const char *op, const void *attr, int n_in,
                    sl_tensor *const *in);
/* The same call must fail, and its sentence contain 'words'. */
void op_refuses (op_try *t, const char *op, const void *attr, int n_in,
                 sl_tensor *const *in, const char *words);

/* d (sum of cotangent * output) / d input k of an op with one output, where all
** inputs are row-major; the gradient is on top of zero. */
sl_tensor *op_gradient (op_try *t, const char *op, const void *attr, int n_in,
                        sl_tensor *const *in, int k, sl_tensor *cotangent);

/* The relative rounding error of one operation in the precision: 'f32' units in
** the last place for f32, 'f64' for f64. */
double op_ulps (const op_try *t, double f32, double f64);
#endif
