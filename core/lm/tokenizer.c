/* tokenizer.c - text to token ids and back. */
#include "lm/tokenizer.h"
#include "base/memory.h"
#include "lm/byte_level.h"
#include "lm/tokenizer_internal.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What SentencePiece writes for a space. */
static const char space[] = "\xe2\x96\x81";
enum { SPACE = sizeof space - 1 };

/* Open. */

void sl_tokenizer_begin (sl_tokenizer *t) {
  memset (t, 0, sizeof *t);
  t->bos = t->eos = t->bpe.unknown = t->add_bos = -1;
}

sl_tokenizer *sl_tokenizer_open (const sl_weights *w, sl_error *e) {
  const sl_gguf *g = sl_weights_gguf (w);
  sl_tokenizer *t = sl_alloc (1, sizeof *t);
  sl_error why;
  int status;
  if (t == NULL) {
    sl_fail (e, "%s: out of memory", sl_weights_path (w));
    return NULL;
  }
  sl_tokenizer_begin (t);
  status = g != NULL
               ? sl_tokenizer_read_gguf (t, g, &why)
               : sl_tokenizer_read_folder (t, sl_weights_folder (w), &why);
  if (status == 0) return t;
  sl_tokenizer_free (t);
  sl_fail (e, "%s: %s", sl_weights_path (w), why.text);
  return NULL;
}

void sl_tokenizer_free (sl_tokenizer *t) {
  if (t == NULL) return;
  sl_vocabulary_free (&t->vocabulary);
  sl_bpe_scratch_free (&t->scratch);
  sl_pre_tokenizer_free (t->pre_tokenizer);
  sl_free (t->added.id);
  sl_free (t);
}

void sl_tokenizer_note (sl_tokenizer *t, const char *format, ...) {
  const size_t n = strlen (t->note);
  char text[256];
  va_list args;
  va_start (args, format);
  vsnprintf (text, sizeof text, format, args);
  va_end (args);
  snprintf (t->note + n, sizeof t->note - n, "%s%s", n > 0 ? "; " : "", text);
}

int sl_byte_named (const char *text, size_t n) {
  static const char digits[] = "0123456789ABCDEF";
  const char *high, *low;
  if (n != 6 || memcmp (text, "<0x", 3) != 0 || text[5] != '>') return -1;
  high = memchr (digits, text[3], 16);
  low = memchr (digits, text[4], 16);
  return high && low ? (int)(high - digits) * 16 + (int)(low - digits) : -1;
}

static void find_bytes (sl_tokenizer *t) {
  const sl_vocabulary *v = &t->vocabulary;
  char letter[SL_BYTE_LEVEL_LETTER];
  for (int b = 0; b < 256; b++) {
    const int n = sl_byte_level_letter ((unsigned char)b, letter);
    t->bpe.byte[b] =
        t->byte_level ? sl_vocabulary_find (v, letter, (size_t)n) : -1;
  }
  for (size_t id = 0; !t->byte_level && id < v->n; id++) {
    size_t n;
    const char *text = sl_vocabulary_text (v, id, &n);
    const int byte =
        v->kind[id] == SL_TOKEN_BYTE ? sl_byte_named (text, n) : -1;
    if (byte >= 0 && t->bpe.byte[byte] < 0) t->bpe.byte[byte] = (int32_t)id;
  }
}

/* Whether U+2581 stands at text. */
static int is_space (const char *text, size_t n) {
  return n >= SPACE && memcmp (text, space, SPACE) == 0;
}

/* The end of the word at text: spaces, then what is none. */
static size_t word_length (const char *text, size_t n) {
  size_t at = 0;
  while (is_space (text + at, n - at)) at += SPACE;
  while (at < n && !is_space (text + at, n - at)) at++;
  return at;
}

/* Whether no token is more than one word: then no join crosses from one word to
** the next, and words can be taken one by one, which is much faster. */
static int are_words (const sl_vocabulary *v) {
  for (size_t id = 0; id < v->n; id++) {
    size_t n;
    const char *text = sl_vocabulary_text (v, id, &n);
    if (word_length (text, n) < n) return 0;
  }
  return 1;
}

