/* tokenizer.c - text to token ids and back. */
#include "lm/tokenizer.h"
#include "base/file.h"
#include "base/memory.h"
#include "lm/byte_level.h"
#include "lm/nfc.h"
#include "lm/tokenizer_internal.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char sl_space_mark[] = "\xe2\x96\x81";
static const char *const space = sl_space_mark;
enum { SPACE = sizeof sl_space_mark - 1 };

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
  status = g != NULL ? sl_tokenizer_read_gguf (t, g, &why)
                     : sl_tokenizer_read_folder (t, sl_weights_folder (w),
                                                 "tokenizer.json", &why);
  if (status == 0) return t;
  sl_tokenizer_free (t);
  sl_fail (e, "%s: %s", sl_weights_path (w), why.text);
  return NULL;
}

sl_tokenizer *sl_tokenizer_open_path (const char *path, sl_error *e) {
  const char *slash = strrchr (path, '/');
  const int is_folder = sl_folder_exists (path);
  sl_tokenizer *t = sl_alloc (1, sizeof *t);
  char *folder = is_folder       ? sl_alloc_text (path, strlen (path))
                 : slash == NULL ? sl_alloc_text (".", 1)
                                 : sl_alloc_text (path, slash - path + 1);
  sl_error why;
  int status = -1;
  if (t == NULL || folder == NULL)
    sl_fail (&why, "out of memory");
  else {
    sl_tokenizer_begin (t);
    status = sl_tokenizer_read_folder (t, folder,
                                       is_folder       ? "tokenizer.json"
                                       : slash == NULL ? path
                                                       : slash + 1,
                                       &why);
  }
  sl_free (folder);
  if (status == 0) return t;
  if (t != NULL && folder != NULL)
    sl_tokenizer_free (t);
  else
    sl_free (t);
  sl_fail (e, "%s: %s", path, why.text);
  return NULL;
}

