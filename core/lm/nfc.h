/* nfc.h - whether text is in composed form (NFC). */
#ifndef SL_NFC_H
#define SL_NFC_H
#include <stddef.h>

/* 1 if n bytes of UTF-8 are in normalization form C (bytes that are no UTF-8
** count as other text); else 0 and the byte of the first code point that is not.
** An accent behind a letter that it does not compose with counts as not. */
int sl_nfc_check (const char *text, size_t n, size_t *where);
#endif
