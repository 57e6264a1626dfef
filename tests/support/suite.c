/* suite.c - what every check_<file>.c begins and ends with. */
#include "support/suite.h"
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

int suite_run (const char *name, const TTest *const *tests, int n) {
  Suite *suite = suite_create (name);
  TCase *tcase = tcase_create (name);
  tcase_set_timeout (tcase, 60);
  for (int i = 0; i < n; i++) tcase_add_test (tcase, tests[i]);
  suite_add_tcase (suite, tcase);
  return suite_finish (suite);
}

int suite_finish (Suite *suite) {
  SRunner *runner = srunner_create (suite);
  int failed;
  if (getenv ("SINKLAB_TEST_NO_FORK"))
    srunner_set_fork_status (runner, CK_NOFORK);
  srunner_run_all (runner, CK_NORMAL);
  failed = srunner_ntests_failed (runner);
  srunner_free (runner);
  return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

void suite_close (const char *file, int line, double got, double want,
                  double atol, double rtol, const char *format, ...) {
  char place[256];
  va_list args;
  if (fabs (got - want) <= atol + rtol * fabs (want)) return;
  va_start (args, format);
  vsnprintf (place, sizeof place, format, args);
  va_end (args);
  ck_abort_msg (
      "%s:%d: %s: got %.17g, want %.17g, difference %.3g, atol %.3g, rtol %.3g",
      file, line, place, got, want, got - want, atol, rtol);
}
