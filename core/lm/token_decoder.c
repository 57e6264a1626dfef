/* token_decoder.c - token ids back to text: by the decoder of a tokenizer.json, or
** by the marks and letters of a vocabulary without one. */
#include "lm/token_decoder.h"
#include "base/memory.h"
#include "lm/byte_level.h"
#include "lm/tokenizer_internal.h"
#include <string.h>

/* Texts one after another: piece i ends before byte end[i]. */
typedef struct pieces {
  char *text;
  size_t *end, n;
} pieces;

static void pieces_free (pieces *p) {
  sl_free (p->text);
  sl_free (p->end);
  *p = (pieces){ 0 };
}

static int pieces_new (pieces *p, size_t n, size_t bytes, sl_error *e) {
  *p = (pieces){ 0 };
  if (bytes < PTRDIFF_MAX) p->text = sl_alloc (bytes + 1, 1);
  p->end = sl_alloc (n + 1, sizeof *p->end);
  if (p->text != NULL && p->end != NULL) return 0;
  pieces_free (p);
  return sl_fail (e, "decode: out of memory for %zu bytes", bytes);
}

static int starts_with (const char *text, size_t n, const char *part) {
  const size_t length = strlen (part);
  return n >= length && memcmp (text, part, length) == 0;
}

/* Copy with 'from' replaced by 'to'; returns the bytes written. */
static size_t replace (const char *text, size_t n, const char *from,
                       const char *to, char *out) {
  size_t count = 0;
  for (size_t i = 0; i < n;)
    if (starts_with (text + i, n - i, from)) {
      memcpy (out + count, to, strlen (to));
      count += strlen (to);
      i += strlen (from);
    } else
      out[count++] = text[i++];
  return count;
}

static size_t strip (const sl_decode_step *s, const char *text, size_t n,
                     char *out) {
  const size_t length = strlen (s->from);
  for (size_t k = 0; k < s->start && starts_with (text, n, s->from); k++) {
    text += length;
    n -= length;
  }
  for (size_t k = 0; k < s->stop && n >= length &&
                     starts_with (text + n - length, length, s->from);
       k++)
    n -= length;
  memcpy (out, text, n);
  return n;
}

/* Piece i of a list; returns the bytes written. */
static size_t decode_piece (const sl_decode_step *s, size_t i, const char *text,
                            size_t n, char *out) {
  const int byte = sl_byte_named (text, n);
  switch (s->kind) {
  case SL_DECODE_REPLACE: return replace (text, n, s->from, s->to, out);
  case SL_DECODE_MARKS:
    return replace (text, n, s->from, s->start && i == 0 ? "" : " ", out);
  case SL_DECODE_STRIP: return strip (s, text, n, out);
  case SL_DECODE_LETTERS: return sl_byte_level_decode (text, n, out);
  case SL_DECODE_BYTES:
    if (byte < 0) break;
    *out = (char)byte;
    return 1;
  case SL_DECODE_FUSE: break;
  }
  memcpy (out, text, n);
  return n;
}

static int decode_step (const sl_decode_step *s, pieces *p, sl_error *e) {
  const size_t bytes = p->n > 0 ? p->end[p->n - 1] : 0;
  const size_t longer =
      s->kind == SL_DECODE_REPLACE ? strlen (s->to) / strlen (s->from) + 1 : 1;
  int after_byte = 0;
  size_t from = 0, at = 0;
  pieces out;
  if (bytes >= PTRDIFF_MAX / SL_DECODE_TEXT ||
      pieces_new (&out, p->n, bytes * longer, e) < 0)
    return sl_fail (e, "decode: out of memory for %zu bytes", bytes);
  for (size_t i = 0; i < p->n; i++) {
    const char *text = p->text + from;
    const size_t n = p->end[i] - from;
    const int is_byte =
        s->kind == SL_DECODE_BYTES && sl_byte_named (text, n) >= 0;
    const int joins = s->kind == SL_DECODE_FUSE ||
                      s->kind == SL_DECODE_LETTERS || (is_byte && after_byte);
    at += decode_piece (s, i, text, n, out.text + at);
    out.n += !joins || out.n == 0;
    out.end[out.n - 1] = at;
    after_byte = is_byte;
    from = p->end[i];
  }
  pieces_free (p);
  *p = out;
  return 0;
}

