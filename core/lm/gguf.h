/* gguf.h - metadata and tensors of a GGUF file, parsed from memory. */
#ifndef SL_GGUF_H
#define SL_GGUF_H
#include "base/error.h"
#include <stddef.h>
#include <stdint.h>

struct sl_weight;

/* The types of values, by GGUF's numbers. */
typedef enum sl_gguf_type {
  SL_GGUF_U8,
  SL_GGUF_I8,
  SL_GGUF_U16,
  SL_GGUF_I16,
  SL_GGUF_U32,
  SL_GGUF_I32,
  SL_GGUF_F32,
  SL_GGUF_BOOL,
  SL_GGUF_STRING,
  SL_GGUF_ARRAY,
  SL_GGUF_U64,
  SL_GGUF_I64,
  SL_GGUF_F64,
  SL_GGUF_TYPES
} sl_gguf_type;

typedef struct sl_gguf_type_info {
  const char *name; /* as messages say it: "u32" */
  size_t size;      /* of an element in bytes; 0: it varies */
  int is_signed;
} sl_gguf_type_info;
extern const sl_gguf_type_info sl_gguf_types[];

/* A key and its value, which stays in the file: one element, or an array of
** 'count' (of any type but arrays). */
typedef struct sl_gguf_value {
  const char *key;
  sl_gguf_type type; /* of the elements */
  int is_array;
  int wide; /* lengths of strings have 8 bytes; 4 in version 1 */
  size_t count;
  const char *at; /* the first element */
} sl_gguf_value;

typedef struct sl_gguf {
  unsigned version;
  size_t alignment;
  size_t n_values, n_weights;
  sl_gguf_value *value; /* in the file's order */
  struct sl_weight *weight;
} sl_gguf;

/* Read the head of a file of n bytes, which must outlive g. Every length, place
** and size is checked against the file; keys and names of tensors are unique
** and have no NUL. Nothing that the file claims is allocated before the file is
** seen to be long enough for it. Free with sl_gguf_free; on failure g is empty
** and e is a sentence without a subject. */
int sl_gguf_parse (const char *file, size_t n, sl_gguf *g, sl_error *e);
void sl_gguf_free (sl_gguf *g);

/* NULL if there is none. */
const sl_gguf_value *sl_gguf_find (const sl_gguf *g, const char *key);

/* The elements of v one after the other: a cursor begins as v->at. */
const char *sl_gguf_string (const sl_gguf_value *v, const char **cursor,
                            size_t *length); /* not ended by a NUL */
/* Numbers and booleans; whole ones beyond int64 become negative, so ask
** sl_gguf_real where that matters. */
int64_t sl_gguf_whole (const sl_gguf_value *v, const char **cursor);
double sl_gguf_real (const sl_gguf_value *v, const char **cursor);
int sl_gguf_is_real (const sl_gguf_value *v); /* of type F32 or F64 */
#endif
