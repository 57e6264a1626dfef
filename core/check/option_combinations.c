/* option_combinations.c - the combinations of options that checks use. */
#include "base/memory.h"
#include "check/test_inputs.h"
#include <math.h>

enum { MOST_PRODUCT = 64 };

/* The number of values that checks use for an option, and value number k. */
static int values (const sl_option *o) {
  int n = 2;
  if (o->type != SL_CHOICE) return n;
  for (n = 0; o->choices[n];) n++;
  return n;
}

static sl_setting value (const sl_option *o, int k) {
  sl_setting s = { o->name, k, NULL };
  if (o->type == SL_CHOICE) s.text = o->choices[k];
  if (o->type == SL_INT || o->type == SL_REAL) s.number = k ? o->max : o->min;
  return s;
}

static int is_name (const sl_option *o) {
  return o->type == SL_CHOICE || o->type == SL_BOOL;
}

/* Append a combination of n settings and return them, to be filled. */
static sl_setting *append (sl_combination *list, int *count, int n) {
  sl_setting *s = sl_alloc ((size_t)n, sizeof *s);
  if (s) list[(*count)++] = (sl_combination){ n, s };
  return s;
}

/* All combinations of choices and booleans; the first option varies fastest. */
static int multiply (const sl_plugin *p, int product, sl_combination *list,
                     int *count) {
  const int n = sl_plugin_options (p);
  for (int k = 0; k < product; k++) {
    sl_setting *s = append (list, count, n);
    int rest = k, used = 0;
    if (!s) return -1;
    for (int i = 0; i < n; i++) {
      const sl_option *o = &p->options[i];
      if (!is_name (o)) continue;
      s[used++] = value (o, rest % values (o));
      rest /= values (o);
    }
    list[*count - 1].n = used;
  }
  return 0;
}

/* Each value of one option, the others at their defaults. */
static int vary (const sl_option *o, sl_combination *list, int *count) {
  for (int k = 0; k < values (o); k++) {
    sl_setting *s = append (list, count, 1);
    if (!s) return -1;
    *s = value (o, k);
    if (!isfinite (s->number)) (*count)--;
  }
  return 0;
}

int sl_combinations (const sl_loaded *l, sl_combination **list) {
  const sl_plugin *p = l->plugin[SL_F64];
  const int n = sl_plugin_options (p);
  int product = 1, names = 0, single = 0, count = 0;
  for (int i = 0; i < n; i++) {
    const int few = values (&p->options[i]);
    single += few;
    if (!is_name (&p->options[i])) continue;
    names++;
    product = product > MOST_PRODUCT / few ? 0 : product * few;
  }
  *list = sl_alloc ((size_t)(1 + single + product), sizeof **list);
  if (!*list || !append (*list, &count, 0)) return -1;
  /* One option alone is covered by its values; too many would take too long. */
  if (names > 1 && product > 0) {
    if (multiply (p, product, *list, &count)) return -1;
  } else
    for (int i = 0; i < n; i++)
      if (is_name (&p->options[i]) && vary (&p->options[i], *list, &count))
        return -1;
  for (int i = 0; i < n; i++)
    if (!is_name (&p->options[i]) && vary (&p->options[i], *list, &count))
      return -1;
  return count;
}
