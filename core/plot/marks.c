/* marks.c - names at places of an axis: tokens, categories, chosen ticks. */
#include "plot/marks.h"
#include "base/memory.h"
#include "plot/panel.h"
#include <math.h>
#include <string.h>

/* A name as it is shown: a line break is "\n", and a name of blanks is an open
** box. */
static char *shown (const char *name, const char *what, sl_error *e) {
  char *copy = sl_text_copy (name, "", what, e), *text;
  size_t breaks = 0, k = 0;
  if (!copy) return NULL;
  if (!copy[strspn (copy, " ")]) {
    sl_free (copy);
    return sl_text_copy ("␣", "", what, e);
  }
  for (const char *p = copy; *p; p++) breaks += *p == '\n';
  if (breaks == 0) return copy;
  text = sl_alloc (strlen (copy) + breaks + 1, 1);
  if (!text) sl_fail (e, "no memory for %s", what);
  for (const char *p = copy; *p && text; p++) {
    if (*p == '\n') text[k++] = '\\';
    text[k++] = *p == '\n' ? 'n' : *p;
  }
  sl_free (copy);
  return text;
}

int sl_marks_copy (sl_marks_data *to, const sl_marks *from, const char *what,
                   sl_error *e) {
  sl_marks_data m = { 0 };
  if (from->n == 0) return 0;
  m.words = from->name != NULL;
  m.at = sl_alloc (from->n, sizeof *m.at);
  m.name = sl_alloc (from->n, sizeof *m.name);
  if (!m.at || !m.name) {
    sl_fail (e, "no memory for %zu %s", from->n, what);
    goto failed;
  }
  for (size_t i = 0; i < from->n; i++) {
    char number[32];
    m.n = i + 1;
    m.at[i] = from->at ? from->at[i] : (double)(i + 1);
    sl_number_text (m.at[i], 6, number, sizeof number);
    if (!isfinite (m.at[i]) || (i > 0 && m.at[i] <= m.at[i - 1])) {
      sl_fail (e, "%s: number %zu is %s; they must be finite and ascend", what,
               i + 1, number);
      goto failed;
    }
    m.name[i] = from->name ? shown (from->name[i], what, e)
                           : sl_text_copy (number, "", what, e);
    if (!m.name[i]) goto failed;
  }
  *to = m;
  return 0;
failed:
  sl_marks_free (&m);
  return -1;
}

void sl_marks_free (sl_marks_data *m) {
  for (size_t i = 0; i < m->n; i++) sl_free (m->name[i]);
  sl_free (m->name);
  sl_free (m->at);
  *m = (sl_marks_data){ 0 };
}

static int inside (const sl_range *r, double at) {
  return !r || (at >= r->min && at <= r->max);
}

void sl_marks_ticks (const sl_marks_data *m, const sl_range *within, int most,
                     sl_ticks *t) {
  size_t n = 0, step, k = 0;
  for (size_t i = 0; i < m->n; i++) n += (size_t)inside (within, m->at[i]);
  step = (n + (size_t)most - 1) / (size_t)most;
  t->n = 0, t->words = m->words;
  for (size_t i = 0; i < m->n; i++)
    if (inside (within, m->at[i]) && k++ % step == 0)
      sl_ticks_add (t, m->at[i], m->name[i]);
}
