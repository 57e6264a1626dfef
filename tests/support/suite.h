/* suite.h - what every check_<file>.c begins and ends with. */
#ifndef SUITE_H
#define SUITE_H
#include <check.h>

/* Run one suite made of 'tests' test functions under the name 'name'; returns
** the exit status for main. SINKLAB_TEST_NO_FORK=1 runs without forking (for
** valgrind and gdb). */
int suite_run (const char *name, const TTest *const *tests, int n);

/* The same of a suite that has its tests already. */
int suite_finish (Suite *suite);

/* main () of a file with these tests: SUITE_MAIN ("gemm", small, large).
** (START_TEST names are variables, so no array of them can be initialised
** outside a function.) */
#define SUITE_MAIN(name, ...)                                            \
  int main (void) {                                                      \
    const TTest *const tests[] = { __VA_ARGS__ };                        \
    return suite_run (name, tests, (int)(sizeof tests / sizeof *tests)); \
  }

/* |got - want| <= atol + rtol |want|, with all four and the place in the
** message. */
#define CLOSE(got, want, atol, rtol, ...) \
  suite_close (__FILE__, __LINE__, got, want, atol, rtol, __VA_ARGS__)
void suite_close (const char *file, int line, double got, double want,
                  double atol, double rtol, const char *format, ...);
#endif
