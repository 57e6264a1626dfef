/* op_bench.h - one operation run by itself on given numbers, in either
** precision.
**
** Outputs, saved and scratch are NaN before each pass, so that whatever a
** kernel forgets to write shows. */
#ifndef OP_BENCH_H
#define OP_BENCH_H
#include "ops/op.h"

typedef struct op_bench {
  sl_dtype dtype;
  const sl_op *op;
  const void *attr;
  void *observer;
  sl_draw draw;
  int n_in;
  sl_view in[SL_MAX_IN], din[SL_MAX_IN]; /* row-major; owned */
  sl_view out[SL_MAX_OUT], dout[SL_MAX_OUT];
  void *saved, *scratch;
  size_t n_saved, n_scratch;
  int backwards; /* passes so far */
} op_bench;

/* The op in the instruction set in use; fails the test if there is none. 'attr'
** is kept, not copied. */
void op_bench_start (op_bench *b, sl_dtype dtype, const char *op,
                     const void *attr);
/* The next input, rounded to the precision. Its gradient starts as zero. */
void op_bench_input (op_bench *b, int ndim, const ptrdiff_t *dim,
                     const double *x);
void op_bench_forward (op_bench *b);
/* Gradients for this cotangent of output 0 (row-major), added to b->din. The
** first time, what an op with SL_OP_ASSIGNS assigns must be the same. */
void op_bench_backward (op_bench *b, const double *dout);
/* The sentence with which shapes refuses the inputs; fails if it takes them. */
const char *op_bench_refusal (op_bench *b);
void op_bench_free (op_bench *b);

/* Element i, row-major, of a view of the bench. */
double op_bench_at (const op_bench *b, const sl_view *v, size_t i);
/* 1 if two views of equal shape hold the same bits. */
int op_bench_same (const op_bench *a, const sl_view *x, const sl_view *y);
#endif
