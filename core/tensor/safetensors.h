/* safetensors.h - named tensors and texts in one file (the safetensors
** format). */
#ifndef SL_SAFETENSORS_H
#define SL_SAFETENSORS_H
#include "tensor/tensor.h"

typedef struct sl_named {
  char *name;
  sl_tensor *tensor;
} sl_named;

typedef struct sl_meta {
  char *key, *value;
} sl_meta;

/* The contents of a file, in its order. */
typedef struct sl_tensors {
  size_t n, n_meta;
  sl_named *item;
  sl_meta *meta;
} sl_tensors;

/* Write tensors (F32 and F64, any strides) and metadata; the file is whole or
** not there. Names are UTF-8 and differ from each other and from
** "__metadata__". */
int sl_safetensors_write (const char *path, const sl_tensors *s, sl_error *e);

/* Fill s, which the caller frees with sl_tensors_free. Every offset is checked
** against shape, precision, the other tensors and the file; other precisions
** than F32 and F64 are refused by name. On failure s is empty. */
int sl_safetensors_read (const char *path, sl_tensors *s, sl_error *e);

/* Release the tensors and free names, texts and lists made by
** sl_safetensors_read. */
void sl_tensors_free (sl_tensors *s);
#endif
