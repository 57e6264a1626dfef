/* check_interrupt.c - the first signal sets the flag, the second ends. */
#include "base/interrupt.h"
#include "support/suite.h"
#include <sys/wait.h>
#include <unistd.h>

START_TEST (the_first_signal_sets_the_flag) {
  sl_interrupt_install ();
  ck_assert_int_eq (sl_interrupted, 0);
  raise (SIGTERM);
  ck_assert_int_eq (sl_interrupted, SIGTERM);
  sl_interrupted = 0; /* reported: the next one is a first again */
  raise (SIGINT);
  ck_assert_int_eq (sl_interrupted, SIGINT);
}
END_TEST

/* In children of their own, which must die of it. */
START_TEST (the_second_signal_ends) {
  static const int number[] = { SIGINT, SIGTERM };
  for (int i = 0; i < 2; i++) {
    int status = 0;
    pid_t child = fork ();
    if (child == 0) {
      sl_interrupt_install ();
      raise (number[1 - i]);
      raise (number[i]);
      _exit (0);
    }
    ck_assert_int_eq (waitpid (child, &status, 0), child);
    ck_assert (WIFSIGNALED (status));
    ck_assert_int_eq (WTERMSIG (status), number[i]);
  }
}
END_TEST

SUITE_MAIN ("interrupt", the_first_signal_sets_the_flag, the_second_signal_ends)
