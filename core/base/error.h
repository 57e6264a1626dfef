/* error.h - how a call that can fail says why: one sentence. */
#ifndef SL_ERROR_H
#define SL_ERROR_H
#include <stddef.h>

/* Filled by the callee on failure only. Functions that fail return -1 or
** NULL. */
typedef struct sl_error {
  char text[1024];
} sl_error;

#if defined(__GNUC__)
#define SL_PRINTF(f, a) __attribute__ ((format (printf, f, a)))
#else
#define SL_PRINTF(f, a)
#endif

/* Write a sentence into e (which may be NULL) and return -1. */
int sl_fail (sl_error *e, const char *format, ...) SL_PRINTF (2, 3);

/* Put "<prefix>: " in front of the sentence already in e; returns -1. */
int sl_fail_within (sl_error *e, const char *format, ...) SL_PRINTF (2, 3);

/* The name nearest to word among n names by edit distance, or NULL when none
** is near enough to be worth suggesting. */
const char *sl_nearest (const char *word, size_t n, const char *const *names);

/* Fail for a word that is none of n names: the sentence of 'format', and
** " (did you mean '<name>'?)" when a name is near. Returns -1. */
int sl_fail_unknown (sl_error *e, const char *word, size_t n,
                     const char *const *names, const char *format, ...)
    SL_PRINTF (5, 6);

/* The same; when no name is near, " (there are <name>, <name>)" with all of
** them. For short lists. */
int sl_fail_not_one_of (sl_error *e, const char *word, size_t n,
                        const char *const *names, const char *format, ...)
    SL_PRINTF (5, 6);

/* The index of word among n names, or -1 and "<what> '<word>'" with the end of
** sl_fail_not_one_of. */
int sl_choice (const char *what, const char *word, int n,
               const char *const *names, sl_error *e);
#endif
