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

/* How many of the n bytes at s, from the first on, are shown as they are; 0: the
** first character is escaped. 'lines': a newline and a tab are shown as they
** are. */
size_t sl_plain_run (const char *s, size_t n, int lines);

/* Writes the escape of the character at s to 'out', with a NUL; how many bytes
** of s it stands for. */
enum { SL_ESCAPE = 12 };
size_t sl_escape_one (const char *s, size_t n, char out[SL_ESCAPE]);

/* The text (newlines and tabs escaped too) in 'out', which has 'size' bytes; one
** that does not fit is cut. Returns out. */
const char *sl_escape_text (const char *s, char *out, size_t size);

/* "sinklab: TEXT" and a newline to standard error; newlines and tabs of the text
** are kept. */
void sl_complain (const char *text);
#endif
