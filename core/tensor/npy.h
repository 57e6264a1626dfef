/* npy.h - arrays in numpy's .npy files. */
#ifndef SL_NPY_H
#define SL_NPY_H
#include "tensor/tensor.h"

/* Read format 1, 2 or 3. f2 and f4 give f32; f8, the integers i1 to i8 and u1 to
** u8, and b1 give f64. C and Fortran order and both byte orders are read. An
** integer that f64 cannot hold exactly (2^53 and beyond), a header that is not numpy's, more than
** SL_MAX_DIMS axes, data that are cut off or too long: each refused in a
** sentence that names the file. */
sl_tensor *sl_npy_read (const char *path, sl_error *e);

/* The same from n bytes in memory; the sentence names no file. *foreign is 1 if
** they are refused because their elements are of another type (text, complex
** numbers, Python objects, records), else 0. */
sl_tensor *sl_npy_decode (const char *bytes, size_t n, int *foreign,
                          sl_error *e);

/* Write t as f4 or f8, in C order, format 1; the file is whole or not there. */
int sl_npy_write (const char *path, const sl_tensor *t, sl_error *e);

/* The bytes of that file: free with sl_free. NULL and a sentence if there is no
** memory. */
char *sl_npy_encode (const sl_tensor *t, size_t *n, sl_error *e);
#endif
