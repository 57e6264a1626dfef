/* safetensors_header.c - where the tensors of a safetensors file lie. */
#include "tensor/safetensors_header.h"
#include "base/memory.h"
#include "tensor/number_types.h"
#include <jansson.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* As in the format's own library: headers beyond this are attacks. */
enum { MAX_HEADER = 100000000 };

void sl_header_free (sl_header *h) {
  for (size_t i = 0; i < h->n; i++) sl_free (h->entry[i].name);
  for (size_t i = 0; i < h->n_meta; i++) {
    sl_free (h->meta[i].key);
    sl_free (h->meta[i].value);
  }
  sl_free (h->entry);
  sl_free (h->meta);
  *h = (sl_header){ 0 };
}

/* A JSON integer 0..PTRDIFF_MAX. */
static int whole (const json_t *j, size_t *out) {
  json_int_t i = json_integer_value (j);
  *out = (size_t)i;
  return json_is_integer (j) && i >= 0 && i <= PTRDIFF_MAX;
}

static int take_shape (const char *name, const json_t *shape, sl_entry *to,
                       size_t *count, sl_error *e) {
  char text[SL_SHAPE_TEXT];
  size_t size;
  if (json_array_size (shape) > SL_MAX_DIMS)
    return sl_fail (e, "'%.200s' has %zu axes; at most %d are read", name,
                    json_array_size (shape), SL_MAX_DIMS);
  to->ndim = (int)json_array_size (shape);
  for (int i = 0; i < to->ndim; i++) {
    if (!whole (json_array_get (shape, (size_t)i), &size))
      return sl_fail (e, "'%.200s' has a size that is no number of elements",
                      name);
    to->dim[i] = (ptrdiff_t)size;
  }
  if (sl_shape_count (to->ndim, to->dim, count) < 0)
    return sl_fail (e, "'%.200s' has shape %s, which is too large", name,
                    sl_shape_text (to->ndim, to->dim, text, sizeof text));
  for (int i = 0; i < to->ndim; i++)
    if (to->dim[i] == 0) *count = 0;
  return 0;
}

/* One entry of a file with 'bytes' bytes of data. */
static int take (const char *name, const json_t *entry, size_t bytes,
                 sl_entry *to, sl_error *e) {
  const json_t *shape = json_object_get (entry, "shape");
  const json_t *span = json_object_get (entry, "data_offsets");
  const char *dtype = json_string_value (json_object_get (entry, "dtype"));
  char text[SL_SHAPE_TEXT];
  size_t count, size;
  if (!json_is_object (entry))
    return sl_fail (e, "the entry of '%.200s' is no object", name);
  if (dtype == NULL)
    return sl_fail (e, "'%.200s': 'dtype' is missing, or no text", name);
  if (!json_is_array (shape))
    return sl_fail (e, "'%.200s': 'shape' is missing, or no list", name);
  if (!json_is_array (span) || json_array_size (span) != 2 ||
      !whole (json_array_get (span, 0), &to->from) ||
      !whole (json_array_get (span, 1), &to->to))
    return sl_fail (e,
                    "'%.200s': 'data_offsets' is missing, or no list of two "
                    "whole numbers",
                    name);
  to->type = sl_safetensors_type (dtype);
  if (to->type == NULL)
    return sl_fail (e, "'%.200s' is of the type %.16s, which is not known",
                    name, dtype);
  if (take_shape (name, shape, to, &count, e) < 0) return -1;
  size = count * to->type->bytes; /* fits: no type is wider than 8 bytes */
  if (to->from > to->to || to->to > bytes || to->to - to->from != size)
    return sl_fail (
        e,
        "'%.200s' of shape %s needs %zu bytes but lies at %zu to %zu "
        "of %zu",
        name, sl_shape_text (to->ndim, to->dim, text, sizeof text), size,
        to->from, to->to, bytes);
  to->name = sl_alloc_text (name, strlen (name));
  return to->name != NULL ? 0 : sl_fail (e, "out of memory");
}

