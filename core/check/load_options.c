/* load_options.c - the checks "load", "runs" and "options". */
#include "base/isa.h"
#include "base/memory.h"
#include "check/check_case.h"
#include <math.h>
#include <string.h>

void sl_check_load (sl_check_case *c) {
  sl_error e;
  const sl_loaded *l = sl_plugin_load (c->plugin, &e);
  const sl_plugin *p;
  if (!l) {
    sl_case_figure (c, "refused");
    sl_case_fail (c, "%s", e.text);
    return;
  }
  p = l->plugin[SL_F64];
  if (l->isa[SL_F32] == l->isa[SL_F64])
    sl_case_pass (c, "ABI %d.%d, %s, f32 and f64, for %s", p->abi_major,
                  p->abi_minor, sl_plugin_shape (p), sl_isa_name (l->isa[0]));
  else
    sl_case_pass (c, "ABI %d.%d, %s, f32 for %s, f64 for %s", p->abi_major,
                  p->abi_minor, sl_plugin_shape (p),
                  sl_isa_name (l->isa[SL_F32]), sl_isa_name (l->isa[SL_F64]));
}

static void run_once (sl_check_case *c, sl_harness *h, void *calls) {
  sl_case_backward (c, h);
  if (h->inputs->weights) sl_case_weights (c, h);
  *(int *)calls += h->inputs->weights ? 3 : 2;
}

void sl_check_runs (sl_check_case *c) {
  int calls = 0;
  if (!sl_case_mechanism (c)) return;
  sl_case_for_each_harness (c, SL_DEFAULTS, run_once, &calls);
  sl_case_pass (c, "%d calls", calls);
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

/* Call validate: a refusal must have one sentence that fits into 'err'. 'about'
** names the option that was set. */
static int call_validate (sl_check_case *c, const sl_plugin *p,
                          const void *config, const char *about) {
  enum { CAP = 120, GUARD = 8 };
  char why[CAP + GUARD];
  memset (why, 0, CAP);
  memset (why + CAP, 0x5a, GUARD);
  strcpy (c->doing, "validate");
  if (!p->validate || !p->validate (config, why, CAP)) return 0;
  for (int k = 0; k < GUARD; k++)
    if (why[CAP + k] != 0x5a)
      return sl_case_fail (
          c, "validate wrote past the %d bytes of 'err' (asked of %s)", CAP,
          about);
  if (!why[0] || !memchr (why, '\0', CAP))
    return sl_case_fail (
        c, "validate refuses without a sentence that fits (asked of %s)",
        about);
  if (strchr (why, '\n'))
    return sl_case_fail (
        c, "validate's sentence has more than one line (asked of %s)", about);
  return 0;
}

/* Call validate of both precisions for the defaults with n options set, which
** may be out of range. */
static int validate_both (sl_check_case *c, const sl_mechanism *m, int n,
                          const sl_setting *settings) {
  const char *about = n ? settings[0].name : "its defaults";
  char *config = sl_alloc (1, m->config_size);
  int status = 0;
  if (!config) return sl_case_fail (c, "no memory for options");
  if (m->config_size) memcpy (config, m->config, m->config_size);
  for (int i = 0; i < n; i++) store (c->loaded, config, &settings[i]);
  for (int i = 0; i < 2 && status == 0; i++)
    status = call_validate (c, c->loaded->plugin[i],
                            m->config_size ? config : NULL, about);
  sl_free (config);
  return status;
}

/* Values outside the range of an option; returns their number. */
static int values_outside (const sl_option *o, sl_setting list[4]) {
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

static int refuses_outside (sl_check_case *c, const sl_mechanism *m,
                            int *refused) {
  const sl_plugin *p = sl_case_plugin (c);
  for (int i = 0; i < sl_plugin_options (p); i++) {
    sl_setting list[4];
    const int n = values_outside (&p->options[i], list);
    for (int k = 0; k < n; k++) {
      sl_error e = { "" };
      if (sl_mechanism_new (c->loaded, 1, &list[k], &e))
        return sl_case_fail (c, "option %s: %g is accepted, out of its range",
                             list[k].name, list[k].number);
      if (!strstr (e.text, p->options[i].name))
        return sl_case_fail (c, "option %s: refused without its name: %s",
                             list[k].name, e.text);
      if (validate_both (c, m, 1, &list[k])) return -1;
      ++*refused;
    }
  }
  return 0;
}

/* Results of inputs N(0, 1) are finite with all options that are accepted. */
static void stays_finite (sl_check_case *c, sl_harness *h, void *context) {
  (void)context;
  sl_case_backward (c, h);
  for (int a = -1; a < h->inputs->arrays; a++) {
    const sl_result r = sl_case_result (c, h, a);
    const ptrdiff_t bad = sl_first_not_finite (r.n, r.x, 1);
    if (bad >= 0)
      sl_case_fail_call (c, h->inputs,
                         "%s %s%s[%td] is %g with options that are accepted",
                         sl_dtype_name (h->dtype), r.of, r.name, bad, r.x[bad]);
  }
}

void sl_check_options (sl_check_case *c) {
  const sl_plugin *p = sl_case_plugin (c);
  const sl_mechanism *m = sl_case_mechanism (c);
  sl_combination *list;
  int count, accepted = 0, refused = 0, visits;
  if (!m || validate_both (c, m, 0, NULL) || refuses_outside (c, m, &refused))
    return;
  count = sl_combinations (c->loaded, &list);
  if (count < 0) {
    sl_case_fail (c, "no memory for combinations");
    return;
  }
  for (int i = 0; i < count; i++) {
    if (validate_both (c, m, list[i].n, list[i].settings)) return;
    if (sl_mechanism_new (c->loaded, list[i].n, list[i].settings, NULL))
      accepted++;
    else
      refused++;
  }
  visits = sl_case_for_each_harness (c, SL_ALL_OPTIONS, stays_finite, NULL);
  if (sl_plugin_options (p) == 0)
    sl_case_pass (c, "no options; finite in %d calls", visits);
  else
    sl_case_pass (c, "%d accepted and finite, %d refused with a sentence",
                  accepted, refused);
}
