/* npy.h - arrays in numpy's .npy files. */
#ifndef SL_NPY_H
#define SL_NPY_H
#include "tensor/tensor.h"

/* Read format 1, 2 or 3. f4 gives f32; f8, i4, i8, u1 and b1 give f64. C and
** Fortran order are read, little-endian only. An i8 that f64 cannot hold
** exactly (2^53 and beyond), a header that is not numpy's, more than
** SL_MAX_DIMS axes, data that are cut off or too long: each refused in a
** sentence that names the file. */
sl_tensor *sl_npy_read (const char *path, sl_error *e);

/* The same from n bytes in memory; the sentence names no file. */
sl_tensor *sl_npy_decode (const char *bytes, size_t n, sl_error *e);

/* Write t as f4 or f8, in C order, format 1; the file is whole or not there. */
int sl_npy_write (const char *path, const sl_tensor *t, sl_error *e);

/* The bytes of that file: free with sl_free. NULL and a sentence if there is no
** memory. */
char *sl_npy_encode (const sl_tensor *t, size_t *n, sl_error *e);
#endif
