/* json_load.c - JSON text that any program may have written. */
#include "base/json_load.h"
#include "base/memory.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DIGITS = 19 }; /* of the largest number of 64 bits */

static int is_digit (char c) {
  return c >= '0' && c <= '9';
}

/* The end of the string that starts behind the quote at 'at'. */
static size_t string_end (const char *text, size_t n, size_t at) {
  while (at < n && text[at] != '"') at += text[at] == '\\' ? 2 : 1;
  return at < n ? at + 1 : n;
}

/* Whether the n digits are a whole number beyond 64 bits. */
static int is_beyond (const char *digits, size_t n, int negative) {
  const char *most = negative ? "9223372036854775808" : "9223372036854775807";
  return n > DIGITS || (n == DIGITS && memcmp (digits, most, n) > 0);
}

/* A copy in which whole numbers beyond 64 bits end in "e0", which makes them
** reals: *count bytes; NULL without memory. */
static char *with_reals (const char *text, size_t n, size_t *count) {
  enum { MORE = 2 };
  char *copy = sl_alloc (n + n / DIGITS * MORE + MORE, 1);
  size_t to = 0;
  for (size_t at = 0; copy != NULL && at < n;) {
    size_t end = at + 1;
    int is_long = 0;
    if (text[at] == '"')
      end = string_end (text, n, end);
    else if (is_digit (text[at])) {
      while (end < n && is_digit (text[end])) end++;
      is_long =
          is_beyond (text + at, end - at, at > 0 && text[at - 1] == '-') &&
          (at == 0 || memchr (".eE+", text[at - 1], 4) == NULL) &&
          (end == n || memchr (".eE", text[end], 3) == NULL);
    }
    memcpy (copy + to, text + at, end - at);
    to += end - at;
    if (is_long) {
      memcpy (copy + to, "e0", MORE);
      to += MORE;
    }
    at = end;
  }
  *count = to;
  return copy;
}

/* jansson reports a lack of memory in the middle of a text as a fault of the text. */
static _Thread_local int lacked;

static void *remembered (size_t n) {
  void *p = malloc (n);
  if (p == NULL) lacked = 1;
  return p;
}

static json_t *load (const char *text, size_t n, size_t flags,
                     json_error_t *why) {
  json_t *root;
  json_set_alloc_funcs (remembered, free);
  lacked = 0;
  root = json_loadb (text, n, flags, why);
  if (root == NULL && lacked)
    snprintf (why->text, sizeof why->text, "out of memory");
  return root;
}

json_t *sl_json_load (const char *text, size_t n, size_t flags,
                      json_error_t *why) {
  static const char mark[] = "\xef\xbb\xbf";
  json_t *root;
  char *copy;
  if (n >= 3 && memcmp (text, mark, 3) == 0) {
    text += 3;
    n -= 3;
  }
  root = load (text, n, flags, why);
  if (root != NULL || json_error_code (why) != json_error_numeric_overflow)
    return root;
  copy = with_reals (text, n, &n);
  if (copy != NULL) root = load (copy, n, flags, why);
  sl_free (copy);
  return root;
}