/* What token id stands for, at most as long as its text; returns the length.
** Without marks: U+2581 stands for nothing. */
static size_t put (const sl_tokenizer *t, int32_t id, int marks, char *to) {
  const sl_vocabulary *v = &t->vocabulary;
  size_t n, count = 0;
  const char *text = sl_vocabulary_text (v, (size_t)id, &n);
  const int byte = v->kind[id] == SL_TOKEN_BYTE ? sl_byte_named (text, n) : -1;
  if (byte >= 0) {
    *to = (char)byte;
    return 1;
  }
  if (v->kind[id] == SL_TOKEN_NORMAL && t->byte_level)
    return sl_byte_level_decode (text, n, to);
  for (size_t i = 0; i < n; i++)
    if (t->has_marks && starts_with (text + i, n - i, sl_space_mark)) {
      if (marks) to[count++] = ' ';
      i += sizeof sl_space_mark - 2;
    } else
      to[count++] = text[i];
  return count;
}

/* By the steps of the file's decoder: the texts of the n tokens, 'room' bytes
** in all, as pieces. */
static char *decode_by_steps (const sl_tokenizer *t, size_t n,
                              const int32_t *ids, int special, size_t room,
                              size_t *length, sl_error *e) {
  const sl_vocabulary *v = &t->vocabulary;
  pieces p;
  size_t at = 0;
  char *text;
  if (pieces_new (&p, n, room, e) < 0) return NULL;
  for (size_t i = 0; i < n; i++) {
    size_t count;
    const char *token = sl_vocabulary_text (v, (size_t)ids[i], &count);
    if (v->kind[ids[i]] == SL_TOKEN_CONTROL && !special) continue;
    memcpy (p.text + at, token, count);
    p.end[p.n++] = at += count;
  }
  for (size_t k = 0; k < t->decode_steps; k++)
    if (decode_step (&t->decode[k], &p, e) < 0) {
      pieces_free (&p);
      return NULL;
    }
  *length = p.n > 0 ? p.end[p.n - 1] : 0;
  text = p.text;
  p.text = NULL;
  pieces_free (&p);
  text[*length] = '\0';
  return text;
}

char *sl_tokenizer_decode (const sl_tokenizer *t, size_t n, const int32_t *ids,
                           int special, size_t *length, sl_error *e) {
  const sl_vocabulary *v = &t->vocabulary;
  size_t room = 1;
  int strip = t->strip;
  char *text;
  for (size_t i = 0; i < n; i++) {
    if (ids[i] < 0 || (size_t)ids[i] >= v->n) {
      sl_fail (e,
               "decode: the id %d (number %zu) is none of the %zu tokens "
               "0 to %zu",
               ids[i], i + 1, v->n, v->n - 1);
      return NULL;
    }
    room += v->start[ids[i] + 1] - v->start[ids[i]];
  }
  if (t->has_decoder)
    return decode_by_steps (t, n, ids, special, room, length, e);
  text = sl_alloc (room, 1);
  *length = 0;
  if (text == NULL) {
    sl_fail (e, "decode: out of memory for %zu bytes", room);
    return NULL;
  }
  for (size_t i = 0; i < n; i++) {
    const int kind = v->kind[ids[i]];
    const size_t at = *length;
    const int is_whole = kind == SL_TOKEN_CONTROL || kind == SL_TOKEN_ADDED;
    if (kind != SL_TOKEN_CONTROL || special)
      *length +=
          put (t, ids[i], strip != SL_STRIP_MARKS || is_whole, text + at);
    if (strip == SL_STRIP_SPACE && !is_whole && *length > at && text[at] == ' ')
      memmove (text + at, text + at + 1, --*length - at);
    if (is_whole && t->strip_after && ids[i] != t->bpe.unknown)
      strip = SL_STRIP_SPACE;
    else if (kind != SL_TOKEN_CONTROL)
      strip = SL_STRIP_NOTHING;
  }
  text[*length] = '\0';
  return text;
}