/* Ids with the texts they are sorted by. */
typedef struct whole {
  const char *text;
  size_t n;
  int32_t id;
} whole;

static int by_start (const void *a, const void *b) {
  const whole *x = a, *y = b;
  const unsigned char c = (unsigned char)*x->text, d = (unsigned char)*y->text;
  if (c != d) return c < d ? -1 : 1;
  if (x->n != y->n) return x->n > y->n ? -1 : 1;
  return x->id < y->id ? -1 : x->id > y->id;
}

int sl_tokenizer_finish (sl_tokenizer *t, sl_error *e) {
  const sl_vocabulary *v = &t->vocabulary;
  size_t n = 0, at = 0;
  whole *list;
  int status = 0;
  t->bpe.vocabulary = v;
  t->bpe.whole_bytes = t->byte_level;
  t->by_word = t->escape && t->pre_tokenizer == NULL && are_words (v);
  find_bytes (t);
  list = sl_alloc (v->n, sizeof *list);
  if (list == NULL) return sl_fail (e, "out of memory");
  for (size_t id = 0; id < v->n; id++) {
    const int kind = v->kind[id];
    list[n].text = sl_vocabulary_text (v, id, &list[n].n);
    list[n].id = (int32_t)id;
    n += (kind == SL_TOKEN_CONTROL || kind == SL_TOKEN_ADDED) && list[n].n > 0;
  }
  qsort (list, n, sizeof *list, by_start);
  for (int b = 0; b <= 256; b++) {
    while (at < n && (unsigned char)*list[at].text < b) at++;
    t->first[b] = at;
  }
  t->first[256] = n;
  for (size_t i = 0; i < n && status == 0; i++)
    status = sl_token_ids_add (&t->added, list[i].id, e);
  sl_free (list);
  return status;
}

sl_tokenizer_about sl_tokenizer_about_of (const sl_tokenizer *t) {
  return (sl_tokenizer_about){ .kind = t->vocabulary.score != NULL
                                           ? "SentencePiece"
                                           : "BPE",
                               .pre = t->pre,
                               .note = t->note,
                               .bos = t->bos,
                               .eos = t->eos,
                               .unknown = t->bpe.unknown,
                               .add_bos = t->add_bos,
                               .said_bos = t->said_bos };
}

const sl_vocabulary *sl_tokenizer_vocabulary (const sl_tokenizer *t) {
  return &t->vocabulary;
}

/* Encode. */

typedef struct encoding {
  sl_tokenizer *t;
  sl_token_ids *ids;
} encoding;

/* The token that a byte-level piece is as a whole, or -1. */
static int32_t whole_piece (const sl_tokenizer *t, const char *text, size_t n) {
  const sl_vocabulary *v = &t->vocabulary;
  char letters[512];
  size_t count = 0;
  int32_t id;
  if (!t->byte_level)
    id = sl_vocabulary_find (v, text, n);
  else {
    if (n > sizeof letters / SL_BYTE_LEVEL_LETTER) return -1;
    for (size_t i = 0; i < n; i++)
      count += (size_t)sl_byte_level_letter ((unsigned char)text[i],
                                             letters + count);
    id = sl_vocabulary_find (v, letters, count);
  }
  return id >= 0 && v->kind[id] == SL_TOKEN_NORMAL ? id : -1;
}

static int take_piece (void *context, const char *text, size_t n, sl_error *e) {
  const encoding *x = context;
  if (x->t->whole_first) {
    const int32_t id = whole_piece (x->t, text, n);
    if (id >= 0) return sl_token_ids_add (x->ids, id, e);
  }
  return sl_bpe_encode (&x->t->bpe, &x->t->scratch, text, n, x->ids, e);
}

static int take_pieces (encoding *x, const char *text, size_t n, sl_error *e) {
  if (x->t->by_word) {
    for (size_t at = 0; at < n;) {
      const size_t length = word_length (text + at, n - at);
      if (take_piece (x, text + at, length, e) < 0) return -1;
      at += length;
    }
    return 0;
  }
  if (x->t->pre_tokenizer == NULL) return take_piece (x, text, n, e);
  return sl_pre_tokenizer_run (x->t->pre_tokenizer, text, n, take_piece, x, e);
}

