/* regex.h - regular expressions of Unicode text, as Oniguruma and Rust read
** them. */
#ifndef SL_REGEX_H
#define SL_REGEX_H
#include "base/error.h"
#include <stddef.h>

typedef struct sl_regex sl_regex;

/* NULL and a sentence that quotes the pattern if it does not compile, matches the
** empty text, or has what PCRE2 reads in another way. */
sl_regex *sl_regex_new (const char *pattern, sl_error *e);
/* A pattern that matches this text and nothing else, in 'to': 1, or 0 if that
** takes more than 'room' bytes. */
int sl_regex_quote (const char *text, char *to, size_t room);
void sl_regex_free (sl_regex *r); /* NULL is allowed */

/* The next match in text (n bytes of UTF-8) that starts at byte 'at' or later
** and is not empty: 1 and its bytes *from .. *to - 1, or 0. -1 and a sentence
** when matching takes more steps than a pattern may take. Not two threads at a
** time. */
int sl_regex_match (sl_regex *r, const char *text, size_t n, size_t at,
                    size_t *from, size_t *to, sl_error *e);
#endif
