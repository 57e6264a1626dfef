/* merge.h - a piece of text into tokens, joining the best neighbours first. */
#ifndef SL_MERGE_H
#define SL_MERGE_H
#include "lm/ids.h"
#include "lm/vocabulary.h"

/* How a text becomes tokens. */
typedef struct sl_merger {
  const sl_vocabulary *vocabulary;
  /* Tokens, -1: there is none. */
  int32_t byte[256]; /* stand for single bytes */
  int32_t unknown;   /* for what is no token in any other way */
  int whole_bytes;   /* texts begin as single bytes, else as characters */
} sl_merger;

/* Working memory, kept from piece to piece; zero at first. */
typedef struct sl_merge_work {
  struct sl_symbol *symbol;
  struct sl_candidate *heap;
  size_t symbols; /* room for so many, and for three in the heap for each */
} sl_merge_work;
void sl_merge_free (sl_merge_work *w);

/* Add the tokens of text (n bytes, at most 2^31 - 1) to ids: its characters
** (or bytes), of which the neighbours with the highest score or the lowest rank
** are joined, the leftmost first, until none makes a token. What is no token
** then becomes the tokens of its bytes, or else the unknown token. Time is in
** proportion to n log n. */
int sl_merge (const sl_merger *m, sl_merge_work *w, const char *text, size_t n,
              sl_ids *ids, sl_error *e);

/* The length of the UTF-8 character at text, 1 to 4; 0 if there is none. */
int sl_utf8_length (const char *text, size_t n);
#endif