/* Text between tokens found whole; 'start': nothing of it came before. */
static int take_text (encoding *x, const char *text, size_t n, int start,
                      sl_error *e) {
  const sl_tokenizer *t = x->t;
  const int add =
      t->prefix == SL_PREFIX_EACH || (t->prefix == SL_PREFIX_FIRST && start);
  /* GPT-2's kind adds none where the text has one */
  const int prefix = add && (t->escape || *text != ' ');
  size_t count = 0, room;
  char *copy;
  int status;
  if (!prefix && !t->escape) return take_pieces (x, text, n, e);
  if (n > PTRDIFF_MAX / SPACE - 1)
    return sl_fail (e, "a text of %zu bytes is too long", n);
  room = n + SPACE; /* and what the spaces take */
  for (size_t i = 0; t->escape && i < n; i++)
    if (text[i] == ' ') room += SPACE - 1;
  copy = sl_alloc (room, 1);
  if (copy == NULL)
    return sl_fail (e, "out of memory for a text of %zu bytes", n);
  if (prefix) {
    memcpy (copy, t->escape ? space : " ", t->escape ? SPACE : 1);
    count = t->escape ? SPACE : 1;
  }
  for (size_t i = 0; i < n; i++)
    if (t->escape && text[i] == ' ') {
      memcpy (copy + count, space, SPACE);
      count += SPACE;
    } else
      copy[count++] = text[i];
  status = take_pieces (x, copy, count, e);
  sl_free (copy);
  return status;
}

/* The longest token that stands whole at text, or -1. */
static int32_t whole_at (const sl_tokenizer *t, const char *text, size_t n,
                         int special, size_t *length) {
  const unsigned char b = (unsigned char)*text;
  for (size_t i = t->first[b]; i < t->first[b + 1]; i++) {
    const int32_t id = t->added.id[i];
    const char *name = sl_vocabulary_text (&t->vocabulary, (size_t)id, length);
    if (!special && t->vocabulary.kind[id] == SL_TOKEN_CONTROL) continue;
    if (*length <= n && memcmp (name, text, *length) == 0) return id;
  }
  return -1;
}

int sl_tokenizer_encode (sl_tokenizer *t, const char *text, size_t n,
                         int special, sl_token_ids *ids, sl_error *e) {
  encoding x = { t, ids };
  size_t from = 0, length = 0;
  for (size_t at = 0; at < n;) {
    const int32_t id = whole_at (t, text + at, n - at, special, &length);
    if (id < 0) {
      at++;
      continue;
    }
    if (at > from && take_text (&x, text + from, at - from, from == 0, e) < 0)
      return -1;
    if (sl_token_ids_add (ids, id, e) < 0) return -1;
    from = at += length;
  }
  return from < n ? take_text (&x, text + from, n - from, from == 0, e) : 0;
}

/* Decode. */

/* What token id stands for, at most as long as its text; returns the length. */
static size_t put (const sl_tokenizer *t, int32_t id, char *to) {
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
    if (t->escape && is_space (text + i, n - i)) {
      to[count++] = ' ';
      i += SPACE - 1;
    } else
      to[count++] = text[i];
  return count;
}

char *sl_tokenizer_decode (const sl_tokenizer *t, size_t n, const int32_t *ids,
                           int special, size_t *length, sl_error *e) {
  const sl_vocabulary *v = &t->vocabulary;
  size_t room = 1;
  /* a space that encode has put there is taken away */
  int strip = t->prefix != SL_PREFIX_NONE && t->escape;
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
      *length += put (t, ids[i], text + at);
    if (strip && !is_whole && *length > at && text[at] == ' ')
      memmove (text + at, text + at + 1, --*length - at);
    strip = is_whole && t->escape && t->prefix == SL_PREFIX_EACH
                ? 1
                : strip && kind == SL_TOKEN_CONTROL;
  }
  text[*length] = '\0';
  return text;
}
