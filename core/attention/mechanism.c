/* mechanism.c - a plugin with the values of its options, interned. */
#include "attention/plugins.h"
#include "base/memory.h"
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct node {
  sl_mechanism mechanism; /* first: the public pointer is this one */
  struct node *next;
} node;

/* Every mechanism of the process; main thread only. */
static node *all;

/* The option called 'name', or NULL and a sentence with the nearest one. */
static const sl_option *find_option (const sl_loaded *l, const char *name,
                                     sl_error *e) {
  const sl_plugin *p = l->plugin[SL_F64];
  int n = sl_plugin_options (p);
  const char *names[256]; /* the loader allows no longer list */
  for (int i = 0; i < n; i++) {
    if (strcmp (p->options[i].name, name) == 0) return &p->options[i];
    names[i] = p->options[i].name;
  }
  if (n == 0)
    sl_fail (e, "%s has no option '%s'; it has none at all", l->name, name);
  else
    sl_fail_not_one_of (e, name, (size_t)n, names, "%s has no option '%s'",
                        l->name, name);
  return NULL;
}

/* The index of a choice by its name. */
static int find_choice (const sl_loaded *l, const sl_option *o,
                        const char *text, int *index, sl_error *e) {
  char list[400] = "";
  size_t used = 0;
  for (int i = 0; o->choices[i]; i++) {
    if (strcmp (o->choices[i], text) == 0) {
      *index = i;
      return 0;
    }
    if (used < sizeof list)
      used += (size_t)snprintf (list + used, sizeof list - used, "%s%s",
                                i ? ", " : "", o->choices[i]);
  }
  return sl_fail (e, "%s: option %s is '%.60s'; expected one of %s", l->name,
                  o->name, text, list);
}

static void store (void *config, const sl_option *o, double value) {
  char *place = (char *)config + o->offset;
  int whole = o->type == SL_REAL ? 0 : (int)value;
  if (o->type == SL_REAL)
    memcpy (place, &value, sizeof value);
  else
    memcpy (place, &whole, sizeof whole);
}

static int set (const sl_loaded *l, void *config, const sl_setting *s,
                sl_error *e) {
  const sl_option *o = find_option (l, s->name, e);
  double value = s->number;
  int index;
  if (!o) return -1;
  if (o->type == SL_CHOICE) {
    if (!s->text)
      return sl_fail (e,
                      "%s: option %s is the number %g; expected one of its "
                      "choices as text, such as '%s'",
                      l->name, o->name, value, o->choices[(int)o->def]);
    if (find_choice (l, o, s->text, &index, e)) return -1;
    store (config, o, index);
    return 0;
  }
  if (s->text)
    return sl_fail (e, "%s: option %s is the text '%.60s'; expected %s",
                    l->name, o->name, s->text,
                    o->type == SL_BOOL ? "true or false" : "a number");
  if (o->type == SL_BOOL) {
    if (value != 0 && value != 1)
      return sl_fail (e, "%s: option %s is %g; expected true or false", l->name,
                      o->name, value);
  } else if (!(value >= o->min && value <= o->max) ||
             (o->type == SL_INT && value != floor (value)))
    return sl_fail (e,
                    "%s: option %s is %.10g; expected a %snumber from %.10g "
                    "to %.10g",
                    l->name, o->name, value, o->type == SL_INT ? "whole " : "",
                    o->min, o->max);
  store (config, o, value);
  return 0;
}

/* Ask both precisions: they are two builds, and may differ in what they
** carry. */
static int validate (const sl_loaded *l, const void *config, sl_error *e) {
  for (int i = 0; i < 2; i++) {
    char why[512] = "";
    const sl_plugin *p = l->plugin[i];
    if (p->validate && p->validate (config, why, sizeof why)) {
      why[sizeof why - 1] = '\0';
      return sl_fail (e, "%s: %s", l->name,
                      *why ? why
                           : "it refuses these options, and says no more");
    }
  }
  return 0;
}

/* The node's lists: copies of the plugin's, which it may adapt. */
static int adapt (const sl_loaded *l, node *m, sl_error *e) {
  const sl_plugin *p = l->plugin[SL_F64];
  const int params = sl_plugin_params (p), inputs = sl_plugin_inputs (p);
  sl_param *param = sl_alloc ((size_t)params + 1, sizeof *param);
  sl_input *input = sl_alloc ((size_t)inputs + 1, sizeof *input);
  m->mechanism.params = param;
  m->mechanism.inputs = input;
  if (!param || !input)
    return sl_fail (e, "%s: no memory for its parameters", l->name);
  for (int i = 0; i < params; i++) param[i] = p->params[i];
  for (int i = 0; i < inputs; i++) input[i] = p->inputs[i];
  if (!p->adapt) return 0;
  p->adapt (m->mechanism.config, param, input);
  for (int i = 0; i < params; i++)
    if (param[i].name != p->params[i].name)
      return sl_fail (e, "%s: its adapt renames parameter '%s'", l->name,
                      p->params[i].name);
  for (int i = 0; i < inputs; i++)
    if (input[i].name != p->inputs[i].name)
      return sl_fail (e, "%s: its adapt renames input '%s'", l->name,
                      p->inputs[i].name);
  return sl_plugin_check_lists (l->name, params, param, inputs, input, 1, e);
}

