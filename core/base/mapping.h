/* mapping.h - a file seen as memory, without a copy of it. */
#ifndef SL_MAPPING_H
#define SL_MAPPING_H
#include "base/error.h"

typedef struct sl_mapping {
  char *data; /* NULL for an empty file */
  size_t size;
} sl_mapping;

/* Map the whole file. What is written to the memory stays there: the file is
** never changed. Pages are read when they are first touched; a file that
** another program cuts short meanwhile takes the process down, as with every
** mapping. Refuses anything but a regular file. */
int sl_map_file (const char *path, sl_mapping *m, sl_error *e);
void sl_unmap (sl_mapping *m); /* an empty mapping is allowed */
#endif
