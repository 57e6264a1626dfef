/* view.c - shapes, and new looks at the same storage. */
#include "base/memory.h"
#include "base/number.h"
#include "tensor/tensor.h"
#include <stdint.h>
#include <stdio.h>
#include <string.h>

int sl_shape_count (int ndim, const ptrdiff_t *dim, size_t *count) {
  /* Room for f64 and for twice the strides. */
  const size_t most = PTRDIFF_MAX / 16;
  *count = 1;
  for (int i = 0; i < ndim; i++)
    if (dim[i] < 0 ||
        sl_size_mul (*count, dim[i] > 0 ? (size_t)dim[i] : 1, count) < 0 ||
        *count > most)
      return -1;
  return 0;
}

size_t sl_view_count (const sl_view *v) {
  size_t count = 1;
  for (int i = 0; i < v->ndim; i++) count *= (size_t)v->dim[i];
  return count;
}

int sl_view_contiguous (const sl_view *v) {
  ptrdiff_t stride = 1;
  for (int i = v->ndim - 1; i >= 0; i--) {
    if (v->dim[i] == 0) return 1;
    if (v->dim[i] != 1 && v->stride[i] != stride) return 0;
    stride *= v->dim[i];
  }
  return 1;
}

int sl_view_same_shape (const sl_view *a, const sl_view *b) {
  if (a->ndim != b->ndim) return 0;
  for (int i = 0; i < a->ndim; i++)
    if (a->dim[i] != b->dim[i]) return 0;
  return 1;
}

void sl_view_pack (sl_view *v) {
  ptrdiff_t stride = 1;
  for (int i = v->ndim - 1; i >= 0; i--) {
    v->stride[i] = stride;
    stride *= v->dim[i] > 0 ? v->dim[i] : 1;
  }
}

char *sl_shape_text (int ndim, const ptrdiff_t *dim, char *text, size_t size) {
  size_t n = 0;
  if (size > 0) text[0] = '\0';
  for (int i = 0; i <= ndim && n < size; i++) {
    int k = i < ndim
                ? snprintf (text + n, size - n, "%s%td", i == 0 ? "(" : ", ",
                            dim[i])
                : snprintf (text + n, size - n, "%s", ndim == 0 ? "()" : ")");
    n += (size_t)k;
  }
  return text;
}

/* "(2, 3)" of t, for messages. */
static char *shape_of (const sl_tensor *t, char text[SL_SHAPE_TEXT]) {
  return sl_shape_text (t->ndim, t->dim, text, SL_SHAPE_TEXT);
}

/* A tensor like t that shares its storage. */
static sl_tensor *look (const sl_tensor *t, sl_error *e) {
  sl_tensor *v = sl_alloc (1, sizeof *v);
  if (v == NULL) {
    sl_fail (e, "out of memory for a view");
    return NULL;
  }
  *v = *t;
  v->refs = 1;
  sl_storage_retain (v->storage);
  return v;
}

/* Axis from 0, or -1 and a sentence. */
static int axis_of (const sl_tensor *t, int axis, const char *what,
                    sl_error *e) {
  char text[SL_SHAPE_TEXT];
  int i = axis < 0 ? axis + t->ndim : axis;
  if (i >= 0 && i < t->ndim) return i;
  return sl_fail (e, "%s: shape %s has no axis %d (from 0)", what,
                  shape_of (t, text), axis);
}

sl_tensor *sl_tensor_narrow (sl_tensor *t, int axis, ptrdiff_t start,
                             ptrdiff_t length, sl_error *e) {
  int i = axis_of (t, axis, "narrow", e);
  sl_tensor *v;
  if (i < 0) return NULL;
  if (start < 0 || length < 0 || start > t->dim[i] ||
      length > t->dim[i] - start) {
    sl_fail (e,
             "narrow: start %td (from 0), length %td do not fit axis %d of "
             "size %td",
             start, length, i, t->dim[i]);
    return NULL;
  }
  v = look (t, e);
  if (v == NULL) return NULL;
  v->dim[i] = length;
  if (length > 0) v->offset += start * t->stride[i];
  return v;
}

