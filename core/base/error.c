/* error.c - error sentences, and the name that was probably meant. */
#include "base/error.h"
#include "base/number.h"
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Names longer than this are never near anything. */
enum { LONGEST = 63 };

/* Both functions build the sentence apart from e->text, so that an argument may
** point into it. */
int sl_fail (sl_error *e, const char *format, ...) {
  char text[sizeof e->text];
  va_list args;
  if (!e) return -1;
  va_start (args, format);
  vsnprintf (text, sizeof text, format, args);
  va_end (args);
  memcpy (e->text, text, sizeof text);
  return -1;
}

int sl_fail_within (sl_error *e, const char *format, ...) {
  char text[sizeof e->text];
  va_list args;
  size_t n;
  if (!e) return -1;
  va_start (args, format);
  vsnprintf (text, sizeof text, format, args);
  va_end (args);
  n = strlen (text);
  for (const char *c = ": "; *c && n < sizeof text - 1; c++) text[n++] = *c;
  for (const char *c = e->text; *c && n < sizeof text - 1; c++) text[n++] = *c;
  text[n] = '\0';
  memcpy (e->text, text, sizeof text);
  return -1;
}

static int same (char a, char b) {
  return tolower ((unsigned char)a) == tolower ((unsigned char)b);
}

/* Insertions, deletions, replacements and swaps of neighbours that turn a (m
** letters) into b (n letters), capitals aside; m and n at most LONGEST. */
static size_t distance (size_t m, const char *a, size_t n, const char *b) {
  size_t rows[3][LONGEST + 1]; /* before the previous, previous, this one */
  size_t *old = rows[0], *last = rows[1], *now = rows[2], *spare;
  for (size_t j = 0; j <= n; j++) last[j] = j;
  for (size_t i = 1; i <= m; i++) {
    now[0] = i;
    for (size_t j = 1; j <= n; j++) {
      now[j] = sl_min (last[j], now[j - 1]) + 1;
      now[j] = sl_min (now[j], last[j - 1] + !same (a[i - 1], b[j - 1]));
      if (i > 1 && j > 1 && same (a[i - 1], b[j - 2]) &&
          same (a[i - 2], b[j - 1]))
        now[j] = sl_min (now[j], old[j - 2] + 1);
    }
    spare = old, old = last, last = now, now = spare;
  }
  return last[n];
}

/* Near enough: one slip in a short word, one in three letters in a long one. Of
** equally near names one that goes on from the word: it was not finished. */
const char *sl_nearest (const char *word, size_t n, const char *const *names) {
  const char *nearest = NULL;
  size_t length = strlen (word), best;
  if (length == 0 || length > LONGEST) return NULL;
  best = (length < 3 ? 1 : length / 3) + 1;
  for (size_t i = 0; i < n; i++) {
    size_t letters = strlen (names[i]), d;
    if (letters > LONGEST) continue;
    d = distance (length, word, letters, names[i]);
    /* All of its letters would change: it was not meant. */
    if (d >= letters) continue;
    if (d < best ||
        (nearest && d == best && strncmp (names[i], word, length) == 0 &&
         strncmp (nearest, word, length) != 0))
      best = d, nearest = names[i];
  }
  return nearest;
}

/* Put the text of a failure together: the sentence, then the nearest name, or
** with 'list' the names if none is near. */
static int unknown (sl_error *e, const char *word, size_t n,
                    const char *const *names, int list, const char *format,
                    va_list args) {
  const char *near = sl_nearest (word, n, names);
  char text[sizeof e->text], end[512] = "";
  vsnprintf (text, sizeof text, format, args);
  if (near != NULL) {
    snprintf (end, sizeof end, " (did you mean '%s'?)", near);
  } else if (list && n > 0) {
    size_t used = (size_t)snprintf (end, sizeof end, " (there are ");
    for (size_t i = 0; i < n && used < sizeof end; i++)
      used += (size_t)snprintf (end + used, sizeof end - used, "%s%s", names[i],
                                i + 1 < n ? ", " : ")");
  }
  return sl_fail (e, "%s%s", text, end);
}

int sl_fail_unknown (sl_error *e, const char *word, size_t n,
                     const char *const *names, const char *format, ...) {
  va_list args;
  va_start (args, format);
  unknown (e, word, n, names, 0, format, args);
  va_end (args);
  return -1;
}

int sl_fail_not_one_of (sl_error *e, const char *word, size_t n,
                        const char *const *names, const char *format, ...) {
  va_list args;
  va_start (args, format);
  unknown (e, word, n, names, 1, format, args);
  va_end (args);
  return -1;
}

int sl_choice (const char *what, const char *word, int n,
               const char *const *names, sl_error *e) {
  for (int i = 0; i < n; i++)
    if (strcmp (names[i], word) == 0) return i;
  return sl_fail_not_one_of (e, word, (size_t)n, names, "%s '%s'", what, word);
}
