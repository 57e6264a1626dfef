/* gguf.c - metadata and tensors of a GGUF file, parsed from memory.
**
** The file: "GGUF", a version; counts of tensors and of key-value pairs; the
** pairs (key, type, value); of each tensor name, sizes (fastest first), type
** and place; from the next multiple of the alignment on, the data. Lengths
** and counts have 8 bytes, in version 1 four. */
#include "lm/gguf.h"
#include "base/memory.h"
#include "lm/weights.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The data start at a multiple of 32 bytes unless a key gives another. */
enum { ALIGNMENT = 32, MAX_ALIGNMENT = 1 << 16 };
/* Of names as in the format's description; of counts far above any model's. */
enum { MAX_NAME = 65535, MAX_COUNT = 1 << 20 };
static const char alignment_key[] = "general.alignment";

/* A cursor: 'left' bytes of the file follow 'at'. */
typedef struct reader {
  const char *file, *at;
  size_t left;
  int wide;        /* lengths and counts have 8 bytes, else 4 */
  char place[160]; /* what is being read: "key 3 of 24", "the tensor 'x'" */
  sl_error *error;
} reader;

static void at_number (reader *r, const char *what, size_t i, size_t n) {
  snprintf (r->place, sizeof r->place, "%s %zu of %zu", what, i + 1, n);
}

static void at_name (reader *r, const char *what, const char *name) {
  snprintf (r->place, sizeof r->place, "the %s '%.100s'", what, name);
}

/* n bytes, or NULL and a sentence. */
static const char *take (reader *r, size_t n) {
  const char *p = r->at;
  if (n > r->left) {
    sl_fail (r->error, "is cut off in %s, at byte %zu", r->place,
             (size_t)(p - r->file));
    return NULL;
  }
  r->at += n;
  r->left -= n;
  return p;
}

static int take_u32 (reader *r, uint32_t *x) {
  const char *p = take (r, sizeof *x);
  if (p == NULL) return -1;
  memcpy (x, p, sizeof *x);
  return 0;
}

static int take_u64 (reader *r, uint64_t *x) {
  const char *p = take (r, sizeof *x);
  if (p == NULL) return -1;
  memcpy (x, p, sizeof *x);
  return 0;
}

static int take_count (reader *r, uint64_t *x) {
  uint32_t narrow;
  if (r->wide) return take_u64 (r, x);
  if (take_u32 (r, &narrow) < 0) return -1;
  *x = narrow;
  return 0;
}

static int take_string (reader *r, const char **text, size_t *n) {
  uint64_t length;
  if (take_count (r, &length) < 0) return -1;
  if (length > r->left)
    return sl_fail (r->error,
                    "is cut off or damaged: a text of %llu bytes in %s with "
                    "%zu left",
                    (unsigned long long)length, r->place, r->left);
  *text = take (r, (size_t)length);
  *n = (size_t)length;
  return 0;
}

/* A copy of the name of a key or tensor, ended by a NUL. */
static int take_name (reader *r, const char **name) {
  const char *text = NULL;
  size_t n = 0;
  if (take_string (r, &text, &n) < 0) return -1;
  if (n == 0) return sl_fail (r->error, "has an empty name in %s", r->place);
  if (n > MAX_NAME)
    return sl_fail (r->error, "has a name of %zu bytes in %s; read are %d", n,
                    r->place, MAX_NAME);
  if (memchr (text, '\0', n) != NULL)
    return sl_fail (r->error, "has a NUL in the name in %s", r->place);
  *name = sl_alloc_text (text, n);
  return *name != NULL ? 0
                       : sl_fail (r->error, "cannot be read: out of memory");
}

/* Skip the elements of v. */
static int skip_elements (reader *r, const sl_gguf_value *v) {
  const char *text;
  size_t n = 0;
  if (v->type == SL_GGUF_STRING) {
    /* each takes at least its length: a false count ends at the file's end */
    for (size_t i = 0; i < v->count; i++)
      if (take_string (r, &text, &n) < 0) return -1;
    return 0;
  }
  n = sl_gguf_types[v->type].size;
  if (v->count > r->left / n)
    return sl_fail (r->error,
                    "is cut off or damaged: '%.100s' has %zu elements of type "
                    "%s with %zu bytes left",
                    v->key, v->count, sl_gguf_types[v->type].name, r->left);
  text = take (r, v->count * n);
  for (size_t i = 0; v->type == SL_GGUF_BOOL && i < v->count; i++)
    if (text[i] != 0 && text[i] != 1)
      return sl_fail (r->error, "has '%.100s' = %d, which is no truth value",
                      v->key, (unsigned char)text[i]);
  return 0;
}

static int take_type (reader *r, const sl_gguf_value *v, uint32_t *type) {
  if (take_u32 (r, type) < 0) return -1;
  if (*type < SL_GGUF_TYPES) return 0;
  return sl_fail (r->error, "has '%.100s' of the type %u, which is not known",
                  v->key, *type);
}

