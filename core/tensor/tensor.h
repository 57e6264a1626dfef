/* tensor.h - a tensor is a view (shape, strides, offset) of a counted storage.
**
** Every number is f32 or f64. Integers (token ids, positions, class labels) are
** stored as such numbers, exact up to 2^24 in f32. Views share storage and cost
** nothing; only the main thread makes, retains and releases tensors. */
#ifndef SL_TENSOR_H
#define SL_TENSOR_H
#include "base/error.h"
#include <stddef.h>

enum { SL_MAX_DIMS = 6 };
typedef enum sl_dtype { SL_F32, SL_F64 } sl_dtype;
/* In a file that is compiled per precision: the sl_dtype of its 'real'. */
#define SL_DTYPE (sizeof (real) == 4 ? SL_F32 : SL_F64)

/* What kernels see: no counts, no ownership. Strides are in elements and may be
** 0 (broadcast) or negative. ndim 0 is a scalar. */
typedef struct sl_view {
  void *data;
  int ndim;
  ptrdiff_t dim[SL_MAX_DIMS], stride[SL_MAX_DIMS];
} sl_view;

typedef struct sl_storage {
  int refs;
  sl_dtype dtype;
  size_t count; /* elements */
  void *data;   /* in the same block, aligned to 64 bytes; or the owner's */
  void (*release) (void *owner); /* NULL: the block is all there is */
  void *owner;
} sl_storage;

typedef struct sl_tensor {
  int refs;
  sl_storage *storage; /* retained */
  ptrdiff_t offset;    /* in elements */
  int ndim;
  ptrdiff_t dim[SL_MAX_DIMS], stride[SL_MAX_DIMS];
} sl_tensor;

/* "f32", "f64"; sl_dtype_parse fails for any other name. */
const char *sl_dtype_name (sl_dtype dtype);
int sl_dtype_parse (const char *name, sl_dtype *dtype, sl_error *e);
size_t sl_dtype_size (sl_dtype dtype);

/* *count = product of the sizes with 0 taken as 1 (so that strides fit too); -1
** if a size is negative or the elements are more than memory can hold. */
int sl_shape_count (int ndim, const ptrdiff_t *dim, size_t *count);

/* A new zero-filled row-major tensor, owned by the caller (refs 1). Fails on a
** negative size, more than SL_MAX_DIMS axes, an overflow or no memory. A size
** of 0 is allowed. */
sl_tensor *sl_tensor_new (sl_dtype dtype, int ndim, const ptrdiff_t *dim,
                          sl_error *e);
/* A row-major tensor whose numbers lie in memory of another: when its last view
** goes, release (owner) is called. The memory can be written to and is aligned
** to the size of a number. On failure nothing is released. */
sl_tensor *sl_tensor_over (sl_dtype dtype, int ndim, const ptrdiff_t *dim,
                           void *data, void (*release) (void *owner),
                           void *owner, sl_error *e);
sl_tensor *sl_tensor_scalar (sl_dtype dtype, double value, sl_error *e);
sl_tensor *sl_tensor_retain (sl_tensor *t);
void sl_tensor_release (sl_tensor *t); /* NULL is allowed */

/* A storage without a tensor, for owners of memory without a shape
** (programs). */
sl_storage *sl_storage_retain (sl_storage *s);
void sl_storage_release (sl_storage *s); /* NULL is allowed */

/* Valid while t's storage is. */
sl_view sl_tensor_view (const sl_tensor *t);
size_t sl_view_count (const sl_view *v);   /* product of the sizes */
int sl_view_contiguous (const sl_view *v); /* row-major without gaps */
int sl_view_same_shape (const sl_view *a, const sl_view *b);
/* Row-major strides for v's shape; data is left alone. */
void sl_view_pack (sl_view *v);
/* "(128, 16, 16)" into text (SL_SHAPE_TEXT chars always suffice); returns
** text. */
enum { SL_SHAPE_TEXT = SL_MAX_DIMS * 22 + 4 };
char *sl_shape_text (int ndim, const ptrdiff_t *dim, char *text, size_t size);

/* Views: new tensors that share t's storage. Axes count from 0; a negative axis
** counts from the end. Errors name the axis, the size and the bounds. */
sl_tensor *sl_tensor_narrow (sl_tensor *t, int axis, ptrdiff_t start,
                             ptrdiff_t length, sl_error *e);
sl_tensor *sl_tensor_select (sl_tensor *t, int axis, ptrdiff_t index,
                             sl_error *e);
sl_tensor *sl_tensor_transpose (sl_tensor *t, int axis_a, int axis_b,
                                sl_error *e);
/* One size may be -1 (inferred). Fails where no view can do it (the caller then
** copies first: sl_tensor_can_reshape tells). */
sl_tensor *sl_tensor_reshape (sl_tensor *t, int ndim, const ptrdiff_t *dim,
                              sl_error *e);
int sl_tensor_can_reshape (const sl_tensor *t, int ndim, const ptrdiff_t *dim);
/* To a larger shape by the usual broadcasting rule (align at the end). */
sl_tensor *sl_tensor_broadcast (sl_tensor *t, int ndim, const ptrdiff_t *dim,
                                sl_error *e);

/* The shape that a and b broadcast to; fails naming both shapes. */
int sl_broadcast_shape (const sl_view *a, const sl_view *b, sl_view *out,
                        sl_error *e);

/* Element access by row-major index 0..count-1, in double. No bounds check. */
double sl_view_get (const sl_view *v, sl_dtype dtype, size_t index);
void sl_view_set (const sl_view *v, sl_dtype dtype, size_t index, double x);
/* All elements, row-major. n must equal the count. */
int sl_tensor_from_doubles (sl_tensor *t, size_t n, const double *x,
                            sl_error *e);
void sl_tensor_to_doubles (const sl_tensor *t, double *x);
void sl_tensor_fill (sl_tensor *t, double x);
/* A summary for a person, as lines without a newline at the end: shape,
** precision, least, mean and largest value; all numbers in rows when there are
** at most 100. Blocks are named by their position counted from 1. sl_free it;
** NULL without memory. */
char *sl_tensor_text (const sl_tensor *t);
/* dst = src, same shape, any strides and precisions. */
int sl_tensor_copy (sl_tensor *dst, const sl_tensor *src, sl_error *e);
#endif
