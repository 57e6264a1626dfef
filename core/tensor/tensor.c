/* tensor.c - storages and tensors: made, counted, filled, copied. */
#include "tensor/tensor.h"
#include "base/memory.h"
#include <string.h>

/* The numbers of a storage follow it in one block, this far from its start. */
enum { HEADER = 64 };
_Static_assert(sizeof (sl_storage) <= HEADER, "a storage fits its header");

static const char *const names[] = { "f32", "f64" };

const char *sl_dtype_name (sl_dtype dtype) {
  return names[dtype];
}

size_t sl_dtype_size (sl_dtype dtype) {
  return dtype == SL_F32 ? sizeof (float) : sizeof (double);
}

int sl_dtype_parse (const char *name, sl_dtype *dtype, sl_error *e) {
  for (int i = 0; i < 2; i++)
    if (strcmp (name, names[i]) == 0) {
      *dtype = (sl_dtype)i;
      return 0;
    }
  return sl_fail (e, "unknown dtype '%s': must be 'f32' or 'f64'", name);
}

/* count is one that sl_shape_count allowed, so the bytes fit; 'room' says how
** many of the numbers are in the block. */
static sl_storage *storage_new (sl_dtype dtype, size_t count, size_t room) {
  sl_storage *s = sl_alloc (HEADER + room * sl_dtype_size (dtype), 1);
  if (s == NULL) return NULL;
  s->refs = 1;
  s->dtype = dtype;
  s->count = count;
  s->data = (char *)s + HEADER;
  return s;
}

sl_storage *sl_storage_retain (sl_storage *s) {
  s->refs++;
  return s;
}

void sl_storage_release (sl_storage *s) {
  if (s == NULL || --s->refs > 0) return;
  if (s->release != NULL) s->release (s->owner);
  sl_free (s);
}

/* A tensor with a storage that holds its numbers, or none of them. */
static sl_tensor *tensor_new (sl_dtype dtype, int ndim, const ptrdiff_t *dim,
                              int holds, sl_error *e) {
  char text[SL_SHAPE_TEXT];
  size_t count;
  sl_tensor *t;
  sl_view v = { .ndim = ndim };
  if (ndim < 0 || ndim > SL_MAX_DIMS) {
    sl_fail (e, "a tensor cannot have %d axes: at most %d", ndim, SL_MAX_DIMS);
    return NULL;
  }
  if (sl_shape_count (ndim, dim, &count) < 0) {
    sl_fail (e, "shape %s has a negative size or is too large",
             sl_shape_text (ndim, dim, text, sizeof text));
    return NULL;
  }
  for (int i = 0; i < ndim; i++) v.dim[i] = dim[i];
  sl_view_pack (&v);
  count = sl_view_count (&v);
  t = sl_alloc (1, sizeof *t);
  if (t != NULL) t->storage = storage_new (dtype, count, holds ? count : 0);
  if (t == NULL || t->storage == NULL) {
    sl_free (t);
    sl_fail (e, "out of memory for a tensor of shape %s (%zu bytes)",
             sl_shape_text (ndim, dim, text, sizeof text),
             count * sl_dtype_size (dtype));
    return NULL;
  }
  t->refs = 1;
  t->ndim = ndim;
  memcpy (t->dim, v.dim, sizeof t->dim);
  memcpy (t->stride, v.stride, sizeof t->stride);
  return t;
}

sl_tensor *sl_tensor_new (sl_dtype dtype, int ndim, const ptrdiff_t *dim,
                          sl_error *e) {
  return tensor_new (dtype, ndim, dim, 1, e);
}

sl_tensor *sl_tensor_over (sl_dtype dtype, int ndim, const ptrdiff_t *dim,
                           void *data, void (*release) (void *owner),
                           void *owner, sl_error *e) {
  sl_tensor *t = tensor_new (dtype, ndim, dim, 0, e);
  if (t == NULL) return NULL;
  t->storage->data = data;
  t->storage->release = release;
  t->storage->owner = owner;
  return t;
}

sl_tensor *sl_tensor_scalar (sl_dtype dtype, double value, sl_error *e) {
  sl_tensor *t = sl_tensor_new (dtype, 0, NULL, e);
  if (t != NULL) sl_tensor_fill (t, value);
  return t;
}

sl_tensor *sl_tensor_retain (sl_tensor *t) {
  t->refs++;
  return t;
}

void sl_tensor_release (sl_tensor *t) {
  if (t == NULL || --t->refs > 0) return;
  sl_storage_release (t->storage);
  sl_free (t);
}

