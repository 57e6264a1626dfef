/* secondary.h - tokens whose states point where that of position 1 does. */
#ifndef SL_SECONDARY_H
#define SL_SECONDARY_H
#include "sinks/hidden.h"

/* A bit for each layer, sample, token and anchor (position 1 or 2). */
typedef struct sl_alike sl_alike;
sl_alike *sl_alike_new (int layers, long samples, int tokens);
void sl_alike_free (sl_alike *a);
/* After 'layer', from 1; anchor 0 or 1. */
void sl_alike_set (sl_alike *a, int layer, long sample, int token, int anchor);

/* Fills the secondaries of r, whose anchor and window are known; -1: no
** memory. */
int sl_secondary_find (const sl_alike *a, const sl_hidden_spec *spec,
                       const sl_measuring *m, sl_hidden_result *r);
#endif
