/* bytes.h - a growing run of bytes: a file or a text in the making. */
#ifndef SL_BYTES_H
#define SL_BYTES_H
#include "base/error.h"
#include <stddef.h>

/* Zero it to begin. data always has a NUL after its n bytes once anything was
** added; it comes from sl_alloc. After failed memory 'failed' is 1, and adding
** does nothing. */
typedef struct sl_bytes {
  char *data;
  size_t n, room;
  int failed;
} sl_bytes;

/* Append n bytes; a text; a formatted one. */
void sl_bytes_add (sl_bytes *b, const void *data, size_t n);
void sl_bytes_put (sl_bytes *b, const char *text);
/* At most 1023 bytes a call. */
void sl_bytes_format (sl_bytes *b, const char *format, ...) SL_PRINTF (2, 3);
void sl_bytes_free (sl_bytes *b);
#endif