sl_view sl_tensor_view (const sl_tensor *t) {
  sl_view v = { .ndim = t->ndim };
  v.data = (char *)t->storage->data +
           t->offset * (ptrdiff_t)sl_dtype_size (t->storage->dtype);
  memcpy (v.dim, t->dim, sizeof v.dim);
  memcpy (v.stride, t->stride, sizeof v.stride);
  return v;
}

static double load (const void *data, sl_dtype dtype, ptrdiff_t i) {
  return dtype == SL_F32 ? (double)((const float *)data)[i]
                         : ((const double *)data)[i];
}

static void store (void *data, sl_dtype dtype, ptrdiff_t i, double x) {
  if (dtype == SL_F32)
    ((float *)data)[i] = (float)x;
  else
    ((double *)data)[i] = x;
}

static ptrdiff_t place (const sl_view *v, size_t index) {
  ptrdiff_t offset = 0;
  for (int i = v->ndim - 1; i >= 0; i--) {
    offset += (ptrdiff_t)(index % (size_t)v->dim[i]) * v->stride[i];
    index /= (size_t)v->dim[i];
  }
  return offset;
}

double sl_view_get (const sl_view *v, sl_dtype dtype, size_t index) {
  return load (v->data, dtype, place (v, index));
}

void sl_view_set (const sl_view *v, sl_dtype dtype, size_t index, double x) {
  store (v->data, dtype, place (v, index), x);
}

/* Visits the elements of a view in row-major order without a division. */
typedef struct walk {
  sl_view v;
  ptrdiff_t at[SL_MAX_DIMS], offset;
} walk;

/* The offset of the element that it stands on; then moves to the next. */
static ptrdiff_t walk_next (walk *w) {
  ptrdiff_t here = w->offset;
  for (int i = w->v.ndim - 1; i >= 0; i--) {
    w->offset += w->v.stride[i];
    if (++w->at[i] < w->v.dim[i]) break;
    w->offset -= w->v.stride[i] * w->v.dim[i];
    w->at[i] = 0;
  }
  return here;
}

int sl_tensor_from_doubles (sl_tensor *t, size_t n, const double *x,
                            sl_error *e) {
  walk w = { .v = sl_tensor_view (t) };
  char text[SL_SHAPE_TEXT];
  size_t count = sl_view_count (&w.v);
  if (n != count)
    return sl_fail (e, "%zu values do not fill shape %s (%zu elements)", n,
                    sl_shape_text (t->ndim, t->dim, text, sizeof text), count);
  for (size_t i = 0; i < n; i++)
    store (w.v.data, t->storage->dtype, walk_next (&w), x[i]);
  return 0;
}

void sl_tensor_to_doubles (const sl_tensor *t, double *x) {
  walk w = { .v = sl_tensor_view (t) };
  size_t count = sl_view_count (&w.v);
  for (size_t i = 0; i < count; i++)
    x[i] = load (w.v.data, t->storage->dtype, walk_next (&w));
}

void sl_tensor_fill (sl_tensor *t, double x) {
  walk w = { .v = sl_tensor_view (t) };
  size_t count = sl_view_count (&w.v);
  for (size_t i = 0; i < count; i++)
    store (w.v.data, t->storage->dtype, walk_next (&w), x);
}

int sl_tensor_copy (sl_tensor *dst, const sl_tensor *src, sl_error *e) {
  walk from = { .v = sl_tensor_view (src) }, to = { .v = sl_tensor_view (dst) };
  sl_dtype a = src->storage->dtype, b = dst->storage->dtype;
  size_t count = sl_view_count (&to.v);
  if (src->ndim != dst->ndim ||
      memcmp (src->dim, dst->dim, (size_t)src->ndim * sizeof *src->dim) != 0) {
    char s[SL_SHAPE_TEXT], d[SL_SHAPE_TEXT];
    return sl_fail (e, "cannot copy shape %s into shape %s",
                    sl_shape_text (src->ndim, src->dim, s, sizeof s),
                    sl_shape_text (dst->ndim, dst->dim, d, sizeof d));
  }
  if (src->storage == dst->storage) { /* the views may overlap */
    double *x = sl_alloc (count, sizeof *x);
    if (x == NULL)
      return sl_fail (e, "out of memory copying %zu elements", count);
    sl_tensor_to_doubles (src, x);
    (void)sl_tensor_from_doubles (dst, count, x, NULL);
    sl_free (x);
  } else if (a == b && sl_view_contiguous (&from.v) &&
             sl_view_contiguous (&to.v))
    memcpy (to.v.data, from.v.data, count * sl_dtype_size (a));
  else
    for (size_t i = 0; i < count; i++)
      store (to.v.data, b, walk_next (&to),
             load (from.v.data, a, walk_next (&from)));
  return 0;
}
