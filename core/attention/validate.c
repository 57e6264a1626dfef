/* validate.c - a plugin's description of itself, checked when it is loaded. */
#include "attention/plugins.h"
#include "base/escape.h"
#include <limits.h>
#include <math.h>
#include <string.h>

enum {
  MAX_ELEMENTS = 256,   /* of a list: more means that its end is missing */
  MAX_CONFIG = 1 << 16, /* bytes */
  MAX_INPUTS = 6 /* an op has eight: param and length are not the plugin's */
};

const sl_property sl_properties[] = {
  { SL_NONNEGATIVE, "nonnegative", "weights are never negative" },
  { SL_SUMS_TO_ONE, "sums_to_one", "rows sum to 1" },
  { SL_SHIFT_INVARIANT, "shift_invariant",
    "a shift of the scores changes nothing" },
  { SL_KINKED, "kinked", "the gradient has kinks" },
  { SL_CAUSAL_ONLY, "causal_only", "causal attention only" },
  { SL_NULL_MASS, "null_mass", "rows sum to at most 1" },
  { 0, NULL, NULL }
};

#define COUNT(list)                                              \
  int sl_plugin_##list (const sl_plugin *p) {                    \
    int n = 0;                                                   \
    while (p->list && n <= MAX_ELEMENTS && p->list[n].name) n++; \
    return n;                                                    \
  }
COUNT (options)
COUNT (params)
COUNT (inputs)

const char *sl_plugin_shape (const sl_plugin *p) {
  return p->row ? "row" : p->gate ? "gate" : "mixer";
}

static int check_version (const char *file, const sl_plugin *p, sl_error *e) {
  if (p->abi_major != SL_ABI_MAJOR || p->abi_minor > SL_ABI_MINOR)
    return sl_fail (e, "%s: built for ABI %d.%d, this sinklab speaks %d.%d",
                    file, p->abi_major, p->abi_minor, SL_ABI_MAJOR,
                    SL_ABI_MINOR);
  if (p->size != sizeof *p)
    return sl_fail (e,
                    "%s: its sl_plugin has %u bytes, that of ABI %d.%d has "
                    "%zu",
                    file, (unsigned)p->size, SL_ABI_MAJOR, SL_ABI_MINOR,
                    sizeof *p);
  return 0;
}

/* Exactly one shape, complete. */
static int check_shape (const char *file, const sl_plugin *p, sl_error *e) {
  int n = (p->row != NULL) + (p->gate != NULL) + (p->mixer != NULL);
  int inputs = sl_plugin_inputs (p);
  if (n != 1)
    return sl_fail (
        e, "%s: has %d of the shapes row, gate and mixer; expected exactly one",
        file, n);
  if ((p->row && (!p->row->forward || !p->row->backward)) ||
      (p->gate && (!p->gate->forward || !p->gate->backward)) ||
      (p->mixer &&
       (!p->mixer->forward || !p->mixer->backward || !p->mixer->plan)))
    return sl_fail (e, "%s: its %s has no %s", file, sl_plugin_shape (p),
                    p->mixer ? "plan, forward or backward"
                             : "forward or backward");
  if (p->block && (!p->row || !p->block->forward || !p->block->backward))
    return sl_fail (e,
                    p->row ? "%s: its block has no forward or backward"
                           : "%s: a %s with a block; only a row has one",
                    file, sl_plugin_shape (p));
  if ((p->row && inputs != 0) || (p->gate && inputs > 1) ||
      (p->mixer && (inputs < 1 || inputs > MAX_INPUTS)))
    return sl_fail (e, "%s: a %s with %d inputs; expected %s", file,
                    sl_plugin_shape (p), inputs,
                    p->row    ? "none"
                    : p->gate ? "one or none"
                              : "one to six");
  return 0;
}

/* A name that can stand in a script as a key. */
static int is_identifier (const char *s) {
  static const char first[] =
      "_abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  return *s && strchr (first, *s) && strlen (s) < 64 &&
         s[strspn (s, "_abcdefghijklmnopqrstuvwxyz"
                      "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")] == '\0';
}

/* Names of one list are identifiers and unique. The list is read by stride, for
** its elements all begin with the name. */
static int check_names (const char *file, const char *kind, const void *list,
                        size_t stride, int n, sl_error *e) {
  const char *name[MAX_ELEMENTS + 1];
  if (n > MAX_ELEMENTS)
    return sl_fail (e, "%s: more than %d %ss; is the list ended by {0}?", file,
                    MAX_ELEMENTS, kind);
  for (int i = 0; i < n; i++) {
    memcpy (&name[i], (const char *)list + (size_t)i * stride, sizeof *name);
    if (!is_identifier (name[i]))
      return sl_fail (e,
                      "%s: %s %d has the name '%.40s'; expected a letter, "
                      "then letters, digits and underscores",
                      file, kind, i + 1, name[i]);
    for (int j = 0; j < i; j++)
      if (strcmp (name[i], name[j]) == 0)
        return sl_fail (e, "%s: two %ss are called '%s'", file, kind, name[i]);
  }
  return 0;
}

