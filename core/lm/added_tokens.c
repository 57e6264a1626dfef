/* added_tokens.c - tokens that are found whole in a text. */
#include "lm/added_tokens.h"
#include "base/memory.h"
#include "base/utf8.h"
#include "lm/bpe.h"
#include <stdlib.h>
#include <string.h>

/* \w and \s of Rust's regular expressions, for one character. */
static const char word[] =
    "[\\p{L}\\p{M}\\p{Nd}\\p{Nl}\\p{Pc}\\x{200c}\\x{200d}\\x{24b6}-\\x{24e9}]";
static const char space[] = "\\s";

int sl_added_new (sl_added_tokens *a, size_t n, sl_error *e) {
  *a = (sl_added_tokens){ 0 };
  a->token = sl_alloc (n, sizeof *a->token);
  return a->token != NULL ? 0 : sl_fail (e, "out of memory");
}

int sl_added_put (sl_added_tokens *a, const char *text, size_t n, int32_t id,
                  int is_control, unsigned rule, sl_error *e) {
  char *copy = sl_alloc_text (text, n);
  if (copy == NULL) return sl_fail (e, "out of memory");
  a->token[a->n++] = (sl_added_token){ copy, n, id, is_control, rule };
  if ((rule & SL_ADDED_SINGLE_WORD) && a->word == NULL &&
      (a->word = sl_regex_new (word, e)) == NULL)
    return -1;
  if ((rule & (SL_ADDED_LSTRIP | SL_ADDED_RSTRIP)) && a->space == NULL &&
      (a->space = sl_regex_new (space, e)) == NULL)
    return -1;
  return 0;
}

static int by_start (const void *a, const void *b) {
  const sl_added_token *x = a, *y = b;
  const unsigned char c = (unsigned char)*x->text, d = (unsigned char)*y->text;
  if (c != d) return c < d ? -1 : 1;
  if (x->n != y->n) return x->n > y->n ? -1 : 1;
  return x->id < y->id ? -1 : x->id > y->id;
}

void sl_added_sort (sl_added_tokens *a) {
  size_t at = 0;
  if (a->n > 0) qsort (a->token, a->n, sizeof *a->token, by_start);
  for (int b = 0; b <= 256; b++) {
    while (at < a->n && (unsigned char)*a->token[at].text < b) at++;
    a->first[b] = at;
  }
}

void sl_added_free (sl_added_tokens *a) {
  for (size_t i = 0; i < a->n; i++) sl_free (a->token[i].text);
  sl_free (a->token);
  sl_regex_free (a->word);
  sl_regex_free (a->space);
  *a = (sl_added_tokens){ 0 };
}

/* The character of n bytes that ends before byte 'at': its length, or 0. */
static size_t length_before (const char *text, size_t at) {
  for (size_t n = 1; n <= 4 && n <= at; n++)
    if (sl_utf8_length (text + at - n, n) == (int)n) return n;
  return 0;
}

/* Whether the character of n bytes at text is of a class. */
static int is_of (sl_regex *class, const char *text, size_t n, sl_error *e) {
  size_t from, to;
  return n > 0 ? sl_regex_match (class, text, n, 0, &from, &to, e) : 0;
}

/* The character before byte 'at', and the one at it. */
static int is_before (sl_regex *class, const char *text, size_t at,
                      sl_error *e) {
  const size_t n = length_before (text, at);
  return is_of (class, text + at - n, n, e);
}

static int is_at (sl_regex *class, const char *text, size_t n, size_t at,
                  sl_error *e) {
  return is_of (class, text + at, (size_t)sl_utf8_length (text + at, n - at),
                e);
}

static const sl_added_token *
token_at (const sl_added_tokens *a, const char *text, size_t n, int special) {
  const unsigned char b = (unsigned char)*text;
  for (size_t i = a->first[b]; i < a->first[b + 1]; i++) {
    const sl_added_token *x = &a->token[i];
    if (x->is_control && !special) continue;
    if (x->n <= n && memcmp (x->text, text, x->n) == 0) return x;
  }
  return NULL;
}

/* Take in the white space beside a match, down to byte 'least'. */
static int widen (const sl_added_tokens *a, const char *text, size_t n,
                  size_t least, sl_added_match *m, sl_error *e) {
  int status = 0;
  while ((m->token->rule & SL_ADDED_LSTRIP) && m->from > least &&
         (status = is_before (a->space, text, m->from, e)) > 0)
    m->from -= length_before (text, m->from);
  if ((m->token->rule & SL_ADDED_LSTRIP) && m->from < least) m->from = least;
  while (status >= 0 && (m->token->rule & SL_ADDED_RSTRIP) && m->to < n &&
         (status = is_at (a->space, text, n, m->to, e)) > 0)
    m->to += (size_t)sl_utf8_length (text + m->to, n - m->to);
  return status < 0 ? -1 : 1;
}

int sl_added_find (const sl_added_tokens *a, const char *text, size_t n,
                   size_t least, size_t at, int special, sl_added_match *match,
                   sl_error *e) {
  sl_added_match m;
  while (a->n > 0 && at < n) {
    const sl_added_token *x = token_at (a, text + at, n - at, special);
    int within = 0;
    if (x == NULL) {
      at++;
      continue;
    }
    m = (sl_added_match){ at, at + x->n, at + x->n, x };
    if (x->rule & SL_ADDED_SINGLE_WORD)
      within = is_before (a->word, text, at, e);
    if (within == 0 && (x->rule & SL_ADDED_SINGLE_WORD))
      within = is_at (a->word, text, n, m.to, e);
    if (within < 0) return -1;
    if (within == 0) {
      *match = m;
      return widen (a, text, n, least, match, e);
    }
    at = m.to; /* as the library does: no shorter token is tried */
  }
  return 0;
}
