/* broadcast.h - elementwise kernels over views that broadcast: y = kernel (x),
** and target += kernel (x) summed over the axes that the target repeats.
**
** A kernel is one plain loop over contiguous operands. The functions below turn
** strides, broadcasting and long sums into calls of it. */
#ifndef SL_BROADCAST_H
#define SL_BROADCAST_H
#include "ops/walk.h"

enum { SL_KERNEL_IN = 5 };

/* n results from n elements of each operand; x always has SL_KERNEL_IN
** pointers, NULL for operands that were not given. */
typedef void (*sl_kernel) (ptrdiff_t n, const real *const *x, real *restrict y);

/* y = kernel (x). y is contiguous; each x broadcasts to y's shape. The kernel
** assigns y[i]. x[k] NULL: the kernel does not use it. */
void SL (sl_elementwise) (sl_kernel kernel, int n, const sl_view *const *x,
                          const sl_view *y);

/* y = kernel (x[0], x[1]), by rows of the last axis. Returns 1, or 0 and leaves
** y alone when rows have less than SL_PAIR_MIN elements or strides other than 0
** and 1. The bits are those of sl_elementwise. */
int SL (sl_elementwise_pair) (sl_pair_kernel kernel, const sl_view *x,
                              const sl_view *y);

/* target += kernel (x), summed over the axes of 'shape' that target does not
** have or repeats (stride 0). Sums run in double in a fixed order. The kernel
** ADDS to y[i]; NULL: it adds x[0]. Without data of target nothing is done.
** Only the dimensions of 'shape' are read. */
void SL (sl_accumulate) (sl_kernel kernel, int n, const sl_view *const *x,
                         const sl_view *target, const sl_view *shape);

/* The gradient of an input of an op with SL_OP_ASSIGNS: target = assign (x) if
** its bit in sl_run.assigns is set, else target += add (x) as sl_accumulate
** does. 'assign' stores in y[i] the number that 'add' adds to it. */
void SL (sl_write_gradient) (int assigns, sl_kernel assign, sl_kernel add,
                             int n, const sl_view *const *x,
                             const sl_view *target, const sl_view *shape);
#endif