static int count_choices (const sl_option *o) {
  int n = 0;
  while (o->choices && n <= MAX_ELEMENTS && o->choices[n]) n++;
  return n;
}

static int check_default (const char *file, const sl_option *o, sl_error *e) {
  double min = o->min, max = o->max;
  if (o->type == SL_CHOICE) {
    int n = count_choices (o);
    if (n < 1 || n > MAX_ELEMENTS)
      return sl_fail (e, "%s: option '%s' has %s choices", file, o->name,
                      n ? "too many" : "no");
    min = 0;
    max = n - 1;
  } else if (o->type == SL_BOOL) {
    min = 0;
    max = 1;
  } else if (o->type == SL_INT && !(min >= INT_MIN && max <= INT_MAX))
    return sl_fail (e, "%s: option '%s' ranges over %g..%g, which no int holds",
                    file, o->name, min, max);
  if (!(min <= max))
    return sl_fail (e, "%s: option '%s' has the empty range %g..%g", file,
                    o->name, min, max);
  if (!(o->def >= min && o->def <= max))
    return sl_fail (e, "%s: option '%s' has the default %g, outside %g..%g",
                    file, o->name, o->def, min, max);
  if (o->type != SL_REAL && o->def != floor (o->def))
    return sl_fail (e, "%s: option '%s' has the default %g, not a whole number",
                    file, o->name, o->def);
  return 0;
}

static int check_options (const char *file, const sl_plugin *p, sl_error *e) {
  int n = sl_plugin_options (p);
  if (check_names (file, "option", p->options, sizeof *p->options, n, e))
    return -1;
  if (p->config_size > MAX_CONFIG)
    return sl_fail (e, "%s: its config has %zu bytes; at most %d are allowed",
                    file, p->config_size, MAX_CONFIG);
  for (int i = 0; i < n; i++) {
    const sl_option *o = &p->options[i];
    size_t size = o->type == SL_REAL ? sizeof (double) : sizeof (int);
    if (o->type < SL_INT || o->type > SL_CHOICE)
      return sl_fail (e, "%s: option '%s' has the unknown type %d", file,
                      o->name, o->type);
    if (o->offset % size || o->offset > p->config_size ||
        size > p->config_size - o->offset)
      return sl_fail (e, "%s: option '%s' lies at offset %zu, %s", file,
                      o->name, o->offset,
                      o->offset % size ? "which is not aligned"
                                       : "outside its config struct");
    for (int j = 0; j < i; j++) {
      const sl_option *q = &p->options[j];
      size_t other = q->type == SL_REAL ? sizeof (double) : sizeof (int);
      if (o->offset < q->offset + other && q->offset < o->offset + size)
        return sl_fail (e, "%s: options '%s' and '%s' lie on one another", file,
                        q->name, o->name);
    }
    if (check_default (file, o, e)) return -1;
  }
  return 0;
}

/* 'absent': {0, 0} is allowed. */
static int check_width (const char *file, const char *kind, const char *name,
                        sl_width w, int absent, sl_error *e) {
  const int none = w.per_dhead == 0 && w.fixed == 0;
  if (w.per_dhead < 0 || w.fixed < 0 || w.per_dhead > 1 << 16 ||
      w.fixed > 1 << 20 || (none && !absent))
    return sl_fail (e,
                    "%s: %s '%s' has the width %d * d_head + %d; expected "
                    "1 or more",
                    file, kind, name, w.per_dhead, w.fixed);
  return 0;
}

static int check_init (const char *file, const char *kind, const char *name,
                       int init, double scale, sl_error *e) {
  if (init < SL_DEFAULT || init > SL_UNIFORM)
    return sl_fail (e, "%s: %s '%s' has the unknown init %d", file, kind, name,
                    init);
  if (!isfinite (scale) ||
      ((init == SL_NORMAL || init == SL_UNIFORM) && scale < 0))
    return sl_fail (e, "%s: %s '%s' has the scale %g", file, kind, name, scale);
  return 0;
}

int sl_plugin_check_lists (const char *file, int params, const sl_param *param,
                           int inputs, const sl_input *input, int absent,
                           sl_error *e) {
  for (int i = 0; i < params; i++) {
    const sl_param *q = &param[i];
    if (check_width (file, "parameter", q->name, q->width, absent, e) ||
        check_init (file, "parameter", q->name, q->init, q->scale, e))
      return -1;
  }
  for (int i = 0; i < inputs; i++) {
    const sl_input *q = &input[i];
    if (check_width (file, "input", q->name, q->width, absent, e) ||
        check_init (file, "input", q->name, q->init, q->scale, e))
      return -1;
    if (q->shared != 0 && q->shared != 1)
      return sl_fail (e, "%s: input '%s' has shared = %d; expected 0 or 1",
                      file, q->name, q->shared);
  }
  return 0;
}

