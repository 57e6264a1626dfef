/* weights.c - the weights of a model: files opened, tensors found. */
#include "lm/weights.h"
#include "base/escape.h"
#include "base/file.h"
#include "base/mapping.h"
#include "base/memory.h"
#include "lm/gguf_files.h"
#include "lm/safetensors_shards.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct sl_weights {
  int refs;
  char *path, *folder;
  int is_gguf;
  sl_gguf_files gguf;
  sl_safetensors_shards shards;
  size_t n;
  const sl_weight *weight;   /* of gguf or shards */
  const sl_weight **by_name; /* sorted */
};

static int by_name (const void *a, const void *b) {
  return strcmp ((*(const sl_weight *const *)a)->name,
                 (*(const sl_weight *const *)b)->name);
}

/* Kinds of paths, by how they end. */
static int ends (const char *text, const char *end) {
  const size_t n = strlen (text), k = strlen (end);
  return n >= k && strcmp (text + n - k, end) == 0;
}

/* "folder/name", or NULL without memory. */
static char *join (const char *folder, const char *name) {
  const size_t n = strlen (folder) + strlen (name) + 2;
  char *path = sl_alloc (n, 1);
  if (path != NULL) snprintf (path, n, "%s/%s", folder, name);
  return path;
}

static int is_there (const char *folder, const char *name) {
  char *path = join (folder, name);
  const int found = path != NULL && sl_file_exists (path);
  sl_free (path);
  return found;
}

static int open_gguf (sl_weights *w, sl_error *e) {
  if (sl_gguf_files_open (w->path, &w->gguf, e) < 0) return -1;
  w->is_gguf = 1;
  w->n = w->gguf.n_weights;
  w->weight = w->gguf.weight;
  return 0;
}

static int open_shards (sl_weights *w, const char *path, sl_error *e) {
  const int status =
      ends (path, ".json")
          ? sl_safetensors_shards_open_index (path, w->folder, &w->shards, e)
          : sl_safetensors_shards_open (path, &w->shards, e);
  w->n = w->shards.n_weights;
  w->weight = w->shards.weight;
  return status;
}

static int open_folder (sl_weights *w, sl_error *e) {
  static const char *const names[] = { "model.safetensors",
                                       "model.safetensors.index.json" };
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (is_there (w->folder, names[i])) {
      char *path = join (w->folder, names[i]);
      const int status = path != NULL ? open_shards (w, path, e)
                                      : sl_fail (e, "out of memory");
      sl_free (path);
      return status;
    }
  return sl_fail (e, "%s: the folder has no %s and no %s%s", w->path, names[0],
                  names[1],
                  is_there (w->folder, "pytorch_model.bin")
                      ? "; pytorch_model.bin, a pickle, is not read"
                      : "");
}

/* A file by its first bytes: GGUF has a magic, a safetensors header begins with
** a brace, perhaps after spaces. */
static int open_file (sl_weights *w, sl_error *e) {
  static const char blank[] = " \t\r\n";
  sl_mapping map;
  const char *data;
  size_t i = 8;
  int is_gguf, is_safetensors;
  if (ends (w->path, ".json")) return open_shards (w, w->path, e);
  if (sl_map_file (w->path, &map, e) < 0) return -1;
  data = map.data;
  is_gguf = map.size >= 4 && memcmp (data, "GGUF", 4) == 0;
  while (i < map.size && strchr (blank, data[i]) != NULL && data[i]) i++;
  is_safetensors =
      ends (w->path, ".safetensors") || (i < map.size && data[i] == '{');
  sl_unmap (&map);
  if (is_gguf) return open_gguf (w, e);
  if (is_safetensors) return open_shards (w, w->path, e);
  return sl_fail (e, "%s: is neither a GGUF nor a safetensors file", w->path);
}

static int sort (sl_weights *w, sl_error *e) {
  w->by_name = sl_alloc (w->n, sizeof *w->by_name);
  if (w->by_name == NULL)
    return sl_fail (e, "%s: out of memory for %zu tensors", w->path, w->n);
  for (size_t i = 0; i < w->n; i++) w->by_name[i] = &w->weight[i];
  qsort (w->by_name, w->n, sizeof *w->by_name, by_name);
  return 0;
}

/* Names from a file may hold anything, newlines too; a sentence is one line. */
static void make_printable (sl_error *e) {
  const sl_error said = *e;
  sl_escape_text (said.text, e->text, sizeof e->text);
}

sl_weights *sl_weights_open (const char *path, sl_error *e) {
  sl_weights *w = sl_alloc (1, sizeof *w);
  const int is_folder = sl_folder_exists (path);
  const char *slash = strrchr (path, '/');
  size_t n = strlen (path);
  int status;
  if (w == NULL) {
    sl_fail (e, "%s: out of memory", path);
    return NULL;
  }
  w->refs = 1;
  w->path = sl_alloc_text (path, n);
  while (is_folder && n > 1 && path[n - 1] == '/') n--;
  if (!is_folder) n = slash == NULL ? 0 : slash == path ? 1 : slash - path;
  w->folder = n > 0 ? sl_alloc_text (path, n) : sl_alloc_text (".", 1);
  if (w->path == NULL || w->folder == NULL)
    status = sl_fail (e, "%s: out of memory", path);
  else
    status = is_folder ? open_folder (w, e) : open_file (w, e);
  if (status == 0) status = sort (w, e);
  if (status == 0) return w;
  if (e != NULL) make_printable (e);
  sl_weights_release (w);
  return NULL;
}

sl_weights *sl_weights_retain (sl_weights *w) {
  w->refs++;
  return w;
}

void sl_weights_release (sl_weights *w) {
  if (w == NULL || --w->refs > 0) return;
  sl_gguf_files_close (&w->gguf);
  sl_safetensors_shards_close (&w->shards);
  sl_free (w->by_name);
  sl_free (w->path);
  sl_free (w->folder);
  sl_free (w);
}

const char *sl_weights_path (const sl_weights *w) {
  return w->path;
}

const char *sl_weights_folder (const sl_weights *w) {
  return w->folder;
}

const sl_gguf *sl_weights_gguf (const sl_weights *w) {
  return w->is_gguf ? &w->gguf.file[0].gguf : NULL;
}

const sl_meta *sl_weights_meta (const sl_weights *w, size_t *n) {
  *n = w->shards.n_meta;
  return w->shards.meta;
}

size_t sl_weights_count (const sl_weights *w) {
  return w->n;
}

const sl_weight *sl_weights_get (const sl_weights *w, size_t i) {
  return &w->weight[i];
}

size_t sl_weights_bytes (const sl_weights *w) {
  return w->is_gguf ? sl_gguf_files_bytes (&w->gguf)
                    : sl_safetensors_shards_bytes (&w->shards);
}

static const sl_weight *no_such_weight (const sl_weights *w, const char *name,
                                        sl_error *e) {
  const char **names = sl_alloc (w->n, sizeof *names);
  for (size_t i = 0; names != NULL && i < w->n; i++)
    names[i] = w->by_name[i]->name;
  sl_fail_unknown (e, name, names != NULL ? w->n : 0, names,
                   "%s: there is no tensor '%.200s'", w->path, name);
  sl_free (names);
  return NULL;
}

const sl_weight *sl_weights_find (const sl_weights *w, const char *name,
                                  sl_error *e) {
  const sl_weight key = { .name = name }, *at = &key;
  const sl_weight **found =
      bsearch (&at, w->by_name, w->n, sizeof *w->by_name, by_name);
  return found != NULL ? *found : no_such_weight (w, name, e);
}