sl_tensor *sl_tensor_select (sl_tensor *t, int axis, ptrdiff_t index,
                             sl_error *e) {
  int i = axis_of (t, axis, "select", e);
  sl_tensor *v;
  if (i < 0) return NULL;
  if (index < 0 || index >= t->dim[i]) {
    sl_fail (e, "select: index %td (from 0) is outside axis %d of size %td",
             index, i, t->dim[i]);
    return NULL;
  }
  v = look (t, e);
  if (v == NULL) return NULL;
  v->offset += index * t->stride[i];
  v->ndim--;
  for (; i < v->ndim; i++) {
    v->dim[i] = v->dim[i + 1];
    v->stride[i] = v->stride[i + 1];
  }
  return v;
}

sl_tensor *sl_tensor_transpose (sl_tensor *t, int axis_a, int axis_b,
                                sl_error *e) {
  int a = axis_of (t, axis_a, "transpose", e), b;
  sl_tensor *v;
  if (a < 0 || (b = axis_of (t, axis_b, "transpose", e)) < 0) return NULL;
  v = look (t, e);
  if (v == NULL) return NULL;
  v->dim[a] = t->dim[b];
  v->dim[b] = t->dim[a];
  v->stride[a] = t->stride[b];
  v->stride[b] = t->stride[a];
  return v;
}

/* The shape with its -1 replaced, of as many elements as t. */
static int resolve (const sl_tensor *t, int ndim, const ptrdiff_t *dim,
                    ptrdiff_t *out, sl_error *e) {
  sl_view v = sl_tensor_view (t);
  char from[SL_SHAPE_TEXT], to[SL_SHAPE_TEXT];
  size_t count = sl_view_count (&v), known = 1;
  int open = -1, ok = ndim >= 0 && ndim <= SL_MAX_DIMS;
  if (!ok)
    return sl_fail (e, "reshape: %d axes are too many: at most %d", ndim,
                    SL_MAX_DIMS);
  for (int i = 0; ok && i < ndim; i++) {
    out[i] = dim[i];
    if (dim[i] == -1 && open < 0)
      open = i;
    else
      ok = dim[i] >= 0 && sl_size_mul (known, (size_t)dim[i], &known) == 0;
  }
  if (ok && open >= 0) {
    ok = known > 0 && count % known == 0;
    if (ok) out[open] = (ptrdiff_t)(count / known);
  } else
    ok = ok && known == count;
  if (ok && sl_shape_count (ndim, out, &known) == 0) return 0;
  return sl_fail (e, "reshape: shape %s of %zu elements cannot become %s",
                  shape_of (t, from), count,
                  sl_shape_text (ndim, dim, to, sizeof to));
}

/* Strides that show t in the shape dim (as many elements); 0 if there are none.
** Axes of t that lie evenly behind each other form a run; each run must be made
** of whole new axes. Both are walked from the last. */
static int restride (const sl_tensor *t, int ndim, const ptrdiff_t *dim,
                     ptrdiff_t *stride) {
  sl_view v = { .ndim = ndim };
  ptrdiff_t step = 1, run = 1, made = 1;
  int j = ndim - 1;
  memcpy (v.dim, dim, (size_t)ndim * sizeof *dim);
  sl_view_pack (&v);
  memcpy (stride, v.stride, (size_t)ndim * sizeof *dim);
  if (t->ndim == 0 || sl_view_count (&v) == 0) return 1;
  step = t->stride[t->ndim - 1];
  for (int i = t->ndim - 1; i >= 0; i--) {
    run *= t->dim[i];
    if (i > 0 && (t->dim[i - 1] == 1 || t->stride[i - 1] == run * step))
      continue;
    while (j >= 0 && (made < run || dim[j] == 1)) {
      stride[j] = made * step;
      made *= dim[j--];
    }
    if (made != run) return 0;
    if (i > 0) step = t->stride[i - 1];
    run = made = 1;
  }
  return 1;
}

