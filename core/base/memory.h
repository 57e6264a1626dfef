/* memory.h - aligned memory whose sizes are checked before multiplied. */
#ifndef SL_MEMORY_H
#define SL_MEMORY_H
#include <stddef.h>

/* *out = a * b; -1 if it does not fit. */
int sl_size_mul (size_t a, size_t b, size_t *out);

/* count * size zeroed bytes, 64-byte aligned (2 MB aligned and advised as huge
** pages from 2 MB up), or NULL. count or size 0 gives a valid small block. */
void *sl_alloc (size_t count, size_t size);

/* The n bytes at 'text' and a NUL, in a block of their own, or NULL. */
char *sl_alloc_text (const char *text, size_t n);

/* Free a block of sl_alloc or sl_alloc_text; NULL is allowed. */
void sl_free (void *p);
#endif
