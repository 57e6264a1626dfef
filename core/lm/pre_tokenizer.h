/* pre_tokenizer.h - text into the pieces that tokens never cross. */
#ifndef SL_PRE_TOKENIZER_H
#define SL_PRE_TOKENIZER_H
#include "base/error.h"
#include <stddef.h>

/* Regular expressions, each of which cuts the pieces that those before it have
** left: a match is a piece, and so is what lies between two matches. */
typedef struct sl_pre_tokenizer sl_pre_tokenizer;

/* Of n patterns (of Unicode text, as Oniguruma and Rust read them); a pattern
** that does not compile is refused with what is wrong in it. */
sl_pre_tokenizer *sl_pre_tokenizer_new (size_t n, const char *const *patterns,
                                        sl_error *e);
void sl_pre_tokenizer_free (sl_pre_tokenizer *s); /* NULL is allowed */

/* Those that GGUF files name (tokenizer.ggml.pre): *n and *patterns; -1 and a
** sentence with the nearest name. */
int sl_pre_tokenizer_patterns (const char *name, size_t *n,
                               const char *const **patterns, sl_error *e);

/* Call 'piece' (context, text, n) for each piece in order; a stretch of bytes
** that are no UTF-8 is one. -1 as soon as a call returns that, or when matching
** takes more than a pattern may take (a sentence). */
int sl_pre_tokenizer_run (sl_pre_tokenizer *s, const char *text, size_t n,
                          int (*piece) (void *context, const char *text,
                                        size_t n, sl_error *e),
                          void *context, sl_error *e);
#endif
