/* vocabulary.h - the tokens of a tokenizer, found by text; merges of two. */
#ifndef SL_VOCABULARY_H
#define SL_VOCABULARY_H
#include "base/error.h"
#include <stddef.h>
#include <stdint.h>

/* The use of a token, by GGUF's numbers. */
typedef enum sl_token_kind {
  SL_TOKEN_NORMAL = 1,
  SL_TOKEN_UNKNOWN,
  SL_TOKEN_CONTROL, /* never the reading of ordinary text */
  SL_TOKEN_ADDED,   /* read whole wherever it stands */
  SL_TOKEN_UNUSED,
  SL_TOKEN_BYTE /* stands for one byte */
} sl_token_kind;

enum { SL_MAX_TOKENS = 1 << 24 };

typedef struct sl_vocabulary {
  size_t n; /* tokens; ids are 0 .. n - 1 */
  char *text;
  size_t *start;       /* token id is text[start[id]] .. text[start[id + 1]] */
  float *score;        /* higher is merged first; NULL: there are merges */
  unsigned char *kind; /* sl_token_kind */
  size_t longest;      /* bytes of a token */
  uint64_t seed;       /* of the hashes */
  int32_t *slot;       /* ids by the hash of their text, -1 none */
  size_t slots;        /* a power of two */
  /* Merges by the hash of the pair (left << 32 | right); merged -1: none. */
  uint64_t *pair;
  int32_t *rank, *merged;
  size_t pairs; /* a power of two; 0: no merges */
} sl_vocabulary;

/* Room for n tokens of 'bytes' bytes in all, every one NORMAL and empty; a
** score each if 'scores'. Free with sl_vocabulary_free, after a failure too. */
int sl_vocabulary_new (sl_vocabulary *v, size_t n, size_t bytes, int scores,
                       sl_error *e);
void sl_vocabulary_free (sl_vocabulary *v);

/* Tokens are set in the order of their ids: the text is copied behind that of
** the one before. */
void sl_vocabulary_set (sl_vocabulary *v, size_t id, const char *text,
                        size_t n);
/* Once all are set: make them findable. Of equal texts the first id counts. */
int sl_vocabulary_index (sl_vocabulary *v, sl_error *e);

/* The id of a text, or -1. */
int32_t sl_vocabulary_find (const sl_vocabulary *v, const char *text, size_t n);
const char *sl_vocabulary_text (const sl_vocabulary *v, size_t id, size_t *n);

/* Merges: room for n, then each with its rank (less is first). The two parts
** and the text of both are tokens, else -1 and a sentence. Of equal pairs the
** first counts. */
int sl_vocabulary_merges (sl_vocabulary *v, size_t n, sl_error *e);
int sl_vocabulary_merge (sl_vocabulary *v, size_t rank, const char *left,
                         size_t n_left, const char *right, size_t n_right,
                         sl_error *e);
/* The same of the n bytes "left right"; the first part may begin with a
** space. */
int sl_vocabulary_merge_text (sl_vocabulary *v, size_t rank, const char *text,
                              size_t n, sl_error *e);
/* The token that left and right merge into, and its rank; or -1. */
int32_t sl_vocabulary_pair (const sl_vocabulary *v, int32_t left, int32_t right,
                            int32_t *rank);
#endif
