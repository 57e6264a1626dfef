/* utf8.c - characters of UTF-8 text. */
#include "base/utf8.h"

int sl_utf8_length (const char *text, size_t n) {
  const unsigned char *p = (const unsigned char *)text;
  const unsigned lead = n > 0 ? p[0] : 0xff;
  const int length = lead < 0x80                   ? 1
                     : lead >= 0xc2 && lead < 0xe0 ? 2
                     : lead >= 0xe0 && lead < 0xf0 ? 3
                     : lead >= 0xf0 && lead < 0xf5 ? 4
                                                   : 0;
  if (length == 0 || (size_t)length > n) return 0;
  for (int i = 1; i < length; i++)
    if ((p[i] & 0xc0) != 0x80) return 0;
  /* too long a form, a surrogate, beyond U+10FFFF */
  if ((lead == 0xe0 && p[1] < 0xa0) || (lead == 0xed && p[1] > 0x9f) ||
      (lead == 0xf0 && p[1] < 0x90) || (lead == 0xf4 && p[1] > 0x8f))
    return 0;
  return length;
}

uint32_t sl_utf8_code (const char *text, int length) {
  uint32_t code = (unsigned char)*text;
  if (length > 1) code &= 0x7fu >> length;
  for (int i = 1; i < length; i++)
    code = code << 6 | ((unsigned char)text[i] & 0x3f);
  return code;
}
