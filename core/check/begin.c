/* begin.c - the checks "load", "runs" and "options". */
#include "base/isa.h"
#include "base/memory.h"
#include "check/trial.h"
#include <math.h>
#include <string.h>

void sl_check_load (sl_trial *t) {
  sl_error e;
  const sl_loaded *l = sl_plugin_load (t->plugin, &e);
  const sl_plugin *p;
  if (!l) {
    sl_trial_figure (t, "refused");
    sl_trial_fail (t, "%s", e.text);
    return;
  }
  p = l->plugin[SL_F64];
  if (l->isa[SL_F32] == l->isa[SL_F64])
    sl_trial_ok (t, "ABI %d.%d, %s, f32 and f64, for %s", p->abi_major,
                 p->abi_minor, sl_plugin_shape (p), sl_isa_name (l->isa[0]));
  else
    sl_trial_ok (t, "ABI %d.%d, %s, f32 for %s, f64 for %s", p->abi_major,
                 p->abi_minor, sl_plugin_shape (p),
                 sl_isa_name (l->isa[SL_F32]), sl_isa_name (l->isa[SL_F64]));
}

static void run_once (sl_trial *t, sl_problem *p, void *calls) {
  for (int i = 0; i < 2; i++) {
    sl_stage *s = sl_trial_stage (t, (sl_dtype)i, p);
    sl_trial_backward (t, (sl_dtype)i, s);
    if (p->weights) sl_trial_weights (t, (sl_dtype)i, s);
    sl_stager_of ((sl_dtype)i)->close (s);
    *(int *)calls += p->weights ? 3 : 2;
  }
}

void sl_check_runs (sl_trial *t) {
  int calls = 0;
  if (!sl_trial_mechanism (t)) return;
  sl_trial_each (t, SL_DEFAULTS, run_once, &calls);
  sl_trial_ok (t, "%d calls", calls);
}

/* Write a value into a config as the host does, in range or not. */
static void store (const sl_loaded *l, char *config, const sl_setting *s) {
  const sl_plugin *p = l->plugin[SL_F64];
  for (int i = 0; i < sl_plugin_options (p); i++) {
    const sl_option *o = &p->options[i];
    int whole = s->number > -1e9 && s->number < 1e9 ? (int)s->number : 0;
    if (strcmp (o->name, s->name) != 0) continue;
    for (int k = 0; s->text && o->choices[k]; k++)
      if (strcmp (o->choices[k], s->text) == 0) whole = k;
    if (o->type == SL_REAL)
      memcpy (config + o->offset, &s->number, sizeof s->number);
    else
      memcpy (config + o->offset, &whole, sizeof whole);
  }
}

/* What validate says of options: it must come back, and a refusal has a
** sentence that fits. 'about' names the option that was set. */
static int judge_validate (sl_trial *t, const sl_plugin *p, const void *config,
                           const char *about) {
  enum { CAP = 120, GUARD = 8 };
  char why[CAP + GUARD];
  memset (why, 0, CAP);
  memset (why + CAP, 0x5a, GUARD);
  strcpy (t->doing, "validate");
  if (!p->validate || !p->validate (config, why, CAP)) return 0;
  for (int k = 0; k < GUARD; k++)
    if (why[CAP + k] != 0x5a)
      return sl_trial_fail (
          t, "validate wrote past the %d bytes of 'err' (asked of %s)", CAP,
          about);
  if (!why[0] || !memchr (why, '\0', CAP))
    return sl_trial_fail (
        t, "validate refuses without a sentence that fits (asked of %s)",
        about);
  if (strchr (why, '\n'))
    return sl_trial_fail (
        t, "validate's sentence has more than one line (asked of %s)", about);
  return 0;
}

/* Ask both precisions about the defaults with some options set, which may be
** out of range. */
static int ask_validate (sl_trial *t, const sl_mechanism *m, int n,
                         const sl_setting *settings) {
  const char *about = n ? settings[0].name : "its defaults";
  char *config = sl_alloc (1, m->config_size);
  int status = 0;
  if (!config) return sl_trial_fail (t, "no memory for options");
  if (m->config_size) memcpy (config, m->config, m->config_size);
  for (int i = 0; i < n; i++) store (t->loaded, config, &settings[i]);
  for (int i = 0; i < 2 && status == 0; i++)
    status = judge_validate (t, t->loaded->plugin[i],
                             m->config_size ? config : NULL, about);
  sl_free (config);
  return status;
}

