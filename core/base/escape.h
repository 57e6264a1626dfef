/* escape.h - text of the outside world, before it meets a terminal.
**
** Names of files, texts of model files and whatever else others wrote may hold
** bytes that move the cursor, change colours, retitle the window or turn the
** direction of writing, and bytes that are no text. They are shown as what they
** are, as Lua writes them: \n, \r, \t, \x1b for another byte below 0x20, 0x7f
** or one that is not UTF-8, \u{202e} for a character beyond. */
#ifndef SL_ESCAPE_H
#define SL_ESCAPE_H
#include <stddef.h>

/* A part of a text as it is shown: bytes of the text itself, or the escape of one
** character. */
enum { SL_ESCAPE = 12 };
typedef struct sl_shown_part {
  const char *text;
  size_t n;
  int is_escape;
  char escape[SL_ESCAPE]; /* 'text' points here, or into the text shown */
} sl_shown_part;

/* The first part of the n > 0 bytes at s, as long as can be; how many bytes of s it
** stands for. 'lines': a newline and a tab are shown as they are. */
size_t sl_show_next (const char *s, size_t n, int lines, sl_shown_part *part);

/* The text (newlines and tabs escaped too) in 'out', which has 'size' bytes; one
** that does not fit is cut. Returns out. */
const char *sl_escape_text (const char *s, char *out, size_t size);

/* "sinklab: TEXT" and a newline to standard error; newlines and tabs of the text
** are kept. */
void sl_complain (const char *text);
#endif
