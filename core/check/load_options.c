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

static void run_once (sl_check_case *c, sl_test_inputs *in, void *calls) {
  for (int i = 0; i < 2; i++) {
    sl_harness *h = sl_case_harness (c, (sl_dtype)i, in);
    sl_case_backward (c, (sl_dtype)i, h);
    if (in->weights) sl_case_weights (c, (sl_dtype)i, h);
    sl_harness_calls_of ((sl_dtype)i)->close (h);
    *(int *)calls += in->weights ? 3 : 2;
  }
}

void sl_check_runs (sl_check_case *c) {
  int calls = 0;
  if (!sl_case_mechanism (c)) return;
  sl_case_for_each (c, SL_DEFAULTS, run_once, &calls);
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

/* What validate says of options: it must come back, and a refusal has a
** sentence that fits. 'about' names the option that was set. */
static int judge_validate (sl_check_case *c, const sl_plugin *p,
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

/* Ask both precisions about the defaults with some options set, which may be
** out of range. */
static int ask_validate (sl_check_case *c, const sl_mechanism *m, int n,
                         const sl_setting *settings) {
  const char *about = n ? settings[0].name : "its defaults";
  char *config = sl_alloc (1, m->config_size);
  int status = 0;
  if (!config) return sl_case_fail (c, "no memory for options");
  if (m->config_size) memcpy (config, m->config, m->config_size);
  for (int i = 0; i < n; i++) store (c->loaded, config, &settings[i]);
  for (int i = 0; i < 2 && status == 0; i++)
    status = judge_validate (c, c->loaded->plugin[i],
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

static int refuses_outside (sl_check_case *c, const sl_mechanism *m,
                            int *refused) {
  const sl_plugin *p = c->loaded->plugin[SL_F64];
  for (int i = 0; i < sl_plugin_options (p); i++) {
    sl_setting list[4];
    const int n = outside (&p->options[i], list);
    for (int k = 0; k < n; k++) {
      sl_error e = { "" };
      if (sl_mechanism_new (c->loaded, 1, &list[k], &e))
        return sl_case_fail (c, "option %s: %g is accepted, out of its range",
                             list[k].name, list[k].number);
      if (!strstr (e.text, p->options[i].name))
        return sl_case_fail (c, "option %s: refused without its name: %s",
                             list[k].name, e.text);
      if (ask_validate (c, m, 1, &list[k])) return -1;
      ++*refused;
    }
  }
  return 0;
}

/* Numbers as tame as these must come out finite under every option that is
** accepted. */
static void stays_finite (sl_check_case *c, sl_test_inputs *in, void *context) {
  (void)context;
  for (int i = 0; i < 2; i++) {
    sl_harness *h = sl_case_harness (c, (sl_dtype)i, in);
    ptrdiff_t bad;
    sl_case_backward (c, (sl_dtype)i, h);
    bad = sl_first_not_finite (in->outputs, h->out, 1);
    if (bad >= 0)
      sl_case_fail_call (
          c, in, "%s %s[%td] is %g under options that are accepted",
          i == SL_F64 ? "f64" : "f32", sl_case_output (c), bad, h->out[bad]);
    for (int a = 0; a < in->arrays; a++) {
      bad = sl_first_not_finite (in->size[a], h->grad[a], 1);
      if (bad >= 0)
        sl_case_fail_call (
            c, in,
            "%s gradient of %s[%td] is %g under options that are "
            "accepted",
            i == SL_F64 ? "f64" : "f32", in->name[a], bad, h->grad[a][bad]);
    }
    sl_harness_calls_of ((sl_dtype)i)->close (h);
  }
}

void sl_check_options (sl_check_case *c) {
  const sl_plugin *p = c->loaded->plugin[SL_F64];
  const sl_mechanism *m = sl_case_mechanism (c);
  sl_combination *list;
  int count, accepted = 0, refused = 0, visits;
  if (!m || ask_validate (c, m, 0, NULL) || refuses_outside (c, m, &refused))
    return;
  count = sl_combinations (c->loaded, &list);
  if (count < 0) {
    sl_case_fail (c, "no memory for combinations");
    return;
  }
  for (int i = 0; i < count; i++) {
    if (ask_validate (c, m, list[i].n, list[i].settings)) return;
    if (sl_mechanism_new (c->loaded, list[i].n, list[i].settings, NULL))
      accepted++;
    else
      refused++;
  }
  visits = sl_case_for_each (c, SL_ALL_OPTIONS, stays_finite, NULL);
  if (sl_plugin_options (p) == 0)
    sl_case_pass (c, "no options; finite in %d calls", visits);
  else
    sl_case_pass (c, "%d accepted and finite, %d refused with a sentence",
                  accepted, refused);
}
