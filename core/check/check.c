/* check.c - the list of checks, and a run of them. */
#include "check/check.h"
#include "check/check_case.h"
#include <string.h>

#define ROW(name, doc) { #name, doc, sl_check_##name },
static const struct {
  const char *name, *doc;
  sl_check_body body;
} checks[] = { SL_CHECK_LIST (ROW) };
enum { CHECKS = sizeof checks / sizeof *checks, LOAD = 0, RUNS = 1 };

const char *sl_check_name (int i) {
  return i >= 0 && i < CHECKS ? checks[i].name : NULL;
}

const char *sl_check_doc (int i) {
  return i >= 0 && i < CHECKS ? checks[i].doc : NULL;
}

/* wanted[i] = 1 for each check that the list names; -1 and a sentence for an
** unknown name. */
static int choose (const char *only, int wanted[CHECKS], sl_error *e) {
  const char *names[CHECKS];
  for (int i = 0; i < CHECKS; i++) {
    wanted[i] = only == NULL;
    names[i] = checks[i].name;
  }
  for (const char *p = only; p && *p;) {
    const size_t length = strcspn (p, ",");
    char name[64] = "";
    int found = 0;
    if (length < sizeof name) memcpy (name, p, length);
    for (int i = 0; i < CHECKS; i++)
      if (strcmp (name, checks[i].name) == 0) found = wanted[i] = 1;
    if (!found)
      return sl_fail_not_one_of (e, name, CHECKS, names, "no check '%.*s'",
                                 (int)length, p);
    p += length + (p[length] == ',');
  }
  return 0;
}

int sl_check_plugin (const char *plugin, const sl_check_settings *s,
                     sl_check_result results[SL_MAX_CHECKS], sl_error *e) {
  int wanted[CHECKS], n = 0, dead = 0, done = 0, total = 0;
  const sl_loaded *loaded = NULL;
  sl_check_result r;
  if (!(s->seconds > 0))
    return sl_fail (e, "the time limit is %g s; expected more than 0",
                    s->seconds);
  if (choose (s->only, wanted, e)) return -1;
  for (int i = 0; i < CHECKS; i++) total += wanted[i] || i == LOAD || i == RUNS;
  for (int i = 0; i < CHECKS; i++) {
    memset (&r, 0, sizeof r);
    r.name = checks[i].name;
    if (!wanted[i] && i != LOAD && i != RUNS) continue;
    if (s->report) s->report (s->data, done++, total);
    if (dead) {
      strcpy (r.figure, "not run");
      r.state = SL_CHECK_NONE;
    } else if (sl_child_run (checks[i].body, plugin, loaded, s, &r, e))
      return -1;
    if (i == LOAD && r.state == SL_CHECK_OK) {
      loaded = sl_plugin_load (plugin, e);
      if (!loaded) return -1;
    }
    /* The other checks need a plugin that loads and returns. */
    if ((i == LOAD || i == RUNS) && r.state == SL_CHECK_FAILED) dead = 1;
    if (wanted[i] || r.state == SL_CHECK_FAILED) results[n++] = r;
  }
  return n;
}
