/* check_interrupt.c - the first signal sets the flag, the second ends. */
#include "base/interrupt.h"
#include "support/suite.h"
#include <sys/wait.h>
#include <unistd.h>

START_TEST (the_first_signal_sets_the_flag) {
  sl_stop_signals_handle (sl_interrupt);
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
  static const int number[] = { SIGINT, SIGTERM, SIGHUP };
  for (int i = 0; i < 3; i++) {
    int status = 0;
    pid_t child = fork ();
    if (child == 0) {
      sl_stop_signals_handle (sl_interrupt);
      raise (number[(i + 1) % 3]);
      raise (number[i]);
      _exit (0);
    }
    ck_assert_int_eq (waitpid (child, &status, 0), child);
    ck_assert (WIFSIGNALED (status));
    ck_assert_int_eq (WTERMSIG (status), number[i]);
  }
}
END_TEST

/* A program started by nohup outlives its terminal. */
START_TEST (an_ignored_hangup_stays_ignored) {
  signal (SIGHUP, SIG_IGN);
  sl_stop_signals_handle (sl_interrupt);
  raise (SIGHUP);
  ck_assert_int_eq (sl_interrupted, 0);
  raise (SIGXFSZ);
  ck_assert_int_eq (sl_interrupted, SIGXFSZ);
}
END_TEST

START_TEST (waiting_to_read_ends) {
  int ends[2];
  ck_assert_int_eq (pipe (ends), 0);
  ck_assert_int_eq (write (ends[1], "x", 1), 1);
  ck_assert_int_eq (sl_wait_to_read (ends[0]), 1);
  sl_stop_signals_handle (sl_interrupt);
  if (fork () == 0) {
    usleep (50000);
    kill (getppid (), SIGINT);
    _exit (0);
  }
  ck_assert_int_eq (read (ends[0], (char[1]){ 0 }, 1), 1);
  ck_assert_int_eq (sl_wait_to_read (ends[0]), 0);
  close (ends[1]);
  sl_interrupted = 0;
  ck_assert_int_eq (sl_wait_to_read (ends[0]), 1); /* its end */
}
END_TEST

SUITE_MAIN ("interrupt", the_first_signal_sets_the_flag, the_second_signal_ends,
            an_ignored_hangup_stays_ignored, waiting_to_read_ends)
