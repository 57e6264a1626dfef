/* golden.h - reference arrays under tests/golden, with their tolerances.
**
** The arrays come from an independent float64 implementation; manifest.tsv
** lists every array with its tolerances for results in f32 and in f64. They are
** read by a small .npy reader of its own, so that no test depends on the reader
** it may be testing. */
#ifndef GOLDEN_H
#define GOLDEN_H
#include "tensor/tensor.h"

typedef struct golden {
  double *x; /* row-major; owned: golden_free */
  size_t count;
  int ndim;
  ptrdiff_t dim[SL_MAX_DIMS];
} golden;

/* The array in "case/file.npy", e.g. "piece/layernorm/x.npy": <f8 or <i4, C
** order. Any trouble fails the test. */
golden golden_load (const char *file);
void golden_free (golden *g);
/* The values in a precision: 'out' has room for g->count elements. */
void golden_fill (const golden *g, sl_dtype dtype, void *out);

/* Fail the test unless every element of 'got' (which must have as many elements
** as the file; any strides) is within the file's tolerance for 'dtype':
** |got - want| <= atol + rtol |want|. The message shows the first bad element,
** both values and the tolerance. */
void golden_close (const sl_view *got, sl_dtype dtype, const char *file);
/* The same for 'count' adjacent elements. */
void golden_close_array (const void *got, size_t count, sl_dtype dtype,
                         const char *file);
/* The comparison alone: 1, and the message in 'text', if they differ. */
int golden_differs (const sl_view *got, sl_dtype dtype, const char *file,
                    char *text, size_t size);
#endif