static int take_value (reader *r, sl_gguf_value *v) {
  uint32_t type;
  uint64_t count = 1;
  if (take_name (r, &v->key) < 0) return -1;
  at_name (r, "key", v->key);
  if (take_type (r, v, &type) < 0) return -1;
  v->is_array = type == SL_GGUF_ARRAY;
  if (v->is_array) {
    if (take_type (r, v, &type) < 0 || take_count (r, &count) < 0) return -1;
    if (type == SL_GGUF_ARRAY)
      return sl_fail (r->error,
                      "has '%.100s', an array of arrays, which is not read",
                      v->key);
  }
  v->type = (sl_gguf_type)type;
  v->wide = r->wide;
  v->count = (size_t)count;
  v->at = r->at;
  return skip_elements (r, v);
}

static int take_alignment (sl_gguf *g, sl_error *e) {
  const sl_gguf_value *v = sl_gguf_find (g, alignment_key);
  const char *cursor = v != NULL ? v->at : NULL;
  g->alignment = ALIGNMENT;
  if (v == NULL) return 0;
  if (v->is_array || v->type != SL_GGUF_U32)
    return sl_fail (e, "has %s of type %s, expected u32", alignment_key,
                    v->is_array ? "array" : sl_gguf_types[v->type].name);
  g->alignment = (size_t)sl_gguf_whole (v, &cursor);
  if (g->alignment == 0 || g->alignment > MAX_ALIGNMENT ||
      (g->alignment & (g->alignment - 1)) != 0)
    return sl_fail (e, "has %s %zu, expected a power of two up to %d",
                    alignment_key, g->alignment, MAX_ALIGNMENT);
  return 0;
}

/* Name, sizes, type; the place in *offset. */
static int take_weight (reader *r, sl_weight *w, uint64_t *offset) {
  uint32_t ndim, number;
  sl_error why;
  if (take_name (r, &w->name) < 0) return -1;
  at_name (r, "tensor", w->name);
  if (take_u32 (r, &ndim) < 0) return -1;
  if (ndim > 4)
    return sl_fail (r->error,
                    "has the tensor '%.100s' with %u axes; GGUF has "
                    "at most 4",
                    w->name, ndim);
  w->ndim = (int)ndim;
  for (int i = w->ndim - 1; i >= 0; i--) { /* fastest first in the file */
    uint64_t size;
    if (take_count (r, &size) < 0) return -1;
    if (size == 0 || size > PTRDIFF_MAX)
      return sl_fail (r->error,
                      "has the tensor '%.100s' with a size of %llu, expected "
                      "1 to 2^63 - 1",
                      w->name, (unsigned long long)size);
    w->dim[i] = (ptrdiff_t)size;
  }
  if (take_u32 (r, &number) < 0 || take_u64 (r, offset) < 0) return -1;
  w->type = sl_weight_type_numbered (number);
  if (w->type == NULL)
    return sl_fail (r->error,
                    "has the tensor '%.100s' of the type %u, which is not "
                    "known",
                    w->name, number);
  if (sl_weight_bytes (w->type, w->ndim, w->dim, &w->bytes, &why) < 0)
    return sl_fail (r->error, "has a tensor '%.100s' %s", w->name, why.text);
  return 0;
}

/* Find w's numbers, 'offset' bytes into the n bytes of data. */
static int locate (const sl_gguf *g, const char *data, size_t n,
                   uint64_t offset, sl_weight *w, sl_error *e) {
  if (offset % g->alignment != 0)
    return sl_fail (e,
                    "has the tensor '%.100s' at byte %llu of the data, which "
                    "is no multiple of %zu",
                    w->name, (unsigned long long)offset, g->alignment);
  if (offset > n || w->bytes > n - offset)
    return sl_fail (e,
                    "is cut off or damaged: the tensor '%.100s' needs %zu "
                    "bytes from byte %llu of %zu",
                    w->name, w->bytes, (unsigned long long)offset, n);
  w->data = data + offset;
  return 0;
}

static int by_text (const void *a, const void *b) {
  return strcmp (*(const char *const *)a, *(const char *const *)b);
}

/* Refuse a name that occurs twice among n; sorts them. */
static int check_unique (const char **names, size_t n, const char *what,
                         sl_error *e) {
  qsort (names, n, sizeof *names, by_text);
  for (size_t i = 1; i < n; i++)
    if (strcmp (names[i - 1], names[i]) == 0)
      return sl_fail (e, "has the %s '%.100s' twice", what, names[i]);
  return 0;
}

