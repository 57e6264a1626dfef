/* byte_level.h - the letters that stand for bytes in byte-level vocabularies.
**
** GPT-2's rule: a printable byte of Latin-1 (33..126, 161..172, 174..255) is
** the character of that number, the others in order are U+0100 and on. */
#ifndef SL_BYTE_LEVEL_H
#define SL_BYTE_LEVEL_H
#include <stddef.h>

enum {
  SL_BYTE_LEVEL_LETTER = 2
}; /* bytes of UTF-8 that a letter takes at most */

/* The letter of a byte; returns its length. */
int sl_byte_level_letter (unsigned char byte,
                          char letter[SL_BYTE_LEVEL_LETTER]);

/* The bytes that n bytes of letters stand for, at most n, into 'bytes';
** returns how many. Text with any other character is copied whole. */
size_t sl_byte_level_decode (const char *letters, size_t n, char *bytes);
#endif
