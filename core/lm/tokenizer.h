/* tokenizer.h - text to token ids and back, by the vocabulary of a model.
**
** Two kinds: merges by score over characters (SentencePiece), and merges by
** rank, over bytes that a pre-tokenizer has cut into words (GPT-2) or over
** characters. Whatever the text, also bytes that are no UTF-8, decoding its ids
** gives it back if the vocabulary has a token for every byte. */
#ifndef SL_TOKENIZER_H
#define SL_TOKENIZER_H
#include "lm/token_ids.h"
#include "lm/vocabulary.h"
#include "lm/weights.h"

typedef struct sl_tokenizer sl_tokenizer;

/* The tokenizer of a model: in a GGUF file its own, beside safetensors
** tokenizer.json, or vocab.json and merges.txt. NULL and a sentence if there is
** none or it works in a way that is not known. It keeps nothing of w. */
sl_tokenizer *sl_tokenizer_open (const sl_weights *w, sl_error *e);
/* The same without weights: a tokenizer.json, or a folder that has one. */
sl_tokenizer *sl_tokenizer_open_path (const char *path, sl_error *e);
void sl_tokenizer_free (sl_tokenizer *t); /* NULL is allowed */

/* Add the ids of n bytes of text. With 'special' the names of control tokens
** in the text are read as those tokens; without, no text becomes one. Not two
** threads at a time. */
int sl_tokenizer_encode (sl_tokenizer *t, const char *text, size_t n,
                         int special, sl_token_ids *ids, sl_error *e);

/* The bytes of n ids, each a token's (sl_free them), *length of them with a NUL
** behind. Control tokens are left out unless 'special'. */
char *sl_tokenizer_decode (const sl_tokenizer *t, size_t n, const int32_t *ids,
                           int special, size_t *length, sl_error *e);

/* Lives as long as t. */
const sl_vocabulary *sl_tokenizer_vocabulary (const sl_tokenizer *t);

/* The properties that `sinklab model info` shows. */
typedef struct sl_tokenizer_about {
  const char *kind;          /* "SentencePiece" or "BPE" */
  const char *pre;           /* the pre-tokenizer's name or where it is from */
  const char *note;          /* a sentence on unusual properties, or "" */
  int32_t bos, eos, unknown; /* -1: none */
  int add_bos;  /* 1 or 0: whether text begins with it; -1: not stated */
  int said_bos; /* 1: the file says so; 0: it is usual for this kind */
} sl_tokenizer_about;
sl_tokenizer_about sl_tokenizer_about_of (const sl_tokenizer *t);
#endif
