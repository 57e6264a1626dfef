/* safetensors_shards.c - one safetensors file or several as one, mapped. */
#include "lm/safetensors_shards.h"
#include "base/file.h"
#include "base/json_load.h"
#include "base/memory.h"
#include "tensor/safetensors_header.h"
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_INDEX = 100000000, MAX_FILES = 10000 };

/* Room for k weights more. */
static int grow (sl_safetensors_shards *s, size_t k, sl_error *e) {
  sl_weight *more = sl_alloc (s->n_weights + k, sizeof *more);
  if (more == NULL) return sl_fail (e, "out of memory");
  if (s->n_weights > 0) memcpy (more, s->weight, s->n_weights * sizeof *more);
  sl_free (s->weight);
  s->weight = more;
  return 0;
}

/* Take over the entries of a file that is mapped at 'data'. */
static int add (sl_safetensors_shards *s, const char *data, sl_header *h,
                sl_error *e) {
  if (grow (s, h->n, e) < 0) return -1;
  for (size_t i = 0; i < h->n; i++) {
    sl_entry *entry = &h->entry[i];
    sl_weight *w = &s->weight[s->n_weights++];
    w->name = entry->name;
    entry->name = NULL;
    /* every type of the format is in the table */
    w->type = sl_weight_type_named (entry->type->safetensors);
    w->ndim = entry->ndim;
    memcpy (w->dim, entry->dim, sizeof w->dim);
    w->data = data + h->data + entry->from;
    w->bytes = entry->to - entry->from;
  }
  if (s->n_files == 1) {
    s->meta = h->meta;
    s->n_meta = h->n_meta;
    h->meta = NULL;
    h->n_meta = 0;
  }
  return 0;
}

static int open_one (const char *path, sl_safetensors_shards *s, sl_error *e) {
  sl_mapping *map = &s->map[s->n_files];
  sl_header h;
  sl_error why;
  int status;
  if (sl_map_file (path, map, e) < 0) return -1;
  s->n_files++;
  status = sl_header_read (map->data, map->size, &h, &why);
  if (status == 0) status = add (s, map->data, &h, &why);
  sl_header_free (&h);
  return status == 0 ? 0 : sl_fail (e, "%s: %s", path, why.text);
}

int sl_safetensors_shards_open (const char *path, sl_safetensors_shards *s,
                                sl_error *e) {
  s->map = sl_alloc (1, sizeof *s->map);
  if (s->map == NULL) return sl_fail (e, "%s: out of memory", path);
  return open_one (path, s, e);
}

void sl_safetensors_shards_close (sl_safetensors_shards *s) {
  for (size_t i = 0; i < s->n_weights; i++)
    sl_free ((void *)(uintptr_t)s->weight[i].name);
  for (size_t i = 0; i < s->n_files; i++) sl_unmap (&s->map[i]);
  for (size_t i = 0; i < s->n_meta; i++) {
    sl_free (s->meta[i].key);
    sl_free (s->meta[i].value);
  }
  sl_free (s->weight);
  sl_free (s->map);
  sl_free (s->meta);
  *s = (sl_safetensors_shards){ 0 };
}

size_t sl_safetensors_shards_bytes (const sl_safetensors_shards *s) {
  size_t sum = 0;
  for (size_t i = 0; i < s->n_files; i++) sum += s->map[i].size;
  return sum;
}

/* An index. */

static int by_text (const void *a, const void *b) {
  return strcmp (*(const char *const *)a, *(const char *const *)b);
}

/* Open each different file of the sorted list. Names lead nowhere else. */
static int open_files (const char *folder, const char **files, size_t n,
                       sl_safetensors_shards *s, sl_error *e) {
  size_t different = 0;
  for (size_t i = 0; i < n; i++)
    different += i == 0 || strcmp (files[i], files[i - 1]) != 0;
  if (different > MAX_FILES)
    return sl_fail (e, "names %zu files; at most %d are read", different,
                    MAX_FILES);
  s->map = sl_alloc (different, sizeof *s->map);
  if (s->map == NULL) return sl_fail (e, "out of memory");
  for (size_t i = 0; i < n; i++) {
    char path[4096];
    if (i > 0 && strcmp (files[i], files[i - 1]) == 0) continue;
    if (strchr (files[i], '/') != NULL || *files[i] == '.')
      return sl_fail (e, "names the file '%.100s', which is not in its folder",
                      files[i]);
    if (snprintf (path, sizeof path, "%s/%s", folder, files[i]) >=
        (int)sizeof path)
      return sl_fail (e, "names a file with a path longer than %zu bytes",
                      sizeof path - 1);
    if (open_one (path, s, e) < 0) return -1;
  }
  return 0;
}

static int by_name (const void *a, const void *b) {
  return strcmp (((const sl_weight *)a)->name, ((const sl_weight *)b)->name);
}

/* The tensors by name: none twice, and every one of the map among them. */
static int match (const json_t *map, sl_safetensors_shards *s, sl_error *e) {
  const char *name;
  json_t *file;
  qsort (s->weight, s->n_weights, sizeof *s->weight, by_name);
  for (size_t i = 1; i < s->n_weights; i++)
    if (by_name (&s->weight[i - 1], &s->weight[i]) == 0)
      return sl_fail (e, "leads to two tensors '%.100s'", s->weight[i].name);
  json_object_foreach ((json_t *)(uintptr_t)map, name, file) {
    const sl_weight key = { .name = name };
    if (bsearch (&key, s->weight, s->n_weights, sizeof key, by_name) == NULL)
      return sl_fail (e, "promises a tensor '%.100s' that '%.100s' lacks", name,
                      json_string_value (file));
  }
  return 0;
}

static int open_map (const json_t *map, const char *folder,
                     sl_safetensors_shards *s, sl_error *e) {
  const size_t n = json_object_size (map);
  const char **files = sl_alloc (n, sizeof *files), *name;
  size_t i = 0;
  json_t *file;
  int status = files == NULL ? sl_fail (e, "out of memory") : 0;
  if (!json_is_object (map) || n == 0)
    status = sl_fail (e, "has no weight_map of tensors to files");
  json_object_foreach ((json_t *)(uintptr_t)map, name, file) {
    if (status < 0) break;
    if (!json_is_string (file))
      status = sl_fail (e, "has no file name for the tensor '%.100s'", name);
    else
      files[i++] = json_string_value (file);
  }
  if (status == 0) {
    qsort (files, n, sizeof *files, by_text);
    status = open_files (folder, files, n, s, e);
  }
  if (status == 0) status = match (map, s, e);
  sl_free (files);
  return status;
}

int sl_safetensors_shards_open_index (const char *path, const char *folder,
                                      sl_safetensors_shards *s, sl_error *e) {
  size_t n;
  char *text = sl_file_read (path, MAX_INDEX, &n, e);
  json_error_t trouble;
  json_t *root;
  sl_error why = { "" };
  int status;
  if (text == NULL) return -1;
  root = sl_json_load (text, n, JSON_REJECT_DUPLICATES, &trouble);
  sl_free (text);
  if (root == NULL)
    return sl_fail (e, "%s: is no JSON: %s (line %d)", path, trouble.text,
                    trouble.line);
  status = open_map (json_object_get (root, "weight_map"), folder, s, &why);
  json_decref (root);
  return status == 0 ? 0 : sl_fail (e, "%s: %s", path, why.text);
}
