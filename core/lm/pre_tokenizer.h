/* pre_tokenizer.h - text into the pieces that tokens never cross. */
#ifndef SL_PRE_TOKENIZER_H
#define SL_PRE_TOKENIZER_H
#include "base/error.h"
#include <stddef.h>

/* The work of one step on each piece of the step before. */
typedef enum sl_pre_kind {
  SL_PRE_SPLIT,   /* cuts it at the matches of a pattern */
  SL_PRE_SPACE,   /* puts a space in front, unless it starts with one */
  SL_PRE_MARKS,   /* writes U+2581 for spaces and puts one in front */
  SL_PRE_LETTERS, /* writes bytes as letters (lm/byte_level.h) */
} sl_pre_kind;

/* What becomes of a match, by the names of Hugging Face's tokenizers. */
typedef enum sl_pre_behavior {
  SL_PRE_ISOLATED,      /* a piece of its own */
  SL_PRE_REMOVED,       /* dropped */
  SL_PRE_CONTIGUOUS,    /* one piece with the matches beside it */
  SL_PRE_WITH_PREVIOUS, /* the end of the piece before it */
  SL_PRE_WITH_NEXT,     /* the start of the piece after it */
} sl_pre_behavior;

/* Where SL_PRE_MARKS puts a mark, unless the piece starts with one. */
typedef enum sl_pre_scheme {
  SL_PRE_ALWAYS,
  SL_PRE_FIRST, /* at the start of the text only */
  SL_PRE_NEVER
} sl_pre_scheme;

typedef struct sl_pre_step {
  sl_pre_kind kind;
  const char *pattern; /* SPLIT: as lm/regex.h has it */
  sl_pre_behavior behavior;
  int inverted; /* SPLIT: the text between matches counts as the match */
  sl_pre_scheme scheme;
} sl_pre_step;

typedef struct sl_pre_tokenizer sl_pre_tokenizer;

/* Of n steps, 1 to SL_PRE_MAX_STEPS; patterns are copied. A pattern that does
** not compile is refused. SPACE and MARKS come before LETTERS. */
enum { SL_PRE_MAX_STEPS = 16 };
sl_pre_tokenizer *sl_pre_tokenizer_new (size_t n, const sl_pre_step *steps,
                                        sl_error *e);
void sl_pre_tokenizer_free (sl_pre_tokenizer *p); /* NULL is allowed */

/* The steps that GGUF files name (tokenizer.ggml.pre): *n and *steps; -1 and a
** sentence with the nearest name. */
int sl_pre_tokenizer_named (const char *name, size_t *n,
                            const sl_pre_step **steps, sl_error *e);

/* Call 'piece' (context, text, n) for each piece in order, with its letters as
** bytes again; a stretch of bytes that are no UTF-8 is one piece. is_start: no
** text comes before. -1 as soon as a call returns that, or when matching takes
** more steps than a pattern may take (a sentence). */
int sl_pre_tokenizer_run (sl_pre_tokenizer *p, const char *text, size_t n,
                          int is_start,
                          int (*piece) (void *context, const char *text,
                                        size_t n, sl_error *e),
                          void *context, sl_error *e);
#endif
