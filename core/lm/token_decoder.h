/* token_decoder.h - the decoder of a tokenizer.json: steps that turn the texts of
** tokens into one text, as Hugging Face's library takes them. */
#ifndef SL_TOKEN_DECODER_H
#define SL_TOKEN_DECODER_H
#include <stddef.h>

typedef enum sl_decode_kind {
  SL_DECODE_BYTES,   /* "<0xE2>" is a byte; bytes in a row are one piece */
  SL_DECODE_FUSE,    /* all pieces become one */
  SL_DECODE_LETTERS, /* the letters of bytes; all pieces become one */
  SL_DECODE_REPLACE, /* 'from' by 'to' in each piece */
  SL_DECODE_STRIP,   /* at most 'start' and 'stop' times 'from', at the ends */
  SL_DECODE_MARKS /* U+2581 is a space; with 'start' none in the first piece */
} sl_decode_kind;

enum { SL_DECODE_TEXT = 64, SL_DECODE_MAX_STEPS = 8 };

typedef struct sl_decode_step {
  sl_decode_kind kind;
  char from[SL_DECODE_TEXT], to[SL_DECODE_TEXT]; /* strings; from is not "" */
  size_t start, stop;
} sl_decode_step;

#endif