/* Values of an option that the host must refuse. */
static int outside (const sl_option *o, sl_setting list[4]) {
  if (o->type == SL_CHOICE) {
    list[0] = (sl_setting){ o->name, 0, "no such choice" };
    list[1] = (sl_setting){ o->name, 0, NULL };
    return 2;
  }
  list[0] = (sl_setting){ o->name, NAN, NULL };
  if (o->type == SL_BOOL) {
    list[1] = (sl_setting){ o->name, 2, NULL };
    return 2;
  }
  list[1] = (sl_setting){ o->name, nextafter (o->min, -INFINITY), NULL };
  list[2] = (sl_setting){ o->name, nextafter (o->max, INFINITY), NULL };
  return 1 + isfinite (o->min) + isfinite (o->max);
}

static int refuses_outside (sl_trial *t, const sl_mechanism *m, int *refused) {
  const sl_plugin *p = t->loaded->plugin[SL_F64];
  for (int i = 0; i < sl_plugin_options (p); i++) {
    sl_setting list[4];
    const int n = outside (&p->options[i], list);
    for (int k = 0; k < n; k++) {
      sl_error e = { "" };
      if (sl_mechanism_new (t->loaded, 1, &list[k], &e))
        return sl_trial_fail (t, "option %s: %g is accepted, out of its range",
                              list[k].name, list[k].number);
      if (!strstr (e.text, p->options[i].name))
        return sl_trial_fail (t, "option %s: refused without its name: %s",
                              list[k].name, e.text);
      if (ask_validate (t, m, 1, &list[k])) return -1;
      ++*refused;
    }
  }
  return 0;
}

/* Numbers as tame as these must come out finite under every option that is
** accepted. */
static void stays_finite (sl_trial *t, sl_problem *p, void *context) {
  (void)context;
  for (int i = 0; i < 2; i++) {
    sl_stage *s = sl_trial_stage (t, (sl_dtype)i, p);
    ptrdiff_t bad;
    sl_trial_backward (t, (sl_dtype)i, s);
    bad = sl_trial_not_finite (p->outputs, s->out, 1);
    if (bad >= 0)
      sl_trial_wrong (t, p, "%s %s[%td] is %g under options that are accepted",
                      i == SL_F64 ? "f64" : "f32", sl_trial_output (t), bad,
                      s->out[bad]);
    for (int a = 0; a < p->arrays; a++) {
      bad = sl_trial_not_finite (p->size[a], s->grad[a], 1);
      if (bad >= 0)
        sl_trial_wrong (t, p,
                        "%s gradient of %s[%td] is %g under options that are "
                        "accepted",
                        i == SL_F64 ? "f64" : "f32", p->name[a], bad,
                        s->grad[a][bad]);
    }
    sl_stager_of ((sl_dtype)i)->close (s);
  }
}

void sl_check_options (sl_trial *t) {
  const sl_plugin *p = t->loaded->plugin[SL_F64];
  const sl_mechanism *m = sl_trial_mechanism (t);
  sl_combination *list;
  int count, accepted = 0, refused = 0, visits;
  if (!m || ask_validate (t, m, 0, NULL) || refuses_outside (t, m, &refused))
    return;
  count = sl_combinations (t->loaded, &list);
  if (count < 0) {
    sl_trial_fail (t, "no memory for combinations");
    return;
  }
  for (int i = 0; i < count; i++) {
    if (ask_validate (t, m, list[i].n, list[i].settings)) return;
    if (sl_mechanism_new (t->loaded, list[i].n, list[i].settings, NULL))
      accepted++;
    else
      refused++;
  }
  visits = sl_trial_each (t, SL_ALL_OPTIONS, stays_finite, NULL);
  if (sl_plugin_options (p) == 0)
    sl_trial_ok (t, "no options; finite in %d calls", visits);
  else
    sl_trial_ok (t, "%d accepted and finite, %d refused with a sentence",
                 accepted, refused);
}
