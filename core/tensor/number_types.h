/* number_types.h - the types of numbers in .npy and safetensors files. */
#ifndef SL_NUMBER_TYPES_H
#define SL_NUMBER_TYPES_H
#include "tensor/tensor.h"

typedef struct sl_number_type {
  const char *npy; /* as in a .npy header behind the byte order; "": none */
  const char *safetensors; /* "": none */
  size_t bytes;
  sl_dtype dtype; /* of the tensor that holds its numbers */
  double (*read) (const unsigned char *p); /* little-endian, of any alignment */
} sl_number_type;

/* The type of a name, NULL if there is none. */
const sl_number_type *sl_npy_type (const char *name);
const sl_number_type *sl_safetensors_type (const char *name);

/* A contiguous tensor of the shape with the numbers at 'data', in row-major
** order; big_endian: each number's bytes in that order. An integer that f64
** cannot hold exactly (2^53 and beyond) is refused. NULL and a sentence. */
sl_tensor *sl_numbers_read (const sl_number_type *type, int big_endian,
                            int ndim, const ptrdiff_t *dim, const char *data,
                            sl_error *e);
#endif
