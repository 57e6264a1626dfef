/* escape.c - control characters and broken UTF-8, made visible. */
#include "base/escape.h"
#include "base/utf8.h"
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Characters that are not shown: C1 controls, marks that turn the direction or
** hide (Unicode's Bidi_Control and other default-ignorable format characters
** that no plain text of a terminal needs), and separators of lines. The joiners
** U+200C and U+200D are left: scripts and emoji are written with them. */
static const struct {
  uint32_t first, last;
} hidden[] = {
  { 0x80, 0x9f },     { 0xad, 0xad },       { 0x61c, 0x61c },
  { 0x180e, 0x180e }, { 0x200b, 0x200b },   { 0x200e, 0x200f },
  { 0x2028, 0x202e }, { 0x2060, 0x206f },   { 0xfeff, 0xfeff },
  { 0xfff9, 0xfffb }, { 0xe0000, 0xe007f },
};

static int is_plain (uint32_t code, int lines) {
  if (code < 0x20) return lines && (code == '\n' || code == '\t');
  if (code == 0x7f) return 0;
  for (size_t i = 0; i < sizeof hidden / sizeof *hidden; i++)
    if (code >= hidden[i].first && code <= hidden[i].last) return 0;
  return 1;
}

/* How many bytes from the first on are shown as they are. */
static size_t plain_run (const char *s, size_t n, int lines) {
  size_t used = 0;
  while (used < n) {
    const int length = sl_utf8_length (s + used, n - used);
    if (length == 0 || !is_plain (sl_utf8_code (s + used, length), lines))
      break;
    used += (size_t)length;
  }
  return used;
}

/* The escape of the character at s; how many bytes of s it stands for. */
static size_t escape_one (const char *s, size_t n, char out[SL_ESCAPE]) {
  const int length = sl_utf8_length (s, n);
  const uint32_t code = sl_utf8_code (s, length);
  if (length == 1 && (code == '\n' || code == '\r' || code == '\t'))
    snprintf (out, SL_ESCAPE, "\\%c",
              code == '\n'   ? 'n'
              : code == '\r' ? 'r'
                             : 't');
  else if (length <= 1)
    snprintf (out, SL_ESCAPE, "\\x%02x", (unsigned char)*s);
  else
    snprintf (out, SL_ESCAPE, "\\u{%x}", (unsigned)code);
  return length ? (size_t)length : 1;
}

size_t sl_show_next (const char *s, size_t n, int lines, sl_shown_part *part) {
  size_t taken = plain_run (s, n, lines);
  part->is_escape = taken == 0;
  part->text = s;
  part->n = taken;
  if (taken > 0) return taken;
  taken = escape_one (s, n, part->escape);
  part->text = part->escape;
  part->n = strlen (part->escape);
  return taken;
}

const char *sl_escape_text (const char *s, char *out, size_t size) {
  size_t used = 0;
  for (size_t n = strlen (s), taken; n > 0; s += taken, n -= taken) {
    sl_shown_part part;
    taken = sl_show_next (s, n, 0, &part);
    if (part.n >= size - used) {
      part.n = part.is_escape ? 0 : size - used - 1;
      taken = n;
    }
    memcpy (out + used, part.text, part.n);
    used += part.n;
  }
  out[used] = '\0';
  return out;
}

void sl_complain (const char *text) {
  fputs ("sinklab: ", stderr);
  for (size_t n = strlen (text), taken; n > 0; text += taken, n -= taken) {
    sl_shown_part part;
    taken = sl_show_next (text, n, 1, &part);
    fwrite (part.text, 1, part.n, stderr);
  }
  fputc ('\n', stderr);
}
