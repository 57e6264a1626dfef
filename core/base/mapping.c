/* mapping.c - a file seen as memory, without a copy of it. */
#include "base/mapping.h"
#include "base/file.h"
#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int sl_map_file (const char *path, sl_mapping *m, sl_error *e) {
  size_t size;
  void *data = NULL;
  int file = sl_open_to_read (path, &size, e), code = 0;
  *m = (sl_mapping){ NULL, 0 };
  if (file < 0) return -1;
  if (size > PTRDIFF_MAX)
    code = EFBIG;
  else if (size > 0) {
    int flags = MAP_PRIVATE;
#ifdef MAP_NORESERVE
    flags |= MAP_NORESERVE; /* no swap is set aside for writes never made */
#endif
    data = mmap (NULL, size, PROT_READ | PROT_WRITE, flags, file, 0);
    if (data == MAP_FAILED) code = errno;
  }
  close (file);
  if (code != 0)
    return sl_fail (e, "%s: cannot read: %s", path, strerror (code));
  *m = (sl_mapping){ data, size };
  return 0;
}

void sl_unmap (sl_mapping *m) {
  if (m->data != NULL) munmap (m->data, m->size);
  *m = (sl_mapping){ NULL, 0 };
}
