/* bytes.c - a growing run of bytes: a file or a text in the making. */
#include "plot/bytes.h"
#include "base/memory.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void sl_bytes_add (sl_bytes *b, const void *data, size_t n) {
  if (b->failed) return;
  if (n >= b->room - b->n || !b->data) {
    size_t room = b->room < 512 ? 1024 : 2 * b->room;
    char *larger;
    while (room - b->n <= n && room < (size_t)-1 / 4) room *= 2;
    larger = room - b->n > n ? sl_alloc (room, 1) : NULL;
    if (!larger) {
      b->failed = 1;
      return;
    }
    if (b->n) memcpy (larger, b->data, b->n);
    sl_free (b->data);
    b->data = larger, b->room = room;
  }
  if (n) memcpy (b->data + b->n, data, n);
  b->n += n;
  b->data[b->n] = 0;
}

void sl_bytes_put (sl_bytes *b, const char *text) {
  sl_bytes_add (b, text, strlen (text));
}

void sl_bytes_format (sl_bytes *b, const char *format, ...) {
  char text[1024];
  va_list args;
  va_start (args, format);
  vsnprintf (text, sizeof text, format, args);
  va_end (args);
  sl_bytes_put (b, text);
}

void sl_bytes_free (sl_bytes *b) {
  sl_free (b->data);
  *b = (sl_bytes){ 0 };
}