void sl_tokenizer_free (sl_tokenizer *t) {
  if (t == NULL) return;
  sl_vocabulary_free (&t->vocabulary);
  sl_bpe_scratch_free (&t->scratch);
  sl_pre_tokenizer_free (t->pre_tokenizer);
  sl_free (t->rule);
  sl_added_free (&t->added);
  sl_added_free (&t->added_normalized);
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

/* The length of the word at text: spaces, then other characters. */
static size_t word_length (const char *text, size_t n) {
  size_t at = 0;
  while (is_space (text + at, n - at)) at += SPACE;
  while (at < n && !is_space (text + at, n - at)) at++;
  return at;
}

/* Whether no token is longer than one word: then no merge crosses from one word
** to the next, and words can be encoded one by one, which is much faster. */
static int are_words (const sl_vocabulary *v) {
  for (size_t id = 0; id < v->n; id++) {
    size_t n;
    const char *text = sl_vocabulary_text (v, id, &n);
    if (word_length (text, n) < n) return 0;
  }
  return 1;
}

/* The text that the normalizer makes of 'text', in a new block of *count
** bytes: NULL and a sentence without memory. */
static char *normalize (const sl_tokenizer *t, const char *text, size_t n,
                        size_t *count, sl_error *e) {
  const int is_there = t->prefix != NULL && *t->prefix == ' ' && *text == ' ';
  const char *prefix = t->prefix != NULL && !is_there ? t->prefix : "";
  size_t room = n + SPACE; /* and room for the marks */
  char *copy = NULL;
  for (size_t i = 0; t->add_marks && i < n; i++)
    if (text[i] == ' ') room += SPACE - 1;
  if (n < PTRDIFF_MAX / SPACE - 1) copy = sl_alloc (room, 1);
  if (copy == NULL) {
    sl_fail (e, "out of memory for a text of %zu bytes", n);
    return NULL;
  }
  *count = strlen (prefix);
  memcpy (copy, prefix, *count);
  for (size_t i = 0; i < n; i++)
    if (t->add_marks && text[i] == ' ') {
      memcpy (copy + *count, space, SPACE);
      *count += SPACE;
    } else
      copy[(*count)++] = text[i];
  return copy;
}

static int put_added (sl_tokenizer *t, size_t id, sl_error *e) {
  const sl_vocabulary *v = &t->vocabulary;
  const unsigned rule = t->rule != NULL ? t->rule[id] : 0;
  const int is_control = v->kind[id] == SL_TOKEN_CONTROL;
  size_t n, count;
  const char *text = sl_vocabulary_text (v, id, &n);
  char *copy;
  int status;
  if ((!is_control && v->kind[id] != SL_TOKEN_ADDED) || n == 0) return 0;
  if (!(rule & SL_ADDED_NORMALIZED))
    return sl_added_put (&t->added, text, n, (int32_t)id, is_control, rule, e);
  copy = normalize (t, text, n, &count, e);
  if (copy == NULL) return -1;
  status = sl_added_put (&t->added_normalized, copy, count, (int32_t)id,
                         is_control, rule, e);
  sl_free (copy);
  return status;
}

int sl_tokenizer_finish (sl_tokenizer *t, sl_error *e) {
  const sl_vocabulary *v = &t->vocabulary;
  int status = 0;
  t->bpe.vocabulary = v;
  t->bpe.whole_bytes = t->byte_level;
  t->by_word = t->has_marks && are_words (v) &&
               sl_vocabulary_find (v, space, SPACE) >= 0;
  find_bytes (t);
  if (sl_added_new (&t->added, v->n, e) < 0 ||
      sl_added_new (&t->added_normalized, t->rule != NULL ? v->n : 0, e) < 0)
    return -1;
  for (size_t id = 0; id < v->n && status == 0; id++)
    status = put_added (t, id, e);
  sl_added_sort (&t->added);
  sl_added_sort (&t->added_normalized);
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
  int special;
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
  if (id < 0 || (t->bpe.rule != NULL && t->bpe.rule[id] & SL_ADDED_OUTSIDE))
    return -1;
  return t->bpe.control || v->kind[id] == SL_TOKEN_NORMAL ||
                 v->kind[id] == SL_TOKEN_ADDED
             ? id
             : -1;
}

static int take_piece (void *context, const char *text, size_t n, sl_error *e) {
  const encoding *x = context;
  sl_tokenizer *t = x->t;
  if (t->whole_first) {
    const int32_t id = whole_piece (t, text, n);
    if (id >= 0) return sl_token_ids_add (x->ids, id, e);
  }
  while (n > 0) {
    const size_t length = t->by_word ? word_length (text, n) : n;
    if (sl_bpe_encode (&t->bpe, &t->scratch, text, length, x->ids, e) < 0)
      return -1;
    text += length;
    n -= length;
  }
  return 0;
}

static int take_pieces (encoding *x, const char *text, size_t n, int is_start,
                        sl_error *e) {
  if (x->t->pre_tokenizer == NULL) return take_piece (x, text, n, e);
  return sl_pre_tokenizer_run (x->t->pre_tokenizer, text, n, is_start,
                               take_piece, x, e);
}

/* The tokens of a list in text; the text between them goes to 'rest'. */
static int take_added (encoding *x, const sl_added_tokens *list,
                       const char *text, size_t n, int is_start,
                       int (*rest) (encoding *x, const char *text, size_t n,
                                    int is_start, sl_error *e),
                       sl_error *e) {
  sl_added_match m = { .next = 0 };
  for (size_t at = 0; at < n || m.next < n; at = m.to) {
    const size_t next = m.next;
    m = (sl_added_match){ n, n, n, NULL };
    if (sl_added_find (list, text, n, at, next, x->special, &m, e) < 0)
      return -1;
    if (m.from > at &&
        rest (x, text + at, m.from - at, is_start && at == 0, e) < 0)
      return -1;
    if (m.token != NULL && m.from < m.to &&
        sl_token_ids_add (x->ids, m.token->id, e) < 0)
      return -1;
  }
  return 0;
}

/* Text between tokens found whole. */
static int take_text (encoding *x, const char *text, size_t n, int is_start,
                      sl_error *e) {
  const sl_tokenizer *t = x->t;
  size_t count;
  char *copy;
  int status;
  if (t->prefix == NULL && !t->add_marks)
    return take_added (x, &t->added_normalized, text, n, is_start, take_pieces,
                       e);
  copy = normalize (t, text, n, &count, e);
  if (copy == NULL) return -1;
  status = take_added (x, &t->added_normalized, copy, count, is_start,
                       take_pieces, e);
  sl_free (copy);
  return status;
}

int sl_tokenizer_encode (sl_tokenizer *t, const char *text, size_t n,
                         int special, sl_token_ids *ids, sl_error *e) {
  encoding x = { t, special, ids };
  size_t where;
  t->bpe.rule = t->rule;
  t->bpe.control = special && t->rule != NULL;
  if (t->nfc && !sl_nfc_check (text, n, &where))
    return sl_fail (
        e,
        "the tokenizer composes text (NFC), which this library does "
        "not: at byte %zu the text is, or may be, decomposed",
        where);
  return take_added (&x, &t->added, text, n, 1, take_text, e);
}
