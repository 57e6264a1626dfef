/* choice.c - a word that must be one of a few names. */
#include "train/choice.h"
#include <stdio.h>
#include <string.h>

int sl_choice (const char *what, const char *word, int n,
               const char *const *names, sl_error *e) {
  const char *near;
  char all[256] = "";
  size_t used = 0;
  for (int i = 0; i < n; i++)
    if (strcmp (names[i], word) == 0) return i;
  near = sl_nearest (word, (size_t)n, names);
  if (near != NULL)
    return sl_fail (e, "%s '%s' (did you mean '%s'?)", what, word, near);
  for (int i = 0; i < n && used < sizeof all; i++)
    used += (size_t)snprintf (all + used, sizeof all - used, "%s%s",
                              i > 0 ? ", " : "", names[i]);
  return sl_fail (e, "%s '%s' (there are %s)", what, word, all);
}
