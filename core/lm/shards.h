/* shards.h - safetensors files that are mapped, one or several as one. */
#ifndef SL_SHARDS_H
#define SL_SHARDS_H
#include "base/mapping.h"
#include "lm/weights.h"

typedef struct sl_shards {
  size_t n_files, n_weights, n_meta;
  sl_mapping *map;
  sl_weight *weight;
  sl_meta *meta; /* of the first file */
} sl_shards;

/* One file. On failure s can be closed all the same. */
int sl_shards_open (const char *path, sl_shards *s, sl_error *e);

/* An index, {"weight_map": {"tensor": "file"}}, of files in 'folder'. Every
** tensor of the map must be in the file that it names; a file may hold more.
** The weights are in the order of their names. */
int sl_shards_open_index (const char *path, const char *folder, sl_shards *s,
                          sl_error *e);
void sl_shards_close (sl_shards *s);
size_t sl_shards_bytes (const sl_shards *s);
#endif