static int take_metadata (const json_t *meta, sl_header *h, sl_error *e) {
  const char *key;
  json_t *value;
  if (!json_is_object (meta)) return sl_fail (e, SL_METADATA " is no object");
  h->meta = sl_alloc (json_object_size (meta), sizeof *h->meta);
  if (h->meta == NULL) return sl_fail (e, "out of memory");
  json_object_foreach ((json_t *)(uintptr_t)meta, key, value) {
    sl_meta *m = &h->meta[h->n_meta++];
    if (!json_is_string (value))
      return sl_fail (e, SL_METADATA " '%.200s' is no text", key);
    m->key = sl_alloc_text (key, strlen (key));
    m->value =
        sl_alloc_text (json_string_value (value), json_string_length (value));
    if (m->key == NULL || m->value == NULL) return sl_fail (e, "out of memory");
  }
  return 0;
}

static int by_place (const void *a, const void *b) {
  const sl_entry *x = *(sl_entry *const *)a, *y = *(sl_entry *const *)b;
  if (x->from != y->from) return x->from < y->from ? -1 : 1;
  return x->to < y->to ? -1 : x->to > y->to;
}

/* The format allows neither overlap nor gap. */
static int covered (const sl_header *h, size_t bytes, sl_error *e) {
  sl_entry **places = sl_alloc (h->n, sizeof (sl_entry *));
  size_t end = 0;
  int status = 0;
  if (places == NULL) return sl_fail (e, "out of memory");
  for (size_t i = 0; i < h->n; i++) places[i] = &h->entry[i];
  qsort (places, h->n, sizeof *places, by_place);
  for (size_t i = 0; i < h->n && status == 0; i++) {
    if (places[i]->from != end)
      status =
          sl_fail (e, "'%.200s' begins at byte %zu of the data, expected %zu",
                   places[i]->name, places[i]->from, end);
    end = places[i]->to;
  }
  sl_free (places);
  if (status == 0 && end != bytes)
    status = sl_fail (e, "the tensors end at byte %zu of %zu bytes of data",
                      end, bytes);
  return status;
}

static int take_all (json_t *root, size_t bytes, sl_header *h, sl_error *e) {
  const char *name;
  json_t *entry;
  h->entry = sl_alloc (json_object_size (root), sizeof *h->entry);
  if (h->entry == NULL) return sl_fail (e, "out of memory");
  json_object_foreach (root, name, entry) {
    int status = strcmp (name, SL_METADATA) == 0
                     ? take_metadata (entry, h, e)
                     : take (name, entry, bytes, &h->entry[h->n++], e);
    if (status < 0) return -1;
  }
  return covered (h, bytes, e);
}

/* jansson takes no NUL in a key, the format does: \u0000 becomes \u2400, the
** symbol for it. Returns text, or a changed copy of it to be freed. */
static const char *show_nul (const char *text, size_t n) {
  static const char nul[] = "\\u0000", symbol[] = "\\u2400";
  enum { LENGTH = sizeof nul - 1 };
  char *copy = NULL;
  for (size_t i = 0; i + LENGTH <= n; i++) {
    if (text[i] != '\\') continue;
    if (memcmp (text + i, nul, LENGTH) == 0) {
      if (copy == NULL) {
        copy = sl_alloc_text (text, n);
        if (copy == NULL) return text; /* and jansson will complain */
      }
      memcpy (copy + i, symbol, LENGTH);
    }
    i++; /* past the escaped character, as in \\u0000 */
  }
  return copy != NULL ? copy : text;
}

int sl_header_read (const char *file, size_t n, sl_header *h, sl_error *e) {
  uint64_t length;
  json_error_t why;
  const char *text;
  json_t *root;
  int status;
  *h = (sl_header){ 0 };
  if (n < 8) return sl_fail (e, "is not a safetensors file");
  memcpy (&length, file, 8);
  if (length > MAX_HEADER || length > n - 8)
    return sl_fail (e,
                    "is not a safetensors file, or cut off: a header of "
                    "%llu bytes in a file of %zu",
                    (unsigned long long)length, n);
  text = show_nul (file + 8, (size_t)length);
  root = json_loadb (text, (size_t)length, JSON_REJECT_DUPLICATES, &why);
  if (text != file + 8) sl_free ((char *)(uintptr_t)text);
  if (root == NULL)
    return sl_fail (e, "has a header that is no JSON: %s (byte %d)", why.text,
                    why.position);
  h->data = 8 + (size_t)length;
  status = json_is_object (root)
               ? take_all (root, n - h->data, h, e)
               : sl_fail (e, "has a header that is no JSON object");
  json_decref (root);
  if (status < 0) sl_header_free (h);
  return status;
}
