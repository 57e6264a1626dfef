/* utf8.h - characters of UTF-8 text. */
#ifndef SL_UTF8_H
#define SL_UTF8_H
#include <stddef.h>
#include <stdint.h>

/* The length of the UTF-8 character at text, 1 to 4; 0 if there is none in its n
** bytes. */
int sl_utf8_length (const char *text, size_t n);

/* The number of the character at text, whose length the function above has
** given. */
uint32_t sl_utf8_code (const char *text, int length);
#endif
