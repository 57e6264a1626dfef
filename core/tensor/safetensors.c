/* safetensors.c - named tensors and texts in one file.
**
** The format: 8 bytes, the header's length; the header, a JSON object
**   { "__metadata__": { "key": "text" },
**     "name": { "dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24] } }
** padded with spaces; the data, where tensors lie one behind the other. */
#include "tensor/safetensors.h"
#include "base/file.h"
#include "base/memory.h"
#include <jansson.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "files are read and written as memory has them: little-endian only"
#endif

static const char *const dtypes[] = { "F32", "F64" };
static const char metadata[] = "__metadata__";
/* As in the format's own library: headers beyond this are attacks. */
enum { MAX_HEADER = 100000000 };

/* Write. */

/* The header as JSON; *bytes receives the size of the data. */
static json_t *describe (const sl_tensors *s, size_t *bytes, sl_error *e) {
  json_t *root = json_object (), *meta = json_object ();
  int ok = root != NULL && meta != NULL;
  *bytes = 0;
  for (size_t i = 0; ok && i < s->n_meta; i++)
    ok = json_object_set_new (meta, s->meta[i].key,
                              json_string (s->meta[i].value)) == 0;
  if (s->n_meta > 0 && ok) ok = json_object_set (root, metadata, meta) == 0;
  json_decref (meta);
  for (size_t i = 0; ok && i < s->n; i++) {
    const sl_tensor *t = s->item[i].tensor;
    const char *name = s->item[i].name;
    sl_view v = sl_tensor_view (t);
    size_t end =
        *bytes + sl_view_count (&v) * sl_dtype_size (t->storage->dtype);
    json_t *shape = json_array ();
    if (strcmp (name, metadata) == 0 || json_object_get (root, name) != NULL) {
      sl_fail (e, "the name '%s' %s", name,
               strcmp (name, metadata) == 0 ? "is reserved" : "is given twice");
      json_decref (shape);
      json_decref (root);
      return NULL;
    }
    for (int k = 0; k < t->ndim; k++)
      json_array_append_new (shape, json_integer (t->dim[k]));
    ok = json_object_set_new (
             root, name,
             json_pack ("{s:s, s:o, s:[I, I]}", "dtype",
                        dtypes[t->storage->dtype], "shape", shape,
                        "data_offsets", (json_int_t)*bytes, (json_int_t)end)) ==
         0;
    if (!ok) {
      sl_fail (e, "the name of tensor %zu is not UTF-8", i + 1);
      json_decref (root);
      return NULL;
    }
    *bytes = end;
  }
  if (ok) return root;
  sl_fail (e, "out of memory, or metadata that are not UTF-8");
  json_decref (root);
  return NULL;
}

/* Row-major numbers of t. */
static int put (const sl_tensor *t, char *to, size_t bytes, sl_error *e) {
  sl_tensor *packed = sl_tensor_new (t->storage->dtype, t->ndim, t->dim, e);
  int status = packed == NULL ? -1 : sl_tensor_copy (packed, t, e);
  if (status == 0) memcpy (to, packed->storage->data, bytes);
  sl_tensor_release (packed);
  return status;
}

int sl_safetensors_write (const char *path, const sl_tensors *s, sl_error *e) {
  size_t bytes, length = 0, padded = 0, at;
  sl_error why = { "" };
  json_t *root = describe (s, &bytes, &why);
  char *header = root == NULL ? NULL : json_dumps (root, JSON_COMPACT);
  char *file = NULL;
  int status = -1;
  json_decref (root);
  if (header != NULL) {
    uint64_t n;
    length = strlen (header);
    n = padded = (length + 7) / 8 * 8;
    file = sl_alloc (8 + padded + bytes, 1);
    if (file != NULL) {
      memcpy (file, &n, 8);
      memset (file + 8, ' ', padded);
      memcpy (file + 8, header, length);
    }
  }
  at = 8 + padded;
  status = file == NULL ? -1 : 0;
  for (size_t i = 0; status == 0 && i < s->n; i++) {
    const sl_tensor *t = s->item[i].tensor;
    sl_view v = sl_tensor_view (t);
    size_t k = sl_view_count (&v) * sl_dtype_size (t->storage->dtype);
    status = put (t, file + at, k, &why);
    at += k;
  }
  if (status < 0)
    sl_fail (e, "%s: %s", path, why.text[0] ? why.text : "out of memory");
  else
    status = sl_file_write (path, file, at, e);
  free (header);
  sl_free (file);
  return status;
}

