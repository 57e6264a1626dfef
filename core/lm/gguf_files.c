/* gguf_files.c - a GGUF model in one file or in several. */
#include "lm/gguf_files.h"
#include "base/memory.h"
#include "lm/weights.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_PARTS = 9999 };

/* A whole number of a GGUF file, or 'otherwise'. */
static int64_t number_of (const sl_gguf *g, const char *key,
                          int64_t otherwise) {
  const sl_gguf_value *v = sl_gguf_find (g, key);
  const char *cursor;
  if (v == NULL || v->is_array || v->type == SL_GGUF_STRING ||
      sl_gguf_is_real (v))
    return otherwise;
  cursor = v->at;
  return sl_gguf_whole (v, &cursor);
}

/* Map and parse file i of f. */
static int open_one (const char *path, sl_gguf_files *f, size_t i,
                     sl_error *e) {
  sl_gguf_file *x = &f->file[i];
  sl_error why;
  if (sl_map_file (path, &x->map, e) < 0) return -1;
  f->n = i + 1;
  if (sl_gguf_parse (x->map.data, x->map.size, &x->gguf, &why) < 0)
    return sl_fail (e, "%s: %s", path, why.text);
  return 0;
}

/* The end of a part's name. */
static void suffix_of (char *to, size_t size, size_t part, size_t parts) {
  snprintf (to, size, "-%05zu-of-%05zu.gguf", part + 1, parts);
}

/* The parts of a model, when the file at 'path' is number 'own' of 'parts'. */
static int open_parts (const char *path, size_t own, size_t parts,
                       sl_gguf_files *f, sl_error *e) {
  char suffix[64], *name;
  const size_t length = strlen (path);
  size_t stem;
  int status = 0;
  suffix_of (suffix, sizeof suffix, own, parts);
  stem = length - strlen (suffix);
  if (length <= strlen (suffix) || strcmp (path + stem, suffix) != 0)
    return sl_fail (e,
                    "%s: is part %zu of %zu of a model; its name must end in "
                    "%s to find the others",
                    path, own + 1, parts, suffix);
  sl_gguf_files_close (f);
  f->file = sl_alloc (parts, sizeof *f->file);
  name = sl_alloc (length + 1, 1);
  if (f->file == NULL || name == NULL)
    status = sl_fail (e, "%s: out of memory", path);
  for (size_t i = 0; i < parts && status == 0; i++) {
    suffix_of (suffix, sizeof suffix, i, parts);
    snprintf (name, length + 1, "%.*s%s", (int)stem, path, suffix);
    status = open_one (name, f, i, e);
    if (status == 0 &&
        (number_of (&f->file[i].gguf, "split.no", -1) != (int64_t)i ||
         number_of (&f->file[i].gguf, "split.count", 1) != (int64_t)parts))
      status = sl_fail (e,
                        "%s: is not part %zu of %zu by its keys split.no and "
                        "split.count",
                        name, i + 1, parts);
  }
  sl_free (name);
  return status;
}

static int by_name (const void *a, const void *b) {
  return strcmp ((*(const sl_weight *const *)a)->name,
                 (*(const sl_weight *const *)b)->name);
}

/* The weights of all files in one list; no name twice. */
static int gather (const char *path, sl_gguf_files *f, sl_error *e) {
  const sl_weight **sorted;
  size_t at = 0;
  int64_t promised;
  int status = 0;
  for (size_t i = 0; i < f->n; i++) f->n_weights += f->file[i].gguf.n_weights;
  f->weight = sl_alloc (f->n_weights, sizeof *f->weight);
  sorted = sl_alloc (f->n_weights, sizeof *sorted);
  if (f->weight == NULL || sorted == NULL)
    status = sl_fail (e, "%s: out of memory", path);
  for (size_t i = 0; status == 0 && i < f->n; i++) {
    const sl_gguf *g = &f->file[i].gguf;
    if (g->n_weights > 0)
      memcpy (f->weight + at, g->weight, g->n_weights * sizeof *g->weight);
    at += g->n_weights;
  }
  for (size_t i = 0; status == 0 && i < at; i++) sorted[i] = &f->weight[i];
  if (status == 0 && at > 0) qsort (sorted, at, sizeof *sorted, by_name);
  for (size_t i = 1; status == 0 && i < at; i++)
    if (strcmp (sorted[i - 1]->name, sorted[i]->name) == 0)
      status = sl_fail (e, "%s: two parts have the tensor '%.100s'", path,
                        sorted[i]->name);
  sl_free (sorted);
  promised = number_of (&f->file[0].gguf, "split.tensors.count",
                        (int64_t)f->n_weights);
  if (status == 0 && f->n > 1 && promised != (int64_t)f->n_weights)
    return sl_fail (e,
                    "%s: its parts have %zu tensors; split.tensors.count is "
                    "%lld",
                    path, f->n_weights, (long long)promised);
  return status;
}

int sl_gguf_files_open (const char *path, sl_gguf_files *f, sl_error *e) {
  int64_t parts, own;
  *f = (sl_gguf_files){ 0 };
  f->file = sl_alloc (1, sizeof *f->file);
  if (f->file == NULL) return sl_fail (e, "%s: out of memory", path);
  if (open_one (path, f, 0, e) < 0) return -1;
  parts = number_of (&f->file[0].gguf, "split.count", 1);
  own = number_of (&f->file[0].gguf, "split.no", 0);
  if (parts > 1 && (parts > MAX_PARTS || own < 0 || own >= parts))
    return sl_fail (e,
                    "%s: is part %lld of %lld of a model; read are 1 to %d "
                    "parts",
                    path, (long long)own + 1, (long long)parts, MAX_PARTS);
  if (parts > 1 && open_parts (path, (size_t)own, (size_t)parts, f, e) < 0)
    return -1;
  return gather (path, f, e);
}

void sl_gguf_files_close (sl_gguf_files *f) {
  for (size_t i = 0; i < f->n; i++) {
    sl_gguf_free (&f->file[i].gguf);
    sl_unmap (&f->file[i].map);
  }
  sl_free (f->file);
  sl_free (f->weight);
  *f = (sl_gguf_files){ 0 };
}

size_t sl_gguf_files_bytes (const sl_gguf_files *f) {
  size_t sum = 0;
  for (size_t i = 0; i < f->n; i++) sum += f->file[i].map.size;
  return sum;
}
