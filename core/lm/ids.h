/* ids.h - a growing list of token ids. */
#ifndef SL_IDS_H
#define SL_IDS_H
#include "base/error.h"
#include <stddef.h>
#include <stdint.h>

typedef struct sl_ids {
  int32_t *id; /* sl_free it */
  size_t n, room;
} sl_ids;

/* -1 and a sentence without memory. */
int sl_ids_add (sl_ids *ids, int32_t id, sl_error *e);
#endif