/* Read. */

void sl_tensors_free (sl_tensors *s) {
  for (size_t i = 0; i < s->n; i++) {
    sl_free (s->item[i].name);
    sl_tensor_release (s->item[i].tensor);
  }
  for (size_t i = 0; i < s->n_meta; i++) {
    sl_free (s->meta[i].key);
    sl_free (s->meta[i].value);
  }
  sl_free (s->item);
  sl_free (s->meta);
  *s = (sl_tensors){ 0 };
}

static char *copy_text (const char *text) {
  size_t n = strlen (text) + 1;
  char *copy = sl_alloc (n, 1);
  if (copy != NULL) memcpy (copy, text, n);
  return copy;
}

/* A JSON integer 0..PTRDIFF_MAX. */
static int whole (const json_t *j, size_t *out) {
  json_int_t i = json_integer_value (j);
  *out = (size_t)i;
  return json_is_integer (j) && i >= 0 && i <= PTRDIFF_MAX;
}

/* Where a tensor lies. */
typedef struct place {
  size_t from, to;
  const char *name;
} place;

static int by_place (const void *a, const void *b) {
  const place *x = a, *y = b;
  if (x->from != y->from) return x->from < y->from ? -1 : 1;
  return x->to < y->to ? -1 : x->to > y->to;
}

/* One entry: its place is checked against the data's size and its shape, then
** its numbers are copied. */
static sl_tensor *take (const char *name, const json_t *entry, const char *data,
                        size_t bytes, place *where, sl_error *e) {
  const json_t *shape = json_object_get (entry, "shape");
  const json_t *span = json_object_get (entry, "data_offsets");
  const char *dtype = json_string_value (json_object_get (entry, "dtype"));
  ptrdiff_t dim[SL_MAX_DIMS];
  size_t count, size;
  int d = -1, ndim = (int)json_array_size (shape);
  char text[SL_SHAPE_TEXT];
  sl_tensor *t;
  where->name = name;
  if (!json_is_array (shape) || !json_is_array (span) || dtype == NULL ||
      json_array_size (span) != 2 ||
      !whole (json_array_get (span, 0), &where->from) ||
      !whole (json_array_get (span, 1), &where->to)) {
    sl_fail (e, "'%s' has no proper dtype, shape and data_offsets", name);
    return NULL;
  }
  if (strcmp (dtype, "F32") == 0) d = SL_F32;
  if (strcmp (dtype, "F64") == 0) d = SL_F64;
  if (d < 0) {
    sl_fail (e, "'%s' is of type %.16s; read are F32 and F64", name, dtype);
    return NULL;
  }
  if (json_array_size (shape) > SL_MAX_DIMS) {
    sl_fail (e, "'%s' has %zu axes; at most %d are read", name,
             json_array_size (shape), SL_MAX_DIMS);
    return NULL;
  }
  for (int i = 0; i < ndim; i++) {
    if (!whole (json_array_get (shape, (size_t)i), &size)) {
      sl_fail (e, "'%s' has a size that is no number of elements", name);
      return NULL;
    }
    dim[i] = (ptrdiff_t)size;
  }
  if (sl_shape_count (ndim, dim, &count) < 0) {
    sl_fail (e, "'%s' has shape %s, which is too large", name,
             sl_shape_text (ndim, dim, text, sizeof text));
    return NULL;
  }
  for (int i = 0; i < ndim; i++)
    if (dim[i] == 0) count = 0;
  size = count * sl_dtype_size ((sl_dtype)d);
  if (where->from > where->to || where->to > bytes ||
      where->to - where->from != size) {
    sl_fail (e,
             "'%s' of shape %s needs %zu bytes but lies at %zu to %zu of %zu",
             name, sl_shape_text (ndim, dim, text, sizeof text), size,
             where->from, where->to, bytes);
    return NULL;
  }
  t = sl_tensor_new ((sl_dtype)d, ndim, dim, e);
  if (t != NULL) memcpy (t->storage->data, data + where->from, size);
  return t;
}

