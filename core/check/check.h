/* check.h - tests of a plugin against its contract, each in a forked child.
**
** Every check calls the kernels directly, as the host does; none needs a model.
** A plugin that crashes or never returns ends its child, not this process. */
#ifndef SL_CHECK_H
#define SL_CHECK_H
#include "attention/mechanism.h"

typedef enum sl_check_state {
  SL_CHECK_FAILED,
  SL_CHECK_OK,
  SL_CHECK_NONE /* not applicable, or not run: 'figure' says why */
} sl_check_state;

typedef struct sl_check_result {
  const char *name;
  sl_check_state state;
  char figure[200]; /* the number on which the verdict is based */
  char why[700];    /* of a failure: one sentence with the arguments; else "" */
  double seconds;
} sl_check_result;

typedef struct sl_check_settings {
  uint64_t seed;
  double seconds;   /* time limit of each check, in s */
  const char *only; /* names with commas between them; NULL: all */
  /* NULL, or called before each check with the number of checks done and their
  ** total. */
  void (*report) (void *data, int done, int total);
  void *data;
} sl_check_settings;

/* The checks in the order in which they run: name and purpose; NULL at the
** end. */
const char *sl_check_name (int i);
const char *sl_check_doc (int i);
enum { SL_MAX_CHECKS = 32 };

/* Check a plugin by name or path, as sl_plugin_load takes it. Fills one result
** per check that was asked for and returns their number, or -1 and a sentence:
** an unknown name in 'only', no memory, interrupted. A plugin that cannot be
** loaded fails the check "load", which is then among the results in any
** case. */
int sl_check_plugin (const char *plugin, const sl_check_settings *s,
                     sl_check_result results[SL_MAX_CHECKS], sl_error *e);
#endif
