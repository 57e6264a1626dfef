/* added_tokens.h - tokens that are found whole in a text, before it is split. */
#ifndef SL_ADDED_TOKENS_H
#define SL_ADDED_TOKENS_H
#include "lm/regex.h"
#include "lm/vocabulary.h"

/* How a token is found, by the names of tokenizer.json. */
enum {
  SL_ADDED_SINGLE_WORD = 1, /* not within a word */
  SL_ADDED_LSTRIP = 2,      /* with the white space before it */
  SL_ADDED_RSTRIP = 4,      /* with the white space behind it */
  SL_ADDED_NORMALIZED = 8   /* in the normalized text */
};

typedef struct sl_added_token {
  char *text; /* owned by the list */
  size_t n;
  int32_t id;
  int is_control;
  unsigned rule; /* SL_ADDED_* */
} sl_added_token;

/* By first byte, the longest first: tokens that start with byte b are token
** first[b] .. first[b + 1] - 1. */
typedef struct sl_added_tokens {
  sl_added_token *token;
  size_t n, first[257];
  sl_regex *word, *space; /* NULL unless a rule asks for them */
} sl_added_tokens;

/* Room for n tokens; then sl_added_put for each and sl_added_sort. */
int sl_added_new (sl_added_tokens *a, size_t n, sl_error *e);
int sl_added_put (sl_added_tokens *a, const char *text, size_t n, int32_t id,
                  int is_control, unsigned rule, sl_error *e);
void sl_added_sort (sl_added_tokens *a);
void sl_added_free (sl_added_tokens *a);

/* A token found in a text: bytes from .. to - 1, the white space that goes with
** it included. The next token is looked for from byte 'next' on, which may be in that
** white space: Hugging Face's library then has both tokens. */
typedef struct sl_added_match {
  size_t from, to, next;
  const sl_added_token *token;
} sl_added_match;

/* The first token in text (n bytes) from byte 'at' on, the longest of those that
** start there: 1, or 0. White space from byte 'least' on may go with it. Control
** tokens only if 'special'. -1 and a sentence. */
int sl_added_find (const sl_added_tokens *a, const char *text, size_t n,
                   size_t least, size_t at, int special, sl_added_match *match,
                   sl_error *e);
#endif
