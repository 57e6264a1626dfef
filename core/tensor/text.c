/* text.c - a tensor as lines for a person to read. */
#include "base/memory.h"
#include "tensor/tensor.h"
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { MOST = 100, COLUMNS = 78, TEXT = 16384 };

typedef struct text {
  char *p;
  size_t n;
} text;

static void put (text *t, const char *format, ...) SL_PRINTF (2, 3);

/* TEXT holds MOST numbers in rows of one with the longest heading. */
static void put (text *t, const char *format, ...) {
  va_list args;
  int k;
  va_start (args, format);
  k = vsnprintf (t->p + t->n, TEXT - t->n, format, args);
  va_end (args);
  if (k > 0) t->n += (size_t)k;
  if (t->n >= TEXT) t->n = TEXT - 1;
}

static void summary (text *out, const sl_tensor *t, size_t count) {
  double least = INFINITY, largest = -INFINITY, sum = 0;
  size_t strange = 0;
  sl_view v = sl_tensor_view (t);
  for (size_t i = 0; i < count; i++) {
    double x = sl_view_get (&v, t->storage->dtype, i);
    if (!isfinite (x)) {
      strange++;
      continue;
    }
    least = fmin (least, x);
    largest = fmax (largest, x);
    sum += x;
  }
  if (count > strange)
    put (out, "  min %.5g  mean %.5g  max %.5g", least,
         sum / (double)(count - strange), largest);
  if (strange > 0) put (out, "  not finite: %zu of %zu", strange, count);
}

/* One number, right-aligned; long rows go on in the next line. */
static void rows (text *out, const sl_tensor *t, size_t count) {
  char number[MOST][24];
  sl_view v = sl_tensor_view (t);
  size_t wide = 0, columns, per_line, block = 1;
  for (size_t i = 0; i < count; i++) {
    double x = sl_view_get (&v, t->storage->dtype, i);
    snprintf (number[i], sizeof number[i], "%.5g", isnan (x) ? fabs (x) : x);
    if (strlen (number[i]) > wide) wide = strlen (number[i]);
  }
  columns = (size_t)v.dim[v.ndim - 1];
  per_line = COLUMNS / (wide + 2);
  if (v.ndim > 1) block = columns * (size_t)v.dim[v.ndim - 2];
  for (size_t i = 0; i < count; i++) {
    if (v.ndim > 2 && i % block == 0) {
      size_t rest = i / block, size = count / block;
      put (out, "\n[");
      for (int a = 0; a < v.ndim - 2; a++) {
        size /= (size_t)v.dim[a];
        put (out, "%zu, ", rest / size + 1);
        rest %= size;
      }
      put (out, "..]");
    }
    if (i % columns % per_line == 0)
      put (out, i % columns == 0 ? "\n" : "\n   ");
    put (out, "  %*s", (int)wide, number[i]);
  }
}

char *sl_tensor_text (const sl_tensor *t) {
  char shape[SL_SHAPE_TEXT];
  text out = { sl_alloc (TEXT, 1), 0 };
  sl_view v = sl_tensor_view (t);
  size_t count = sl_view_count (&v);
  if (out.p == NULL) return NULL;
  put (&out, "tensor %s %s",
       sl_shape_text (t->ndim, t->dim, shape, sizeof shape),
       sl_dtype_name (t->storage->dtype));
  if (t->ndim == 0)
    put (&out, "  %.9g", sl_view_get (&v, t->storage->dtype, 0));
  else if (count > 0) {
    summary (&out, t, count);
    if (count <= MOST) rows (&out, t, count);
  }
  return out.p;
}