int sl_tensor_can_reshape (const sl_tensor *t, int ndim, const ptrdiff_t *dim) {
  ptrdiff_t shape[SL_MAX_DIMS], stride[SL_MAX_DIMS];
  return resolve (t, ndim, dim, shape, NULL) == 0 &&
         restride (t, ndim, shape, stride);
}

sl_tensor *sl_tensor_reshape (sl_tensor *t, int ndim, const ptrdiff_t *dim,
                              sl_error *e) {
  ptrdiff_t shape[SL_MAX_DIMS], stride[SL_MAX_DIMS];
  char from[SL_SHAPE_TEXT], to[SL_SHAPE_TEXT];
  sl_tensor *v;
  if (resolve (t, ndim, dim, shape, e) < 0) return NULL;
  if (!restride (t, ndim, shape, stride)) {
    sl_fail (e,
             "reshape: this view of shape %s cannot be seen as %s; copy it "
             "first",
             shape_of (t, from), sl_shape_text (ndim, shape, to, sizeof to));
    return NULL;
  }
  v = look (t, e);
  if (v == NULL) return NULL;
  v->ndim = ndim;
  memcpy (v->dim, shape, (size_t)ndim * sizeof *shape);
  memcpy (v->stride, stride, (size_t)ndim * sizeof *stride);
  return v;
}

sl_tensor *sl_tensor_broadcast (sl_tensor *t, int ndim, const ptrdiff_t *dim,
                                sl_error *e) {
  int lead = ndim - t->ndim, ok = lead >= 0 && ndim <= SL_MAX_DIMS;
  char from[SL_SHAPE_TEXT], to[SL_SHAPE_TEXT];
  size_t count;
  sl_tensor *v;
  for (int i = 0; ok && i < ndim; i++)
    ok = i < lead ? dim[i] >= 0
                  : t->dim[i - lead] == dim[i] ||
                        (t->dim[i - lead] == 1 && dim[i] >= 0);
  ok = ok && sl_shape_count (ndim, dim, &count) == 0;
  if (!ok) {
    if (ndim > SL_MAX_DIMS)
      sl_fail (e, "broadcast: %d axes are too many: at most %d", ndim,
               SL_MAX_DIMS);
    else
      sl_fail (e, "broadcast: shape %s does not broadcast to %s",
               shape_of (t, from), sl_shape_text (ndim, dim, to, sizeof to));
    return NULL;
  }
  v = look (t, e);
  if (v == NULL) return NULL;
  v->ndim = ndim;
  for (int i = 0; i < ndim; i++) {
    int same = i >= lead && t->dim[i - lead] == dim[i];
    v->dim[i] = dim[i];
    v->stride[i] = same ? t->stride[i - lead] : 0;
  }
  return v;
}

int sl_broadcast_shape (const sl_view *a, const sl_view *b, sl_view *out,
                        sl_error *e) {
  char s[SL_SHAPE_TEXT], t[SL_SHAPE_TEXT];
  int ndim = sl_max_int (a->ndim, b->ndim);
  size_t count;
  out->ndim = ndim;
  for (int i = 1; i <= ndim; i++) { /* from the last axis */
    ptrdiff_t x = i <= a->ndim ? a->dim[a->ndim - i] : 1;
    ptrdiff_t y = i <= b->ndim ? b->dim[b->ndim - i] : 1;
    if (x != y && x != 1 && y != 1)
      return sl_fail (e, "shapes %s and %s do not broadcast",
                      sl_shape_text (a->ndim, a->dim, s, sizeof s),
                      sl_shape_text (b->ndim, b->dim, t, sizeof t));
    out->dim[ndim - i] = x == 1 ? y : x;
  }
  if (sl_shape_count (ndim, out->dim, &count) < 0)
    return sl_fail (e, "shapes %s and %s broadcast to one that is too large",
                    sl_shape_text (a->ndim, a->dim, s, sizeof s),
                    sl_shape_text (b->ndim, b->dim, t, sizeof t));
  sl_view_pack (out);
  return 0;
}
