/* bpe.h - byte-pair encoding: one piece of text into token ids. */
#ifndef SL_BPE_H
#define SL_BPE_H
#include "lm/token_ids.h"
#include "lm/vocabulary.h"

enum { SL_ADDED_OUTSIDE = 16 }; /* beside SL_ADDED_*: not made of characters */

/* A model of the kind BPE (merges by rank) or SentencePiece (by score). */
typedef struct sl_bpe {
  const sl_vocabulary *vocabulary;
  int32_t byte[256];         /* token id of each byte, -1: none */
  int32_t unknown;           /* token id for all other characters, -1: none */
  int fuse_unknown;          /* one unknown token for characters in a row */
  const unsigned char *rule; /* SL_ADDED_OUTSIDE by id; NULL: no token is */
  int control;     /* text may become a control token by its characters */
  int whole_bytes; /* merging starts from bytes, else from characters */
} sl_bpe;

/* Working memory, reused for each piece; zero before the first. */
typedef struct sl_bpe_scratch {
  struct sl_symbol *symbol;
  struct sl_candidate *heap;
  size_t symbols; /* room for this many symbols and 3 times as many in heap */
} sl_bpe_scratch;
void sl_bpe_scratch_free (sl_bpe_scratch *w);

/* Add the tokens of text (n bytes, at most 2^31 - 1) to ids: its characters
** (or bytes); the neighbours with the highest score or the lowest rank are
** joined, the leftmost first, until none makes a token. A symbol that is no
** token then becomes the tokens of its bytes, or else the unknown token. Time is in
** proportion to n log n. */
int sl_bpe_encode (const sl_bpe *bpe, sl_bpe_scratch *w, const char *text,
                   size_t n, sl_token_ids *ids, sl_error *e);
#endif