static int check_params (const char *file, const sl_plugin *p, sl_error *e) {
  int n = sl_plugin_params (p), inputs = sl_plugin_inputs (p);
  if (check_names (file, "parameter", p->params, sizeof *p->params, n, e) ||
      check_names (file, "input", p->inputs, sizeof *p->inputs, inputs, e))
    return -1;
  return sl_plugin_check_lists (file, n, p->params, inputs, p->inputs, 0, e);
}

static int check_one (const char *file, const char *name, const sl_plugin *p,
                      sl_error *e) {
  uint32_t unknown = p->properties;
  char shown[2][80];
  if (check_version (file, p, e)) return -1;
  if (!p->name || !p->version || !p->doc)
    return sl_fail (e, "%s: its %s is NULL", file,
                    !p->name      ? "name"
                    : !p->version ? "version"
                                  : "doc");
  if (strcmp (p->name, name) != 0)
    return sl_fail (e, "%s: calls itself '%s'; expected '%s', like the file",
                    file, sl_escape_text (p->name, shown[0], sizeof shown[0]),
                    sl_escape_text (name, shown[1], sizeof shown[1]));
  for (const sl_property *q = sl_properties; q->name; q++) unknown &= ~q->flag;
  if (unknown)
    return sl_fail (
        e, "%s: declares properties 0x%x, which ABI %d.%d does not define",
        file, (unsigned)unknown, SL_ABI_MAJOR, SL_ABI_MINOR);
  if (check_shape (file, p, e)) return -1;
  if (!p->mixer && (p->properties & SL_CAUSAL_ONLY))
    return sl_fail (e, "%s: a %s declares SL_CAUSAL_ONLY, which is for a mixer",
                    file, sl_plugin_shape (p));
  if (check_options (file, p, e)) return -1;
  return check_params (file, p, e);
}

static int same_width (sl_width a, sl_width b) {
  return a.per_dhead == b.per_dhead && a.fixed == b.fixed;
}

static int same_option (const sl_option *a, const sl_option *b) {
  if (strcmp (a->name, b->name) != 0 || a->type != b->type ||
      a->offset != b->offset || a->def != b->def)
    return 0;
  if (a->type == SL_INT || a->type == SL_REAL)
    return a->min == b->min && a->max == b->max;
  if (a->type == SL_BOOL) return 1;
  if (count_choices (a) != count_choices (b)) return 0;
  for (int i = 0; a->choices[i]; i++)
    if (strcmp (a->choices[i], b->choices[i]) != 0) return 0;
  return 1;
}

/* The name of a difference between the precisions, which share options and
** configs; NULL: there is none. */
static const char *difference (const sl_plugin *a, const sl_plugin *b) {
  int options = sl_plugin_options (a), params = sl_plugin_params (a);
  int inputs = sl_plugin_inputs (a);
  if (strcmp (a->version, b->version) != 0) return "version";
  if (a->properties != b->properties) return "properties";
  if (strcmp (sl_plugin_shape (a), sl_plugin_shape (b)) != 0) return "shape";
  if (a->config_size != b->config_size) return "config_size";
  if (!a->adapt != !b->adapt) return "adapt";
  if (options != sl_plugin_options (b)) return "number of options";
  if (params != sl_plugin_params (b)) return "number of parameters";
  if (inputs != sl_plugin_inputs (b)) return "number of inputs";
  for (int i = 0; i < options; i++)
    if (!same_option (&a->options[i], &b->options[i]))
      return a->options[i].name;
  for (int i = 0; i < params; i++) {
    const sl_param *p = &a->params[i], *q = &b->params[i];
    if (strcmp (p->name, q->name) != 0 || !same_width (p->width, q->width) ||
        p->init != q->init || p->scale != q->scale)
      return p->name;
  }
  for (int i = 0; i < inputs; i++) {
    const sl_input *p = &a->inputs[i], *q = &b->inputs[i];
    if (strcmp (p->name, q->name) != 0 || !same_width (p->width, q->width) ||
        p->shared != q->shared || p->init != q->init || p->scale != q->scale)
      return p->name;
  }
  return NULL;
}

int sl_plugin_validate (const char *file, const char *name,
                        const sl_plugin *const plugin[2], sl_error *e) {
  const char *differs;
  for (int i = 0; i < 2; i++)
    if (check_one (file, name, plugin[i], e)) return -1;
  differs = difference (plugin[SL_F32], plugin[SL_F64]);
  if (differs)
    return sl_fail (e, "%s: its two precisions differ in '%s'", file, differs);
  return 0;
}
