/* safetensors.c - named tensors and texts in one file, written and read. */
#include "base/file.h"
#include "base/mapping.h"
#include "base/memory.h"
#include "base/number.h"
#include "tensor/number_types.h"
#include "tensor/safetensors_header.h"
#include <jansson.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "files are read and written as memory has them: little-endian only"
#endif

static const char *const dtypes[] = { "F32", "F64" }; /* as written */

/* Write. */

static size_t bytes_of (const sl_tensor *t) {
  const sl_view v = sl_tensor_view (t);
  return sl_view_count (&v) * sl_dtype_size (t->storage->dtype);
}

/* The entry of tensor number i, whose data begin at *bytes; these move on. */
static int describe_one (json_t *root, const sl_named *item, size_t i,
                         size_t *bytes, sl_error *e) {
  const sl_tensor *t = item->tensor;
  const size_t size = bytes_of (t), end = *bytes + size;
  json_t *shape;
  if (strcmp (item->name, SL_METADATA) == 0)
    return sl_fail (e, "the name '%s' is reserved", item->name);
  if (json_object_get (root, item->name) != NULL)
    return sl_fail (e, "the name '%s' is given twice", item->name);
  if (size > PTRDIFF_MAX - *bytes) /* views may repeat a few numbers */
    return sl_fail (e, "the tensors up to '%s' take more bytes than a file can",
                    item->name);
  shape = json_array ();
  for (int k = 0; k < t->ndim; k++)
    json_array_append_new (shape, json_integer (t->dim[k]));
  if (json_object_set_new (root, item->name,
                           json_pack ("{s:s, s:o, s:[I, I]}", "dtype",
                                      dtypes[t->storage->dtype], "shape", shape,
                                      "data_offsets", (json_int_t)*bytes,
                                      (json_int_t)end)) != 0)
    return sl_fail (e, "the name of tensor %zu is not UTF-8", i + 1);
  *bytes = end;
  return 0;
}

/* The header as JSON; *bytes receives the size of the data. */
static json_t *describe (const sl_tensors *s, size_t *bytes, sl_error *e) {
  json_t *root = json_object (), *meta = json_object ();
  int ok = root != NULL && meta != NULL;
  *bytes = 0;
  for (size_t i = 0; ok && i < s->n_meta; i++)
    ok = json_object_set_new (meta, s->meta[i].key,
                              json_string (s->meta[i].value)) == 0;
  if (s->n_meta > 0 && ok) ok = json_object_set (root, SL_METADATA, meta) == 0;
  json_decref (meta);
  if (!ok) sl_fail (e, "out of memory, or metadata that are not UTF-8");
  for (size_t i = 0; ok && i < s->n; i++)
    ok = describe_one (root, &s->item[i], i, bytes, e) == 0;
  if (ok) return root;
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
    n = padded = sl_round_up (length, 8);
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
    const size_t k = bytes_of (s->item[i].tensor);
    status = put (s->item[i].tensor, file + at, k, &why);
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

/* A copy of one tensor's numbers. */
static sl_tensor *take (const sl_entry *entry, const char *data, sl_error *e) {
  sl_tensor *t = sl_numbers_read (entry->type, 0, entry->ndim, entry->dim,
                                  data + entry->from, e);
  if (t == NULL) sl_fail_within (e, "'%.200s'", entry->name);
  return t;
}

static int decode (const char *file, size_t n, sl_tensors *s, sl_error *e) {
  sl_header h;
  int status = sl_header_read (file, n, &h, e);
  if (status == 0) {
    s->item = sl_alloc (h.n, sizeof *s->item);
    if (s->item == NULL) status = sl_fail (e, "out of memory");
  }
  for (; status == 0 && s->n < h.n; s->n++) {
    sl_entry *entry = &h.entry[s->n];
    sl_named *item = &s->item[s->n];
    item->tensor = take (entry, file + h.data, e);
    if (item->tensor == NULL) {
      status = -1;
      break;
    }
    item->name = entry->name; /* ours from here on */
    entry->name = NULL;
  }
  s->meta = h.meta;
  s->n_meta = h.n_meta;
  h.meta = NULL;
  h.n_meta = 0;
  sl_header_free (&h);
  return status;
}

int sl_safetensors_read (const char *path, sl_tensors *s, sl_error *e) {
  sl_mapping file;
  sl_error why = { "" };
  int status;
  *s = (sl_tensors){ 0 };
  if (sl_map_file (path, &file, e) < 0) return -1;
  status = decode (file.data, file.size, s, &why);
  sl_unmap (&file);
  if (status == 0) return 0;
  sl_tensors_free (s);
  return sl_fail (e, "%s: %s", path, why.text);
}
