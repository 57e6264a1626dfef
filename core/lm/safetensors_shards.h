/* safetensors_shards.h - one safetensors file or several as one, mapped. */
#ifndef SL_SAFETENSORS_SHARDS_H
#define SL_SAFETENSORS_SHARDS_H
#include "base/mapping.h"
#include "lm/weights.h"

typedef struct sl_safetensors_shards {
  size_t n_files, n_weights, n_meta;
  sl_mapping *map;
  sl_weight *weight;
  sl_meta *meta; /* of the first file */
} sl_safetensors_shards;

/* One file. On failure s can be closed all the same. */
int sl_safetensors_shards_open (const char *path, sl_safetensors_shards *s,
                                sl_error *e);

/* An index, {"weight_map": {"tensor": "file"}}, of files in 'folder'. Every
** tensor of the map must be in the file that it names; a file may hold more.
** The weights are in the order of their names. */
int sl_safetensors_shards_open_index (const char *path, const char *folder,
                                      sl_safetensors_shards *s, sl_error *e);
void sl_safetensors_shards_close (sl_safetensors_shards *s);
size_t sl_safetensors_shards_bytes (const sl_safetensors_shards *s);
#endif