static void node_free (node *m) {
  sl_free ((void *)m->mechanism.params);
  sl_free ((void *)m->mechanism.inputs);
  sl_free (m);
}

const sl_mechanism *sl_mechanism_new (const sl_loaded *loaded, int n,
                                      const sl_setting *settings, sl_error *e) {
  const sl_plugin *p = loaded->plugin[SL_F64];
  size_t size = p->config_size;
  void *config = sl_alloc (1, size); /* zero: equal options, equal bytes */
  node *m;
  if (!config) {
    sl_fail (e, "%s: no memory for its options", loaded->name);
    return NULL;
  }
  for (int i = 0; i < sl_plugin_options (p); i++)
    store (config, &p->options[i], p->options[i].def);
  for (int i = 0; i < n; i++)
    if (set (loaded, config, &settings[i], e)) goto failed;
  if (validate (loaded, size ? config : NULL, e)) goto failed;
  for (m = all; m; m = m->next)
    if (m->mechanism.loaded == loaded &&
        (size == 0 || memcmp (m->mechanism.config, config, size) == 0)) {
      sl_free (config);
      return &m->mechanism;
    }
  m = sl_alloc (1, sizeof *m);
  if (!m) {
    sl_fail (e, "%s: no memory for its options", loaded->name);
    goto failed;
  }
  m->mechanism.loaded = loaded;
  m->mechanism.config = size ? config : NULL;
  m->mechanism.config_size = size;
  if (adapt (loaded, m, e)) {
    node_free (m);
    goto failed;
  }
  m->next = all;
  all = m;
  if (size == 0) sl_free (config);
  return &m->mechanism;
failed:
  sl_free (config);
  return NULL;
}

int sl_mechanism_option (const sl_mechanism *m, int i, sl_setting *value) {
  const sl_plugin *p = m->loaded->plugin[SL_F64];
  const sl_option *o;
  const char *place;
  int whole;
  if (i < 0 || i >= sl_plugin_options (p)) return -1;
  o = &p->options[i];
  place = (const char *)m->config + o->offset;
  value->name = o->name;
  value->text = NULL;
  if (o->type == SL_REAL) {
    memcpy (&value->number, place, sizeof value->number);
    return 0;
  }
  memcpy (&whole, place, sizeof whole);
  value->number = whole;
  if (o->type == SL_CHOICE) value->text = o->choices[whole];
  return 0;
}

/* per_dhead * d_head + fixed, exact: the loader bounds both. */
static double width (sl_width w, int d_head) {
  return (double)w.per_dhead * d_head + w.fixed;
}

int sl_mechanism_params (const sl_mechanism *m, int d_head) {
  double sum = 0;
  for (const sl_param *p = m->params; p->name; p++)
    sum += width (p->width, d_head);
  return sum <= INT_MAX ? (int)sum : -1;
}

int sl_mechanism_input (const sl_mechanism *m, int i, int d_head) {
  const double w = width (m->inputs[i].width, d_head);
  return w <= INT_MAX ? (int)w : -1;
}

int sl_mechanism_ask (const sl_mechanism *m, sl_dtype dtype, int d_head, int t,
                      sl_plan *plan, sl_error *e) {
  const sl_shape sh = { .t = t, .d_head = d_head };
  const sl_loaded *l = m->loaded;
  char why[512] = "";
  *plan = (sl_plan){ .d_out = d_head };
  if (l->plugin[dtype]->mixer->plan (m->config, &sh, plan, why, sizeof why)) {
    why[sizeof why - 1] = '\0';
    return sl_fail (e, "%s: %s", l->name,
                    *why ? why : "it refuses these sizes, and says no more");
  }
  if (plan->d_out < 1 || plan->d_out > 1 << 20)
    return sl_fail (e, "%s: it plans an output of width %d", l->name,
                    plan->d_out);
  return 0;
}

int sl_mechanism_output (const sl_mechanism *m, int d_head, int t,
                         sl_error *e) {
  sl_plan plan;
  if (!m->loaded->plugin[SL_F64]->mixer) return d_head;
  if (sl_mechanism_ask (m, SL_F64, d_head, t, &plan, e)) return -1;
  return plan.d_out;
}