/* Magic, version and the two counts. */
static int take_head (reader *r, sl_gguf *g, uint64_t *n_weights,
                      uint64_t *n_values) {
  const char *magic = take (r, 4);
  uint32_t version;
  if (magic == NULL || memcmp (magic, "GGUF", 4) != 0)
    return sl_fail (r->error, "is not a GGUF file");
  if (take_u32 (r, &version) < 0) return -1;
  if (version != 0 && (version & 0xffff) == 0)
    return sl_fail (r->error, "is a big-endian GGUF file, which is not read");
  if (version < 1 || version > 3)
    return sl_fail (r->error, "is GGUF of version %u; read are 1 to 3",
                    version);
  g->version = version;
  r->wide = version > 1;
  if (take_count (r, n_weights) < 0 || take_count (r, n_values) < 0) return -1;
  if (*n_weights == 0 && *n_values == 0)
    return sl_fail (r->error, "has neither metadata nor tensors");
  return 0;
}

/* Refuse counts whose shortest encoding is longer than the file. */
static int check_counts (const reader *r, uint64_t n_weights,
                         uint64_t n_values) {
  const size_t length = r->wide ? 8 : 4;
  const size_t value = length + 1 + 4 + 1, weight = length + 1 + 4 + 4 + 8;
  if (n_values > r->left / value || n_weights > r->left / weight)
    return sl_fail (r->error,
                    "is cut off or damaged: %llu keys and %llu tensors in a "
                    "file with %zu bytes left",
                    (unsigned long long)n_values, (unsigned long long)n_weights,
                    r->left);
  if (n_values > MAX_COUNT || n_weights > MAX_COUNT)
    return sl_fail (
        r->error, "has %llu keys and %llu tensors; read are at most %d",
        (unsigned long long)n_values, (unsigned long long)n_weights, MAX_COUNT);
  return 0;
}

/* Parse the header. 'offset' has room for n_weights numbers, 'names' for
** the larger of the two counts. */
static int parse (reader *r, sl_gguf *g, size_t n_values, size_t n_weights,
                  uint64_t *offset, const char **names) {
  size_t head, padding;
  for (; g->n_values < n_values; g->n_values++) {
    at_number (r, "key", g->n_values, n_values);
    if (take_value (r, &g->value[g->n_values]) < 0) return -1;
  }
  for (size_t i = 0; i < n_values; i++) names[i] = g->value[i].key;
  if (check_unique (names, n_values, "key", r->error) < 0 ||
      take_alignment (g, r->error) < 0)
    return -1;
  for (; g->n_weights < n_weights; g->n_weights++) {
    at_number (r, "tensor", g->n_weights, n_weights);
    if (take_weight (r, &g->weight[g->n_weights], &offset[g->n_weights]) < 0)
      return -1;
  }
  for (size_t i = 0; i < n_weights; i++) names[i] = g->weight[i].name;
  if (check_unique (names, n_weights, "tensor", r->error) < 0) return -1;
  if (n_weights == 0) return 0; /* a vocabulary alone: the end may be bare */
  head = (size_t)(r->at - r->file);
  padding = (g->alignment - head % g->alignment) % g->alignment;
  snprintf (r->place, sizeof r->place, "the padding before the data");
  if (take (r, padding) == NULL) return -1;
  for (size_t i = 0; i < n_weights; i++)
    if (locate (g, r->at, r->left, offset[i], &g->weight[i], r->error) < 0)
      return -1;
  return sl_weights_disjoint (g->weight, n_weights, r->error);
}

int sl_gguf_parse (const char *file, size_t n, sl_gguf *g, sl_error *e) {
  reader r = { .file = file,
               .at = file,
               .left = n,
               .wide = 1,
               .place = "its first bytes",
               .error = e };
  uint64_t n_weights = 0, n_values = 0, *offset = NULL;
  const char **names = NULL;
  int status = -1;
  *g = (sl_gguf){ 0 };
  if (take_head (&r, g, &n_weights, &n_values) < 0 ||
      check_counts (&r, n_weights, n_values) < 0)
    return -1;
  g->value = sl_alloc ((size_t)n_values, sizeof *g->value);
  g->weight = sl_alloc ((size_t)n_weights, sizeof *g->weight);
  offset = sl_alloc ((size_t)n_weights, sizeof *offset);
  names = sl_alloc ((size_t)(n_values > n_weights ? n_values : n_weights),
                    sizeof *names);
  if (g->value == NULL || g->weight == NULL || offset == NULL || names == NULL)
    sl_fail (e, "cannot be read: out of memory");
  else
    status = parse (&r, g, (size_t)n_values, (size_t)n_weights, offset, names);
  sl_free (offset);
  sl_free (names);
  if (status < 0) {
    /* the entry that failed may have its name already */
    g->n_values += g->value != NULL && g->n_values < n_values;
    g->n_weights += g->weight != NULL && g->n_weights < n_weights;
    sl_gguf_free (g);
  }
  return status;
}

void sl_gguf_free (sl_gguf *g) {
  for (size_t i = 0; i < g->n_values; i++)
    sl_free ((void *)(uintptr_t)g->value[i].key);
  for (size_t i = 0; i < g->n_weights; i++)
    sl_free ((void *)(uintptr_t)g->weight[i].name);
  sl_free (g->value);
  sl_free (g->weight);
  *g = (sl_gguf){ 0 };
}
