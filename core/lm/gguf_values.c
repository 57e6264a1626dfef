/* gguf_values.c - the values of a GGUF file's keys. */
#include "lm/gguf.h"
#include <string.h>

const sl_gguf_type_info sl_gguf_types[SL_GGUF_TYPES] = {
  { "u8", 1, 0 },     { "i8", 1, 1 },    { "u16", 2, 0 }, { "i16", 2, 1 },
  { "u32", 4, 0 },    { "i32", 4, 1 },   { "f32", 4, 0 }, { "bool", 1, 0 },
  { "string", 0, 0 }, { "array", 0, 0 }, { "u64", 8, 0 }, { "i64", 8, 1 },
  { "f64", 8, 0 },
};

const sl_gguf_value *sl_gguf_find (const sl_gguf *g, const char *key) {
  for (size_t i = 0; i < g->n_values; i++)
    if (strcmp (g->value[i].key, key) == 0) return &g->value[i];
  return NULL;
}

const char *sl_gguf_string (const sl_gguf_value *v, const char **cursor,
                            size_t *length) {
  const size_t n = v->wide ? 8 : 4; /* little-endian: the low bytes first */
  uint64_t count = 0;
  const char *text = *cursor + n;
  memcpy (&count, *cursor, n);
  *length = (size_t)count;
  *cursor = text + count;
  return text;
}

/* An element by its width: in *whole sign or zero extended, reals in *real. */
static void element (const sl_gguf_value *v, const char *at, int64_t *whole,
                     double *real) {
  const size_t size = sl_gguf_types[v->type].size;
  const unsigned unused = 64 - 8 * (unsigned)size;
  uint64_t bits = 0;
  float narrow;
  memcpy (&bits, at, size);
  *whole = sl_gguf_types[v->type].is_signed
               ? (int64_t)(bits << unused) >> unused
               : (int64_t)bits;
  *real = sl_gguf_types[v->type].is_signed ? (double)*whole : (double)bits;
  if (v->type == SL_GGUF_F32) {
    memcpy (&narrow, at, sizeof narrow);
    *real = (double)narrow;
  }
  if (v->type == SL_GGUF_F64) memcpy (real, at, sizeof *real);
}

int64_t sl_gguf_whole (const sl_gguf_value *v, const char **cursor) {
  int64_t whole;
  double real;
  element (v, *cursor, &whole, &real);
  *cursor += sl_gguf_types[v->type].size;
  return whole;
}

double sl_gguf_real (const sl_gguf_value *v, const char **cursor) {
  int64_t whole;
  double real;
  element (v, *cursor, &whole, &real);
  *cursor += sl_gguf_types[v->type].size;
  return real;
}

int sl_gguf_is_real (const sl_gguf_value *v) {
  return v->type == SL_GGUF_F32 || v->type == SL_GGUF_F64;
}
