/* json_load.h - JSON text that any program may have written. */
#ifndef SL_JSON_LOAD_H
#define SL_JSON_LOAD_H
#include <jansson.h>

/* As json_loadb of jansson, and more: a byte-order mark in front is skipped,
** and a whole number beyond 64 bits reads as a real. NULL and *why on failure,
** also without memory. */
json_t *sl_json_load (const char *text, size_t n, size_t flags,
                      json_error_t *why);
#endif
