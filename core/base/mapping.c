/* mapping.c - a file seen as memory, without a copy of it. */
#include "base/mapping.h"
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

int sl_map_file (const char *path, sl_mapping *m, sl_error *e) {
  struct stat info;
  void *data = NULL;
  /* opening a pipe without a writer must not block */
  int file = open (path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), code = 0;
  *m = (sl_mapping){ NULL, 0 };
  if (file < 0 || fstat (file, &info) != 0) code = errno;
  if (code == 0 && !S_ISREG (info.st_mode)) {
    close (file);
    return sl_fail (e, "%s: cannot read: it is %s", path,
                    S_ISDIR (info.st_mode) ? "a folder" : "not a file");
  }
  if (code == 0 && (uintmax_t)info.st_size > PTRDIFF_MAX) code = EFBIG;
  if (code == 0 && info.st_size > 0) {
    int flags = MAP_PRIVATE;
#ifdef MAP_NORESERVE
    flags |= MAP_NORESERVE; /* no swap is set aside for writes never made */
#endif
    data = mmap (NULL, (size_t)info.st_size, PROT_READ | PROT_WRITE, flags,
                 file, 0);
    if (data == MAP_FAILED) code = errno;
  }
  if (file >= 0) close (file);
  if (code != 0)
    return sl_fail (e, "%s: cannot read: %s", path, strerror (code));
  *m = (sl_mapping){ data, (size_t)info.st_size };
  return 0;
}

void sl_unmap (sl_mapping *m) {
  if (m->data != NULL) munmap (m->data, m->size);
  *m = (sl_mapping){ NULL, 0 };
}