static int take_metadata (const json_t *meta, sl_tensors *s, sl_error *e) {
  const char *key;
  json_t *value;
  if (!json_is_object (meta)) return sl_fail (e, "__metadata__ is no object");
  s->meta = sl_alloc (json_object_size (meta), sizeof *s->meta);
  if (s->meta == NULL) return sl_fail (e, "out of memory");
  json_object_foreach ((json_t *)(uintptr_t)meta, key, value) {
    sl_meta *m = &s->meta[s->n_meta++];
    if (!json_is_string (value))
      return sl_fail (e, "__metadata__ '%s' is no text", key);
    m->key = copy_text (key);
    m->value = copy_text (json_string_value (value));
    if (m->key == NULL || m->value == NULL) return sl_fail (e, "out of memory");
  }
  return 0;
}

/* The format allows neither overlap nor gap. */
static int covered (place *places, size_t n, size_t bytes, sl_error *e) {
  size_t end = 0;
  qsort (places, n, sizeof *places, by_place);
  for (size_t i = 0; i < n; i++) {
    if (places[i].from != end)
      return sl_fail (e, "'%s' begins at byte %zu of the data, expected %zu",
                      places[i].name, places[i].from, end);
    end = places[i].to;
  }
  if (end != bytes)
    return sl_fail (e, "the tensors end at byte %zu of %zu bytes of data", end,
                    bytes);
  return 0;
}

static int take_all (json_t *root, const char *data, size_t bytes,
                     sl_tensors *s, sl_error *e) {
  place *places = sl_alloc (json_object_size (root), sizeof *places);
  const char *name;
  json_t *entry;
  int status = 0;
  s->item = sl_alloc (json_object_size (root), sizeof *s->item);
  if (places == NULL || s->item == NULL) status = sl_fail (e, "out of memory");
  json_object_foreach (root, name, entry) {
    sl_named *item;
    if (status < 0) break;
    if (strcmp (name, metadata) == 0) {
      status = take_metadata (entry, s, e);
      continue;
    }
    item = &s->item[s->n];
    item->tensor = take (name, entry, data, bytes, &places[s->n], e);
    if (item->tensor == NULL) status = -1;
    s->n++;
    item->name = copy_text (name);
    if (item->name == NULL && status == 0)
      status = sl_fail (e, "out of memory");
  }
  if (status == 0) status = covered (places, s->n, bytes, e);
  sl_free (places);
  return status;
}

static int decode (const char *file, size_t n, sl_tensors *s, sl_error *e) {
  uint64_t length;
  json_error_t why;
  json_t *root;
  int status;
  if (n < 8) return sl_fail (e, "is not a safetensors file");
  memcpy (&length, file, 8);
  if (length > MAX_HEADER || length > n - 8)
    return sl_fail (e,
                    "is not a safetensors file, or cut off: a header of "
                    "%llu bytes in a file of %zu",
                    (unsigned long long)length, n);
  root = json_loadb (file + 8, (size_t)length, JSON_REJECT_DUPLICATES, &why);
  if (root == NULL)
    return sl_fail (e, "has a header that is no JSON: %s (byte %d)", why.text,
                    why.position);
  status =
      json_is_object (root)
          ? take_all (root, file + 8 + length, n - 8 - (size_t)length, s, e)
          : sl_fail (e, "has a header that is no JSON object");
  json_decref (root);
  return status;
}

int sl_safetensors_read (const char *path, sl_tensors *s, sl_error *e) {
  size_t n;
  char *file = sl_file_read (path, 0, &n, e);
  sl_error why = { "" };
  int status;
  *s = (sl_tensors){ 0 };
  if (file == NULL) return -1;
  status = decode (file, n, s, &why);
  sl_free (file);
  if (status == 0) return 0;
  sl_tensors_free (s);
  return sl_fail (e, "%s: %s", path, why.text);
}
