/* byte_level.c - GPT-2's letters for bytes. */
#include "lm/byte_level.h"
#include <string.h>

static int is_printable (int byte) {
  return (byte >= 33 && byte <= 126) ||
         (byte >= 161 && byte <= 255 && byte != 173);
}

static int code_of (int byte) {
  int others = 0;
  if (is_printable (byte)) return byte;
  for (int b = 0; b < byte; b++) others += !is_printable (b);
  return 256 + others;
}

int sl_byte_level_letter (unsigned char byte,
                          char letter[SL_BYTE_LEVEL_LETTER]) {
  const int code = code_of (byte);
  if (code < 128) {
    letter[0] = (char)code;
    return 1;
  }
  letter[0] = (char)(0xc0 | code >> 6);
  letter[1] = (char)(0x80 | (code & 63));
  return 2;
}

/* The byte of a character, -1: it stands for none. */
static int byte_of (int code) {
  int others = 0;
  if (code < 256) return is_printable (code) ? code : -1;
  for (int b = 0; b < 256; b++)
    if (!is_printable (b) && others++ == code - 256) return b;
  return -1;
}

size_t sl_byte_level_decode (const char *letters, size_t n, char *bytes) {
  size_t count = 0;
  for (size_t i = 0; i < n; i++) {
    const int lead = (unsigned char)letters[i];
    const int next = i + 1 < n ? (unsigned char)letters[i + 1] : 0;
    int byte = lead < 128 ? byte_of (lead) : -1;
    if (lead >= 0xc2 && lead < 0xe0 && (next & 0xc0) == 0x80) {
      byte = byte_of ((lead & 31) << 6 | (next & 63));
      if (byte >= 0) i++;
    }
    if (byte < 0) {
      memcpy (bytes, letters, n);
      return n;
    }
    bytes[count++] = (char)byte;
  }
  return count;
}
