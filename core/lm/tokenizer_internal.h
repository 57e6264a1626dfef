/* tokenizer_internal.h - the tokenizer that the readers of files fill in. */
#ifndef SL_TOKENIZER_INTERNAL_H
#define SL_TOKENIZER_INTERNAL_H
#include "lm/bpe.h"
#include "lm/pre_tokenizer.h"
#include "lm/tokenizer.h"

/* Where a space is put before the text. */
enum { SL_PREFIX_NONE, SL_PREFIX_FIRST, SL_PREFIX_EACH };

struct sl_tokenizer {
  sl_vocabulary vocabulary;
  sl_bpe bpe;
  sl_bpe_scratch scratch;
  sl_pre_tokenizer *pre_tokenizer; /* NULL: the text is one piece */
  int escape;                      /* spaces are written as U+2581 */
  int by_word; /* no token goes on after a space: words apart */
  int prefix;  /* before the text, or also after each token found whole */
  int byte_level;
  int whole_first; /* a piece that is a token is not merged */
  /* Tokens found whole in the text, by first byte, the longest first:
  ** added.id[first[b]] .. added.id[first[b + 1] - 1]. */
  sl_token_ids added;
  size_t first[257];
  int32_t bos, eos;
  int add_bos, said_bos; /* said_bos: the file says so, else it is usual */
  char pre[64], note[512];
};

/* "<0xE2>", as tokens for bytes are called: the byte, or -1. */
int sl_byte_named (const char *text, size_t n);

/* Say what is unusual: sentences are joined. */
void sl_tokenizer_note (sl_tokenizer *t, const char *format, ...)
    SL_PRINTF (2, 3);

/* Once the vocabulary is indexed and every field above 'added' is set: the
** tokens of bytes, the tokens found whole. */
int sl_tokenizer_finish (sl_tokenizer *t, sl_error *e);

/* Nothing in it, and no token has a role. */
void sl_tokenizer_begin (sl_tokenizer *t);

/* Each fills a t that sl_tokenizer_begin has seen. */
int sl_tokenizer_read_gguf (sl_tokenizer *t, const sl_gguf *g, sl_error *e);
/* tokenizer.json of a folder, or vocab.json and merges.txt. */
int sl_tokenizer_read_folder (sl_tokenizer *t, const char *folder, sl_error *e);
/* The parts of tokenizer.json that are no vocabulary: normalizer,
** pre-tokenizer, post-processor. */
struct json_t;
int sl_tokenizer_read_pipeline (sl_tokenizer *t, const struct json_t *root,
                                sl_error *e);
#endif
