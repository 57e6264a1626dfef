/* safetensors_header.h - where the tensors of a safetensors file lie.
**
** The format: 8 bytes, the header's length; the header, a JSON object
**   { "__metadata__": { "key": "text" },
**     "name": { "dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24] } }
** padded with spaces; the data, where tensors lie one behind the other. */
#ifndef SL_SAFETENSORS_HEADER_H
#define SL_SAFETENSORS_HEADER_H
#include "tensor/number_types.h"
#include "tensor/safetensors.h"

/* The reserved name, under which the texts are. */
#define SL_METADATA "__metadata__"

typedef struct sl_entry {
  char *name;
  const sl_number_type *type;
  int ndim;
  ptrdiff_t dim[SL_MAX_DIMS];
  size_t from, to; /* bytes of the data */
} sl_entry;

typedef struct sl_header {
  size_t n, n_meta;
  sl_entry *entry; /* in the file's order */
  sl_meta *meta;
  size_t data; /* where in the file the data begin */
} sl_header;

/* Read the header of a file of n bytes. Every place is checked against shape,
** type, the other tensors and the data, which must be covered without overlap
** or gap; shapes have at most SL_MAX_DIMS axes. All types of the format that
** take whole bytes are known, also types that sinklab does not compute with. A
** NUL in a name is read as its symbol, U+2400. Takes time and memory in
** proportion to the header. Free with sl_header_free; on failure h is empty. */
int sl_header_read (const char *file, size_t n, sl_header *h, sl_error *e);
void sl_header_free (sl_header *h);
#endif
