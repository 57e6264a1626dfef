/* tokenizer_internal.h - the tokenizer that the readers of files fill in. */
#ifndef SL_TOKENIZER_INTERNAL_H
#define SL_TOKENIZER_INTERNAL_H
#include "lm/added_tokens.h"
#include "lm/bpe.h"
#include "lm/pre_tokenizer.h"
#include "lm/token_decoder.h"
#include "lm/tokenizer.h"

/* What decoding takes from the start of a text, which encoding put there. */
enum {
  SL_STRIP_NOTHING,
  SL_STRIP_SPACE, /* one space */
  SL_STRIP_MARKS  /* every U+2581 of the first token */
};

struct sl_tokenizer {
  sl_vocabulary vocabulary;
  sl_bpe bpe;
  sl_bpe_scratch scratch;
  sl_pre_tokenizer *pre_tokenizer; /* NULL: the text is one piece */
  /* Normalization of each stretch of text between tokens found whole. */
  /* Goes before it, a space only where there is none yet; NULL: nothing does. */
  const char *prefix;
  int add_marks; /* spaces are written as U+2581 */
  int has_marks; /* U+2581 in a token stands for a space */
  int by_word;   /* no token goes on after a mark: BPE takes words apart */
  int nfc;       /* text must be in composed form */
  int byte_level;
  int whole_first; /* a piece that is a token is not merged */
  int has_decoder; /* the file has one: these steps, nothing below */
  size_t decode_steps;
  sl_decode_step decode[SL_DECODE_MAX_STEPS];
  int strip;           /* SL_STRIP_*, at the start of the text */
  int strip_after;     /* also after each token found whole */
  unsigned char *rule; /* SL_ADDED_* by id; NULL: no token has one */
  sl_added_tokens added, added_normalized;
  int32_t bos, eos;
  int add_bos, said_bos; /* said_bos: the file says so, else it is usual */
  char pre[64], note[512];
};

/* U+2581, as SentencePiece writes a space. */
extern const char sl_space_mark[4];

/* "<0xE2>", as tokens for bytes are called: the byte, or -1. */
int sl_byte_named (const char *text, size_t n);

/* Add a sentence about an unusual property. */
void sl_tokenizer_note (sl_tokenizer *t, const char *format, ...)
    SL_PRINTF (2, 3);

/* Once the vocabulary is indexed and every field above 'added' is set: the
** tokens of bytes, the tokens found whole. */
int sl_tokenizer_finish (sl_tokenizer *t, sl_error *e);

/* Initialise t: no tokens, no roles. */
void sl_tokenizer_begin (sl_tokenizer *t);

/* Each fills a t that sl_tokenizer_begin has initialised. */
int sl_tokenizer_read_gguf (sl_tokenizer *t, const sl_gguf *g, sl_error *e);
/* The file 'name' (tokenizer.json) of a folder; without one vocab.json and
** merges.txt. */
int sl_tokenizer_read_folder (sl_tokenizer *t, const char *folder,
                              const char *name, sl_error *e);
/* The parts of tokenizer.json that are no vocabulary: normalizer,
** pre-tokenizer, post-processor, decoder. */
struct json_t;
int sl_tokenizer_read_pipeline (sl_tokenizer *t, const struct json_t *root,
                                sl_error *e);
/* Refuse a key of an object that is not in 'known' ("type, vocab"); 'what' names
** the object. */
int sl_tokenizer_check_keys (const struct json_t *object, const char *what,
                             const char *known, sl_error *e);
#endif
