/* choice.h - a word that must be one of a few names. */
#ifndef SL_CHOICE_H
#define SL_CHOICE_H
#include "base/error.h"

/* The index of word among names, or -1 and "<what> '<word>'" with the nearest
** name, or with all of them when none is near. */
int sl_choice (const char *what, const char *word, int n,
               const char *const *names, sl_error *e);
#endif
