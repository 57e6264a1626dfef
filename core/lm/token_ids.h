/* token_ids.h - a growing list of token ids. */
#ifndef SL_TOKEN_IDS_H
#define SL_TOKEN_IDS_H
#include "base/error.h"
#include <stddef.h>
#include <stdint.h>

typedef struct sl_token_ids {
  int32_t *id; /* sl_free it */
  size_t n, room;
} sl_token_ids;

/* -1 and a sentence without memory. */
int sl_token_ids_add (sl_token_ids *ids, int32_t id, sl_error *e);
#endif
