/* gguf_files.h - a GGUF model in one file or in several ("split"). */
#ifndef SL_GGUF_FILES_H
#define SL_GGUF_FILES_H
#include "base/mapping.h"
#include "lm/gguf.h"

typedef struct sl_gguf_file {
  sl_mapping map;
  sl_gguf gguf;
} sl_gguf_file;

typedef struct sl_gguf_files {
  size_t n; /* file[0] has the metadata of the model */
  sl_gguf_file *file;
  size_t n_weights;
  struct sl_weight *weight; /* of all files in order; names belong to them */
} sl_gguf_files;

/* Open the file at 'path' and, where its key split.count says that it is part
** of a model, the others beside it: NAME-00001-of-00003.gguf and so on. Any part
** may be given. Refused: parts that are missing or of another model, a tensor
** that is in two parts. On failure f can be closed all the same. */
int sl_gguf_files_open (const char *path, sl_gguf_files *f, sl_error *e);
void sl_gguf_files_close (sl_gguf_files *f);
size_t sl_gguf_files_bytes (const sl_gguf_files *f);
#endif
