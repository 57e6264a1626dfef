/* map.h - elementwise kernels over views: apply one, or sum its values into a
** gradient that may be smaller than the result (broadcasting in reverse).
**
** A kernel is one plain loop over contiguous operands; strides, broadcasting
** and long sums are the business of the two functions below. */
#ifndef SL_MAP_H
#define SL_MAP_H
#include "ops/walk.h"

enum { SL_MAP_IN = 5 };

/* n results from n elements of each operand; x always has SL_MAP_IN pointers,
** NULL for operands that were not given. */
typedef void (*sl_kernel) (ptrdiff_t n, const real *const *x, real *restrict y);

/* y = kernel (x). y is contiguous; each x broadcasts to y's shape. A kernel for
** this assigns y[i]. x[k] NULL: the kernel does not use it. */
void SL (sl_map) (sl_kernel kernel, int n, const sl_view *const *x,
                  const sl_view *y);

/* The same of the two operands x[0] and x[1], by rows: 1, or 0 and nothing done
** when rows of the last axis are too short or lie in another way. Bits are
** those of sl_map. */
int SL (sl_map_pair) (sl_pair_kernel kernel, const sl_view *x,
                      const sl_view *y);

/* target += kernel (x), summed over the axes that target repeats (its own
** broadcasting to 'shape', and strides of 0); sums run in double in a fixed
** order. A kernel for this ADDS to y[i]. kernel NULL: the values of x[0]
** themselves. Nothing happens when target has no data. Only the shape of
** 'shape' is used. */
void SL (sl_fold) (sl_kernel kernel, int n, const sl_view *const *x,
                   const sl_view *target, const sl_view *shape);

/* The gradient of an input of an op that assigns: target = assign (x) if it is
** fresh (see sl_run), else target += add (x) as sl_fold has it. 'assign' sets
** y[i] to what 'add' adds. */
void SL (sl_give) (int fresh, sl_kernel assign, sl_kernel add, int n,
                   const sl_view *const *x, const sl_view *target,
                   const sl_view *shape);
#endif
