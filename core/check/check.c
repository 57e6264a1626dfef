/* check.c - the list of checks, and a run of them. */
#include "check/check.h"
#include "check/check_case.h"
#include <string.h>

static const struct {
  const char *name, *doc;
  sl_check_body body;
} checks[] = {
  { "load", "loads: ABI, name, lists, both precisions", sl_check_load },
  { "runs", "its kernels come back", sl_check_runs },
  { "options", "what it accepts works, what it refuses is explained",
    sl_check_options },
  { "gradient", "backward against four-point differences of forward",
    sl_check_gradient },
  { "kinks", "no jump of the gradient without the claim", sl_check_kinks },
  { "dparam", "parameter gradients are added to", sl_check_dparam },
  { "outputs", "writes every output, trusts no undefined contents",
    sl_check_outputs },
  { "bounds", "writes nothing outside its buffers", sl_check_bounds },
  { "inputs", "leaves its inputs alone", sl_check_inputs },
  { "reads", "nothing outside its inputs matters", sl_check_reads },
  { "repeat", "same bits again and in another order", sl_check_repeat },
  { "threads", "same bits on many threads at once", sl_check_threads },
  { "precision", "f32 agrees with f64", sl_check_precision },
  { "extreme", "one key, ties, huge scores: no NaN", sl_check_extreme },
  { "long", "long rows", sl_check_long },
  { "block", "a block of queries agrees with its rows", sl_check_block },
  { "nonnegative", "claim: weights are never negative", sl_check_nonnegative },
  { "sums_to_one", "claim: rows sum to 1", sl_check_sums },
  { "null_mass", "claim: rows sum to at most 1", sl_check_null_mass },
  { "shift_invariant", "claim: a shift of the scores changes nothing",
    sl_check_shift },
  { "causal", "what a query does not see does not matter", sl_check_causal },
};
enum { CHECKS = sizeof checks / sizeof *checks, LOAD = 0, RUNS = 1 };

const char *sl_check_name (int i) {
  return i >= 0 && i < CHECKS ? checks[i].name : NULL;
}

const char *sl_check_doc (int i) {
  return i >= 0 && i < CHECKS ? checks[i].doc : NULL;
}

/* Mark in wanted what the list names; -1 and a sentence for a name that is
** none. */
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
                     sl_check_result results[SL_MOST_CHECKS], sl_error *e) {
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
    /* Without these two there is nothing to try. */
    if ((i == LOAD || i == RUNS) && r.state == SL_CHECK_FAILED) dead = 1;
    if (wanted[i] || r.state == SL_CHECK_FAILED) results[n++] = r;
  }
  return n;
}
