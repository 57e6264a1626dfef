/* optimizer.c - optimizers for tests. */
#include "support/optimizer.h"
#include <check.h>
#include <stdarg.h>

sl_optimizer optimizer_of (const char *name, ...) {
  sl_optimizer o;
  sl_error e = { "" };
  const char *option;
  va_list options;
  ck_assert_msg (sl_optimizer_parse (name, &o, &e) == 0, "%s", e.text);
  va_start (options, name);
  while ((option = va_arg (options, const char *)) != NULL) {
    double *at = sl_optimizer_find (&o, option);
    ck_assert_msg (at != NULL, "%s has no option %s", name, option);
    *at = va_arg (options, double);
  }
  va_end (options);
  return o;
}
