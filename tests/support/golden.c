/* golden.c - reference arrays under tests/golden, with their tolerances. */
#include "support/golden.h"
#include <check.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static FILE *open_golden (const char *file) {
  char path[4096];
  FILE *f;
  snprintf (path, sizeof path, "%s/golden/%s", SINKLAB_TEST_SOURCE, file);
  f = fopen (path, "rb");
  if (f == NULL) ck_abort_msg ("cannot open %s", path);
  return f;
}

/* "'shape': (2, 5), }" -> dim; returns the number of axes. */
static int read_shape (const char *header, const char *file, golden *g) {
  const char *p = strstr (header, "'shape': (");
  if (p == NULL) ck_abort_msg ("%s: no shape in its header", file);
  p += strlen ("'shape': (");
  g->ndim = 0;
  g->count = 1;
  while (*p != ')') {
    char *end;
    const long n = strtol (p, &end, 10);
    if (end == p || n < 0 || g->ndim == SL_MAX_DIMS)
      ck_abort_msg ("%s: bad shape in its header: %s", file, header);
    g->dim[g->ndim++] = n;
    g->count *= (size_t)n;
    for (p = end; *p == ',' || *p == ' '; p++) {}
  }
  return g->ndim;
}

golden golden_load (const char *file) {
  FILE *f = open_golden (file);
  unsigned char magic[10];
  char header[512] = { 0 };
  size_t length, item;
  unsigned char *bytes;
  golden g;
  if (fread (magic, 1, 10, f) != 10 || memcmp (magic, "\x93NUMPY\1", 7) != 0)
    ck_abort_msg ("%s: not a version 1 .npy file", file);
  length = magic[8] + 256u * magic[9];
  if (length >= sizeof header || fread (header, 1, length, f) != length)
    ck_abort_msg ("%s: bad header of %zu bytes", file, length);
  item = strstr (header, "'<f8'") ? 8 : strstr (header, "'<i4'") ? 4 : 0;
  if (item == 0 || strstr (header, "'fortran_order': False") == NULL)
    ck_abort_msg ("%s: neither <f8 nor <i4 in C order: %s", file, header);
  read_shape (header, file, &g);
  bytes = malloc (g.count * item + 1);
  g.x = malloc ((g.count + 1) * sizeof *g.x);
  ck_assert (bytes != NULL && g.x != NULL);
  if (fread (bytes, 1, g.count * item + 1, f) != g.count * item)
    ck_abort_msg ("%s: does not hold %zu elements", file, g.count);
  for (size_t i = 0; i < g.count; i++) {
    int32_t whole;
    if (item == 8)
      memcpy (&g.x[i], bytes + 8 * i, 8);
    else {
      memcpy (&whole, bytes + 4 * i, 4);
      g.x[i] = whole;
    }
  }
  free (bytes);
  fclose (f);
  return g;
}

void golden_free (golden *g) {
  free (g->x);
  g->x = NULL;
}

void golden_fill (const golden *g, sl_dtype dtype, void *out) {
  for (size_t i = 0; i < g->count; i++) {
    if (dtype == SL_F32)
      ((float *)out)[i] = (float)g->x[i];
    else
      ((double *)out)[i] = g->x[i];
  }
}

/* The file's atol and rtol for dtype, from the manifest. */
static void tolerance (const char *file, sl_dtype dtype, double *atol,
                       double *rtol) {
  FILE *f = open_golden ("manifest.tsv");
  char line[512], name[256];
  double t[4];
  while (fgets (line, sizeof line, f)) {
    if (sscanf (line, "%255s %*s %*s %*s %lf %lf %lf %lf", name, &t[0], &t[1],
                &t[2], &t[3]) != 5 ||
        strcmp (name, file) != 0)
      continue;
    *atol = t[dtype == SL_F64 ? 2 : 0];
    *rtol = t[dtype == SL_F64 ? 3 : 1];
    fclose (f);
    return;
  }
  fclose (f);
  ck_abort_msg ("%s: not in manifest.tsv", file);
}

/* Offset of the row-major index in v. */
static ptrdiff_t offset (const sl_view *v, size_t index) {
  ptrdiff_t at = 0;
  for (int a = v->ndim - 1; a >= 0; a--) {
    at += (ptrdiff_t)(index % (size_t)v->dim[a]) * v->stride[a];
    index /= (size_t)v->dim[a];
  }
  return at;
}

int golden_differs (const sl_view *got, sl_dtype dtype, const char *file,
                    char *text, size_t size) {
  golden g = golden_load (file);
  double atol, rtol;
  size_t count = 1, bad = 0;
  for (int a = 0; a < got->ndim; a++) count *= (size_t)got->dim[a];
  tolerance (file, dtype, &atol, &rtol);
  if (count != g.count)
    snprintf (text, size, "%s: got %zu elements, want %zu", file, count,
              g.count);
  for (bad = 0; count == g.count && bad < count; bad++) {
    const ptrdiff_t at = offset (got, bad);
    const double x = dtype == SL_F32 ? (double)((const float *)got->data)[at]
                                     : ((const double *)got->data)[at];
    const double want = g.x[bad];
    if (x == want || fabs (x - want) <= atol + rtol * fabs (want)) continue;
    snprintf (text, size,
              "%s: element %zu of %zu in %s: got %.17g, want %.17g, "
              "difference %.3g, atol %.3g, rtol %.3g",
              file, bad, count, dtype == SL_F32 ? "f32" : "f64", x, want,
              x - want, atol, rtol);
    break;
  }
  golden_free (&g);
  return count != g.count || bad < count;
}

void golden_close (const sl_view *got, sl_dtype dtype, const char *file) {
  char text[512];
  if (golden_differs (got, dtype, file, text, sizeof text))
    ck_abort_msg ("%s", text);
}

void golden_close_array (const void *got, size_t count, sl_dtype dtype,
                         const char *file) {
  sl_view v = { .data = (void *)(uintptr_t)got, .ndim = 1 };
  v.dim[0] = (ptrdiff_t)count;
  v.stride[0] = 1;
  golden_close (&v, dtype, file);
}
